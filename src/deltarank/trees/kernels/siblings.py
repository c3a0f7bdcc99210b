"""Dual coordinate ascent for siblings of a tree at once: they share rows, so they share the words.

As in `deltarank.linear.kernels.dual` every cell (row i of one problem) has a dual variable a_i, the
size of its residual; coefficients are ``C sum a_i y_i x_i``, and one row after the other gets its
best dual variables. Here a row's cells of all siblings move together, one per lane. For the
logistic loss a dual variable is held as the logit of its share of the row's weight; for the squared
hinge it is held as it is, and its best value has a closed form.

The intercept is ``center + give sum a_i y_i``. Where it is penalised like a coefficient, `give` is
C and the centre zero. Without a penalty it is held near a centre as by a spring, and the centre
moves between epochs until the spring no longer pulls.
"""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.draws import draw_next, seeded
from deltarank.core.kernels.elementary import FAST, exp_negative, log1p_unit, sigmoid
from deltarank.linear.kernels.lanes import LANES, add_row, add_scores

ZERO, HALF, ONE, TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)
# The logit of a dual variable that is still zero.
UNTOUCHED = np.float32(-87.0)
# Newton's steps for a cell, each without a branch. What they leave is put right in the next epoch.
NEWTON_STEPS = 3
LEAST_BEND = np.float32(1e-30)
# Stiffness of a spring, as a share of the curvature of all cells along the intercept.
STIFFNESS = 0.25
# The centre moves when the rest of the problem is solved to this share of what the move will gain,
# and at most this many times as far as the spring asks for.
READY_SHARE, LONGEST_MOVE = 0.3, 200.0
# Of all cells along an intercept, where scores leave next to none.
LEAST_CURVATURE = 1e-6
# Of relevant cells: nodes that all or no rows hold have no finite best intercept.
SMALLEST_SHARE = 1e-16
# After this many epochs, this many are over the rows alone that have more to gain than the mean,
# and then one is over all rows again, which tells the gap.
EPOCHS_BEFORE, NARROW_EPOCHS = 2, 2


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def _logistic_step(of_row, Cs, gives, sums, factors, gains):
    """Take a row's cells to their best dual variables; return what the objectives gain at most.

    Writes what is to be added to its words' coefficients, times their values.

    The best logit t solves ``t + margin + give limit sigmoid(t) = 0`` with the margin that the
    other rows alone would give. The left side rises with t, is convex below zero and concave
    above: from zero, on the side of the root, Newton's steps cannot overshoot twice.
    """
    scores, signs, logits, weight, norm = of_row
    for c in range(LANES):
        sign, old, give = np.float32(signs[c]), logits[c], Cs[c] * norm + gives[c]
        limit = weight * sign * sign
        margin, slope = sign * scores[c], give * limit
        before = ZERO if old <= UNTOUCHED else limit * sigmoid(old)
        t = -margin if old <= UNTOUCHED else old
        rest = margin - give * before
        is_right = rest + HALF * slope < ZERO
        for _ in range(NEWTON_STEPS):
            t = ZERO if is_right != (t > ZERO) else t
            p = sigmoid(t)
            t -= (t + rest + slope * p) / (ONE + slope * p * (ONE - p))
        t = max(t, UNTOUCHED + ONE)
        p = sigmoid(t)
        change = limit * p - before
        bend = max(limit * p * (ONE - p), LEAST_BEND)
        moved = change * (ONE + give * bend)
        logits[c] = t
        factors[c] = Cs[c] * sign * change
        gains[c] = HALF * moved * moved / bend
        sums[0, c] += gains[c]
        sums[1, c] += limit * (max(-margin, ZERO) + log1p_unit(exp_negative(-abs(margin))))
    total = ZERO
    for c in range(LANES):
        total += gains[c]
    return total


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def _hinge_step(of_row, Cs, gives, sums, factors, gains):
    """Take a row's cells to their best dual variables under the squared hinge loss.

    Writes and returns what `_logistic_step` does. With r the margin that the other rows alone would
    give, the best a solves ``a = 2 weight max(0, 1 - r - give a)``. What a cell may gain is its
    part of the duality gap, ``weight (hinge - a / (2 weight))^2`` where the hinge is positive.
    """
    scores, signs, duals, weight, norm = of_row
    for c in range(LANES):
        sign, old, give = np.float32(signs[c]), duals[c], Cs[c] * norm + gives[c]
        limit = TWO * weight * sign * sign
        margin = sign * scores[c]
        new = max(ZERO, limit * (ONE - margin + give * old) / (ONE + limit * give))
        hinge = max(ZERO, ONE - margin)
        duals[c] = new
        factors[c] = Cs[c] * sign * (new - old)
        lacking = old - limit * hinge
        unused = old * max(ZERO, margin - ONE)
        gains[c] = HALF * lacking * lacking / max(limit, LEAST_BEND) + unused
        sums[0, c] += gains[c]
        sums[1, c] += HALF * limit * hinge * hinge
    total = ZERO
    for c in range(LANES):
        total += gains[c]
    return total


