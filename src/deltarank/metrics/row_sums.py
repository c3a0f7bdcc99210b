"""Running sums of the values of rows, rounded only when they are read."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.kernels.exact_sum import add_exactly, empty_parts
from deltarank.metrics.placement import Placement
from deltarank.metrics.rows import Rows


class ExactSum:
    """A running sum that is rounded only when it is read."""

    def __init__(self) -> None:
        self._parts = empty_parts()
        self._n_parts = 0

    def add(self, values: NDArray[np.float64]) -> None:
        """Add the values."""
        self._n_parts = add_exactly(self._parts, self._n_parts, values)

    def merge(self, other: "ExactSum") -> None:
        """Add another sum."""
        self.add(other._parts[: other._n_parts].copy())

    def __float__(self) -> float:
        return math.fsum(self._parts[: self._n_parts])


class RowSums:
    """Sums of two values per row over batches of rows; the result is their quotient."""

    def __init__(self, rows: Callable[..., Rows], options: dict[str, Any]) -> None:
        self._rows, self._options = rows, options
        self._total, self._units = ExactSum(), ExactSum()

    def add(self, placement: Placement, weights: NDArray[np.float64]) -> None:
        """Take in a batch of rows."""
        values, units = self._rows(placement, **self._options)
        self._total.add(values * weights)
        self._units.add(units * weights)

    def merge(self, other: "RowSums") -> None:
        """Take in what others have summed up."""
        self._total.merge(other._total)
        self._units.merge(other._units)

    def result(self) -> float:
        """Return the quotient of the sums; 0 when no row has anything to rank."""
        units = float(self._units)
        return float(self._total) / units if units > 0 else 0.0
