"""The records of a file as they stand in it, so that some of them can become another file."""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltarank.core.choices import choose
from deltarank.datasets.readers.long_cells import long_cells
from deltarank.datasets.readers.streams import beginning, lines, written


@dataclass(frozen=True)
class Records:
    """What a file holds, row by row, and how to write some of its rows to another file."""

    n_rows: int
    write: Callable[[Path, Any], None]


def read_records(path: Path, format: str) -> Records:
    r"""Read the rows of a file without looking at what they mean.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("size,tags\n1,a\n2,b\n3,c\n")
    >>> read_records(folder / "a.csv", "csv").write(folder / "b.csv", [0, 2])
    >>> (folder / "b.csv").read_text()
    'size,tags\n1,a\n3,c\n'
    """
    return choose(_READERS, format, "format")(path)


def _delimited(path: Path, delimiter: str) -> Records:
    with long_cells():
        reader = csv.reader((line + "\n" for line in lines(path)), delimiter=delimiter)
        head, *rows = [row for row in reader if row]

    def write(target: Path, chosen: Any) -> None:
        with written(target) as file:
            writer = csv.writer(_Encoded(file), delimiter=delimiter, lineterminator="\n")
            writer.writerow(head)
            writer.writerows(rows[row] for row in chosen)

    return Records(len(rows), write)


class _Encoded:
    """A file of bytes that takes text, for the writer of the standard library."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write text as UTF-8."""
        return int(self._file.write(text.encode()))


def _csv(path: Path) -> Records:
    names = beginning(path).partition(b"\n")[0]
    return _delimited(path, ";" if names.count(b";") > names.count(b",") else ",")


def _whole_lines(path: Path, head: Callable[[list[str], int], list[str]], n_head: int) -> Records:
    """Return lines that are a row each, below some that are not."""
    every = list(lines(path))
    above, rows = every[:n_head], every[n_head:]
    while rows and not rows[-1].strip():
        rows.pop()

    def write(target: Path, chosen: Any) -> None:
        kept = [rows[row] for row in chosen]
        with written(target) as file:
            for line in (*head(above, len(kept)), *kept):
                file.write(line.encode() + b"\n")

    return Records(len(rows), write)


def _same(above: list[str], n_rows: int) -> list[str]:
    return above


def _sized(above: list[str], n_rows: int) -> list[str]:
    """Return the first line of XMC text for another number of rows."""
    return [" ".join([str(n_rows), *above[0].split()[1:]])]


def _arrow(path: Path, read: Callable[[Any], Any], write_table: Callable[[Any, Any], None]) -> Any:
    table = read(path)

    def write(target: Path, chosen: Any) -> None:
        with written(target) as file:
            write_table(table.take(list(map(int, chosen))), file)

    return Records(table.num_rows, write)


def _parquet(path: Path) -> Any:
    from pyarrow import parquet

    return _arrow(path, parquet.read_table, parquet.write_table)


def _feather(path: Path) -> Any:
    from pyarrow import feather

    return _arrow(path, feather.read_table, feather.write_feather)


_READERS: dict[str, Callable[[Path], Records]] = {
    "csv": _csv,
    "tsv": lambda path: _delimited(path, "\t"),
    "jsonl": lambda path: _whole_lines(path, _same, 0),
    "libsvm": lambda path: _whole_lines(path, _same, 0),
    "xmc": lambda path: _whole_lines(path, _sized, 1),
    "parquet": _parquet,
    "arrow": _feather,
}


def column_cells(path: Path, format: str, name: str) -> list[Any]:
    """Return the cells of one column of a table, or refuse a file that has no such column."""
    from deltarank.datasets.readers.table_files import TABLES

    if format not in TABLES:
        raise ValueError(f"{path} is no table ({format}), so it has no column {name!r}")
    table = next(iter(TABLES[format](path, None)))
    if name not in table.columns:
        raise ValueError(
            f"{path} has no column {name!r}; its columns are {', '.join(map(repr, table.columns))}"
        )
    return list(table.columns[name])
