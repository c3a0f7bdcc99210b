"""Histograms of a sketch of the gradients over the bins of features.

A line of a histogram, one per bin, holds `WIDTH` numbers: the sketch, and last the curvature. Cells
of rows have the same form. Arrays are given by half lines, shape (2 k, LANES).
"""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.lanes import LANES, add_lanes

WIDTH = 2 * LANES
CURVATURE = WIDTH - 1


@njit(inline="always")
def _add(histograms, line, cells, row):
    add_lanes(histograms, 2 * line, cells, 2 * row)
    add_lanes(histograms, 2 * line + 1, cells, 2 * row + 1)


@njit(nogil=True, cache=True)
def fill_dense(codes, features, first_lines, rows, cells, histograms):
    """Set the lines of some features to the sums over the listed rows; ``codes`` is (d, n).

    Features go two by two: rows that meet in one bin wait for each other's addition, and the other
    feature fills the wait.
    """
    for f in features:
        histograms[2 * first_lines[f] : 2 * first_lines[f + 1]] = 0
    for k in range(0, features.shape[0] - 1, 2):
        f, g = features[k], features[k + 1]
        first, second = first_lines[f], first_lines[g]
        for i in rows:
            _add(histograms, first + codes[f, i], cells, i)
            _add(histograms, second + codes[g, i], cells, i)
    if features.shape[0] % 2:
        f = features[-1]
        for i in rows:
            _add(histograms, first_lines[f] + codes[f, i], cells, i)


@njit(nogil=True, cache=True)
def fill_sparse(starts, lines, zero_lines, first_lines, features, rows, cells, total, histograms):
    """Set the same where each row lists the lines of what it stores, among those of `features`.

    What is missing from a feature's bins to ``total``, the sums of all the rows, fell on zeros,
    unless its curvature is so little that it may be rounding.
    """
    rounding = 8 * np.finfo(histograms.dtype).eps
    for f in features:
        histograms[2 * first_lines[f] : 2 * first_lines[f + 1]] = 0
    for i in rows:
        for k in range(starts[i], starts[i + 1]):
            _add(histograms, lines[k], cells, i)
    rest = np.empty((2, LANES))
    for f in features:
        rest[:] = total
        for half in range(2 * first_lines[f], 2 * first_lines[f + 1]):
            for lane in range(LANES):
                rest[half % 2, lane] -= histograms[half, lane]
        if rest[1, LANES - 1] > rounding * total[1, LANES - 1]:
            zero = 2 * zero_lines[f]
            for lane in range(LANES):
                histograms[zero, lane] += rest[0, lane]
                histograms[zero + 1, lane] += rest[1, lane]


@njit(nogil=True, cache=True)
def subtract(features, first_lines, part, whole):
    """Take the lines of some features of a part from those of the whole."""
    for f in features:
        for half in range(2 * first_lines[f], 2 * first_lines[f + 1]):
            for lane in range(LANES):
                whole[half, lane] -= part[half, lane]


@njit(nogil=True, cache=True)
def sum_rows(rows, cells, total):
    """Set ``total`` (WIDTH) to the sum of the cells (n, WIDTH) of the listed rows."""
    total[:] = 0.0
    for i in rows:
        for k in range(WIDTH):
            total[k] += cells[i, k]
