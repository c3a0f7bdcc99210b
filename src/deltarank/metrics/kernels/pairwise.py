"""Pairwise losses of a block of rows: scores in, a loss a row and residuals out.

Every function here has the same arguments, so that a loss can be chosen by name:

scores : ndarray of float32 or float64, shape (b, m)
    Overwritten by the derivatives of the weighted loss.
rows : ndarray of int64, shape (b,)
    The data rows of the block; they index ``weights`` and ``labels``.
weights : ndarray of float64, shape (n, 2)
    What a pair of the row counts, w(y); and what the row itself counts, which only a penalty on
    its scores needs.
labels : tuple (starts, members)
    The labels ``members[starts[i]:starts[i + 1]]`` of row i are relevant, ascending.
losses : ndarray of float64, shape (b,)
    Receives the weighted losses; a row without pairs has none.

They differ in one call. Handing that call over as an argument would spare the repetition, but
numba keeps no compiled copy of such a function on disk.
"""

import numpy as np
from numba import njit

from deltarank.metrics.kernels.pair_tiles import (
    FEW_LABELS,
    ROWS_PER_TILE,
    logistic_tile,
    tile_space,
)
from deltarank.metrics.kernels.pairs import (
    LANES,
    all_pairs_squared_row,
    exponential_row,
    hinge_row,
    linear_row,
    logistic_row,
    rounded_hinge_row,
    squared_hinge_row,
    squared_row,
)


@njit(inline="always")
def _separate(row, labels, i, space):
    """Copy the row's relevant scores, then its irrelevant ones; return views on them and slopes."""
    starts, members = labels
    scores, slopes = space
    n_above = starts[i + 1] - starts[i]
    begin, at = 0, n_above
    for k in range(n_above + 1):
        end = members[starts[i] + k] if k < n_above else row.shape[0]
        source, target = row[begin:end], scores[at : at + end - begin]
        for j in range(source.shape[0]):
            target[j] = source[j]
        at += end - begin
        if k < n_above:
            scores[k] = row[end]
        begin = end + 1
    return scores[:n_above], scores[n_above:], slopes[:n_above], slopes[n_above:]


@njit(inline="always")
def _bring_back(row, labels, i, space, weight):
    """Write weighted slopes over the row's scores: `_separate` the other way round."""
    starts, members = labels
    slopes = space[1]
    n_above = starts[i + 1] - starts[i]
    begin, at = 0, n_above
    for k in range(n_above + 1):
        end = members[starts[i] + k] if k < n_above else row.shape[0]
        source, target = slopes[at : at + end - begin], row[begin:end]
        for j in range(source.shape[0]):
            target[j] = weight * source[j]
        at += end - begin
        if k < n_above:
            row[end] = weight * slopes[k]
        begin = end + 1


@njit(nogil=True, cache=True)
def logistic_pairs(scores, rows, weights, labels, losses):
    """Loss log(1 + exp(-z)): O(s (m - s)), and for few labels O(m^2), many rows at once."""
    if scores.shape[1] > FEW_LABELS:
        _logistic_row_by_row(scores, rows, weights, labels, losses)
        return
    space = tile_space(scores.shape[1])
    for begin in range(0, rows.shape[0], ROWS_PER_TILE):
        tile, some = scores[begin : begin + ROWS_PER_TILE], rows[begin : begin + ROWS_PER_TILE]
        found = losses[begin : begin + ROWS_PER_TILE]
        if not logistic_tile(tile, some, weights, labels, found, space):
            _logistic_row_by_row(tile, some, weights, labels, found)


@njit(nogil=True, cache=True)
def _logistic_row_by_row(scores, rows, weights, labels, losses):
    space, scratch = np.zeros((2, scores.shape[1])), np.zeros((5, scores.shape[1] + LANES))
    for b in range(rows.shape[0]):
        i, row = rows[b], scores[b]
        parts = _separate(row, labels, i, space)
        has_pairs = parts[0].shape[0] > 0 and parts[1].shape[0] > 0
        loss = logistic_row(*parts, scratch) if has_pairs else 0.0
        weight = weights[i, 0] if has_pairs else 0.0
        losses[b] = weight * loss
        _bring_back(row, labels, i, space, weight)


@njit(nogil=True, cache=True)
def exponential_pairs(scores, rows, weights, labels, losses):
    """Loss exp(-z): O(m)."""
    space = np.zeros((2, scores.shape[1]))
    for b in range(rows.shape[0]):
        i, row = rows[b], scores[b]
        parts = _separate(row, labels, i, space)
        has_pairs = parts[0].shape[0] > 0 and parts[1].shape[0] > 0
        loss = exponential_row(*parts) if has_pairs else 0.0
        weight = weights[i, 0] if has_pairs else 0.0
        losses[b] = weight * loss
        _bring_back(row, labels, i, space, weight)


