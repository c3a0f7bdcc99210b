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
from deltarank.datasets.readers.label_columns import from_marks, marked_columns, obvious_column
from deltarank.datasets.readers.label_lists import LabelLists, from_lists
from deltarank.datasets.readers.table_files import (
    Table,
    Tables,
    arrow_tables,
    csv_tables,
    json_tables,
    parquet_tables,
    tsv_tables,
)
from deltarank.datasets.readers.telling_nothing import reason_to_leave_out
from deltarank.datasets.readers.vectors_beside import COLUMN as VECTORS
from deltarank.datasets.readers.vectors_beside import require_rows, with_vectors


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
    (table,) = tables(Path(path), None)
    if options.get("vectors") is not None:
        require_rows(Path(path), table.n_rows, options["vectors"])
    return read_table(Path(path), table, **options)


def table_blocks(tables: Tables) -> Callable[..., Iterator[Data]]:
    """Return a function that yields the features of a file, about this many bytes at a time."""

    def blocks(
        path: Path, encoder: Encoder, n_bytes: int, vectors: str | PathLike[str] | None = None
    ) -> Iterator[Data]:
        n_rows = 0
        for table in tables(path, n_bytes):
            yield read_table(path, table, labels=[], encoder=encoder, vectors=vectors)
            n_rows += table.n_rows
        if vectors is not None:
            require_rows(path, n_rows, vectors)

    return blocks


def read_table(
    path: Path,
    table: Table,
    *,
    labels: str | int | Sequence[str] | None = None,
    separator: str | None = None,
    text: Collection[str] = (),
    categorical: Collection[str] = (),
    ignore: Collection[str] = (),
    label_names: Sequence[str] | None = None,
    encoder: Encoder | None = None,
    vectors: str | PathLike[str] | None = None,
    fill_text: bool = True,
) -> Data:
    """Make features and labels of a table.

    Parameters
    ----------
    path : path
        Where the table came from, for errors.
    table : Table
    labels : str, int or sequence of str, optional
        One column of label lists, or the columns of 0 and 1, one per label: their names or patterns
        such as ``lab_*``, or how many they are (the last ones, if negative); ``[]`` for none. By
        default the column called labels, label, tags, tag or categories, if there is just one.
    separator : str, optional
        Stands between the labels of a string; by default a semicolon, a bar or a comma, whichever
        the cells have.
    text, categorical : collection of str
        Columns to take as text and as categories; for others, their cells tell. Identifiers and
        dates are left out unless they are named here.
    ignore : collection of str
        Columns to leave out.
    label_names : sequence of str, optional
        Labels that lists may hold, in order; by default those that occur, sorted.
    encoder : Encoder, optional
        From other rows, to get the same features; by default one is fitted.
    vectors : path, optional
        An .npy file of one vector per row, such as embeddings, in float16, float32 or float64: one
        more column, called ``vectors``.
    fill_text : bool
        Whether X has the values of texts when an encoder is fitted; else their columns are empty.
    """
    if vectors is not None:
        table = with_vectors(path, table, vectors)
    names = table.columns.keys()
    if labels is None:
        labels = obvious_column(names)
    if labels is None:
        raise ValueError(
            f"{path}: labels= must name the column of label lists, or the columns of 0 and 1; "
            f"the columns are {_listed(names)}"
        )
    marked = [labels] if isinstance(labels, str) else marked_columns(labels, names)
    _require(path, names, {"labels": marked, "text": text, "categorical": categorical,
                           "ignore": ignore})  # fmt: skip
    if "" in names and "" not in ignore and encoder is None:
        raise DataFileError(path, "a column has no name; pass ignore=[''] to leave it out", line=1)
    column = labels if isinstance(labels, str) else None
    try:
        if column is not None:
            cells = table.columns[column]
            # Lists of as many numbers each come as one array.
            cells = cells.tolist() if isinstance(cells, np.ndarray) and cells.ndim == 2 else cells
            sets = from_lists(column, cells, separator, label_names)
        else:
            sets = LabelLists(_from_marks(table, marked), tuple(marked), None, ())
        if encoder is None:
            kinds = {**dict.fromkeys(text, "text"), **dict.fromkeys(categorical, "category")}
            features, notes = _features(path, table, {*marked, *ignore}, kinds)
            encoder, X = Encoder.fit_transform(features, kinds, fill_text=fill_text)
        else:
            _require(path, names, {"encoder": [column.name for column in encoder.columns]})
            X, notes = encoder.transform(table.columns), ()
    except CellError as error:
        line = None if table.line_of is None else table.line_of[error.row]
        where = "" if line is not None else f"row {table.first_row + error.row}: "
        raise DataFileError(path, where + error.problem, line=line, column=error.column) from None
    return Data(
        X,
        sets.Y,
        tuple(encoder.feature_names()),
        sets.names,
        encoder,
        column,
        sets.separator,
        (*notes, *sets.notes),
    )


def _from_marks(table: Table, names: list[str]) -> sparse.csr_array:
    if names:
        return from_marks(table.columns, names)
    return sparse.csr_array((table.n_rows, 0), dtype=np.int8)


def _features(
    path: Path, table: Table, left_out: set[str], kinds: dict[str, str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the columns that are features, and a note on each that tells nothing."""
    features = {name: cells for name, cells in table.columns.items() if name not in left_out}
    if not features:
        raise DataFileError(path, "no columns are left for features")
    guessed = {name: cells for name, cells in features.items() if name not in kinds}
    reasons = {name: reason_to_leave_out(name, cells) for name, cells in guessed.items()}
    useless = {name: reason for name, reason in reasons.items() if reason is not None}
    if len(useless) == len(features):  # better a poor feature than none
        return features, ()
    notes = tuple(
        f"column {name!r} is left out: {reason} (categorical=, --categorical takes it)"
        for name, reason in useless.items()
    )
    return {name: cells for name, cells in features.items() if name not in useless}, notes


def _require(path: Path, names: Collection[str], wanted: dict[str, Collection[str]]) -> None:
    for option, columns in wanted.items():
        why = "a feature in training" if option == "encoder" else f"which {option}= names"
        for name in columns:
            if name not in names:
                hint = "; vectors= (--vectors) names their file" if name == VECTORS else ""
                raise ValueError(
                    f"{path} has no column {name!r}, {why}{hint}; its columns are {_listed(names)}"
                )


def _listed(names: Collection[str]) -> str:
    shown = [repr(name) for name in list(names)[:20]]
    return ", ".join(shown) + (", ..." if len(names) > 20 else "")
