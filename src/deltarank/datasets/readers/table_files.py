"""Files to tables: CSV, TSV, JSON lines, Parquet and Arrow; whole, or some rows at a time."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.extras import install
from deltarank.datasets.readers.errors import DataFileError, shown
from deltarank.datasets.readers.long_cells import long_cells
from deltarank.datasets.readers.streams import CHUNK_BYTES, beginning, lines, opened

# Rows that a block of a Parquet file is cut from: what a row takes is known once it is read.
PARQUET_ROWS = 1 << 11
# A file of this few bytes cannot need more memory than there is, unless it is damaged.
LARGEST_WITHOUT_WANT = 1 << 24


@dataclass(frozen=True)
class Table:
    """Columns by name, and the line of the file that each row stands on, where it has lines.

    `first_row` counts the rows of the file before it.
    """

    columns: dict[str, Any]
    n_rows: int
    line_of: Sequence[int] | None = None
    first_row: int = 0


# Gives the tables of a file; each of about this many bytes, or one of the whole file.
Tables = Callable[[Path, int | None], Iterator[Table]]


def csv_tables(path: Path, n_bytes: int | None) -> Iterator[Table]:
    """Read values separated by commas or semicolons under a line of names."""
    names = beginning(path).partition(b"\n")[0]
    delimiter = ";" if names.count(b";") > names.count(b",") else ","
    return _delimited(path, delimiter, n_bytes)


def tsv_tables(path: Path, n_bytes: int | None) -> Iterator[Table]:
    """Read tab-separated values under a line of names."""
    return _delimited(path, "\t", n_bytes)


def _delimited(path: Path, delimiter: str, n_bytes: int | None) -> Iterator[Table]:
    with long_cells():
        rows = _rows_of_cells(path, delimiter, n_bytes)
        header = _header(path, next(rows, None))
        read = 0
        for cells, line_of in rows:
            columns = dict(zip(header, map(list, zip(*cells, strict=True)), strict=True))
            yield Table(columns, len(cells), line_of, read)
            read += len(cells)
        if not read:
            raise DataFileError(path, "the file must hold a line of names and at least one row")


_Rows = tuple[list[list[str]], list[int]]


def _rows_of_cells(path: Path, delimiter: str, n_bytes: int | None) -> Iterator[_Rows]:
    """Yield the first row alone, then the others as lists of rows and the lines they begin on."""
    counted = _CountedLines(path, n_bytes)
    reader = csv.reader(counted, delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    line_of: list[int] = []
    width = empty_line = None
    begins = 1
    try:
        for row in reader:
            if not row:
                empty_line = empty_line or begins
            elif empty_line is not None:
                raise DataFileError(path, "an empty line among the rows", line=empty_line)
            elif width is not None and len(row) != width:
                problem = f"a row must have {width} cells, as the first line; got {len(row)}"
                raise DataFileError(path, problem, line=begins)
            else:
                rows.append(row)
                line_of.append(begins)
            begins = reader.line_num + 1
            if rows and (width is None or counted.is_enough()):
                width = len(rows[0])
                yield rows, line_of
                rows, line_of = [], []
    except csv.Error as error:
        raise DataFileError(path, f"quotes do not match ({error})", line=begins) from None
    if rows:
        yield rows, line_of


class _CountedLines:
    """The lines of a file with their ends, and whether a block of them is full."""

    def __init__(self, path: Path, n_bytes: int | None) -> None:
        self._lines = lines(path, n_bytes or CHUNK_BYTES)
        self._most, self._count = n_bytes, 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines) + "\n"
        self._count += len(line)
        return line

    def is_enough(self) -> bool:
        """Tell whether a block is full; the next one starts then."""
        if self._most is None or self._count < self._most:
            return False
        self._count = 0
        return True


def _header(path: Path, first: _Rows | None) -> list[str]:
    if first is None:
        raise DataFileError(path, "the file must hold a line of names and at least one row")
    header = [name.strip() for name in first[0][0]]
    _check_names(path, header, line=1)
    return header


def json_tables(path: Path, n_bytes: int | None) -> Iterator[Table]:
    """Read JSON objects, one per line; a column seen once is in all later tables."""
    counted = _CountedLines(path, n_bytes)
    names: dict[str, None] = {}
    rows: list[dict[str, Any]] = []
    empty_line, read = None, 0
    for number, line in enumerate(counted, start=1):
        if not line.strip():
            empty_line = empty_line or number
            continue
        if empty_line is not None:
            raise DataFileError(path, "an empty line among the rows", line=empty_line)
        rows.append(_parse_object(path, line, number))
        if counted.is_enough():
            yield _table_of_objects(rows, names, read)
            read += len(rows)
            rows = []
    if rows:
        yield _table_of_objects(rows, names, read)
    elif not read:
        raise DataFileError(path, "the file holds no rows")


def _table_of_objects(rows: list[dict[str, Any]], names: dict[str, None], read: int) -> Table:
    names.update(dict.fromkeys(name for row in rows for name in row))
    cells = {name: [row.get(name) for row in rows] for name in names}
    return Table(cells, len(rows), range(read + 1, read + len(rows) + 1), read)


def _parse_object(path: Path, line: str, number: int) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        cells = dict(pairs)
        if len(cells) < len(pairs):
            raise DataFileError(path, "a name occurs twice in an object", line=number)
        return cells

    if number == 1 and line.lstrip().startswith("["):
        problem = "one JSON object per line is wanted; got an array: jq -c '.[]' writes it so"
        raise DataFileError(path, problem, line=1, column=1)
    try:
        row = json.loads(line, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise DataFileError(
            path, f"not JSON: {error.msg}", line=number, column=error.colno
        ) from None
    except DataFileError:
        raise
    except (ValueError, RecursionError) as error:  # endless numbers, endless nesting
        raise DataFileError(path, f"not readable JSON ({error})", line=number) from None
    if not isinstance(row, dict):
        problem = f"each line must be a JSON object; got {shown(line.rstrip())}"
        raise DataFileError(path, problem, line=number, column=1)
    return row


def parquet_tables(path: Path, n_bytes: int | None) -> Iterator[Table]:
    """Read Parquet."""
    return _with_pyarrow(path, _parquet, n_bytes)


def arrow_tables(path: Path, n_bytes: int | None) -> Iterator[Table]:
    """Read an Arrow (Feather) file or stream."""
    return _with_pyarrow(path, _arrow, n_bytes)


def _with_pyarrow(
    path: Path, read: Callable[[Any, int | None], Iterator[Any]], n_bytes: int | None
) -> Iterator[Table]:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(f"Parquet and Arrow files need pyarrow: {install('tables')}") from error
    n_read = 0
    try:
        with opened(path) as (content, _):
            for table in read(content, n_bytes):
                _check_names(path, table.column_names)
                cells = {name: _arrow_cells(table[name]) for name in table.column_names}
                yield Table(cells, table.num_rows, first_row=n_read)
                n_read += table.num_rows
    except UnicodeDecodeError as error:
        raise DataFileError(path, f"names must be UTF-8; got {error.object!r}") from None
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise DataFileError(path, f"not readable ({str(error).splitlines()[0]})") from None
    except MemoryError:
        if path.stat().st_size > LARGEST_WITHOUT_WANT:
            raise
        raise DataFileError(
            path, "it asks for more memory than there is, as damaged files do"
        ) from None
    if not n_read:
        raise DataFileError(path, "the file holds no rows")


def _check_names(path: Path, names: list[str], line: int | None = None) -> None:
    seen: set[str] = set()
    for i, name in enumerate(names, start=1):
        if name in seen:
            raise DataFileError(path, f"two columns have the name {name!r}", line=line, column=i)
        seen.add(name)


def _parquet(content: Any, n_bytes: int | None) -> Iterator[Any]:
    from pyarrow import parquet

    if n_bytes is None:
        yield from _if_any(parquet.read_table(content))
        return
    file = parquet.ParquetFile(content, pre_buffer=False)
    yield from _sliced(file.iter_batches(PARQUET_ROWS), n_bytes)


def _arrow(content: Any, n_bytes: int | None) -> Iterator[Any]:
    from pyarrow import feather, ipc

    is_file = content.read(6) == b"ARROW1"
    content.seek(0)
    if n_bytes is None:
        read_all = feather.read_table if is_file else lambda c: ipc.open_stream(c).read_all()
        yield from _if_any(read_all(content))
        return
    batches = _file_batches(ipc.open_file(content)) if is_file else ipc.open_stream(content)
    yield from _sliced(batches, n_bytes)


def _file_batches(reader: Any) -> Iterator[Any]:
    return (reader.get_batch(i) for i in range(reader.num_record_batches))


def _sliced(batches: Iterable[Any], n_bytes: int) -> Iterator[Any]:
    import pyarrow

    for batch in batches:
        table = _valid(pyarrow.Table.from_batches([batch]))
        n_rows = max(1, n_bytes * table.num_rows // max(1, table.nbytes))
        for first in range(0, table.num_rows, n_rows):
            yield table.slice(first, n_rows)


def _if_any(table: Any) -> list[Any]:
    return [_valid(table)] if table.num_rows else []


def _valid(table: Any) -> Any:
    """Return the table; a damaged one would end the process when its strings are looked at."""
    table.validate(full=True)
    return table


def _arrow_cells(column: Any) -> list[Any] | NDArray[Any]:
    import pyarrow.types as types

    kind = column.type
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    if is_number and column.null_count == 0:
        return np.asarray(column.to_numpy())
    if column.null_count == 0 and (vectors := _vectors(column)) is not None:
        return vectors
    cells: list[Any] = column.to_pylist()
    return cells


def _vectors(column: Any) -> NDArray[Any] | None:
    """Return lists of as many numbers each as one array (n, d); None for any other column."""
    import pyarrow.compute as compute
    import pyarrow.types as types

    kind = column.type
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not is_list or not types.is_floating(kind.value_type) or not len(column):
        return None
    widths, numbers = compute.list_value_length(column), compute.list_flatten(column)
    limits = compute.min_max(widths).as_py()
    if limits["min"] != limits["max"] or not limits["min"] or numbers.null_count:
        return None
    numbers_by_row = np.asarray(numbers.to_numpy()).reshape(len(column), limits["min"])
    return (
        numbers_by_row.astype(np.float32) if numbers_by_row.dtype == np.float16 else numbers_by_row
    )


TABLES: dict[str, Tables] = {
    "csv": csv_tables,
    "tsv": tsv_tables,
    "jsonl": json_tables,
    "parquet": parquet_tables,
    "arrow": arrow_tables,
}
