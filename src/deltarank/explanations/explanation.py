"""What puts one label above another in a row, as numbers and as a table to read."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.base.parameters import positive_integer
from deltarank.core.text import notebook_table, text_table

Floats = NDArray[np.float64]
# More are for those who ask for them: the others are added up.
SHOWN = 10


class Explanation(NamedTuple):
    """What puts one label above another in a row. It prints as a table, in notebooks too.

    Attributes
    ----------
    features : sequence
        Names of the features, or their numbers.
    contributions : array of shape (d,)
        What each feature adds to the difference of the scores.
    intercept : float
        What no feature adds.
    labels : tuple of two labels, or None
        The one above, and the one below.

    Examples
    --------
    >>> why = Explanation(["warmth", "rain"], np.array([0.5, -2.0]), 1.0, ("beach", "museum"))
    >>> why.largest(1)
    [('rain', -2.0)]
    >>> why.difference
    -0.5
    >>> why
    what puts beach above museum    adds
    rain                          -2.000
    warmth                       +0.5000
    (intercept)                   +1.000
    (difference)                 -0.5000
    """

    features: Sequence[Any]
    contributions: Floats
    intercept: float
    labels: tuple[Any, Any] | None = None

    @property
    def difference(self) -> float:
        """The score of the first label less that of the second: the sum of all the above."""
        return math.fsum([*self.contributions, self.intercept])

    def largest(self, n: int | None = None) -> list[tuple[Any, float]]:
        """Return the features that add something, and what, the most important first."""
        return largest(self.features, self.contributions, n)

    def _lines(self) -> list[tuple[str, str]]:
        features = self.largest()
        lines = features[:SHOWN]
        if others := features[SHOWN:]:
            rest = math.fsum(adds for _, adds in others)
            lines.append((f"({len(others)} other features)", rest))
        lines += [("(intercept)", self.intercept), ("(difference)", self.difference)]
        return [(str(feature), f"{adds:+#.4g}") for feature, adds in lines]

    def _heading(self) -> tuple[str, str]:
        above, below = self.labels or ("one label", "another")
        return f"what puts {above} above {below}", "adds"

    def __repr__(self) -> str:
        return text_table(self._heading(), self._lines())

    def _repr_html_(self) -> str:
        return notebook_table(self._heading(), self._lines())


def largest(features: Sequence[Any], values: Floats, n: int | None) -> list[tuple[Any, float]]:
    """Return the features whose values are not zero, the largest of either sign first."""
    order = np.argsort(-np.abs(values), kind="stable")
    order = order[values[order] != 0]
    if n is not None:
        order = order[: positive_integer(n, "n")]
    return [(features[j], float(values[j])) for j in order]