@njit(nogil=True, cache=True)
def squared_pairs(scores, rows, weights, labels, losses):
    """Loss (1 - z)^2: O(m)."""
    space = np.zeros((2, scores.shape[1]))
    for b in range(rows.shape[0]):
        i, row = rows[b], scores[b]
        parts = _separate(row, labels, i, space)
        has_pairs = parts[0].shape[0] > 0 and parts[1].shape[0] > 0
        loss = squared_row(*parts) if has_pairs else 0.0
        weight = weights[i, 0] if has_pairs else 0.0
        losses[b] = weight * loss
        _bring_back(row, labels, i, space, weight)


@njit(nogil=True, cache=True)
def squared_hinge_pairs(scores, rows, weights, labels, losses):
    """Loss max(1 - z, 0)^2: O(m log m)."""
    space = np.zeros((2, scores.shape[1]))
    for b in range(rows.shape[0]):
        i, row = rows[b], scores[b]
        parts = _separate(row, labels, i, space)
        has_pairs = parts[0].shape[0] > 0 and parts[1].shape[0] > 0
        loss = squared_hinge_row(*parts) if has_pairs else 0.0
        weight = weights[i, 0] if has_pairs else 0.0
        losses[b] = weight * loss
        _bring_back(row, labels, i, space, weight)


@njit(nogil=True, cache=True)
def hinge_pairs(scores, rows, weights, labels, losses):
    """Loss max(1 - z, 0): O(m log m)."""
    space = np.zeros((2, scores.shape[1]))
    for b in range(rows.shape[0]):
        i, row = rows[b], scores[b]
        parts = _separate(row, labels, i, space)
        has_pairs = parts[0].shape[0] > 0 and parts[1].shape[0] > 0
        loss = hinge_row(*parts) if has_pairs else 0.0
        weight = weights[i, 0] if has_pairs else 0.0
        losses[b] = weight * loss
        _bring_back(row, labels, i, space, weight)


@njit(nogil=True, cache=True)
def rounded_hinge_pairs(scores, rows, weights, labels, losses):
    """Hinge loss with its kink rounded off: O(m log m)."""
    space = np.zeros((2, scores.shape[1]))
    for b in range(rows.shape[0]):
        i, row = rows[b], scores[b]
        parts = _separate(row, labels, i, space)
        has_pairs = parts[0].shape[0] > 0 and parts[1].shape[0] > 0
        loss = rounded_hinge_row(*parts) if has_pairs else 0.0
        weight = weights[i, 0] if has_pairs else 0.0
        losses[b] = weight * loss
        _bring_back(row, labels, i, space, weight)


@njit(nogil=True, cache=True)
def linear_pairs(scores, rows, weights, labels, losses):
    """Loss -z: O(m)."""
    space = np.zeros((2, scores.shape[1]))
    for b in range(rows.shape[0]):
        i, row = rows[b], scores[b]
        parts = _separate(row, labels, i, space)
        has_pairs = parts[0].shape[0] > 0 and parts[1].shape[0] > 0
        loss = linear_row(*parts) if has_pairs else 0.0
        weight = weights[i, 0] if has_pairs else 0.0
        losses[b] = weight * loss
        _bring_back(row, labels, i, space, weight)


@njit(nogil=True, cache=True)
def penalized_linear_pairs(scores, rows, weights, labels, losses):
    """Loss -z with half the squares of the scores added, Eq. (40): O(m)."""
    space = np.zeros((2, scores.shape[1]))
    for b in range(rows.shape[0]):
        i, row = rows[b], scores[b]
        parts = _separate(row, labels, i, space)
        has_pairs = parts[0].shape[0] > 0 and parts[1].shape[0] > 0
        loss = linear_row(*parts) if has_pairs else 0.0
        pull = weights[i, 1] / weights[i, 0] if has_pairs else 0.0
        for j in range(row.shape[0]):
            loss += pull * space[0, j] * space[0, j] / 2
            space[1, j] += pull * space[0, j]
        weight = weights[i, 0] if has_pairs else 0.0
        losses[b] = weight * loss
        _bring_back(row, labels, i, space, weight)


@njit(nogil=True, cache=True)
def all_pairs_squared_pairs(scores, rows, weights, labels, losses):
    """Squared loss on all pairs of labels, tied ones too, Eq. (41): O(m)."""
    space = np.zeros((2, scores.shape[1]))
    for b in range(rows.shape[0]):
        i, row = rows[b], scores[b]
        parts = _separate(row, labels, i, space)
        has_pairs = parts[0].shape[0] > 0 and parts[1].shape[0] > 0
        loss = all_pairs_squared_row(*parts) if has_pairs else 0.0
        weight = weights[i, 0] if has_pairs else 0.0
        losses[b] = weight * loss
        _bring_back(row, labels, i, space, weight)


PAIRWISE = {
    "logistic": logistic_pairs,
    "exponential": exponential_pairs,
    "squared": squared_pairs,
    "squared_hinge": squared_hinge_pairs,
    "hinge": hinge_pairs,
    "linear": linear_pairs,
    "penalized_linear": penalized_linear_pairs,
    "all_pairs_squared": all_pairs_squared_pairs,
}
