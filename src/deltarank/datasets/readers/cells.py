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
# Strings of so many words on average are text; shorter ones are categories.
WORDS_OF_TEXT = 3
# Narrower than Python's float, which also reads 1_000 and inf.
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


class CellError(ValueError):
    """A cell that does not fit its column."""

    def __init__(self, problem: str, column: str, row: int) -> None:
        self.problem, self.column, self.row = problem, column, row
        super().__init__(f"column {column!r}, row {row}: {problem}")


def guess_kind(name: str, cells: Any) -> str:
    """Tell numbers, categories and text apart.

    A column whose cells are mostly numbers, but not all, is refused: it is a column of numbers
    with a mistake far more often than one of categories. Lists of names are categories, several
    in a cell.

    Examples
    --------
    >>> guess_kind("a", ["1", "2.5", ""]), guess_kind("b", ["red", "dark red"])
    ('number', 'category')
    >>> guess_kind("c", ["a man with a red hat", "two dogs", "the sea at night"])
    'text'
    """
    if _is_numeric(cells):
        return "number"
    present = known(cells)
    if _are_lists_of_names(present):
        return "category"
    try:
        as_numbers(name, cells)
    except CellError as wrong:
        if not isinstance(as_cells(cells)[wrong.row], str):
            raise
        n_numbers = sum(_is_number(cell) for cell in present)
        if 2 * n_numbers > len(present):
            raise CellError(
                f"{wrong.problem}, and {n_numbers} of the column's {len(present)} cells are "
                f"numbers; correct it, leave it empty if it is missing, or name the column in "
                "categorical= (--categorical) or ignore= (--ignore)",
                name,
                wrong.row,
            ) from None
    else:
        return "number"
    n_words = sum(len(str(cell).split()) for cell in present)
    return "text" if n_words >= WORDS_OF_TEXT * len(present) else "category"


def _are_lists_of_names(cells: list[Any]) -> bool:
    lists = [cell for cell in cells if isinstance(cell, list | tuple)]
    items = (item for cell in lists for item in cell)
    return bool(lists) and all(item is None or isinstance(item, str) for item in items)


def as_numbers(name: str, cells: Any) -> NDArray[np.float64]:
    """Return cells as float64, NaN where missing, or refuse the first that is no finite number."""
    if _is_numeric(cells):
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
        if _NUMBER.fullmatch(cell):
            return float(cell)
    elif cell is None:
        return math.nan
    elif isinstance(cell, float | np.number | np.bool_) or type(cell) in (bool, int):
        with suppress(OverflowError):
            return float(cell)
    raise CellError(f"a number is wanted; got {repr(cell)[:40]}", name, row)


def _is_number(cell: Any) -> bool:
    return not isinstance(cell, str) or _NUMBER.fullmatch(cell.strip()) is not None


def _is_numeric(cells: Any) -> bool:
    return isinstance(cells, np.ndarray) and cells.dtype.kind in "buif"


def is_known(cell: Any) -> bool:
    """Tell whether a cell holds something."""
    if isinstance(cell, str):
        return cell.strip() not in MISSING
    return cell is not None and cell == cell


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
    if _is_numeric(column) or isinstance(column, list):
        return column
    array = np.asarray(column)
    return array if _is_numeric(array) else array.tolist()
