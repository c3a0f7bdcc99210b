"""Histograms of cells (weights of eight labels per row) over the bins of features.

Histograms of a group of features lie behind each other: bin b of feature f is line
``f * n_bins + b``.
"""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.lanes import LANES, add_lanes


@njit(nogil=True, cache=True)
def fill_dense(codes, n_bins, cells, histograms):
    """Set the histograms of all rows; ``codes`` (f, n), ``cells`` (n, LANES).

    Features go two by two: rows that meet in one bin wait for each other's addition, and the other
    feature fills the wait.
    """
    histograms[:] = 0
    n_features, n_rows = codes.shape
    for f in range(0, n_features - 1, 2):
        first, second = f * n_bins, (f + 1) * n_bins
        for i in range(n_rows):
            add_lanes(histograms, first + codes[f, i], cells, i)
            add_lanes(histograms, second + codes[f + 1, i], cells, i)
    if n_features % 2:
        last = n_features - 1
        for i in range(n_rows):
            add_lanes(histograms, last * n_bins + codes[last, i], cells, i)


@njit(nogil=True, cache=True)
def fill_listed(codes, n_bins, rows, cells, histograms):
    """Set the histograms of the listed rows only; ``cells`` has a line for each of them."""
    histograms[:] = 0
    n_features = codes.shape[0]
    for f in range(0, n_features - 1, 2):
        first, second = f * n_bins, (f + 1) * n_bins
        for k in range(rows.shape[0]):
            add_lanes(histograms, first + codes[f, rows[k]], cells, k)
            add_lanes(histograms, second + codes[f + 1, rows[k]], cells, k)
    if n_features % 2:
        last = n_features - 1
        for k in range(rows.shape[0]):
            add_lanes(histograms, last * n_bins + codes[last, rows[k]], cells, k)


@njit(nogil=True, cache=True)
def fill_sparse(starts, rows, codes, zero_codes, n_bins, cells, totals, histograms):
    """Set the histograms of features given by their non-zero rows, column after column.

    What is missing from a feature's bins to ``totals``, the sums of all rows, fell on zeros, unless
    it is so little that it may be rounding.
    """
    rounding = 8 * np.finfo(histograms.dtype).eps
    histograms[:] = 0
    for f in range(zero_codes.shape[0]):
        for k in range(starts[f], starts[f + 1]):
            add_lanes(histograms, f * n_bins + codes[k], cells, rows[k])
        for lane in range(LANES):
            listed = np.float64(0)
            for b in range(f * n_bins, (f + 1) * n_bins):
                listed += histograms[b, lane]
            rest = totals[lane] - listed
            if rest > rounding * totals[lane]:
                histograms[f * n_bins + zero_codes[f], lane] += rest
