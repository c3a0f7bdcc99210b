"""Dual coordinate ascent over sparse rows, many labels at once: a row's words serve all of them.

Every cell (row i of one label) has a dual variable a_i, the size of its residual, and coefficients
are ``C sum_i a_i y_i (x_i - center)``. Taking one cell after the other to its best a_i needs one
exponential and the words of one row, whatever the number of features (Yu, Huang and Lin 2011).
The logistic loss holds the logit of ``a_i / limit_i`` in place of a_i: at the minimum it is minus
the margin, and Newton's method on it needs no logarithm. A row's cells of LANES labels move
together, one per lane of a vector.

The intercept has no penalty and hence no dual variable of its own. It is held near a centre by a
proximal term instead, ``stiffness / 2 (offset - centre)^2``, and the centre moves until it no
longer pulls.
"""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.draws import draw_next, seeded
from deltarank.core.kernels.elementary import FAST, exp_negative, log1p_unit, sigmoid
from deltarank.linear.kernels.lanes import LANES, add_row, add_scores

ZERO, HALF, ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
# The logit of a dual variable that is still zero.
UNTOUCHED = np.float32(-87.0)
# An error of this size of a logit is far below what its cell will move by in the next epochs.
LOGIT_TOLERANCE = np.float32(1e-2)
MAX_NEWTON_STEPS = 20
LEAST_BEND = np.float32(1e-30)
# After this many epochs over all rows, this many are over the rows alone that have more to gain, in
# all lanes together, than this share of a row's part of the gap allowed in one lane; then one is
# over all rows again, which tells the gap.
EPOCHS_BEFORE, NARROW_EPOCHS, RESTING_SHARE = 2, 3, 4.0
# The curvature of all cells along the offset counts as at least this, where scores leave next to
# none.
LEAST_CURVATURE = 1e-6
# Stiffness of the offset, as a share of the curvature of all cells along it. Less would let the
# offset swing with every cell, more would need more moves of the centre.
STIFFNESS = 0.25
# The centre moves when the rest of the problem is solved to this share of what the move will gain.
READY_SHARE = 0.3
# A move of the centre is at most this many times as long as what pulls at it asks for at once.
LONGEST_MOVE = 20.0
# What is known of each lane: of its offset, and the gap it may leave.
MASS, ALONG, CENTRE, GIVE, STIFF, SPRING, LAST_CENTRE, LAST_MASS, ALLOWED = range(9)
# What an epoch adds up for each lane.
GAP, LOSS, BEND = range(3)
# What is known of the cells of one row, and of all rows: how far an offset gives way, and what a
# gain of each lane counts.
SCORE, BEFORE, SLOPE, REST, LOGIT, GAIN, GIVES, COUNTING = range(8)


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def _find_logits(lanes):
    """Find each lane's best logit: ``t + rest + slope sigmoid(t) = 0``.

    The left side rises with t, is convex below zero and concave above. From zero, on the side of
    the root, Newton's steps cannot overshoot twice.
    """
    for _ in range(MAX_NEWTON_STEPS):
        n_moving = 0
        for c in range(LANES):
            rest, slope, t = lanes[REST, c], lanes[SLOPE, c], lanes[LOGIT, c]
            is_right = rest + HALF * slope < ZERO
            t = ZERO if is_right != (t > ZERO) else t
            p = sigmoid(t)
            step = (t + rest + slope * p) / (ONE + slope * p * (ONE - p))
            lanes[LOGIT, c] = t - step
            n_moving += abs(step) > LOGIT_TOLERANCE
        if n_moving == 0:
            break


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def _step(lanes, limits, logits, length, C, sums):
    """Take a row's cells to their best dual variables; return what the objectives gain at most.

    Writes what is to be added to its words' coefficients, times their values, in place of scores.
    """
    for c in range(LANES):
        limit = abs(limits[c])
        sign = ONE if limits[c] >= ZERO else -ONE
        give, old = length + lanes[GIVES, c], logits[c]
        margin = sign * lanes[SCORE, c]
        before = ZERO if old <= UNTOUCHED else limit * sigmoid(old)
        lanes[BEFORE, c], lanes[SLOPE, c] = before, give * limit
        lanes[LOGIT, c] = -margin if old <= UNTOUCHED else old
        lanes[REST, c] = margin - give * before
        sums[LOSS, c] += limit * (max(-margin, ZERO) + log1p_unit(exp_negative(-abs(margin))))
    _find_logits(lanes)
    for c in range(LANES):
        limit = abs(limits[c])
        sign = ONE if limits[c] >= ZERO else -ONE
        t = max(lanes[LOGIT, c], UNTOUCHED + ONE)
        p = sigmoid(t)
        change = limit * p - lanes[BEFORE, c]
        bend = max(limit * p * (ONE - p), LEAST_BEND)
        moved = change * (ONE + (length + lanes[GIVES, c]) * bend)
        gain = HALF * moved * moved / bend
        logits[c], lanes[SCORE, c] = t, C * sign * change
        sums[GAP, c] += gain
        sums[BEND, c] += bend
        lanes[GAIN, c] = gain * lanes[COUNTING, c]
    total = ZERO
    for c in range(LANES):
        total += lanes[GAIN, c]
    return total


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def _epoch(matrix, geometry, rows, limits, C, order, n_taken, random, coef, logits, held, lanes,
           sums, gains):  # fmt: skip
    """Take the first `n_taken` rows of the order, shuffled, to their best dual variables."""
    starts, indices, values = matrix
    _, norms, towards = geometry
    scores, inverse = lanes[SCORE], 1 / np.float64(C)
    lanes[GIVES] = held[GIVE]
    sums[:] = ZERO
    for p in range(n_taken):
        k = draw_next(random, order, p, n_taken)
        i = rows[k]
        bound = np.float64(C) * towards[i]
        for c in range(LANES):
            shift = held[MASS, c] * (held[GIVE, c] - bound) - C * held[ALONG, c]
            scores[c] = np.float32(held[CENTRE, c] + shift)
        add_scores(coef, indices, values, starts[i], starts[i + 1], scores)
        length = C * (norms[i] - np.float32(2.0) * towards[i])
        gains[k] = _step(lanes, limits[k], logits[k], length, C, sums)
        add_row(coef, indices, values, starts[i], starts[i + 1], scores)
        for c in range(LANES):
            pull = scores[c] * inverse
            held[MASS, c] += pull
            held[ALONG, c] += pull * towards[i]


