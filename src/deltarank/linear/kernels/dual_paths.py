"""Labels solved side by side by dual coordinate ascent, along a path of values of C."""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.elementary import FAST, sigmoid
from deltarank.linear.kernels.dual import ONE, UNTOUCHED, ZERO, ascend
from deltarank.linear.kernels.lanes import LANES, add_row, add_scores

# The share of relevant cells counts as at least this far from 0 and 1: labels that all or no rows
# hold have no finite best offset.
SMALLEST_SHARE = 1e-16


@njit(nogil=True, cache=True, error_model="numpy")
def ascend_labels(
    matrix, geometry, columns, rows, weights, labels, chosen, Cs, how, starts, points, unseen,
    scores,
):  # fmt: skip
    """Solve the problems of up to LANES labels over the same rows, along a path of values of C.

    Parameters
    ----------
    matrix, geometry
        As for `ascend`.
    columns : tuple (center, features)
        The centre (d,) that problems are solved around, and the feature that each column is.
    rows : ndarray of int32
    weights : ndarray of float32, shape (n,)
    labels : tuple (starts, rows, costs)
        Label l lists the rows that hold it, with what a relevant cell costs, or 0 if unknown.
    chosen : ndarray of int, shape (p,)
        Labels.
    Cs : ndarray of float32, shape (c,)
    how : tuple (penalized, tol, max_epochs)
    starts : ndarray of float32, shape (p, d + 1) or (0, 0)
        Points to begin from, as in `points`.
    points : ndarray of float32, shape (p, d + 1) or (0, 0)
        Where the solutions at the last C are written: coefficients of the
        features, and the score at the centre.
    unseen : ndarray of int, shape (u,)
    scores : ndarray of float32, shape (c, u, p)
        Where the scores of the unseen rows are written.

    Returns
    -------
    n_epochs : int
        Of all values of C together.
    converged : ndarray of shape (p,)
    """
    center, features = columns
    n, d, n_chosen = rows.shape[0], center.shape[0], chosen.shape[0]
    limits = _limits(rows, weights, labels, chosen)
    coef, offsets = np.zeros((d, LANES), np.float32), np.zeros((2, LANES))
    logits = np.full((n, LANES), UNTOUCHED)
    _begin(limits, offsets)
    if starts.shape[0]:
        _begin_at(starts, matrix, columns, rows, limits, Cs[0], coef, logits, offsets)
    n_epochs, converged = 0, np.ones(LANES, np.bool_)
    masses = np.zeros(LANES)
    for c in range(Cs.shape[0]):
        if c > 0:
            coef *= Cs[c] / Cs[c - 1]
        masses, spent, done = ascend(
            matrix, geometry, rows, limits, Cs[c], how, n_epochs + 1, (coef, logits, offsets)
        )
        n_epochs += spent
        converged &= done
        if unseen.shape[0]:
            shifts = Cs[c] * masses
            _score(matrix, geometry[2], unseen, shifts, coef, offsets[1], scores[c])
    if points.shape[0]:
        for j in range(d):
            for c in range(n_chosen):
                points[c, features[j]] = coef[j, c] - Cs[-1] * masses[c] * center[j]
        points[:, d] = offsets[0, :n_chosen]
    return n_epochs, converged[:n_chosen]


@njit(nogil=True, cache=True)
def _limits(rows, weights, labels, chosen):
    """Return what each cell counts, negative where it is not relevant."""
    starts, holders, costs = labels
    limits = np.zeros((rows.shape[0], LANES), np.float32)
    position_of_row = np.full(weights.shape[0], -1, np.int32)
    for k in range(rows.shape[0]):
        position_of_row[rows[k]] = k
        limits[k, : chosen.shape[0]] = -weights[rows[k]]
    for c in range(chosen.shape[0]):
        for at in range(starts[chosen[c]], starts[chosen[c] + 1]):
            k = position_of_row[holders[at]]
            if k >= 0:
                limits[k, c] = weights[holders[at]] * costs[at]
    return limits


@njit(nogil=True, cache=True)
def _begin(limits, offsets):
    """Write the best constant scores."""
    for c in range(LANES):
        relevant, total = 0.0, 0.0
        for k in range(limits.shape[0]):
            total += abs(limits[k, c])
            relevant += max(limits[k, c], ZERO)
        share = relevant / max(total, SMALLEST_SHARE)
        share = min(max(share, SMALLEST_SHARE), 1 - SMALLEST_SHARE)
        offsets[0, c] = np.log(share / (1 - share))


@njit(nogil=True, cache=True, error_model="numpy")
def _begin_at(points, matrix, columns, rows, limits, C, coef, logits, offsets):
    """Set the dual variables to what they are at the given points."""
    starts, indices, values = matrix
    center, features = columns
    d = coef.shape[0]
    shifts = np.zeros(LANES, np.float32)
    scores, factors = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    for c in range(points.shape[0]):
        offsets[0, c], shift = points[c, d], np.float64(points[c, d])
        for j in range(d):
            coef[j, c] = points[c, features[j]]
            shift -= np.float64(coef[j, c]) * center[j]
        shifts[c] = shift
    for k in range(rows.shape[0]):
        scores[:] = shifts
        add_scores(coef, indices, values, starts[rows[k]], starts[rows[k] + 1], scores)
        for c in range(LANES):
            sign = ONE if limits[k, c] >= ZERO else -ONE
            logits[k, c] = max(-sign * scores[c], UNTOUCHED + ONE)
    coef[:] = ZERO
    for k in range(rows.shape[0]):
        for c in range(LANES):
            factors[c] = C * limits[k, c] * sigmoid(logits[k, c])
        add_row(coef, indices, values, starts[rows[k]], starts[rows[k] + 1], factors)


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def _score(matrix, towards, rows, shifts, coef, offsets, scores):
    """Write the scores of some rows."""
    starts, indices, values = matrix
    lanes = np.empty(LANES, np.float32)
    for k in range(rows.shape[0]):
        i = rows[k]
        for c in range(LANES):
            lanes[c] = offsets[c] - shifts[c] * towards[i]
        add_scores(coef, indices, values, starts[i], starts[i + 1], lanes)
        scores[k] = lanes[: scores.shape[1]]


@njit(nogil=True, cache=True)
def row_geometry(matrix, center):
    """Return the squared lengths (n,) of all rows, and their products (n,) with a vector."""
    starts, indices, values = matrix
    n = starts.shape[0] - 1
    norms, towards = np.zeros(n, np.float32), np.zeros(n, np.float32)
    for i in range(n):
        square, product = 0.0, 0.0
        for k in range(starts[i], starts[i + 1]):
            square += np.float64(values[k]) * values[k]
            product += values[k] * center[indices[k]]
        norms[i], towards[i] = square, product
    return norms, towards
