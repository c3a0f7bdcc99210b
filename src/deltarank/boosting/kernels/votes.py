"""What follows the choice of stumps: votes to scores, scores to weights, stumps to predictions.

Branches are 0 left, 1 right, 2 missing. Scores and cells of a tile of labels are (n, LANES).
"""

import math

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.elementary import FAST, exponential
from deltarank.core.kernels.lanes import (
    LANES,
    add_lanes,
    add_sides,
    keep_relevant,
    scale_lanes,
    sum_lanes,
    weigh_lanes,
)

ROWS_PER_BLOCK = 64
# Reductions in any order, so that they use vector registers.
ANY_ORDER = {"contract", "reassoc", "nnan", "nsz"}


@njit(nogil=True, cache=True)
def add_label_votes(codes, cuts, missing, votes, scores):
    """Add to each lane the vote of its own stump: ``codes`` (LANES, n), ``votes`` (3, LANES)."""
    for i in range(scores.shape[0]):
        for lane in range(LANES):
            code = codes[lane, i]
            if code == missing[lane]:
                scores[i, lane] += votes[2, lane]
            else:
                scores[i, lane] += votes[1, lane] if code > cuts[lane] else votes[0, lane]


@njit(nogil=True, cache=True)
def add_shared_votes(branches, votes, scores):
    """Add to all lanes the votes of each row's branch (or bin): ``votes`` (branches, LANES)."""
    for i in range(scores.shape[0]):
        add_lanes(scores, i, votes, branches[i])


@njit(nogil=True, cache=True, fastmath=FAST)
def univariate_weights(scores, signs, log_weights, shift, has_gaps, cells):
    """Set cells to w_i exp(-y_il f_l(x_i) - shift_l), and to 0 where the sign is (`has_gaps`)."""
    flat = cells.ravel()
    for start in range(0, scores.shape[0], ROWS_PER_BLOCK):
        stop = min(start + ROWS_PER_BLOCK, scores.shape[0])
        for i in range(start, stop):
            for lane in range(LANES):
                cells[i, lane] = log_weights[i] - signs[i, lane] * scores[i, lane] - shift[lane]
        block = flat[start * LANES : stop * LANES]
        for k in range(block.shape[0]):
            block[k] = exponential(block[k])
    if has_gaps:
        known = signs.ravel()
        for k in range(flat.shape[0]):
            flat[k] = flat[k] if known[k] != 0 else 0


@njit(fastmath=ANY_ORDER)
def _largest(values):
    largest = values[0]
    for k in range(values.shape[0]):
        largest = max(largest, values[k])
    return largest


@njit(fastmath=ANY_ORDER)
def _total(values):
    total = values.dtype.type(0)
    for k in range(values.shape[0]):
        total += values[k]
    return total


@njit(nogil=True, cache=True)
def turn_cells(branches, relevant, other, signs, cells):
    """Multiply cells by what a vote makes of them: ``relevant`` and ``other`` (3, LANES)."""
    for i in range(cells.shape[0]):
        weigh_lanes(cells, i, cells, i, signs, i, relevant, branches[i], other, branches[i])


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def pair_factors(scores, signs, log_weights, shift, factors, scales):
    """Set what the weights of the pairs of AdaBoost.MR are products of.

    The pair (p, q) of row i weighs w_i exp((f_q - f_p) / 2 - shift). The relevant labels have the
    factors exp(-f_p / 2), the irrelevant ones exp(f_q / 2), each side centred at its largest, so
    that nothing overflows however far scores have drifted; ``scales`` takes up the centres.

    Parameters
    ----------
    scores, signs, factors : ndarray, shape (tiles, n, LANES)
    scales : ndarray of float64, shape (n,)
    """
    n_tiles, n_rows, _ = scores.shape
    terms, masked = np.empty((2, n_tiles * LANES), factors.dtype)
    for i in range(n_rows):
        # Which labels are relevant is as good as random: selections, not branches to mispredict.
        for tile in range(n_tiles):
            for lane in range(LANES):
                sign, k = signs[tile, i, lane], tile * LANES + lane
                terms[k] = -0.5 * sign * scores[tile, i, lane]
                masked[k] = terms[k] if sign > 0 else -np.inf
        high_relevant = _largest(masked)
        for tile in range(n_tiles):
            for lane in range(LANES):
                sign, k = signs[tile, i, lane], tile * LANES + lane
                masked[k] = terms[k] if sign < 0 else -np.inf
        high_other = _largest(masked)
        for tile in range(n_tiles):
            for lane in range(LANES):
                sign, k = signs[tile, i, lane], tile * LANES + lane
                terms[k] -= high_relevant if sign > 0 else high_other
        for k in range(terms.shape[0]):
            terms[k] = exponential(terms[k])
        for tile in range(n_tiles):
            for lane in range(LANES):
                sign, k = signs[tile, i, lane], tile * LANES + lane
                factors[tile, i, lane] = terms[k] if sign != 0 else 0.0
        scales[i] = math.exp(log_weights[i] + high_relevant + high_other - shift)


