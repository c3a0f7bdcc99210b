"""Dual coordinate ascent for single labels over sparse rows: a cell costs its row's words only.

Every cell (row i of one label) has a dual variable a_i, the size of its residual, and coefficients
are ``C sum_i a_i y_i (x_i - center)``. Taking one cell after the other to its best a_i needs one
exponential and the words of one row, whatever the number of features (Yu, Huang and Lin 2011).
The logistic loss holds the logit of ``a_i / limit_i`` in place of a_i: at the minimum it is minus
the margin, and Newton's method on it needs no logarithm.

The intercept has no penalty and hence no dual variable of its own. It is held near a centre by a
proximal term instead, ``stiffness / 2 (offset - centre)^2``, and the centre moves until it no
longer pulls.
"""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.elementary import FAST, exp_negative, log1p_unit

ZERO, HALF, ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
# The logit of a dual variable that is still zero.
UNTOUCHED = np.float32(-87.0)
# An error of this size of a logit is far below what its cell will move by in the next epochs.
LOGIT_TOLERANCE = np.float32(1e-2)
MAX_NEWTON_STEPS = 20
# Share of a cell's part of the tolerated gap below which it may rest, and epochs it rests at most.
RESTING_SHARE, LONGEST_REST = 0.3, 15
# Of all cells along the offset, where scores leave next to none.
LEAST_CURVATURE = 1e-6
# Of relevant cells: labels that all or no rows hold have no finite best offset.
SMALLEST_SHARE = 1e-16
# Stiffness of the offset, as a share of the curvature of all cells along it. Less would let the
# offset swing with every cell, more would need more moves of the centre.
STIFFNESS = 0.25
# The centre moves when the rest of the problem is solved to this share of what the move will gain.
READY_SHARE = 0.3
# A move of the centre is at most so many times as long as what pulls at it asks for at once.
LONGEST_MOVE = 20.0


@njit(inline="always", fastmath=FAST)
def _sigmoid(t):
    e = exp_negative(-abs(t))
    inverse = ONE / (ONE + e)
    return inverse if t >= ZERO else e * inverse


@njit(inline="always", fastmath={"contract", "reassoc"}, error_model="numpy")
def _dot(indices, values, k, end, dense):
    """Return the product of one sparse row with a dense vector."""
    a, b, c, d = ZERO, ZERO, ZERO, ZERO
    while k + 3 < end:
        a += values[k] * dense[indices[k]]
        b += values[k + 1] * dense[indices[k + 1]]
        c += values[k + 2] * dense[indices[k + 2]]
        d += values[k + 3] * dense[indices[k + 3]]
        k += 4
    while k < end:
        a += values[k] * dense[indices[k]]
        k += 1
    return (a + b) + (c + d)


