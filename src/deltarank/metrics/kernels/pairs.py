"""Pairwise losses of one row: scores of its relevant and irrelevant labels in, loss and slopes out.

Each function takes ``above`` (scores of the relevant labels), ``below`` (of the irrelevant ones),
both float64 and never empty, writes the derivatives with respect to them into ``up`` and ``down``
and returns the loss, the sum over all pairs of phi(above_p - below_q), Eq. (18). Only the logistic
loss needs to visit the pairs; see `docs/equations.md` for the sums that replace them elsewhere.
All are called alike, so each also takes what only one of them needs: ``scratch`` (5, m + LANES),
and ``pull``, what the row counts over what its pairs count.

They are plain functions that numba compiles into their callers: see `pairwise`.
"""

import numpy as np
from numba.extending import register_jitable

from deltarank.core.compiling import njit
from deltarank.core.kernels.elementary import exp64

# Sums may be reordered, so that they use vector registers.
FAST = {"contract", "reassoc"}
# exp of half of it, and its inverse, are normal float64 numbers.
LARGEST_SPREAD = 1200.0
# exp of it is still a float64, and so are sums of many of them.
LARGEST_EXPONENT = 650.0
# exp of it is next to nothing, and still a normal float64.
LOWEST_EXPONENT = -700.0
# Factors between 1 and 2 that are multiplied before the logarithm of their product is taken.
FACTORS = 128
# Cells that a vectorised loop does at a time; a rest is done one by one, which is far slower.
LANES = 8
# Half-width of the parabola that rounds the kink of the hinge off.
ROUNDED = 0.01


@njit(fastmath=FAST | {"nnan", "nsz"})
def _range(values):
    lowest, highest = values[0], values[0]
    for j in range(values.shape[0]):
        lowest = values[j] if values[j] < lowest else lowest
        highest = values[j] if values[j] > highest else highest
    return lowest, highest


