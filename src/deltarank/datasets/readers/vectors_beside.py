"""Vectors in an .npy file beside a table: one row of numbers for each of its rows."""

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.datasets.readers.errors import DataFileError
from deltarank.datasets.readers.table_files import Table

# What the column is called whatever the file is, so that other rows may have other files.
COLUMN = "vectors"


def with_vectors(path: Path, table: Table, vectors: str | PathLike[str]) -> Table:
    """Return some rows of a table with their vectors as one more column.

    The file is mapped into memory, so that of many rows only those of the table are read.
    """
    if COLUMN in table.columns:
        raise ValueError(
            f"{path} has a column {COLUMN!r} of its own, beside vectors= (--vectors); rename it"
        )
    cells = _mapped(vectors)[table.first_row : table.first_row + table.n_rows]
    if len(cells) < table.n_rows:
        require_rows(path, table.first_row + table.n_rows, vectors, at_least=True)
    return replace(table, columns={**table.columns, COLUMN: cells})


def require_rows(
    path: Path, n_rows: int, vectors: str | PathLike[str], *, at_least: bool = False
) -> None:
    """Refuse vectors of fewer or more rows than the table has, or is known to have at least."""
    n_vectors = len(_mapped(vectors))
    if n_vectors != n_rows:
        more = " or more" if at_least else ""
        raise DataFileError(
            vectors, f"one vector per row of {path} is wanted, {n_rows}{more}; got {n_vectors}"
        )


def _mapped(vectors: str | PathLike[str]) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(vectors, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataFileError(vectors, f"an .npy file of numbers is wanted ({error})") from None
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "iuf":
        shape = getattr(array, "shape", "several arrays")
        raise DataFileError(
            vectors,
            "an array of numbers with one row per row of the table is wanted; got "
            f"{getattr(array, 'dtype', type(array).__name__)} of shape {shape}",
        )
    return array
