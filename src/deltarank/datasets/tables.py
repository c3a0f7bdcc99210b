"""Readers of tables: CSV, TSV, JSON lines, Parquet and Arrow."""

import csv
import json
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.datasets.cells import CellError
from deltarank.datasets.data import Data
from deltarank.datasets.encoder import Encoder
from deltarank.datasets.errors import DataFileError, shown
from deltarank.datasets.label_columns import from_lists, from_marks, obvious_column
from deltarank.datasets.streams import beginning, lines, opened


@dataclass(frozen=True)
class Table:
    """Columns by name, and the line of the file that each row stands on, where it has lines."""

    columns: dict[str, Any]
    n_rows: int
    line_of: Sequence[int] | None = None


def read_csv(path: str | PathLike[str], **options: Any) -> Data:
    """Read a table of values separated by commas or semicolons under a line of names.

    The options are those of `read_table`.
    """
    names = beginning(Path(path)).partition(b"\n")[0]
    delimiter = ";" if names.count(b";") > names.count(b",") else ","
    return read_table(Path(path), _read_delimited(Path(path), delimiter), **options)


def read_tsv(path: str | PathLike[str], **options: Any) -> Data:
    """Read a table of tab-separated values with a line of names: see `read_table`."""
    return read_table(Path(path), _read_delimited(Path(path), "\t"), **options)


def read_jsonl(path: str | PathLike[str], **options: Any) -> Data:
    """Read a table of JSON objects, one a line: see `read_table`."""
    return read_table(Path(path), _read_json_lines(Path(path)), **options)


def read_parquet(path: str | PathLike[str], **options: Any) -> Data:
    """Read a Parquet table: see `read_table`."""
    return read_table(Path(path), _read_with_pyarrow(Path(path), _parquet), **options)


def read_arrow(path: str | PathLike[str], **options: Any) -> Data:
    """Read an Arrow (Feather) file or stream: see `read_table`."""
    return read_table(Path(path), _read_with_pyarrow(Path(path), _arrow), **options)


def read_table(
    path: Path,
    table: Table,
    *,
    labels: str | Sequence[str] | None = None,
    separator: str = ",",
    text: Collection[str] = (),
    categorical: Collection[str] = (),
    ignore: Collection[str] = (),
    label_names: Sequence[str] | None = None,
    encoder: Encoder | None = None,
) -> Data:
    """Make features and labels of a table.

    Parameters
    ----------
    path : path
        Where the table came from, for errors.
    table : Table
    labels : str or sequence of str, optional
        One column of label lists, or the columns of 0 and 1, a label each; ``[]`` for none. By
        default the column called labels, label, tags, tag or categories, if there is just one.
    separator : str
        Stands between the labels of a string.
    text, categorical : collection of str
        Columns to take as text and as categories; for others, their cells tell.
    ignore : collection of str
        Columns to leave out.
    label_names : sequence of str, optional
        Labels that lists may hold, in order; by default those that occur, sorted.
    encoder : Encoder, optional
        From other rows, to get the same features; by default one is fitted.
    """
    names = list(table.columns)
    if labels is None:
        labels = obvious_column(names)
    if labels is None:
        raise ValueError(
            f"{path}: labels= must name the column of label lists, or the columns of 0 and 1; "
            f"the columns are {_listed(names)}"
        )
    marked = [labels] if isinstance(labels, str) else list(labels)
    _require(path, names, {"labels": marked, "text": text, "categorical": categorical,
                           "ignore": ignore})  # fmt: skip
    if "" in names and "" not in ignore and encoder is None:
        raise DataFileError(path, "a column has no name; pass ignore=[''] to leave it out", line=1)
    try:
        if isinstance(labels, str):
            Y, found = from_lists(labels, table.columns[labels], separator, label_names)
        elif marked:
            Y, found = from_marks(table.columns, marked), tuple(marked)
        else:
            Y, found = sparse.csr_array((table.n_rows, 0), dtype=np.int8), ()
        if encoder is None:
            left_out = {*marked, *ignore}
            kinds = {**dict.fromkeys(text, "text"), **dict.fromkeys(categorical, "category")}
            features = {n: cells for n, cells in table.columns.items() if n not in left_out}
            if not features:
                raise DataFileError(path, "no columns are left for features")
            encoder = Encoder.fit(features, kinds)
        _require(path, names, {"encoder": [column.name for column in encoder.columns]})
        X = encoder.transform(table.columns)
    except CellError as error:
        line = None if table.line_of is None else table.line_of[error.row]
        where = "" if line is not None else f"row {error.row}: "
        raise DataFileError(path, where + error.problem, line=line, column=error.column) from None
    column = labels if isinstance(labels, str) else None
    return Data(X, Y, tuple(encoder.feature_names()), found, encoder, column)