@njit(inline="always", fastmath=FAST, error_model="numpy")
def _best_logit(logit, margin, curvature, limit):
    """Return the t with ``t + margin + curvature limit sigmoid(t) = 0``, from a first guess.

    The left side rises with t, is convex below zero and concave above. From zero, on the side of
    the root, Newton's steps cannot overshoot twice.
    """
    slope = curvature * limit
    is_right = margin + HALF * slope < ZERO
    t = logit
    for _ in range(MAX_NEWTON_STEPS):
        if is_right != (t > ZERO):
            t = ZERO
        p = _sigmoid(t)
        step = (t + margin + slope * p) / (ONE + slope * p * (ONE - p))
        t -= step
        if abs(step) < LOGIT_TOLERANCE:
            break
    return max(t, UNTOUCHED + ONE)


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def ascend(matrix, geometry, rows, signs, limits, C, penalized, tol, max_epochs, seed, state):
    """Solve one label's problem for one C, from the dual variables in `state`.

    Parameters
    ----------
    matrix : tuple (starts, indices, values)
        CSR; values float32.
    geometry : tuple (center, center_norm, norms, towards)
        The centre (d,) and its squared length, both zero where the intercept is penalised; squared
        lengths (n,) of the rows, and their products (n,) with the centre.
    rows : ndarray of int32
        The rows of the problem, in any order; shuffled.
    signs, limits : ndarray of float32, shape (n,)
        1 for relevant cells, else -1; what each cell counts, 0 if it does not.
    C : float32
    penalized : bool
        Whether the intercept is penalised like a coefficient.
    tol : float
        Relative duality gap to stop at.
    max_epochs : int
    seed : int
        Of the order in which cells are taken.
    state : tuple (coef (d,), logits (n,), offset (2,))
        Overwritten: ``C sum a y x``, without the centre; where dual variables stand; the score at
        the centre, and what is to be added to ``coef . x - C mass center . x`` for a score.

    Returns
    -------
    mass : float
        ``sum a y``: coefficients are ``coef - C mass center``.
    n_epochs : int
    converged : bool
    """
    starts, indices, values = matrix
    _, center_norm, norms, towards = geometry
    coef, logits, offset = state
    n = rows.shape[0]
    rest, resting = np.zeros(n, np.int16), np.zeros(n, np.int16)
    order = np.arange(n)
    random = np.uint64(seed) * np.uint64(2654435761) + np.uint64(88172645463325252)
    mass, along, curvature = _totals(rows, signs, limits, logits, offset[0], towards)
    stiffness = np.float64(ONE / C) if penalized else STIFFNESS * curvature
    centre = 0.0 if penalized else offset[0] - mass / stiffness
    # How strongly the centre is pulled back as it moves; half as stiff until a move has told.
    last_centre, last_mass, spring = np.nan, np.nan, stiffness / 2
    allowed, threshold, is_full, converged = np.inf, 0.0, True, False
    for epoch in range(max_epochs):
        shift = centre + mass / stiffness - C * (along - mass * center_norm)
        gap, loss, curvature = 0.0, 0.0, 0.0
        give = np.float32(1 / stiffness + C * center_norm)
        for p in range(n):
            random ^= random << np.uint64(13)
            random ^= random >> np.uint64(7)
            random ^= random << np.uint64(17)
            q = p + np.int64((random >> np.uint64(32)) * np.uint64(n - p) >> np.uint64(32))
            order[p], order[q] = order[q], order[p]
            k = order[p]
            if rest[k] > 0 and not is_full:
                rest[k] -= 1
                continue
            i = rows[k]
            limit, sign = limits[i], signs[i]
            if limit <= ZERO:
                continue
            score = _dot(indices, values, starts[i], starts[i + 1], coef)
            margin = sign * (score + np.float32(shift - mass * C * towards[i]))
            own = C * (norms[i] - np.float32(2.0) * towards[i]) + give
            before = limit * _sigmoid(logits[k]) if logits[k] > UNTOUCHED else ZERO
            guess = logits[k] if logits[k] > UNTOUCHED else -margin
            logit = _best_logit(guess, margin - own * before, own, limit)
            after = limit * _sigmoid(logit)
            change = after - before
            bend = max(after * (ONE - after / limit), np.float32(1e-30))
            moved = change * (ONE + own * bend)
            own_gap = HALF * moved * moved / bend
            gap += own_gap
            curvature += bend
            if is_full:
                loss += limit * (max(-margin, ZERO) + log1p_unit(exp_negative(-abs(margin))))
            if own_gap <= threshold:
                resting[k] = min(2 * resting[k] + 1, LONGEST_REST)
                rest[k] = resting[k]
            else:
                rest[k] = resting[k] = 0
            logits[k] = logit
            pull = sign * change
            factor = C * pull
            for j in range(starts[i], starts[i + 1]):
                coef[indices[j]] += factor * values[j]
            mass += pull
            along += pull * towards[i]
            shift += pull / stiffness - C * pull * (towards[i] - center_norm)
        if is_full:
            penalty = _penalty(coef, mass, along, center_norm, C)
            allowed = tol * (loss + penalty)
            threshold = RESTING_SHARE * allowed / n
            if not penalized and last_mass != last_mass:
                # Before the first move: by cells that have found their places.
                centre += mass / stiffness
                stiffness = STIFFNESS * max(curvature, LEAST_CURVATURE)
                centre -= mass / stiffness
                spring = stiffness / 2
        pulling = 0.0 if penalized else mass * mass / (2 * spring)
        if gap > max(allowed, READY_SHARE * pulling):
            is_full = epoch == 0
        elif pulling > allowed:
            slope = (last_mass - mass) / (centre - last_centre)
            if slope > 0:  # not before the second move
                spring = max(min(slope, stiffness), stiffness / LONGEST_MOVE)
            last_centre, last_mass, centre = centre, mass, centre + mass / spring
            is_full = False
        elif is_full and epoch > 0:
            converged = True
            break
        else:
            is_full = True
    offset[0] = centre + mass / stiffness
    offset[1] = offset[0] - C * (along - mass * center_norm)
    return mass, epoch + 1, converged


@njit(nogil=True, cache=True, error_model="numpy")
def _totals(rows, signs, limits, logits, offset, towards):
    """Return ``sum a y``, ``sum a y (x . center)`` and the curvature along the offset.

    The curvature of a cell without a dual variable is that of a constant score.
    """
    mass, along, curvature = 0.0, 0.0, 0.0
    constant = _sigmoid(np.float32(offset))
    for k in range(rows.shape[0]):
        i = rows[k]
        p = constant
        if logits[k] > UNTOUCHED:
            p = _sigmoid(logits[k])
            mass += signs[i] * limits[i] * p
            along += signs[i] * limits[i] * p * towards[i]
        curvature += limits[i] * p * (ONE - p)
    return mass, along, max(curvature, LEAST_CURVATURE)


