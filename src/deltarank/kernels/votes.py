"""What follows the choice of stumps: votes to scores, scores to weights, stumps to predictions.

Branches are 0 left, 1 right, 2 missing. Scores and cells of a tile of labels are (n, LANES).
"""

import math

import numpy as np
from numba import njit

from deltarank.kernels.elementary import exponential
from deltarank.kernels.lanes import LANES, add_lanes
from deltarank.kernels.logistic import FAST

ROWS_PER_BLOCK = 64


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
    """Add the votes of one stump for all lanes: ``branches`` (n,), ``votes`` (3, LANES)."""
    for i in range(scores.shape[0]):
        add_lanes(scores, i, votes, branches[i])


@njit(nogil=True, cache=True, fastmath=FAST)
def univariate_weights(scores, signs, log_weights, shift, cells):
    """Set cells to w_i exp(-y_il f_l(x_i) - shift_l), and to 0 in lanes without a label."""
    flat = cells.ravel()
    for start in range(0, scores.shape[0], ROWS_PER_BLOCK):
        stop = min(start + ROWS_PER_BLOCK, scores.shape[0])
        for i in range(start, stop):
            for lane in range(LANES):
                cells[i, lane] = log_weights[i] - signs[i, lane] * scores[i, lane] - shift[lane]
        block = flat[start * LANES : stop * LANES]
        for k in range(block.shape[0]):
            block[k] = exponential(block[k])
    if signs[0, LANES - 1] == 0:
        for lane in range(LANES):
            if signs[0, lane] == 0:
                cells[:, lane] = 0


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def pair_weights(scores, signs, log_weights, shift, cells, row_weights):
    """Set cells to the marginal weights of the pairs of AdaBoost.MR, without their factor 1/2.

    Row i has the weight rho_i = w_i sum_{p,q} exp((f_q - f_p) / 2 - shift). Its relevant labels
    share it as exp(-f_p / 2), its irrelevant ones as exp(f_q / 2); each side is centred at its
    largest term, so that nothing overflows however far scores have drifted.

    Parameters
    ----------
    scores, signs, cells : ndarray, shape (tiles, n, LANES)
    row_weights : ndarray of float64, shape (n,)
        Set to rho.
    """
    n_tiles, n_rows, _ = scores.shape
    terms = np.empty(n_tiles * LANES, cells.dtype)
    for i in range(n_rows):
        high_relevant, high_other = -np.inf, -np.inf
        for tile in range(n_tiles):
            for lane in range(LANES):
                half = -0.5 * signs[tile, i, lane] * scores[tile, i, lane]
                if signs[tile, i, lane] > 0:
                    high_relevant = max(high_relevant, half)
                elif signs[tile, i, lane] < 0:
                    high_other = max(high_other, half)
        for tile in range(n_tiles):
            for lane in range(LANES):
                half = -0.5 * signs[tile, i, lane] * scores[tile, i, lane]
                high = high_relevant if signs[tile, i, lane] > 0 else high_other
                terms[tile * LANES + lane] = half - high
        for k in range(terms.shape[0]):
            terms[k] = exponential(terms[k])
        sum_relevant, sum_other = 0.0, 0.0
        for tile in range(n_tiles):
            for lane in range(LANES):
                if signs[tile, i, lane] > 0:
                    sum_relevant += terms[tile * LANES + lane]
                elif signs[tile, i, lane] < 0:
                    sum_other += terms[tile * LANES + lane]
        pairs = math.log(sum_relevant) + math.log(sum_other)
        rho = math.exp(log_weights[i] + high_relevant + high_other + pairs - shift)
        row_weights[i] = rho
        for tile in range(n_tiles):
            for lane in range(LANES):
                sign = signs[tile, i, lane]
                side = sum_relevant if sign > 0 else sum_other
                cells[tile, i, lane] = rho / side * terms[tile * LANES + lane] if sign != 0 else 0


@njit(nogil=True, cache=True)
def pair_agreement(branches, votes, signs, cells, row_weights):
    """Return the weights of the pairs that votes of +-1 order rightly, and wrongly.

    ``votes`` (tiles, 3, LANES) of one shared stump; ``cells`` and ``row_weights`` of
    `pair_weights`.
    """
    right, wrong = 0.0, 0.0
    for i in range(row_weights.shape[0]):
        relevant_up, relevant_down, other_up, other_down = 0.0, 0.0, 0.0, 0.0
        for tile in range(signs.shape[0]):
            for lane in range(LANES):
                up = votes[tile, branches[i], lane] > 0
                if signs[tile, i, lane] > 0:
                    if up:
                        relevant_up += cells[tile, i, lane]
                    else:
                        relevant_down += cells[tile, i, lane]
                elif up:
                    other_up += cells[tile, i, lane]
                else:
                    other_down += cells[tile, i, lane]
        if row_weights[i] > 0:
            right += relevant_up * other_down / row_weights[i]
            wrong += relevant_down * other_up / row_weights[i]
    return right, wrong


@njit(nogil=True, cache=True)
def take_relevant(cells, signs, rows, relevant):
    """Set line k of ``relevant`` to the cells of row ``rows[k]``, the irrelevant ones to 0."""
    for k in range(rows.shape[0]):
        for lane in range(LANES):
            relevant[k, lane] = cells[rows[k], lane] if signs[rows[k], lane] > 0 else 0


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