@njit(nogil=True, cache=True)
def _own_words(matrix, rows, n_features):
    """Return the words of some rows in a numbering of their own, which leaves no gaps.

    Returns
    -------
    starts, indices, values : ndarray
        CSR of the rows.
    features : ndarray of int32
        What each number stands for.
    norms : ndarray of float32
        Squared lengths of the rows.
    """
    starts, indices, values = matrix
    n = rows.shape[0]
    own_starts = np.zeros(n + 1, np.int64)
    for k in range(n):
        own_starts[k + 1] = own_starts[k] + starts[rows[k] + 1] - starts[rows[k]]
    own_indices = np.empty(own_starts[n], np.int32)
    own_values = np.empty(own_starts[n], np.float32)
    features, norms = np.empty(n_features, np.int32), np.zeros(n, np.float32)
    numbers = np.full(n_features, -1, np.int32)
    n_own, place = 0, 0
    for k in range(n):
        for j in range(starts[rows[k]], starts[rows[k] + 1]):
            if numbers[indices[j]] < 0:
                numbers[indices[j]] = n_own
                features[n_own] = indices[j]
                n_own += 1
            own_indices[place], own_values[place] = numbers[indices[j]], values[j]
            norms[k] += values[j] * values[j]
            place += 1
    return own_starts, own_indices, own_values, features[:n_own].copy(), norms


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def ascend_siblings(matrix, n_features, rows, weights, signs, Cs, how, seed):
    """Solve up to LANES problems over the same rows.

    Parameters
    ----------
    matrix : tuple (starts, indices, values)
        CSR; indices int32, values float32.
    n_features : int
    rows : ndarray of int32, shape (n,)
    weights : ndarray of float32
        Of all rows of the matrix.
    signs : ndarray of int8, shape (n, LANES)
        1 for relevant cells, else -1; 0 in lanes without a problem, which then stay at zero.
    Cs : ndarray of float32, shape (LANES,)
    how : tuple (intercept_Cs, tol, max_epochs, is_hinge)
        C of the intercepts, infinite if they have no penalty; the relative duality gap to stop at;
        whether the loss is the squared hinge, else it is the logistic one.
    seed : int
        Of the order in which rows are taken.

    Returns
    -------
    features : ndarray of int32, shape (f,)
        The features that occur in the rows.
    coef : ndarray of float32, shape (f, LANES)
    intercepts : ndarray of float32, shape (LANES,)
    n_epochs : int
    gaps : ndarray of float32, shape (LANES,)
        Relative duality gaps as the last epoch found them.
    """
    intercept_Cs, tol, max_epochs, is_hinge = how
    starts, indices, values, features, norms = _own_words(matrix, rows, n_features)
    n = rows.shape[0]
    coef, intercepts = np.zeros((features.shape[0], LANES), np.float32), np.zeros(LANES, np.float32)
    duals = np.full((n, LANES), ZERO if is_hinge else UNTOUCHED, np.float32)
    scores, factors = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    sums, gaps = np.empty((2, LANES), np.float32), np.empty(LANES, np.float32)
    masses, gives = np.zeros(LANES, np.float32), intercept_Cs.copy()
    centers, moves = np.zeros(LANES, np.float32), np.zeros((3, LANES))
    is_free = np.isinf(intercept_Cs[0])
    if is_free:
        _hold(rows, weights, signs, is_hinge, gives, centers, moves)
    order, n_epochs = np.arange(n), 0
    gains = np.empty(LANES, np.float32)
    row_gains, n_taken, n_narrow = np.empty(n, np.float32), n, 0
    random = seeded(seed)
    while n_epochs < max_epochs:
        sums[:] = ZERO
        for p in range(n_taken):
            k = draw_next(random, order, p, n_taken)
            for c in range(LANES):
                scores[c] = centers[c] + gives[c] * masses[c]
            add_scores(coef, indices, values, starts[k], starts[k + 1], scores)
            of_row = (scores, signs[k], duals[k], weights[rows[k]], norms[k])
            if is_hinge:
                row_gains[k] = _hinge_step(of_row, Cs, gives, sums, factors, gains)
            else:
                row_gains[k] = _logistic_step(of_row, Cs, gives, sums, factors, gains)
            add_row(coef, indices, values, starts[k], starts[k + 1], factors)
            for c in range(LANES):
                masses[c] += factors[c] / Cs[c]
        n_epochs += 1
        if n_narrow > 0:
            n_narrow -= 1
            n_taken = n if n_narrow == 0 else n_taken
            continue
        if is_free:
            _settle(coef, Cs, sums, np.zeros(LANES, np.float32), gaps)
            _move_centers(sums, gaps, tol, masses, gives, centers, moves)
        else:
            _settle(coef, Cs, sums, gives * masses * masses / 2, gaps)
        if gaps.max() <= tol:
            break
        if n_epochs >= EPOCHS_BEFORE:
            n_taken, n_narrow = _put_first(order, row_gains), NARROW_EPOCHS
    for c in range(LANES):
        intercepts[c] = centers[c] + gives[c] * masses[c]
    return features, coef, intercepts, n_epochs, gaps


