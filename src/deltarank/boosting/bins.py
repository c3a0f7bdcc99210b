"""Features as bins: what a search for thresholds needs to know of X, in a byte a value.

A feature of at most `bins` distinct values has a bin for each, and the search is exact; one of more
has bins of about equal numbers of rows. Missing values (NaN) have the bin behind the last.
"""

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.boosting.kernels.histograms import fill_dense, fill_listed, fill_sparse
from deltarank.core.threads import run

# As many as a byte tells apart; missing values need one of them.
MOST_BINS = 256


class Bins(ABC):
    """Bin codes of all rows and the thresholds between bins.

    Attributes
    ----------
    thresholds : list of arrays
        For each feature: a value is in the first bin whose threshold is not below it.
    n_values : array of shape (d,)
        Number of bins of each feature without the one for missing values.
    n_bins : int
        Lines of a histogram: enough for the values of any feature, and a line behind them.
    """

    # Whether the cells of relevant labels must be kept for all rows, not only where there are any.
    needs_every_row = False

    def __init__(self, thresholds: list[NDArray[np.float64]]) -> None:
        self.thresholds = thresholds
        self.n_values = np.array([len(cuts) + 1 for cuts in thresholds])
        self.n_bins = int(self.n_values.max()) + 1

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.thresholds)

    @abstractmethod
    def columns(self, features: Any) -> NDArray[Any]:
        """Return the codes of some features, (k, n)."""

    @abstractmethod
    def fill(self, features: slice, cells: Any, histograms: Any) -> None:
        """Set the histograms of a range of features over all rows."""

    @abstractmethod
    def fill_relevant(self, features: slice, rows: Any, cells: Any, histograms: Any) -> None:
        """Set the histograms over the listed rows (all, if `needs_every_row`)."""

    def threshold(self, features: NDArray[Any], cuts: NDArray[Any]) -> NDArray[np.float64]:
        """Return the threshold above bin `cuts` of each feature; above the last, infinity."""
        found = [
            self.thresholds[feature][cut] if cut < len(self.thresholds[feature]) else np.inf
            for feature, cut in zip(features, cuts, strict=True)
        ]
        return np.array(found, np.float64)


class DenseBins(Bins):
    """Bins of a dense X: codes of shape (d, n)."""

    def __init__(self, X: NDArray[Any], bins: int | None) -> None:
        columns = [X[:, feature] for feature in range(X.shape[1])]
        super().__init__(run([partial(_thresholds, column, bins) for column in columns]))
        self.codes = np.empty(X.T.shape, _code_type(self.n_values))
        run(
            [
                partial(_encode, column, cuts, codes)
                for column, cuts, codes in zip(columns, self.thresholds, self.codes, strict=True)
            ]
        )

    def columns(self, features: Any) -> NDArray[Any]:
        """See `Bins.columns`; a slice copies nothing."""
        return self.codes[features]

    def fill(self, features: slice, cells: Any, histograms: Any) -> None:
        """See `Bins.fill`."""
        fill_dense(self.codes[features], self.n_bins, cells, histograms)

    def fill_relevant(self, features: slice, rows: Any, cells: Any, histograms: Any) -> None:
        """See `Bins.fill_relevant`."""
        fill_listed(self.codes[features], self.n_bins, rows, cells, histograms)


class SparseBins(Bins):
    """Bins of a sparse X: codes of what is stored, column after column; zeros share one bin."""

    needs_every_row = True

    def __init__(self, X: Any, bins: int | None) -> None:
        X = sparse.csc_array(X)
        X.sum_duplicates()
        self.n_rows = X.shape[0]
        self.starts, self.rows = X.indptr, X.indices
        parts = [slice(*ends) for ends in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
        zeros = self.n_rows - np.diff(X.indptr)
        super().__init__(
            [_thresholds(X.data[part], bins, n) for part, n in zip(parts, zeros, strict=True)]
        )
        self.codes = np.empty(len(X.data), _code_type(self.n_values))
        for part, cuts in zip(parts, self.thresholds, strict=True):
            _encode(X.data[part], cuts, self.codes[part])
        self.zero_codes = np.array([np.searchsorted(cuts, 0.0) for cuts in self.thresholds])

    def columns(self, features: Any) -> NDArray[Any]:
        """See `Bins.columns`."""
        codes = np.empty((len(features), self.n_rows), self.codes.dtype)
        for column, feature in zip(codes, features, strict=True):
            stored = slice(self.starts[feature], self.starts[feature + 1])
            column[:] = self.zero_codes[feature]
            column[self.rows[stored]] = self.codes[stored]
        return codes

    def fill(self, features: slice, cells: Any, histograms: Any) -> None:
        """See `Bins.fill`."""
        fill_sparse(
            self.starts[features.start : features.stop + 1],
            self.rows,
            self.codes,
            self.zero_codes[features],
            self.n_bins,
            cells,
            cells.sum(axis=0, dtype=np.float64),
            histograms,
        )

    def fill_relevant(self, features: slice, rows: Any, cells: Any, histograms: Any) -> None:
        """See `Bins.fill_relevant`."""
        self.fill(features, cells, histograms)


def bin_features(X: Any, bins: int | None) -> Bins:
    """Bin the features of X, in at most `bins` bins each; None keeps all values apart."""
    return SparseBins(X, bins) if sparse.issparse(X) else DenseBins(X, bins)


def _thresholds(values: NDArray[Any], bins: int | None, n_zeros: int = 0) -> NDArray[np.float64]:
    """Return where to cut a feature: midway between two distinct values, so that none is on it."""
    present = values[~np.isnan(values)].astype(np.float64)
    room = bins if bins is None or len(present) == len(values) else min(bins, MOST_BINS - 1)
    distinct, counts = np.unique(present, return_counts=True)
    if n_zeros:
        place = int(np.searchsorted(distinct, 0.0))
        if place < len(distinct) and distinct[place] == 0:
            counts[place] += n_zeros
        else:
            distinct, counts = np.insert(distinct, place, 0.0), np.insert(counts, place, n_zeros)
    last = np.arange(len(distinct) - 1)
    if room is not None and len(distinct) > room:
        wanted = counts.sum() * np.arange(1, room) / room
        last = np.unique(np.searchsorted(np.cumsum(counts), wanted))
        last = last[last < len(distinct) - 1]
    below, above = distinct[last], distinct[last + 1]
    middle = below / 2 + above / 2
    return np.where((below <= middle) & (middle < above), middle, below)


def _encode(values: NDArray[Any], cuts: NDArray[np.float64], codes: NDArray[Any]) -> None:
    codes[:] = np.searchsorted(cuts, values)
    missing = np.isnan(values)
    if missing.any():
        codes[missing] = len(cuts) + 1


def _code_type(n_values: NDArray[Any]) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if n_values.max() <= MOST_BINS else np.uint32
