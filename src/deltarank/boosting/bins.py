"""Features as bins: what a search for thresholds needs to know of X, in one byte per value.

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
from deltarank.boosting.values import MOST_BINS, Values, by_columns, each_feature
from deltarank.core.threads import run


class Cuts:
    """Where features are cut into bins.

    Attributes
    ----------
    thresholds : list of arrays
        For each feature: a value is in the first bin whose threshold is not below it.
    n_values : array of shape (d,)
        Number of bins of each feature without the one for missing values.
    n_bins : int
        Lines of a histogram: enough for the values of any feature, and a line behind them.
    first_lines : array of shape (d + 1,)
        Where a feature's lines begin in packed histograms, in which it has only those it needs.
    """

    def __init__(self, thresholds: list[NDArray[np.float64]]) -> None:
        self.thresholds = thresholds
        self.n_values = np.array([len(cuts) + 1 for cuts in thresholds])
        self.n_bins = int(self.n_values.max()) + 1
        self.first_lines = np.concatenate([[0], np.cumsum(self.n_values + 1)])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.thresholds)

    def threshold(self, features: NDArray[Any], cuts: NDArray[Any]) -> NDArray[np.float64]:
        """Return the threshold above bin `cuts` of each feature; above the last, infinity."""
        thresholds = [
            self.thresholds[feature][cut] if cut < len(self.thresholds[feature]) else np.inf
            for feature, cut in zip(features, cuts, strict=True)
        ]
        return np.array(thresholds, np.float64)

    def pack(self, padded: NDArray[Any], features: slice, packed: NDArray[Any]) -> None:
        """Write histograms (2, lines, lanes) of some features to their place in packed ones."""
        packed[:, self._packed_lines(features)] = padded[:, self._used_lines(features)]

    def padded(self, packed: NDArray[Any], features: slice) -> NDArray[Any]:
        """Return the histograms of some features with `n_bins` lines each, as kernels want them."""
        n_lines = (features.stop - features.start) * self.n_bins
        histograms = np.zeros((2, n_lines, packed.shape[2]), packed.dtype)
        histograms[:, self._used_lines(features)] = packed[:, self._packed_lines(features)]
        return histograms

    def _packed_lines(self, features: slice) -> slice:
        return slice(self.first_lines[features.start], self.first_lines[features.stop])

    def _used_lines(self, features: slice) -> NDArray[np.int64]:
        is_used = np.arange(self.n_bins) <= self.n_values[features][:, None]
        return np.flatnonzero(is_used)


class Bins(Cuts, ABC):
    """Bin codes of all rows, in an array `codes`."""

    codes: NDArray[Any]

    # Whether the cells of relevant labels must be kept for all rows, not only where there are any.
    needs_every_row = False

    @abstractmethod
    def columns(self, features: Any) -> NDArray[Any]:
        """Return the codes of some features, (k, n)."""

    @abstractmethod
    def fill(self, features: slice, cells: Any, histograms: Any) -> None:
        """Set the histograms of a range of features over all rows."""

    @abstractmethod
    def fill_relevant(self, features: slice, rows: Any, cells: Any, histograms: Any) -> None:
        """Set the histograms over the listed rows (all, if `needs_every_row`)."""


class DenseBins(Bins):
    """Bins of a dense X: codes of shape (d, n)."""

    def __init__(self, X: NDArray[Any], thresholds: list[NDArray[np.float64]]) -> None:
        super().__init__(thresholds)
        columns = [X[:, feature] for feature in range(X.shape[1])]
        self.codes = np.empty(X.T.shape, _code_type(self.n_values, columns))
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

    def __init__(self, X: Any, thresholds: list[NDArray[np.float64]]) -> None:
        super().__init__(thresholds)
        self.n_rows = X.shape[0]
        self.starts, self.rows = X.indptr, X.indices
        stored = np.split(X.data, X.indptr[1:-1])
        self.codes = np.empty(len(X.data), _code_type(self.n_values, stored))
        codes = np.split(self.codes, X.indptr[1:-1])
        for each in zip(stored, self.thresholds, codes, strict=True):
            _encode(*each)
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
    columns = by_columns(X)
    return encode(columns, each_feature(columns, partial(Values.thresholds, bins=bins)))


def encode(X: Any, thresholds: list[NDArray[np.float64]]) -> Bins:
    """Put the values of X, which is as `by_columns` gives it, into bins between thresholds."""
    return SparseBins(X, thresholds) if sparse.issparse(X) else DenseBins(X, thresholds)


def _encode(values: NDArray[Any], cuts: NDArray[np.float64], codes: NDArray[Any]) -> None:
    codes[:] = np.searchsorted(cuts, values)
    missing = np.isnan(values)
    if missing.any():
        codes[missing] = len(cuts) + 1


def _code_type(
    n_values: NDArray[Any], columns: list[NDArray[Any]]
) -> type[np.unsignedinteger[Any]]:
    """Return a byte, unless a feature has more bins than that, one for missing values included."""
    full = [partial(_has_missing, columns[f]) for f in np.flatnonzero(n_values == MOST_BINS)]
    return np.uint32 if n_values.max() > MOST_BINS or any(run(full)) else np.uint8


def _has_missing(values: NDArray[Any]) -> bool:
    return bool(np.isnan(values).any())