@register_jitable(fastmath=FAST, error_model="numpy")
def logistic_row(above, below, up, down, scratch, pull):
    """Loss log(1 + exp(-z)).

    An exponential a label and not a pair: with e = exp(score), the slope is a quotient of sums of
    e, and 1 + exp(-|z|) is (e_p + e_q) / max(e_p, e_q). Its logarithms add up to that of a product.
    Allocating ``scratch`` here would take longer than a row of few labels.
    """
    low_above, high_above = _range(above)
    low_below, high_below = _range(below)
    highest, lowest = max(high_above, high_below), min(low_above, low_below)
    if not highest - lowest <= LARGEST_SPREAD:
        return _logistic_pair_by_pair(above, below, up, down)
    middle = (highest + lowest) / 2
    n_below = below.shape[0]
    n_padded = -(-n_below // LANES) * LANES
    scores, powers, inverses = scratch[0, :n_padded], scratch[1, :n_padded], scratch[2, :n_padded]
    pulls, factors = scratch[3, :n_padded], scratch[4, :n_padded]
    scores[:], pulls[:] = 0.0, 0.0
    for q in range(n_below):
        scores[q] = below[q] - middle
    for q in range(n_padded):
        powers[q] = exp64(scores[q])
        inverses[q] = exp64(-scores[q])
    factors[:] = 1.0
    # Scores of minus infinity fill the last vector register up: they add nothing.
    scores[n_below:], powers[n_below:], inverses[n_below:] = -np.inf, 0.0, np.inf
    loss = 0.0
    for p in range(above.shape[0]):
        score = above[p] - middle
        power, inverse = exp64(score), exp64(-score)
        pulled, missed = 0.0, 0.0
        for q in range(n_padded):
            both = power + powers[q]
            pull = powers[q] / both
            factors[q] *= both * (inverse if inverse < inverses[q] else inverses[q])
            pulls[q] += pull
            pulled += pull
            missed += scores[q] - score if scores[q] > score else 0.0
        up[p] = -pulled
        loss += missed
        if p % FACTORS == FACTORS - 1:
            loss += _log_of_product(factors, FACTORS)
            factors[:] = 1.0
    down[:] = pulls[:n_below]
    return loss + _log_of_product(factors, min(above.shape[0], FACTORS))


@njit(fastmath=FAST, error_model="numpy")
def _log_of_product(numbers, largest):
    """Return the sum of logarithms of numbers of at most 2**largest, a logarithm a 1000 bits."""
    loss, size = 0.0, max(1, 1000 // largest)
    for begin in range(0, numbers.shape[0], size):
        part = numbers[begin : begin + size]
        product = 1.0
        for q in range(part.shape[0]):
            product *= part[q]
        loss += np.log(product)
    return loss


@njit(error_model="numpy")
def _logistic_pair_by_pair(above, below, up, down):
    """Return the same for scores too far apart for one exponential per label."""
    up[:], down[:] = 0.0, 0.0
    loss = 0.0
    for p in range(above.shape[0]):
        for q in range(below.shape[0]):
            short = below[q] - above[p]
            ratio = np.exp(-abs(short))
            pull = (1.0 if short > 0 else ratio) / (1.0 + ratio)
            loss += max(short, 0.0) + np.log1p(ratio)
            up[p] -= pull
            down[q] += pull
    return loss


@register_jitable(fastmath=FAST, error_model="numpy")
def exponential_row(above, below, up, down, scratch, pull):
    """Loss exp(-z): the product of two sums. Beyond float64 it stays at the largest exponent."""
    lowest, highest = _range(above)[0], _range(below)[1]
    left, right = 0.0, 0.0
    for p in range(above.shape[0]):
        exponent = lowest - above[p]
        up[p] = exp64(exponent if exponent > LOWEST_EXPONENT else LOWEST_EXPONENT)
        left += up[p]
    for q in range(below.shape[0]):
        exponent = below[q] - highest
        down[q] = exp64(exponent if exponent > LOWEST_EXPONENT else LOWEST_EXPONENT)
        right += down[q]
    scale = np.exp(min(highest - lowest, LARGEST_EXPONENT))
    for p in range(above.shape[0]):
        up[p] *= -scale * right
    for q in range(below.shape[0]):
        down[q] *= scale * left
    return scale * left * right


@register_jitable(fastmath=FAST)
def linear_row(above, below, up, down, scratch, pull):
    """Loss -z."""
    n_above, n_below = above.shape[0], below.shape[0]
    up[:], down[:] = -float(n_below), float(n_above)
    return n_above * below.sum() - n_below * above.sum()


@register_jitable
def penalized_linear_row(above, below, up, down, scratch, pull):
    """Loss -z with half the squares of the scores added, Eq. (40)."""
    loss = linear_row(above, below, up, down, scratch, pull)
    for p in range(above.shape[0]):
        loss += pull * above[p] * above[p] / 2
        up[p] += pull * above[p]
    for q in range(below.shape[0]):
        loss += pull * below[q] * below[q] / 2
        down[q] += pull * below[q]
    return loss


@register_jitable(fastmath=FAST)
def squared_row(above, below, up, down, scratch, pull):
    """Loss (1 - z)^2, from means and sums of squares about them."""
    n_above, n_below = above.shape[0], below.shape[0]
    mean_above, mean_below = above.mean(), below.mean()
    rest = 1 - (mean_above - mean_below)
    scatter_above, scatter_below = 0.0, 0.0
    for p in range(n_above):
        apart = above[p] - mean_above
        scatter_above += apart * apart
        up[p] = 2 * n_below * (apart - rest)
    for q in range(n_below):
        apart = below[q] - mean_below
        scatter_below += apart * apart
        down[q] = 2 * n_above * (apart + rest)
    return n_above * n_below * rest * rest + n_below * scatter_above + n_above * scatter_below


@njit(inline="always")
def _reach(ascending, value):
    """Return how many numbers are below a value."""
    low, high = 0, ascending.shape[0]
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@register_jitable
def hinge_row(above, below, up, down, scratch, pull):
    """Loss max(1 - z, 0), from numbers and sums of the relevant scores within reach of each other.

    In ascending order the relevant scores within reach of an irrelevant one are the first few.
    """
    rising = np.argsort(above)
    ascending = above[rising]
    n_above = above.shape[0]
    sums, counts = np.zeros(n_above + 1), np.zeros(n_above + 1)
    for k in range(n_above):
        sums[k + 1] = sums[k] + ascending[k]
    loss = 0.0
    for q in range(below.shape[0]):
        reach = _reach(ascending, below[q] + 1.0)
        loss += reach * (1.0 + below[q]) - sums[reach]
        down[q] = float(reach)
        counts[reach] += 1.0
    reached = 0.0
    for k in range(n_above - 1, -1, -1):
        reached += counts[k + 1]
        up[rising[k]] = -reached
    return loss


@njit
def _squared_hinge(above, below, margin, up, down):
    """Loss max(margin - z, 0)^2, about a common level so that squares keep their digits."""
    rising = np.argsort(above)
    level = (above.mean() + below.mean()) / 2
    ascending = above[rising] - level
    n_above = above.shape[0]
    sums, squares = np.zeros(n_above + 1), np.zeros(n_above + 1)
    counts, totals = np.zeros(n_above + 1), np.zeros(n_above + 1)
    for k in range(n_above):
        sums[k + 1] = sums[k] + ascending[k]
        squares[k + 1] = squares[k] + ascending[k] * ascending[k]
    loss = 0.0
    for q in range(below.shape[0]):
        score = below[q] - level
        reach = _reach(ascending, score + margin)
        rest = margin + score
        loss += rest * (reach * rest - 2 * sums[reach]) + squares[reach]
        down[q] = 2 * (reach * rest - sums[reach])
        counts[reach] += 1.0
        totals[reach] += score
    reached, total = 0.0, 0.0
    for k in range(n_above - 1, -1, -1):
        reached += counts[k + 1]
        total += totals[k + 1]
        up[rising[k]] = -2 * (reached * (margin - ascending[k]) + total)
    return max(loss, 0.0)


@register_jitable
def squared_hinge_row(above, below, up, down, scratch, pull):
    """Loss max(1 - z, 0)^2."""
    return _squared_hinge(above, below, 1.0, up, down)


@register_jitable
def rounded_hinge_row(above, below, up, down, scratch, pull):
    """Hinge with a parabola for its kink: at most ROUNDED / 2 below it, and differentiable.

    It is the difference of two squared hinges, over twice the distance of their margins.
    """
    inner_up, inner_down = np.empty_like(up), np.empty_like(down)
    loss = _squared_hinge(above, below, 1.0, up, down)
    loss -= _squared_hinge(above, below, 1.0 - ROUNDED, inner_up, inner_down)
    up -= inner_up
    down -= inner_down
    up /= 2 * ROUNDED
    down /= 2 * ROUNDED
    return loss / (2 * ROUNDED)


@register_jitable(fastmath=FAST)
def all_pairs_squared_row(above, below, up, down, scratch, pull):
    """Loss ((y_i - y_j) - (h_i - h_j))^2 over all pairs, Eq. (41): m times the scatter of y - h."""
    n_above, n_below = above.shape[0], below.shape[0]
    n_labels = n_above + n_below
    mean = (n_above - above.sum() - below.sum()) / n_labels
    scatter = 0.0
    for p in range(n_above):
        rest = 1 - above[p] - mean
        scatter += rest * rest
        up[p] = -2 * n_labels * rest
    for q in range(n_below):
        rest = -below[q] - mean
        scatter += rest * rest
        down[q] = -2 * n_labels * rest
    return n_labels * scatter
