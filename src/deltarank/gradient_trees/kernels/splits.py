"""The best split of a node, feature by feature, and the rows on its sides.

A split is worth what the sums of its sides say, ``|G|^2 / (H + l2)`` of the left and of the right
one, where G is the sketch of the gradients and H the curvature.
"""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.gradient_trees.kernels.histograms import CURVATURE, WIDTH

# Sums may be taken in any order; NaN and infinity keep their meaning.
ANY_ORDER = {"contract", "reassoc", "nsz"}


@njit(nogil=True, cache=True, fastmath=ANY_ORDER, error_model="numpy")
def best_splits(histograms, features, first_lines, n_values, total, limits, gains, cuts, sides):
    """Set, by feature, the gain of the best split, the last bin on its left, and the missing side.

    That is 1 where missing values go left. The gain is that of the sides, not less that of the
    node; without a split it is minus infinity.
    ``limits`` are l2, the least curvature of a side, and the share by which gains may differ from
    rounding: of such, the first is best. ``histograms`` is (lines, WIDTH).
    """
    l2, least, tie = limits
    left = np.empty(WIDTH)
    h_all, whole = total[CURVATURE], 0.0
    for k in range(CURVATURE):
        whole += total[k] * total[k]
    for f in features:
        best, best_cut, best_side = -np.inf, 0, 0
        first, n_bins = first_lines[f], n_values[f]
        behind = histograms[first + n_bins]
        any_missing = behind[CURVATURE] > 0
        for side in range(2 if any_missing else 1):
            for k in range(WIDTH):
                left[k] = behind[k] if side == 1 else 0.0
            # Missing values alone may be the right side.
            for b in range(n_bins if any_missing and side == 0 else n_bins - 1):
                line = histograms[first + b]
                square, product = 0.0, 0.0
                for k in range(WIDTH):
                    left[k] += line[k]
                    square += left[k] * left[k]
                    product += left[k] * total[k]
                h = left[CURVATURE]
                h_right = h_all - h
                if h < least or h_right < least:
                    continue
                square -= h * h
                product -= h * h_all
                gain = square / (h + l2) + (whole - 2 * product + square) / (h_right + l2)
                if best == -np.inf or gain > best + tie * best:
                    best, best_cut = gain, b
                    # Where nothing is missing, a gap met later goes the way of most.
                    best_side = side if any_missing else int(h >= h_right)
        gains[f], cuts[f], sides[f] = best, best_cut, best_side


@njit(nogil=True, cache=True)
def part_rows(codes, goes_left, rows, spare):
    """Bring rows whose codes go left before the others, in order; return how many there are."""
    n_left, n_right = 0, 0
    for k in range(rows.shape[0]):
        i = rows[k]
        if goes_left[codes[i]]:
            rows[n_left] = i
            n_left += 1
        else:
            spare[n_right] = i
            n_right += 1
    rows[n_left:] = spare[:n_right]
    return n_left


@njit(nogil=True, cache=True)
def find_leaves(codes, rows, features, goes_left, children, leaves):
    """Set the leaf of the listed rows by their codes (features, n); leaf k is child ~k."""
    for i in rows:
        node = 0
        while node >= 0:
            node = children[node, 0 if goes_left[node, codes[features[node], i]] else 1]
        leaves[i] = ~node
