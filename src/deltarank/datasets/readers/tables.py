"""Readers of tables: features and labels out of their columns."""

from collections.abc import Callable, Collection, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from deltarank.datasets.data import Data
from deltarank.datasets.encoder import Encoder
from deltarank.datasets.readers.cells import CellError
from deltarank.datasets.readers.errors import DataFileError
from deltarank.datasets.readers.label_columns import from_lists, from_marks, obvious_column
from deltarank.datasets.readers.table_files import (
    Table,
    Tables,
    arrow_tables,
    csv_tables,
    json_tables,
    parquet_tables,
    tsv_tables,
)


def read_csv(path: str | PathLike[str], **options: Any) -> Data:
    """Read a table of values separated by commas or semicolons under a line of names.

    The options are those of `read_table`.
    """
    return _read(csv_tables, path, options)


def read_tsv(path: str | PathLike[str], **options: Any) -> Data:
    """Read a table of tab-separated values with a line of names: see `read_table`."""
    return _read(tsv_tables, path, options)


def read_jsonl(path: str | PathLike[str], **options: Any) -> Data:
    """Read a table of JSON objects, one per line: see `read_table`."""
    return _read(json_tables, path, options)


def read_parquet(path: str | PathLike[str], **options: Any) -> Data:
    """Read a Parquet table: see `read_table`."""
    return _read(parquet_tables, path, options)


def read_arrow(path: str | PathLike[str], **options: Any) -> Data:
    """Read an Arrow (Feather) file or stream: see `read_table`."""
    return _read(arrow_tables, path, options)


def _read(tables: Tables, path: str | PathLike[str], options: dict[str, Any]) -> Data:
    return read_table(Path(path), *tables(Path(path), None), **options)


def table_blocks(tables: Tables) -> Callable[[Path, Encoder, int], Iterator[Data]]:
    """Return a function that yields the features of a file, about so many bytes at a time."""

    def blocks(path: Path, encoder: Encoder, n_bytes: int) -> Iterator[Data]:
        for table in tables(path, n_bytes):
            yield read_table(path, table, labels=[], encoder=encoder)

    return blocks


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
        One column of label lists, or the columns of 0 and 1, one per label; ``[]`` for none. By
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
    names = table.columns.keys()
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
            Y, known_labels = from_lists(labels, table.columns[labels], separator, label_names)
        elif marked:
            Y, known_labels = from_marks(table.columns, marked), tuple(marked)
        else:
            Y, known_labels = sparse.csr_array((table.n_rows, 0), dtype=np.int8), ()
        if encoder is None:
            left_out = {*marked, *ignore}
            kinds = {**dict.fromkeys(text, "text"), **dict.fromkeys(categorical, "category")}
            features = {n: cells for n, cells in table.columns.items() if n not in left_out}
            if not features:
                raise DataFileError(path, "no columns are left for features")
            encoder, X = Encoder.fit_transform(features, kinds)
        else:
            _require(path, names, {"encoder": [column.name for column in encoder.columns]})
            X = encoder.transform(table.columns)
    except CellError as error:
        line = None if table.line_of is None else table.line_of[error.row]
        where = "" if line is not None else f"row {table.first_row + error.row}: "
        raise DataFileError(path, where + error.problem, line=line, column=error.column) from None
    column = labels if isinstance(labels, str) else None
    return Data(X, Y, tuple(encoder.feature_names()), known_labels, encoder, column)


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