def _require(path: Path, names: Collection[str], wanted: dict[str, Collection[str]]) -> None:
    for option, columns in wanted.items():
        why = "a feature in training" if option == "encoder" else f"which {option}= names"
        for name in columns:
            if name not in names:
                raise ValueError(
                    f"{path} has no column {name!r}, {why}; its columns are {_listed(names)}"
                )


def _listed(names: Collection[str]) -> str:
    shown = [repr(name) for name in list(names)[:20]]
    return ", ".join(shown) + (", ..." if len(names) > 20 else "")


def _read_delimited(path: Path, delimiter: str) -> Table:
    limit = csv.field_size_limit(sys.maxsize)  # a cell of text may be long
    try:
        return _rows_of_cells(path, delimiter)
    finally:
        csv.field_size_limit(limit)


def _rows_of_cells(path: Path, delimiter: str) -> Table:
    reader = csv.reader((line + "\n" for line in lines(path)), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    line_of: list[int] = []
    empty_line = None
    begins = 1
    try:
        for row in reader:
            if not row:
                empty_line = empty_line or begins
            elif empty_line is not None:
                raise DataFileError(path, "an empty line among the rows", line=empty_line)
            elif rows and len(row) != len(rows[0]):
                problem = f"a row must have {len(rows[0])} cells, as the first line; got {len(row)}"
                raise DataFileError(path, problem, line=begins)
            else:
                rows.append(row)
                line_of.append(begins)
            begins = reader.line_num + 1
    except csv.Error as error:
        raise DataFileError(path, f"quotes do not match ({error})", line=begins) from None
    if len(rows) < 2:
        raise DataFileError(path, "the file must hold a line of names and at least one row")
    header = [name.strip() for name in rows.pop(0)]
    for i, name in enumerate(header):
        if name in header[:i]:
            raise DataFileError(path, f"two columns have the name {name!r}", line=1, column=i + 1)
    cells = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    return Table(cells, len(rows), line_of[1:])


def _read_json_lines(path: Path) -> Table:
    rows: list[dict[str, Any]] = []
    empty_line = None
    for number, line in enumerate(lines(path), start=1):
        if not line.strip():
            empty_line = empty_line or number
            continue
        if empty_line is not None:
            raise DataFileError(path, "an empty line among the rows", line=empty_line)
        rows.append(_parse_object(path, line, number))
    if not rows:
        raise DataFileError(path, "the file holds no rows")
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = {name: [row.get(name) for row in rows] for name in names}
    return Table(cells, len(rows), range(1, len(rows) + 1))


def _parse_object(path: Path, line: str, number: int) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise DataFileError(path, "a name occurs twice in an object", line=number)
        return found

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
        raise DataFileError(
            path, f"each line must be a JSON object; got {shown(line)}", line=number, column=1
        )
    return row


def _read_with_pyarrow(path: Path, read: Callable[[Any], Any]) -> Table:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "Parquet and Arrow files need pyarrow: pip install 'deltarank[tables]'"
        ) from error
    try:
        with opened(path) as (content, _):
            table = read(content)
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise DataFileError(path, f"not readable ({str(error).splitlines()[0]})") from None
    names = table.column_names
    for i, name in enumerate(names):
        if name in names[:i]:
            raise DataFileError(path, f"two columns have the name {name!r}", column=i + 1)
    if not table.num_rows:
        raise DataFileError(path, "the file holds no rows")
    return Table({name: _arrow_cells(table[name]) for name in names}, table.num_rows)


def _parquet(content: Any) -> Any:
    from pyarrow import parquet

    return parquet.read_table(content)


def _arrow(content: Any) -> Any:
    from pyarrow import feather, ipc

    if content.read(6) == b"ARROW1":
        content.seek(0)
        return feather.read_table(content)
    content.seek(0)
    return ipc.open_stream(content).read_all()


def _arrow_cells(column: Any) -> list[Any] | NDArray[Any]:
    import pyarrow.types as types

    kind = column.type
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    if is_number and column.null_count == 0:
        return np.asarray(column.to_numpy())
    cells: list[Any] = column.to_pylist()
    return cells
