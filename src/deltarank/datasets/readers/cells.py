"""Cells of a table: numbers, strings, or missing."""

import math
import re
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

# What people and programs write for a value that is not there.
MISSING = frozenset(
    {
        None, "", "?", "-", "--", "NA", "na", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan",
        "-NaN", "-nan", "NULL", "Null", "null", "None",
    }
)  # fmt: skip
# Narrower than Python's float, which also reads 1_000 and inf.
NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


class CellError(ValueError):
    """A cell that does not fit its column."""

    def __init__(self, problem: str, column: str, row: int) -> None:
        self.problem, self.column, self.row = problem, column, row
        super().__init__(f"column {column!r}, row {row}: {problem}")


def as_numbers(name: str, cells: Any) -> NDArray[np.float64]:
    """Return cells as float64, NaN where missing, or refuse the first that is no finite number."""
    if is_numeric(cells):
        numbers = np.asarray(cells, dtype=np.float64)
    else:
        numbers = np.empty(len(cells))
        for row, cell in enumerate(cells):
            numbers[row] = _as_number(name, cell, row)
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        row = int(infinite[0])
        got = repr(cells[row])[:40] if isinstance(cells[row], str) else "infinity"
        raise CellError(f"a number must be finite; got {got}", name, row)
    return numbers


def _as_number(name: str, cell: Any, row: int) -> float:
    if isinstance(cell, str):
        cell = cell.strip()
        if cell in MISSING:
            return math.nan
        if NUMBER.fullmatch(cell):
            return float(cell)
    elif cell is None:
        return math.nan
    elif isinstance(cell, float | np.number | np.bool_) or type(cell) in (bool, int):
        with suppress(OverflowError):
            return float(cell)
    raise CellError(f"a number is wanted; got {repr(cell)[:40]}", name, row)


def is_numeric(cells: Any) -> bool:
    """Tell whether cells are an array of numbers."""
    return isinstance(cells, np.ndarray) and cells.dtype.kind in "buif"


def is_known(cell: Any) -> bool:
    """Tell whether a cell holds something."""
    if isinstance(cell, str):
        return cell.strip() not in MISSING
    return isinstance(cell, np.ndarray) or (cell is not None and cell == cell)


def known(cells: Any) -> list[Any]:
    """Return the cells that hold something."""
    return [cell for cell in as_cells(cells) if is_known(cell)]


def categories(cell: Any) -> list[str]:
    """Return the categories that a cell names: one, those of a list, or none.

    Examples
    --------
    >>> categories("red"), categories(["red", "blue"]), categories(None)
    (['red'], ['red', 'blue'], [])
    """
    if isinstance(cell, list | tuple):
        return [str(item) for item in cell if is_known(item)]
    return [str(cell)] if is_known(cell) else []


def as_cells(column: Any) -> Any:
    """Return a column of any kind of table as an array of numbers or a list of objects."""
    if is_numeric(column) or isinstance(column, list):
        return column
    array = np.asarray(column)
    return array if is_numeric(array) else array.tolist()
