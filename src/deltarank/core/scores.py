"""Scores that can be ranked: finite ones, and those of constant labels at the ends."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# A label never (always) relevant in training scores this, below (above) any that was fitted.
LAST, FIRST = -1e30, 1e30
_LARGEST = 1.0001 * FIRST  # float32 rounds it upward


class RowError(ValueError):
    """A row that cannot be ranked: which one, and why.

    Examples
    --------
    >>> print(RowError(3, "cannot be ranked"))
    row 3 cannot be ranked
    """

    def __init__(self, row: int, problem: str) -> None:
        self.row, self.problem = row, problem
        super().__init__(f"row {row} {problem}")


def check_finite(scores: NDArray[Any], first_row: int = 0) -> None:
    """Refuse scores (n, m) that have no order, and name the row; rows count from `first_row`.

    Beyond those of constant labels a score has none either: it would pass what is always last.
    """
    # NaN and infinities reach the extremes, which need no array of their own.
    if not scores.size or (float(scores.min()) >= -_LARGEST and float(scores.max()) <= _LARGEST):
        return
    wrong = ~(np.abs(scores.astype(np.float64)) <= _LARGEST)
    row, column = (int(place[0]) for place in np.nonzero(wrong))
    raise RowError(
        first_row + row,
        f"cannot be ranked: it has a score of {scores[row, column]}, as features far beyond those "
        "in training give; check the row, or scale the features",
    )
