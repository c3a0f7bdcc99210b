"""Scores that can be ranked: finite ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


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
    """Refuse scores (n, m) that have no order, and name the row; rows count from `first_row`."""
    # NaN and infinities reach the extremes, which need no array of their own.
    if not scores.size or (np.isfinite(scores.min()) and np.isfinite(scores.max())):
        return
    row, column = (int(place[0]) for place in np.nonzero(~np.isfinite(scores)))
    raise RowError(
        first_row + row,
        f"cannot be ranked: it has a score of {scores[row, column]}, as features far beyond those "
        "in training give; check the row, or scale the features",
    )