@njit(nogil=True, cache=True)
def _put_first(order, row_gains):
    """Put rows that still have more than the mean to gain first, and return their number."""
    least, n = row_gains.mean(), 0
    for p in range(order.shape[0]):
        if row_gains[order[p]] >= least:
            order[p], order[n] = order[n], order[p]
            n += 1
    return n


@njit(nogil=True, cache=True, error_model="numpy")
def _settle(coef, Cs, sums, penalties, gaps):
    """Write relative gaps; what the penalties of intercepts cost is given."""
    squares = np.zeros(LANES)
    for j in range(coef.shape[0]):
        for c in range(LANES):
            squares[c] += coef[j, c] * coef[j, c]
    for c in range(LANES):
        sums[1, c] += squares[c] / (2 * Cs[c]) + penalties[c]
        gaps[c] = sums[0, c] / max(sums[1, c], LEAST_BEND)


@njit(nogil=True, cache=True, error_model="numpy")
def _hold(rows, weights, signs, is_hinge, gives, centers, moves):
    """Hold intercepts by springs near the scores of constant chances, the shares of relevant cells.

    `moves` gets how stiff the whole problem is along the intercept, which two moves will tell, and
    where that was seen. Until then gaps are measured as if it were as soft as can be.
    """
    moves[1:] = np.nan
    for c in range(LANES):
        relevant, total = 0.0, 0.0
        for k in range(rows.shape[0]):
            total += weights[rows[k]]
            relevant += weights[rows[k]] * (signs[k, c] > 0)
        share = min(max(relevant / total, SMALLEST_SHARE), 1 - SMALLEST_SHARE)
        spring = STIFFNESS * max(total * share * (1 - share), LEAST_CURVATURE)
        gives[c], moves[0, c] = 1 / spring, spring / LONGEST_MOVE
        centers[c] = 2 * share - 1 if is_hinge else np.log(share / (1 - share))


@njit(nogil=True, cache=True, error_model="numpy")
def _move_centers(sums, gaps, tol, masses, gives, centers, moves):
    """Move the centres of springs, and add what the move will gain to the gaps."""
    for c in range(LANES):
        pulling, allowed = masses[c] * masses[c] / (2 * moves[0, c]), tol * sums[1, c] / 2
        if pulling > allowed and sums[0, c] <= max(allowed, READY_SHARE * pulling):
            slope = (moves[2, c] - masses[c]) / (centers[c] - moves[1, c])
            if slope > 0:
                moves[0, c] = max(min(slope, 1 / gives[c]), 1 / (LONGEST_MOVE * gives[c]))
            is_first = np.isnan(moves[1, c])
            moves[1, c], moves[2, c] = centers[c], masses[c]
            centers[c] += 2 * gives[c] * masses[c] if is_first else masses[c] / moves[0, c]
        gaps[c] += pulling / max(sums[1, c], LEAST_BEND)