@njit(nogil=True, cache=True)
def turn_pairs(rows, branches, relevant, other, signs, factors, scales, scale, cells, row_weights):
    """Multiply factors by what a vote makes of them; set cells to the marginal weights of pairs.

    The cells of a row are its factors times the sum of those on the other side; either side adds
    up to the weight of the row, which all its pairs have together.

    Parameters
    ----------
    rows : (int, int)
        The first row, and the one behind the last.
    relevant, other : ndarray, shape (3 * tiles, LANES)
        What the votes of the branches multiply the factors of either side by.
    signs, factors, cells : ndarray, shape (tiles * n, LANES)
    scales, scale : ndarray of shape (n,), float
        Multiply the weights.
    row_weights : ndarray of float64, shape (n,)
    """
    n_rows = scales.shape[0]
    n_tiles = factors.shape[0] // n_rows
    sums, number = np.empty((2, LANES), factors.dtype), factors.dtype.type
    for i in range(rows[0], rows[1]):
        sums[:] = 0
        for tile in range(n_tiles):
            line, branch = tile * n_rows + i, tile * 3 + branches[i]
            weigh_lanes(factors, line, factors, line, signs, line, relevant, branch, other, branch)
            add_sides(sums, 0, sums, 1, factors, line, signs, line)
        sum_relevant, sum_other = sum_lanes(sums, 0), sum_lanes(sums, 1)
        weight = scales[i] * scale
        row_weights[i] = weight * sum_relevant * sum_other
        for_relevant, for_other = number(weight * sum_other), number(weight * sum_relevant)
        for tile in range(n_tiles):
            line = tile * n_rows + i
            scale_lanes(cells, line, factors, line, signs, line, for_relevant, for_other)


@njit(nogil=True, cache=True)
def pair_agreement(branches, votes, signs, cells, row_weights):
    """Return the weights of the pairs that votes of +-1 order rightly, and wrongly.

    ``votes`` (tiles, 3, LANES) of one shared stump; ``cells`` and ``row_weights`` of
    `turn_pairs`.
    """
    right, wrong = 0.0, 0.0
    for i in range(row_weights.shape[0]):
        relevant_up, relevant_down, other_up, other_down = 0.0, 0.0, 0.0, 0.0
        for tile in range(signs.shape[0]):
            for lane in range(LANES):
                up = votes[tile, branches[i], lane] > 0
                relevant = signs[tile, i, lane] > 0
                weight = cells[tile, i, lane]
                relevant_up += weight if relevant and up else 0.0
                relevant_down += weight if relevant and not up else 0.0
                other_up += weight if up and not relevant else 0.0
                other_down += weight if not up and not relevant else 0.0
        if row_weights[i] > 0:
            right += relevant_up * other_down / row_weights[i]
            wrong += relevant_down * other_up / row_weights[i]
    return right, wrong


@njit(nogil=True, cache=True)
def take_relevant(cells, signs, rows, relevant):
    """Set line k of ``relevant`` to the cells of row ``rows[k]``, the irrelevant ones to 0."""
    for k in range(rows.shape[0]):
        keep_relevant(relevant, k, cells, rows[k], signs, rows[k])


@njit(inline="always")
def _branch(x, threshold):
    return 0 if x <= threshold else (1 if x > threshold else 2)


@njit(nogil=True, cache=True)
def predict_label_votes(X, features, thresholds, votes, scores):
    """Add the votes of each label's own stumps; features (t, m), votes (t, 3, m), scores (n, m)."""
    for t in range(features.shape[0]):
        for i in range(X.shape[0]):
            for label in range(scores.shape[1]):
                branch = _branch(X[i, features[t, label]], thresholds[t, label])
                scores[i, label] += votes[t, branch, label]


@njit(nogil=True, cache=True)
def predict_shared_votes(X, features, thresholds, votes, scores):
    """Add the votes of shared stumps; features (t,), votes (t, 3, m), scores (n, m)."""
    for i in range(X.shape[0]):
        for t in range(features.shape[0]):
            branch = _branch(X[i, features[t]], thresholds[t])
            for label in range(scores.shape[1]):
                scores[i, label] += votes[t, branch, label]
