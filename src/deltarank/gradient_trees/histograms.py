"""Binned rows as the growth of a tree sees them: histograms of nodes, codes of a feature."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.boosting.bins import Bins, DenseBins, SparseBins
from deltarank.core.kernels.lanes import LANES
from deltarank.gradient_trees.kernels.histograms import fill_dense, fill_sparse

Rows = NDArray[np.int32]


class BinnedRows(ABC):
    """Bins of all rows, and features in parts that threads fill at the same time."""

    def __init__(self, bins: Bins, parts: list[NDArray[Any]]) -> None:
        self.bins, self.parts = bins, parts

    @abstractmethod
    def fill(self, part: int, features: Any, rows: Rows, cells: Any, total: Any, out: Any) -> None:
        """Set the lines of some features of a part to sums of cells (n, WIDTH) over rows."""

    @abstractmethod
    def codes(self, features: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return codes of rows, (k, n), and which line of them each feature has."""


class DenseRows(BinnedRows):
    """Rows of a dense X."""

    bins: DenseBins

    def fill(self, part: int, features: Any, rows: Rows, cells: Any, total: Any, out: Any) -> None:
        """See `BinnedRows.fill`."""
        halves = cells.reshape(-1, LANES), out.reshape(-1, LANES)
        fill_dense(self.bins.codes, features, self.bins.first_lines, rows, *halves)

    def codes(self, features: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """See `BinnedRows.codes`."""
        return self.bins.codes, features


class SparseRows(BinnedRows):
    """Rows of a sparse X: each lists the lines of what it stores, part by part of the features."""

    bins: SparseBins

    def __init__(self, bins: SparseBins, parts: list[NDArray[Any]]) -> None:
        super().__init__(bins, parts)
        self.zero_lines = bins.first_lines[:-1] + bins.zero_codes
        lines = np.repeat(bins.first_lines[:-1], np.diff(bins.starts)) + bins.codes
        shape = (bins.n_rows, bins.n_features)
        by_column = sparse.csc_array((lines.astype(np.int64), bins.rows, bins.starts), shape=shape)
        self._by_row = [by_column[:, part].tocsr() for part in parts]

    def fill(self, part: int, features: Any, rows: Rows, cells: Any, total: Any, out: Any) -> None:
        """See `BinnedRows.fill`: features that were not asked for are filled, too."""
        stored = self._by_row[part]
        halves = cells.reshape(-1, LANES), total.reshape(-1, LANES), out.reshape(-1, LANES)
        layout = (stored.indptr, stored.data, self.zero_lines, self.bins.first_lines)
        fill_sparse(*layout, self.parts[part], rows, *halves)

    def codes(self, features: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """See `BinnedRows.codes`."""
        used, lines = np.unique(features, return_inverse=True)
        return self.bins.columns(used), lines


def place_rows(bins: Bins, n_parts: int) -> BinnedRows:
    """Return binned rows whose features are cut into parts for as many threads."""
    parts = [part for part in np.array_split(np.arange(bins.n_features), n_parts) if len(part)]
    if isinstance(bins, SparseBins):
        return SparseRows(bins, parts)
    assert isinstance(bins, DenseBins)
    return DenseRows(bins, parts)
