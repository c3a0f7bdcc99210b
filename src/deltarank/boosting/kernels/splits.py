"""The best threshold of each feature from its histogram, for each of eight labels or for all.

A split is as impure as its branches are together. A branch of weight w, p of it relevant, has

* entropy: -p log(p / w) - (w - p) log(1 - p / w), its conditional entropy times w, in nats;
* error: min(p, w - p), what the best constant vote gets wrong;
* z: 2 sqrt(p (w - p)), the normaliser of the best real vote.

The histogram of a feature with v values has v lines, and behind them one for missing values.
"""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.elementary import FAST, logarithm
from deltarank.core.kernels.lanes import LANES, add_lanes, add_sides, min_lanes

CRITERIA = {"entropy": 0, "error": 1, "z": 2}
ENTROPY, ERROR = CRITERIA["entropy"], CRITERIA["error"]


@njit(inline="always", fastmath=FAST, error_model="numpy")
def _entropy(weight, relevant, tiny):
    rest = weight - relevant
    heavy = max(weight, tiny)
    return -(
        relevant * logarithm(max(relevant / heavy, tiny))
        + rest * logarithm(max(rest / heavy, tiny))
    )


@njit(fastmath=FAST, error_model="numpy")
def _add_impurity(criterion, weights, relevant, impurities):
    """Add the impurity of many branches, cell by cell."""
    tiny = impurities.dtype.type(1e-35)
    two, nothing = impurities.dtype.type(2), impurities.dtype.type(0)
    if criterion == ENTROPY:
        for k in range(impurities.shape[0]):
            impurities[k] += _entropy(weights[k], relevant[k], tiny)
    elif criterion == ERROR:
        for k in range(impurities.shape[0]):
            impurities[k] += min(relevant[k], weights[k] - relevant[k])
    else:
        for k in range(impurities.shape[0]):
            product = relevant[k] * (weights[k] - relevant[k])
            impurities[k] += two * np.sqrt(max(product, nothing))


@njit
def _sum_downwards(histogram, sums):
    """Set line b of ``sums`` to the sum of the lines behind b."""
    n_cuts = histogram.shape[0] - 1
    sums[:n_cuts] = histogram[1:]
    for b in range(n_cuts - 2, -1, -1):
        add_lanes(sums, b, sums, b + 1)


@njit
def _sum_upwards(histogram):
    """Replace line b by the sum of the lines up to it."""
    for b in range(1, histogram.shape[0]):
        add_lanes(histogram, b, histogram, b - 1)


@njit(fastmath=FAST, error_model="numpy")
def _split(criterion, weights, relevant, right, right_relevant, impurities):
    """Turn a feature's histogram into the left branches of its splits, and set the right ones.

    Branches are summed from their own end: what is left of a total by subtraction would keep the
    total's rounding.
    """
    n_values = weights.shape[0] - 1
    n_cells = (n_values - 1) * LANES
    _sum_downwards(weights[:n_values], right)
    _sum_downwards(relevant[:n_values], right_relevant)
    _sum_upwards(weights[:n_values])
    _sum_upwards(relevant[:n_values])
    cells = impurities[:n_values].ravel()
    impurities[:] = 0
    missing = impurities[n_values]
    _add_impurity(criterion, weights[n_values], relevant[n_values], missing)
    for b in range(n_values - 1):
        add_lanes(impurities, b, impurities, n_values)
    _add_impurity(criterion, weights.ravel(), relevant.ravel(), cells[:n_cells])
    _add_impurity(criterion, right.ravel(), right_relevant.ravel(), cells[:n_cells])


