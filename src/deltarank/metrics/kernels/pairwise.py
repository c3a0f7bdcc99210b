"""Pairwise losses of a block of rows: scores in, one loss per row and residuals out.

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

One loop over rows is compiled once for each loss.
"""

import numpy as np

from deltarank.core.compiling import njit
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
    penalized_linear_row,
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


def _named(name):
    """Give a function the name that its compiled copies on disk, and their symbols, will have.

    Under one name, two processes that compile different losses at once could each keep what the
    other has made.
    """

    def rename(function):
        function.__qualname__ = name
        return function

    return rename


def _over_rows(row_loss):
    """Return the loop over rows for a loss of one row.

    numba keeps a compiled loop on disk under a digest of what the loop closes over. That is the
    same in every process for a plain function, but not for one that is compiled already, nor could
    the loss be an argument: hence `register_jitable` in `pairs`.
    """

    @njit(nogil=True, cache=True)
    @_named(f"{row_loss.__name__}_by_row")
    def losses_of_rows(scores, rows, weights, labels, losses):
        space, scratch = np.zeros((2, scores.shape[1])), np.zeros((5, scores.shape[1] + LANES))
        for b in range(rows.shape[0]):
            i, row = rows[b], scores[b]
            above, below, up, down = _separate(row, labels, i, space)
            has_pairs = above.shape[0] > 0 and below.shape[0] > 0
            weight = weights[i, 0] if has_pairs else 0.0
            pull = weights[i, 1] / weight if weight else 0.0
            loss = row_loss(above, below, up, down, scratch, pull) if has_pairs else 0.0
            losses[b] = weight * loss
            _bring_back(row, labels, i, space, weight)

    return losses_of_rows


_logistic_row_by_row = _over_rows(logistic_row)
rounded_hinge_pairs = _over_rows(rounded_hinge_row)


@njit(nogil=True, cache=True)
def logistic_pairs(scores, rows, weights, labels, losses):
    """Take rows of few labels many at a time, in O(m^2) each, and others in O(s (m - s))."""
    if scores.shape[1] > FEW_LABELS:
        _logistic_row_by_row(scores, rows, weights, labels, losses)
        return
    space = tile_space(scores.shape[1])
    for begin in range(0, rows.shape[0], ROWS_PER_TILE):
        tile, some = scores[begin : begin + ROWS_PER_TILE], rows[begin : begin + ROWS_PER_TILE]
        tile_losses = losses[begin : begin + ROWS_PER_TILE]
        logistic_tile(tile, some, weights, labels, tile_losses, space)
        for b in range(some.shape[0]):
            if space[2][b]:
                alone = slice(b, b + 1)
                _logistic_row_by_row(tile[alone], some[alone], weights, labels, tile_losses[alone])


PAIRWISE = {
    "logistic": logistic_pairs,
    "exponential": _over_rows(exponential_row),
    "squared": _over_rows(squared_row),
    "squared_hinge": _over_rows(squared_hinge_row),
    "hinge": _over_rows(hinge_row),
    "linear": _over_rows(linear_row),
    "penalized_linear": _over_rows(penalized_linear_row),
    "all_pairs_squared": _over_rows(all_pairs_squared_row),
}
