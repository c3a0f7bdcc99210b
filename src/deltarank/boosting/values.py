"""The values that features have, and where to cut between them."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core.threads import run

T = TypeVar("T")
# As many bins as a byte tells apart; missing values need one of them.
MOST_BINS = 256


class Values(NamedTuple):
    """Distinct values of a feature, ascending, in how many rows each stands, and if any is NaN."""

    distinct: NDArray[np.float64]
    counts: NDArray[np.int64]
    has_missing: bool

    @classmethod
    def of(cls, stored: NDArray[Any], n_zeros: int = 0) -> "Values":
        """Read the stored values of a feature; `n_zeros` more rows hold a zero."""
        present = stored[~np.isnan(stored)].astype(np.float64)
        distinct, counts = np.unique(present, return_counts=True)
        if n_zeros:
            place = int(np.searchsorted(distinct, 0.0))
            if place < len(distinct) and distinct[place] == 0:
                counts[place] += n_zeros
            else:
                distinct, counts = (
                    np.insert(distinct, place, 0.0),
                    np.insert(counts, place, n_zeros),
                )
        return cls(distinct, counts, len(present) < len(stored))

    def thresholds(self, bins: int | None) -> NDArray[np.float64]:
        """Return where to cut for at most `bins` bins; None keeps all values apart.

        A cut is midway between two distinct values, so that none is on it.
        """
        room = min(bins, MOST_BINS - 1) if bins is not None and self.has_missing else bins
        distinct, counts = self.distinct, self.counts
        last = np.arange(len(distinct) - 1)
        if room is not None and len(distinct) > room:
            wanted = counts.sum() * np.arange(1, room) / room
            last = np.unique(np.searchsorted(np.cumsum(counts), wanted))
            last = last[last < len(distinct) - 1]
        below, above = distinct[last], distinct[last + 1]
        middle = below / 2 + above / 2
        return np.where((below <= middle) & (middle < above), middle, below)


def by_columns(X: Any) -> Any:
    """Return a sparse X column after column, each value stored once; a dense one as it is."""
    if not sparse.issparse(X):
        return X
    columns = sparse.csc_array(X)
    columns.sum_duplicates()
    return columns


def each_feature(X: Any, function: Callable[[Values], T]) -> list[T]:
    """Return a function of the values of every feature of X, which is as `by_columns` gives it.

    The values of one feature are as many as rows, so they are not held for all features at once.
    """
    if not sparse.issparse(X):
        columns = [X[:, feature] for feature in range(X.shape[1])]
        return run([partial(_of_column, function, column) for column in columns])
    zeros = X.shape[0] - np.diff(X.indptr)
    stored = np.split(X.data, X.indptr[1:-1])
    return [_of_column(function, *each) for each in zip(stored, zeros, strict=True)]


def _of_column(function: Callable[[Values], T], stored: NDArray[Any], n_zeros: int = 0) -> T:
    return function(Values.of(stored, n_zeros))