@njit(nogil=True, cache=True)
def best_splits(
    weights, relevant, n_values, n_bins, criterion, tie, first_feature, value, feature, cut, sums
):
    """Find the purest split of each lane among a group of features; the first of equals wins.

    Parameters
    ----------
    weights, relevant : ndarray, shape (f * n_bins, LANES)
        Histograms of all cells and of the relevant ones; overwritten.
    n_values : ndarray of int64, shape (f,)
        Number of values of each feature, at most ``n_bins - 1``.
    tie : float
        What a split must gain over one before it, beside the total weight; less may be rounding.
    value, feature, cut : ndarray, shape (LANES,)
        Set to the impurity, the feature, and the last bin of the left branch; the impurity is
        infinite where no feature has two values.
    sums : ndarray of float64, shape (3, 2, LANES)
        Set to the weight and the relevant weight of the branches left, right and missing.
    """
    value[:] = np.inf
    right, right_relevant = np.empty_like(weights[:n_bins]), np.empty_like(weights[:n_bins])
    impurities, least = np.empty_like(weights[:n_bins]), np.empty_like(weights[:1])
    for f in range(n_values.shape[0]):
        missing = f * n_bins + n_values[f]
        lines = slice(f * n_bins, missing + 1)
        here = impurities[: n_values[f] + 1]
        _split(criterion, weights[lines], relevant[lines], right, right_relevant, here)
        # Most features have nothing better: one vector comparison per bin finds that out.
        least[0] = np.inf
        for b in range(n_values[f] - 1):
            min_lanes(least, 0, here, b)
        for lane in range(LANES):
            slack = tie * (weights[missing - 1, lane] + weights[missing, lane])
            if not least[0, lane] < value[lane] - slack:
                continue
            b = 0
            while here[b, lane] > least[0, lane] + slack:
                b += 1
            left = f * n_bins + b
            value[lane], feature[lane], cut[lane] = here[b, lane], first_feature + f, b
            sums[0, 0, lane], sums[0, 1, lane] = weights[left, lane], relevant[left, lane]
            sums[1, 0, lane], sums[1, 1, lane] = right[b, lane], right_relevant[b, lane]
            sums[2, 0, lane] = weights[missing, lane]
            sums[2, 1, lane] = relevant[missing, lane]


@njit(nogil=True, cache=True)
def add_impurities(weights, relevant, n_values, n_bins, criterion, totals):
    """Add the impurities of all splits, summed over lanes, to ``totals`` (f, n_bins).

    A bin that ends no left branch counts as infinitely impure.
    """
    right, right_relevant = np.empty_like(weights[:n_bins]), np.empty_like(weights[:n_bins])
    impurities = np.empty_like(weights[:n_bins])
    for f in range(n_values.shape[0]):
        lines = slice(f * n_bins, f * n_bins + n_values[f] + 1)
        here = impurities[: n_values[f] + 1]
        _split(criterion, weights[lines], relevant[lines], right, right_relevant, here)
        for b in range(n_values[f] - 1):
            row = here[b]
            half = (row[0] + row[1]) + (row[2] + row[3])
            totals[f, b] += half + ((row[4] + row[5]) + (row[6] + row[7]))
        totals[f, n_values[f] - 1 :] = np.inf


@njit(nogil=True, cache=True)
def compact_split(codes, n_values, n_bins, cells, signs, criterion, tie, relevant, other, sums):
    """Find the split that is purest for all labels together, where few features have it all cached.

    Parameters
    ----------
    codes : ndarray, shape (f, n)
    cells, signs : ndarray, shape (tiles * n, LANES)
    relevant, other : ndarray, shape (tiles * f * n_bins, LANES)
        Scratch: the histograms of all features and tiles.
    sums : ndarray of float64, shape (3, 2, tiles * LANES)
        Set to the weight and the relevant weight of the branches left, right and missing.

    Returns
    -------
    feature, cut : int
    """
    n_features, n_rows = codes.shape
    n_lines = n_features * n_bins
    n_tiles = cells.shape[0] // n_rows
    relevant[:], other[:] = 0, 0
    impurities = np.zeros((n_features, n_bins))
    for tile in range(n_tiles):
        for i in range(n_rows):
            line = tile * n_rows + i
            for f in range(n_features):
                bin_line = tile * n_lines + f * n_bins + codes[f, i]
                add_sides(relevant, bin_line, other, bin_line, cells, line, signs, line)
        lines = slice(tile * n_lines, (tile + 1) * n_lines)
        add_impurities(
            relevant[lines] + other[lines], relevant[lines].copy(), n_values, n_bins, criterion,
            impurities,
        )  # fmt: skip
    # Every feature's histogram adds up to the same total.
    slack = tie * (relevant[:n_bins].sum() + other[:n_bins].sum())
    for tile in range(1, n_tiles):
        first = slice(tile * n_lines, tile * n_lines + n_bins)
        slack += tie * (relevant[first].sum() + other[first].sum())
    best = np.flatnonzero(impurities.ravel() <= impurities.min() + slack)[0]
    feature, cut = best // n_bins, best % n_bins
    if np.isinf(impurities[feature, cut]):
        cut = n_values[feature] - 1
    sums[:] = 0
    for b in range(n_bins):
        branch = 0 if b <= cut else (1 if b < n_values[feature] else 2)
        for tile in range(n_tiles):
            line = tile * n_lines + feature * n_bins + b
            for lane in range(LANES):
                sums[branch, 0, tile * LANES + lane] += relevant[line, lane] + other[line, lane]
                sums[branch, 1, tile * LANES + lane] += relevant[line, lane]
    return feature, cut