@njit(nogil=True, cache=True, error_model="numpy")
def ascend(matrix, geometry, rows, limits, C, how, seed, state):
    """Solve the problems of up to LANES labels for one C, from the dual variables in `state`.

    Parameters
    ----------
    matrix : tuple (starts, indices, values)
        CSR; indices int32, values float32.
    geometry : tuple (center_norm, norms, towards)
        Squared length of the centre, zero where the intercept is penalised; squared lengths (n,)
        of the rows, and their products (n,) with the centre.
    rows : ndarray of int32, shape (r,)
        The rows of the problems.
    limits : ndarray of float32, shape (r, LANES)
        What each cell counts, negative where the label is not relevant, 0 if it does not count.
    C : float32
    how : tuple (penalized, tol, max_epochs)
        Whether the intercept is penalised like a coefficient; the relative duality gap to stop at.
    seed : int
        Of the order in which rows are taken.
    state : tuple (coef (d, LANES), logits (r, LANES), offsets (2, LANES))
        Overwritten: ``C sum a y x``, without the centre; where dual variables stand; the score at
        the centre, and what is to be added to ``coef . x - C mass center . x`` for a score.

    Returns
    -------
    masses : ndarray of shape (LANES,)
        ``sum a y``: coefficients are ``coef - C mass center``.
    n_epochs : int
    converged : ndarray of bool, shape (LANES,)
    """
    penalized, tol, max_epochs = how
    coef, logits, offsets = state
    n, center_norm = rows.shape[0], geometry[0]
    held, sums = np.empty((9, LANES)), np.zeros((3, LANES), np.float32)
    gains, order, n_taken = np.zeros(n, np.float32), np.arange(n), n
    random = seeded(seed)
    lanes, settled = np.ones((8, LANES), np.float32), np.zeros(LANES, np.bool_)
    _hold(rows, limits, logits, geometry, C, penalized, offsets[0], held)
    n_epochs, n_narrow = 0, 0
    while n_epochs < max_epochs:
        _epoch(matrix, geometry, rows, limits, C, order, n_taken, random, coef, logits, held, lanes,
               sums, gains)  # fmt: skip
        n_epochs += 1
        is_full = n_narrow == 0
        if is_full:
            _allow(coef, C, center_norm, tol, penalized, held, sums)
        _move(penalized, held, sums, settled)
        if settled.all() and n_epochs > 1:
            if is_full:
                break
            n_taken, n_narrow = n, 0
        elif not is_full:
            n_narrow -= 1
            n_taken = n if n_narrow == 0 else n_taken
        elif n_epochs >= EPOCHS_BEFORE:
            n_taken, n_narrow = _put_first(order, gains, penalized), NARROW_EPOCHS
        if is_full:
            for c in range(LANES):
                lanes[COUNTING, c] = 0.0 if settled[c] else 1 / held[ALLOWED, c]
    for c in range(LANES):
        offsets[0, c] = held[CENTRE, c] + held[MASS, c] / held[STIFF, c]
        offsets[1, c] = offsets[0, c] - C * (held[ALONG, c] - held[MASS, c] * center_norm)
    return held[MASS].copy(), n_epochs, settled & is_full


