"""What the cells of a column show it to be: numbers, vectors, categories or text."""

from typing import Any

import numpy as np

from deltarank.datasets.readers.cells import (
    NUMBER,
    CellError,
    as_cells,
    as_numbers,
    is_numeric,
    known,
)
from deltarank.datasets.vectors import is_vector

# Strings of this many words on average are text; shorter ones are categories.
WORDS_OF_TEXT = 3


def guess_kind(name: str, cells: Any) -> str:
    """Tell numbers, categories and text apart.

    A column whose cells are mostly numbers, but not all, is refused: it is a column of numbers
    with a mistake far more often than one of categories. Lists of names are categories, several
    in a cell; lists of numbers are vectors.

    Examples
    --------
    >>> guess_kind("a", ["1", "2.5", ""]), guess_kind("b", ["red", "dark red"])
    ('number', 'category')
    >>> guess_kind("e", [[0.1, 0.2], None]), guess_kind("f", [["red", "blue"], []])
    ('vector', 'category')
    >>> guess_kind("c", ["a man with a red hat", "two dogs", "the sea at night"])
    'text'
    """
    if is_numeric(cells):
        return "number" if np.ndim(cells) == 1 else "vector"
    present = known(cells)
    if present and all(map(is_vector, present)):
        return "vector"
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


def _is_number(cell: Any) -> bool:
    return not isinstance(cell, str) or NUMBER.fullmatch(cell.strip()) is not None
