"""The logistic loss of label pairs for some rows of few labels, side by side in vector registers.

A row of ten labels has about 25 pairs, too few to fill the vectors of a loop over them. So the
rows of a tile are the lanes instead, and all pairs of labels are visited, whichever of the two is
relevant in a row, and in many rows neither or both.
"""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.elementary import exp64, logarithm
from deltarank.core.kernels.lanes import (
    INVERSE,
    LANES,
    MISSED,
    POWER,
    PRODUCT,
    RELEVANT,
    SLOPE,
    pull_apart,
)

# Two vectors a label: the processor works on one while it waits for the other.
VECTORS = 2
ROWS_PER_TILE = VECTORS * LANES
# Visiting all pairs pays up to here; and the product of their factors, at most 2 for each of
# m^2 / 4 pairs, is a float64 up to m = 63.
FEW_LABELS = 24
# exp of it, its inverse and sums and quotients of such are normal float64 numbers.
LARGEST_DIFFERENCE = 300.0


@njit(nogil=True, cache=True)
def tile_space(n_labels):
    """Return scratch for `logistic_tile`, for labels and for totals, and marks of its rows."""
    return (
        np.zeros((SLOPE + 1, n_labels * VECTORS, LANES)),
        np.zeros((MISSED + 1, VECTORS, LANES)),
        np.zeros(ROWS_PER_TILE, np.bool_),
    )


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract", "reassoc"})
def logistic_tile(scores, rows, weights, labels, losses, space):
    """Do what `logistic_pairs` does for at most ROWS_PER_TILE rows of few labels.

    With e = exp(score), a pair pulls its two scores apart by e_q / (e_p + e_q), and its loss is the
    logarithm of (e_p + e_q) / max(e_p, e_q), plus the difference where it is wrong. Rows whose
    scores are too far apart for that are left alone, and marked in the last part of ``space``.
    """
    cells, totals, is_far = space
    n_labels = scores.shape[1]
    heights = cells[0].reshape(n_labels, ROWS_PER_TILE)
    _load(scores, rows, labels, heights, cells[RELEVANT].reshape(heights.shape), is_far)
    height, power, inverse = cells[0].ravel(), cells[POWER].ravel(), cells[INVERSE].ravel()
    for k in range(height.shape[0]):
        power[k] = exp64(height[k])
        inverse[k] = 1.0 / power[k]
    cells[SLOPE], totals[PRODUCT], totals[MISSED] = 0.0, 1.0, 0.0
    for p in range(n_labels):
        for q in range(p):
            for v in range(VECTORS):
                pull_apart(cells, p * VECTORS + v, cells, q * VECTORS + v, totals, v)
    products, missed = totals[PRODUCT].ravel(), totals[MISSED].ravel()
    for k in range(products.shape[0]):
        missed[k] += logarithm(products[k])
    slopes = cells[SLOPE].reshape(heights.shape)
    for b in range(rows.shape[0]):
        if is_far[b]:
            continue
        weight = weights[rows[b], 0]
        losses[b] = weight * missed[b]
        for j in range(n_labels):
            scores[b, j] = weight * slopes[j, b]


@njit(nogil=True, cache=True)
def _load(scores, rows, labels, heights, relevant, is_far):
    """Write one column per row: scores less that of the first label, and 1 for relevant labels.

    A row that is too far apart is marked, and has zeros for scores: no number of another row
    depends on it.
    """
    starts, members = labels
    relevant[:] = 0.0
    for b in range(rows.shape[0]):
        close = True
        for j in range(scores.shape[1]):
            height = np.float64(scores[b, j]) - np.float64(scores[b, 0])
            heights[j, b] = height
            close &= abs(height) <= LARGEST_DIFFERENCE
        is_far[b] = not close
        if not close:
            heights[:, b] = 0.0
        for k in range(starts[rows[b]], starts[rows[b] + 1]):
            relevant[members[k], b] = 1.0