@njit(nogil=True, cache=True)
def _put_first(order, gains, penalized):
    """Put the rows with more to gain first, and return their number.

    Without a centre that moves, rows with less to gain than the mean may rest too. A centre would
    follow the rows that are taken, away from where all rows want it.
    """
    least, n = RESTING_SHARE / order.shape[0], 0
    if penalized:
        least = max(least, gains.mean())
    for p in range(order.shape[0]):
        if gains[order[p]] >= least:
            order[p], order[n] = order[n], order[p]
            n += 1
    return n


@njit(nogil=True, cache=True, error_model="numpy")
def _hold(rows, limits, logits, geometry, C, penalized, offsets, held):
    """Write what is known of each lane's offset before the first epoch.

    The curvature of a cell without a dual variable is that of a constant score.
    """
    center_norm, _, towards = geometry
    held[:] = 0.0
    held[LAST_CENTRE : LAST_MASS + 1] = np.nan
    curvatures = np.zeros(LANES)
    for k in range(rows.shape[0]):
        for c in range(LANES):
            p = sigmoid(logits[k, c]) if logits[k, c] > UNTOUCHED else ZERO
            held[MASS, c] += limits[k, c] * p
            held[ALONG, c] += limits[k, c] * p * towards[rows[k]]
            p = p if logits[k, c] > UNTOUCHED else sigmoid(np.float32(offsets[c]))
            curvatures[c] += abs(limits[k, c]) * p * (ONE - p)
    for c in range(LANES):
        stiffness = 1 / C if penalized else STIFFNESS * max(curvatures[c], LEAST_CURVATURE)
        held[STIFF, c], held[GIVE, c] = stiffness, 1 / stiffness + C * center_norm
        held[CENTRE, c] = 0.0 if penalized else offsets[c] - held[MASS, c] / stiffness
        # How strongly the centre is pulled back as it moves; half as stiff until one has shown it.
        held[SPRING, c] = stiffness / 2


@njit(nogil=True, cache=True, error_model="numpy")
def _allow(coef, C, center_norm, tol, penalized, held, sums):
    """Write the gap that each lane may leave, after an epoch over all rows."""
    squares = np.zeros(LANES)
    for j in range(coef.shape[0]):
        for c in range(LANES):
            squares[c] += np.float64(coef[j, c]) * coef[j, c]
    for c in range(LANES):
        mass, along = held[MASS, c], held[ALONG, c]
        penalty = squares[c] / (2 * C) - mass * C * along + C * mass * mass * center_norm / 2
        held[ALLOWED, c] = max(tol * (sums[LOSS, c] + penalty), LEAST_BEND)
        if not penalized and np.isnan(held[LAST_MASS, c]):
            # Before the first move: from the curvature of cells that have settled.
            held[CENTRE, c] += mass / held[STIFF, c]
            stiffness = STIFFNESS * max(sums[BEND, c], LEAST_CURVATURE)
            held[CENTRE, c] -= mass / stiffness
            held[STIFF, c], held[GIVE, c] = stiffness, 1 / stiffness + C * center_norm
            held[SPRING, c] = stiffness / 2


@njit(nogil=True, cache=True, error_model="numpy")
def _move(penalized, held, sums, settled):
    """Move the centres that may move, and tell which lanes have no more than their gap to gain."""
    for c in range(LANES):
        mass, allowed = held[MASS, c], held[ALLOWED, c]
        pulling = 0.0 if penalized else mass * mass / (2 * held[SPRING, c])
        settled[c] = max(np.float64(sums[GAP, c]), pulling) <= allowed
        if pulling <= allowed or sums[GAP, c] > max(allowed, READY_SHARE * pulling):
            continue
        slope = (held[LAST_MASS, c] - mass) / (held[CENTRE, c] - held[LAST_CENTRE, c])
        if slope > 0:  # not before the second move
            least = held[STIFF, c] / LONGEST_MOVE
            held[SPRING, c] = max(min(slope, held[STIFF, c]), least)
        held[LAST_CENTRE, c], held[LAST_MASS, c] = held[CENTRE, c], mass
        held[CENTRE, c] += mass / held[SPRING, c]
