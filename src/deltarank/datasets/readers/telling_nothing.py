"""Columns that tell nothing about other rows: identifiers and dates."""

import datetime
import re
from typing import Any

import numpy as np

from deltarank.datasets.readers.cells import as_cells, known
from deltarank.datasets.vectors import is_vector

_NAMED = re.compile(r"(?:.*[ _.-])?(?:id|uuid|guid|isbn|issn|doi|url|uri)|index|unnamed: 0", re.I)
# Of fewer rows nothing can be told: in three rows most columns have three values.
_FEWEST_ROWS = 20
# Rows may be in a file twice, and their identifiers with them.
_DISTINCT_SHARE = 0.9
_DATE = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})"
    r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s*(?:Z|[+-]\d{2}:?\d{2})?)?"
)


def reason_to_leave_out(name: str, cells: Any) -> str | None:
    """Return why a column is no feature, or None if it may be one.

    Examples
    --------
    >>> reason_to_leave_out("id", list(range(7, 47)))
    'nearly each row has another value, as identifiers have'
    >>> reason_to_leave_out("published", ["2026-11-18"] * 40)
    'dates'
    >>> reason_to_leave_out("size", list(range(7, 47))) is None
    True
    """
    present = known(cells)
    if len(present) < _FEWEST_ROWS:
        return None
    if all(_is_date(cell) for cell in present):
        return "dates"
    if any(isinstance(cell, list | tuple | dict) for cell in present) or is_vector(present[0]):
        return None
    if len(set(present)) > _DISTINCT_SHARE * len(as_cells(cells)) and (
        _NAMED.fullmatch(name.strip()) or _are_codes(present) or _count_rows(present)
    ):
        return "nearly each row has another value, as identifiers have"
    return None


def _is_date(cell: Any) -> bool:
    if isinstance(cell, str):
        return _DATE.fullmatch(cell.strip()) is not None
    return isinstance(cell, datetime.date | np.datetime64)


def _are_codes(cells: list[Any]) -> bool:
    """Tell whether cells are single words with digits in them, which make no categories."""
    return all(
        isinstance(cell, str)
        and not any(sign.isspace() for sign in cell.strip())
        and any(sign.isdigit() for sign in cell)
        and any(sign.isalpha() for sign in cell)
        for cell in cells
    )


def _count_rows(cells: list[Any]) -> bool:
    """Tell whether cells are whole numbers one after the other, as row numbers are."""
    try:
        numbers = [int(str(cell).strip()) for cell in cells]
    except ValueError:
        return False
    return numbers[0] in (0, 1) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
