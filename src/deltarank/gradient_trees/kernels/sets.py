"""The best split of the categories of a feature into two sets.

Categories have no order of their own, so one is made: by how far the mean gradient of each lies
along a direction, and the best cut of that order is taken. No split gains more than the best along
some direction but for ``l2`` (Fisher 1958 for one label): the one between the means of its sides.
So the search begins with the direction in which means of categories differ most, and goes on with
that between the sides found, as long as this gains.
"""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.gradient_trees.kernels.histograms import CURVATURE, WIDTH
from deltarank.gradient_trees.kernels.splits import ANY_ORDER

# Steps towards the first direction, and the most directions that are tried.
STEPS, DIRECTIONS = 20, 10


@njit(nogil=True, cache=True, fastmath=ANY_ORDER, error_model="numpy")
def best_sets(histograms, features, first_lines, n_values, total, limits, gains, sides, sets):
    """Set, by feature, the gain of the best split, the missing side, and what goes left.

    The first two and ``limits`` are as in `best_splits`; ``sets`` (d, codes) is true for the
    categories that go left. Those with no row in the node go where missing values go.
    """
    tie = limits[2]
    unseen = 8 * np.finfo(histograms.dtype).eps * total[CURVATURE]
    for f in features:
        first, n_codes = first_lines[f], n_values[f]
        seen = np.flatnonzero(histograms[first : first + n_codes, CURVATURE] > unseen)
        sums = histograms[first + seen].astype(np.float64)
        missing = np.zeros(WIDTH)
        if histograms[first + n_codes, CURVATURE] > unseen:
            missing[:] = histograms[first + n_codes]
        gains[f], best, n_left, side = -np.inf, -np.inf, 0, 0
        if len(seen) == 0:
            continue
        direction = _widest(sums, total)
        for _ in range(DIRECTIONS):
            order = np.argsort(_places(sums, direction), kind="mergesort")
            found = _best_cut(sums[order], missing, total, limits)
            if found[0] == -np.inf or (best > -np.inf and found[0] <= best + tie * best):
                break
            best, n_left, side = found
            left = seen[order[:n_left]]
            gains[f], sides[f] = best, side
            sets[f] = side == 1
            sets[f][seen] = False
            sets[f][left] = True
            near = sums[order[:n_left]].sum(axis=0) + side * missing * (missing[CURVATURE] > 0)
            far = total - near
            for k in range(CURVATURE):
                direction[k] = far[k] / far[CURVATURE] - near[k] / near[CURVATURE]


@njit(nogil=True)
def _places(sums, direction):
    """Return how far the mean gradient of each category lies along a direction."""
    places = np.zeros(len(sums))
    for c in range(len(sums)):
        for k in range(CURVATURE):
            places[c] += sums[c, k] * direction[k]
        places[c] /= sums[c, CURVATURE]
    return places


@njit(nogil=True)
def _widest(sums, total):
    """Return the direction in which the means of categories, by their weight, differ most.

    That is the first principal one, by steps of the power method from the category that lies
    farthest out.
    """
    gaps = np.empty((len(sums), CURVATURE))
    for c in range(len(sums)):
        root = np.sqrt(sums[c, CURVATURE])
        for k in range(CURVATURE):
            gaps[c, k] = sums[c, k] / root - total[k] / total[CURVATURE] * root
    farthest = np.argmax((gaps * gaps).sum(axis=1))
    direction = gaps[farthest].copy()
    for _ in range(STEPS):
        moved = np.zeros(CURVATURE)
        for c in range(len(gaps)):
            moved += (gaps[c] * direction).sum() * gaps[c]
        length = np.sqrt((moved * moved).sum())
        if length == 0:
            break
        direction = moved / length
    return direction


@njit(nogil=True)
def _best_cut(sums, missing, total, limits):
    """Return the gain of the best cut of categories in their order, how many are left, the side.

    The side is 1 where missing values go left; where nothing is missing, to the side of most.
    """
    l2, least, tie = limits
    any_missing = missing[CURVATURE] > 0
    h_all, best, n_left, best_side = total[CURVATURE], -np.inf, 0, 0
    for side in range(2 if any_missing else 1):
        left = side * missing
        # Missing values alone may be the right side.
        for c in range(len(sums) if any_missing and side == 0 else len(sums) - 1):
            square, rest = 0.0, 0.0
            for k in range(WIDTH):
                left[k] += sums[c, k]
            for k in range(CURVATURE):
                square += left[k] * left[k]
                rest += (total[k] - left[k]) ** 2
            h = left[CURVATURE]
            if h < least or h_all - h < least:
                continue
            gain = square / (h + l2) + rest / (h_all - h + l2)
            if best == -np.inf or gain > best + tie * best:
                best, n_left = gain, c + 1
                best_side = side if any_missing else int(h >= h_all - h)
    return best, n_left, best_side