@njit(nogil=True, cache=True, error_model="numpy")
def ascend_problems(
    matrix, geometry, rows, weights, labels, chosen, Cs, how, starts, points, unseen, scores
):
    """Solve the problems of some labels over the same rows, each along a path of values of C.

    Parameters
    ----------
    matrix, geometry
        As for `ascend`.
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
        Where the solutions at the last C are written: coefficients, and the score at the centre.
    unseen : ndarray of int
    scores : ndarray of float32, shape (c, n, p) or with no rows
        Where the scores of the unseen rows are written.

    Returns
    -------
    n_epochs, converged : ndarray of shape (p,)
        Of all values of C together.
    """
    penalized, tol, max_epochs = how
    center = geometry[0]
    n, d, n_chosen = weights.shape[0], center.shape[0], chosen.shape[0]
    n_epochs, converged = np.zeros(n_chosen, np.int64), np.ones(n_chosen, np.bool_)
    signs, limits = np.full(n, -ONE), weights.copy()
    coef, offset = np.empty(d, np.float32), np.empty(2)
    logits = np.empty(rows.shape[0], np.float32)
    state = (coef, logits, offset)
    for place in range(n_chosen):
        label = chosen[place]
        _mark(label, labels, weights, signs, limits)
        share = _share(rows, signs, limits)
        offset[0] = np.log(share / (1 - share))
        coef[:], logits[:] = ZERO, UNTOUCHED
        if starts.shape[0]:
            _begin_at(starts[place], matrix, geometry, rows, signs, limits, Cs[0], state)
        for c in range(Cs.shape[0]):
            if c > 0:
                coef *= Cs[c] / Cs[c - 1]
            mass, spent, done = ascend(
                matrix, geometry, rows, signs, limits, Cs[c], penalized, tol, max_epochs,
                label + 1, state,
            )  # fmt: skip
            n_epochs[place] += spent
            converged[place] &= done
            if scores.shape[1]:
                _score(matrix, geometry, unseen, Cs[c], mass, state, scores[c, :, place])
        if points.shape[0]:
            for j in range(d):
                points[place, j] = coef[j] - Cs[-1] * mass * center[j]
            points[place, d] = offset[0]
        _unmark(label, labels, weights, signs, limits)
    return n_epochs, converged


@njit(nogil=True, cache=True)
def _mark(label, labels, weights, signs, limits):
    """Set signs and limits of the cells that a label lists."""
    starts, holders, costs = labels
    for k in range(starts[label], starts[label + 1]):
        signs[holders[k]] = ONE
        limits[holders[k]] = weights[holders[k]] * costs[k]


@njit(nogil=True, cache=True)
def _unmark(label, labels, weights, signs, limits):
    """Set them back."""
    starts, holders, _ = labels
    for k in range(starts[label], starts[label + 1]):
        signs[holders[k]], limits[holders[k]] = -ONE, weights[holders[k]]


@njit(nogil=True, cache=True, error_model="numpy")
def _begin_at(point, matrix, geometry, rows, signs, limits, C, state):
    """Set the dual variables to what they are at a point."""
    starts, indices, values = matrix
    center = geometry[0]
    coef, logits, offset = state
    d = coef.shape[0]
    offset[0] = shift = point[d]
    for j in range(d):
        coef[j] = point[j]
        shift -= coef[j] * center[j]
    for k in range(rows.shape[0]):
        i = rows[k]
        score = _dot(indices, values, starts[i], starts[i + 1], coef)
        logits[k] = max(-signs[i] * (score + shift), UNTOUCHED + ONE)
    coef[:] = ZERO
    for k in range(rows.shape[0]):
        i = rows[k]
        factor = C * signs[i] * limits[i] * _sigmoid(logits[k])
        for j in range(starts[i], starts[i + 1]):
            coef[indices[j]] += factor * values[j]


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def _score(matrix, geometry, rows, C, mass, state, scores):
    """Write the scores of some rows."""
    starts, indices, values = matrix
    towards = geometry[3]
    coef, _, offset = state
    for i in rows:
        score = _dot(indices, values, starts[i], starts[i + 1], coef)
        scores[i] = score + np.float32(offset[1] - C * mass * towards[i])


@njit(nogil=True, cache=True)
def _share(rows, signs, limits):
    """Return the share of relevant cells in what all cells count, neither zero nor one."""
    relevant, total = 0.0, 0.0
    for k in range(rows.shape[0]):
        total += limits[rows[k]]
        if signs[rows[k]] > ZERO:
            relevant += limits[rows[k]]
    return min(max(relevant / max(total, SMALLEST_SHARE), SMALLEST_SHARE), 1 - SMALLEST_SHARE)


@njit(nogil=True, cache=True)
def _penalty(coef, mass, along, center_norm, C):
    """Return the penalty of ``coef - C mass center``."""
    square = 0.0
    for j in range(coef.shape[0]):
        square += np.float64(coef[j]) * coef[j]
    return square / (2 * C) - mass * C * along + C * mass * mass * center_norm / 2


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
