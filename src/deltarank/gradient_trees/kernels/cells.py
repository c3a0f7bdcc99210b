"""Gradients and curvatures of cells (row and label), and their sums over leaves.

Labels lie side by side, padded to a multiple of `PADDING` so that loops over them are whole
vectors. A cell's sign is +1 where its label is relevant, -1 where it is not, and 0 where nobody
knows or there is no label: such a cell has neither gradient nor curvature.
"""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.elementary import FAST, exponential

PADDING = 16
# The losses by their numbers in these kernels.
NUMBERS = {"logistic": 0, "exponential": 1, "squared": 2, "squared_hinge": 3}
LOGISTIC, EXPONENTIAL, SQUARED = 0, 1, 2
# The exponential loss is no steeper beyond this margin, so that sums of it stay numbers.
STEEPEST = 30.0
# Rows whose gradients stay in cache between their making and their sketch.
ROWS_PER_BLOCK = 128


@njit(nogil=True, fastmath=FAST, error_model="numpy")
def _differentiate(loss, scores, signs, weight, cost, gradients, curvatures):
    """Set the derivatives of one row's cells; until the end, curvatures hold exponentials."""
    zero, one = scores.dtype.type(0), scores.dtype.type(1)
    steepest = scores.dtype.type(STEEPEST)
    if loss < SQUARED:
        for j in range(scores.shape[0]):
            rest = -scores.dtype.type(signs[j]) * scores[j]
            curvatures[j] = -abs(rest) if loss == LOGISTIC else min(rest, steepest)
        for j in range(scores.shape[0]):
            curvatures[j] = exponential(curvatures[j])
    for j in range(scores.shape[0]):
        sign = scores.dtype.type(signs[j])
        w = weight * cost if sign > zero else weight * sign * sign
        margin = sign * scores[j]
        e = curvatures[j]
        if loss == LOGISTIC:
            inverse = one / (one + e)
            gradients[j] = -sign * w * (e * inverse if margin >= zero else inverse)
            curvatures[j] = w * (e * inverse * inverse)
        elif loss == EXPONENTIAL:
            gradients[j] = -sign * w * e
            curvatures[j] = w * e
        else:
            twice = w + w if loss == SQUARED or margin < one else zero
            gradients[j] = -sign * twice * (one - margin)
            curvatures[j] = twice


@njit(nogil=True, cache=True)
def move_scores(start, stop, leaves, values, scores):
    """Add to the scores of a range of rows the values of their leaves."""
    for i in range(start, stop):
        leaf = leaves[i]
        for j in range(scores.shape[1]):
            scores[i, j] += values[leaf, j]


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def sketch_rows(loss, rows, scores, signs, weights, costs, projection, mean, cells):
    """Set the cells of the listed rows: gradients times a projection, last the mean curvature."""
    n_places, width = projection.shape
    gradients = np.empty((ROWS_PER_BLOCK, n_places), scores.dtype)
    curvatures = np.empty((ROWS_PER_BLOCK, n_places), scores.dtype)
    sketches = np.empty((ROWS_PER_BLOCK, width), scores.dtype)
    for start in range(0, rows.shape[0], ROWS_PER_BLOCK):
        n_rows = min(ROWS_PER_BLOCK, rows.shape[0] - start)
        for k in range(n_rows):
            i = rows[start + k]
            derivatives = gradients[k], curvatures[k]
            _differentiate(loss, scores[i], signs[i], weights[i], costs[i], *derivatives)
        np.dot(gradients[:n_rows], projection, sketches[:n_rows])
        for k in range(n_rows):
            total = scores.dtype.type(0)
            for j in range(n_places):
                total += curvatures[k, j] * mean[j]
            cells[rows[start + k], :width] = sketches[k]
            cells[rows[start + k], width] = total


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def add_up(loss, rows, starts, scores, signs, weights, costs, sums):
    """Set ``sums`` (parts, 2, places) to gradients and curvatures over consecutive parts of rows.

    Part k is ``rows[starts[k]:starts[k + 1]]``.
    """
    gradients = np.empty(scores.shape[1], scores.dtype)
    curvatures = np.empty(scores.shape[1], scores.dtype)
    sums[:] = 0.0
    for part in range(starts.shape[0] - 1):
        for k in range(starts[part], starts[part + 1]):
            i = rows[k]
            _differentiate(loss, scores[i], signs[i], weights[i], costs[i], gradients, curvatures)
            for j in range(scores.shape[1]):
                sums[part, 0, j] += gradients[j]
                sums[part, 1, j] += curvatures[j]
