"""Labels of a table: which columns hold them, and columns of 0 and 1."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from scipy import sparse

from deltarank.datasets.readers.cells import CellError, as_cells

# Names that say of themselves that a column holds labels.
OBVIOUS = ("labels", "label", "tags", "tag", "categories")
_MARKS = {"0": False, "1": True, "false": False, "true": True}


def marked_columns(labels: int | Sequence[str], names: Collection[str]) -> list[str]:
    """Return the columns that ``labels=`` means: a number of first or last ones, names, patterns.

    Examples
    --------
    >>> names = ["size", "lab_a", "lab_b"]
    >>> marked_columns(-2, names), marked_columns(["lab_*"], names), marked_columns(["size"], names)
    (['lab_a', 'lab_b'], ['lab_a', 'lab_b'], ['size'])
    """
    if isinstance(labels, int):
        if not 0 < abs(labels) < len(names):
            raise ValueError(
                f"labels={labels} must leave columns for features; there are {len(names)} columns"
            )
        return list(names)[:labels] if labels > 0 else list(names)[labels:]
    columns: dict[str, None] = {}
    for label in labels:
        matches = [] if label in names else [name for name in names if fnmatchcase(name, label)]
        columns.update(dict.fromkeys(matches or [label]))
    return list(columns)


def obvious_column(names: Iterable[str]) -> str | None:
    """Return the one column whose name says that it holds labels, if there is just one.

    Examples
    --------
    >>> obvious_column(["title", "Tags"]), obvious_column(["tags", "labels"])
    ('Tags', None)
    """
    matches = [name for name in names if name.lower() in OBVIOUS]
    return matches[0] if len(matches) == 1 else None


def from_marks(table: Mapping[str, Any], names: Sequence[str]) -> sparse.csr_array:
    """Return the label sets of columns that hold 0 and 1, or false and true.

    Examples
    --------
    >>> from_marks({"a": [1, 0], "b": ["true", "false"]}, ["a", "b"]).toarray()
    array([[1, 1],
           [0, 0]], dtype=int8)
    """
    columns = [_marks(name, as_cells(table[name])) for name in names]
    return sparse.csr_array(np.column_stack(columns).astype(np.int8))


def _marks(name: str, cells: Any) -> Any:
    if isinstance(cells, np.ndarray):
        wrong = np.flatnonzero((cells != 0) & (cells != 1))
        if len(wrong):
            row = int(wrong[0])
            raise CellError(f"a label must be 0 or 1; got {cells[row]}", name, row)
        return cells != 0
    marks = np.empty(len(cells), bool)
    for row, cell in enumerate(cells):
        text = str(int(cell)) if cell in (0, 1) else str(cell).strip().lower()
        if text not in _MARKS:
            raise CellError(f"a label must be 0 or 1; got {cell!r}", name, row)
        marks[row] = _MARKS[text]
    return marks
