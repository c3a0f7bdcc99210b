"""Each metric's value per row, from where the relevant labels stand.

Labels with equal scores have no order, so a metric is its mean over all their orders, in closed
form. It cannot depend on how the labels are numbered, and a model that ties everything gets what
guessing gets. Only `rank_loss` lets other conventions be chosen.

A row function returns two values per row, and the metric of a sample is the sum of the first over
the sum of the second, each multiplied by the sample weights.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.choices import choose
from deltarank.core.labels import row_numbers
from deltarank.core.weights import Weight, raw_weights
from deltarank.metrics.placement import Placement

Floats = NDArray[np.float64]
Rows = tuple[Floats, Floats]

TIE_COSTS = {"half": 0.5, "full": 1.0, "none": 0.0}
KEPT_WHEN_TRIVIAL = {"zero": 1.0, "skip": 0.0}


def rank_loss_rows(
    placement: Placement, *, weight: Weight = "rank", ties: str = "half", trivial: str = "zero"
) -> Rows:
    """Weighted misordered pairs, Eq. (4)."""
    misordered = placement.above - placement.better
    tied = placement.tied - placement.equal
    lost = placement.row_sums(misordered + choose(TIE_COSTS, ties, "ties") * tied)
    weights = raw_weights(placement.labels, placement.Y, weight)
    return weights * lost, _kept(placement.labels.trivial, trivial)


def coverage_rows(placement: Placement, *, trivial: str = "zero") -> Rows:
    """Count the steps from the first label down to the last relevant one, Eq. (30)."""
    above, tied, equal = placement.above, placement.tied, placement.equal
    # The last of r marked among t shuffled stands at r (t + 1) / (r + 1) on average.
    depth = placement.row_maxima(above + equal * (tied + 1.0) / (equal + 1.0) - 1)
    return depth, _kept(placement.labels.sizes == 0, trivial)


def one_error_rows(placement: Placement, *, trivial: str = "zero") -> Rows:
    """Whether the first label is irrelevant, Eq. (31)."""
    empty = placement.labels.sizes == 0
    relevant_first = placement.row_sums((placement.above == 0) / placement.tied)
    return np.where(empty, 0.0, 1.0 - relevant_first), _kept(empty, trivial)


def average_precision_rows(placement: Placement, *, trivial: str = "zero") -> Rows:
    """Precision at each relevant label's position, averaged over these labels, Eq. (32)."""
    above, tied = placement.above, placement.tied
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, placement.labels.n_labels + 1))])
    # At the j-th tied place the precision is (hits + slope (j - 1)) / (above + j) on average.
    hits = placement.better + 1.0
    slope = (placement.equal - 1.0) / np.maximum(tied - 1, 1)
    total = (hits - slope * (above + 1)) * (harmonic[above + tied] - harmonic[above])
    precision = (total + slope * tied) / tied
    sizes = placement.labels.sizes
    return placement.row_sums(precision) / np.maximum(sizes, 1), _kept(sizes == 0, trivial)


def precision_at_k_rows(placement: Placement, *, k: int, trivial: str = "zero") -> Rows:
    """Share of the first k labels that are relevant, Eq. (33)."""
    hits = placement.row_sums(placement.chance_of_place(k))
    return hits / k, _kept(placement.labels.sizes == 0, trivial)


def recall_at_k_rows(placement: Placement, *, k: int, trivial: str = "zero") -> Rows:
    """Share of the relevant labels that are among the first k, Eq. (34)."""
    hits = placement.row_sums(placement.chance_of_place(k))
    sizes = placement.labels.sizes
    return hits / np.maximum(sizes, 1), _kept(sizes == 0, trivial)


def ndcg_at_k_rows(placement: Placement, *, k: int | None = None, trivial: str = "zero") -> Rows:
    """Discounted gain of the first k labels over the best attainable, Eq. (35)."""
    discounts = _discounts(placement, k)
    gain = _mean_discount(placement, discounts)
    sizes = placement.labels.sizes
    ideal = discounts[np.clip(sizes, 1, len(discounts) - 1)]
    return placement.row_sums(gain) / ideal, _kept(sizes == 0, trivial)


def propensity_scored_precision_at_k_rows(
    placement: Placement, *, k: int, propensities: Any
) -> Rows:
    """Precision at k, a label worth one over its propensity, over the best attainable, Eq. (36)."""
    discounts = np.arange(placement.check_k(k) + 1.0)  # every place counts the same
    return _propensity_scored(placement, discounts, propensities)


def propensity_scored_ndcg_at_k_rows(
    placement: Placement, *, k: int | None = None, propensities: Any
) -> Rows:
    """Discounted gain, a label worth one over its propensity, over the best, Eq. (67)."""
    return _propensity_scored(placement, _discounts(placement, k), propensities)


def _propensity_scored(placement: Placement, discounts: Floats, propensities: Any) -> Rows:
    """Return what was gained, and what could be, where places count as `discounts` grow."""
    labels, last = placement.labels, len(discounts) - 1
    worth = 1 / check_propensities(propensities, labels.n_labels)[labels.members]
    gained = placement.row_sums(worth * _mean_discount(placement, discounts))
    rows = labels.rows
    # Each row's relevant labels, the worthiest first, found by one sort of all rows.
    worthiest = np.lexsort((-worth, rows))
    place = np.minimum(np.arange(len(rows)) - labels.starts[rows], last)
    steps = np.append(np.diff(discounts), 0.0)
    return gained, placement.row_sums(worth[worthiest] * steps[place])


def check_propensities(propensities: Any, n_labels: int) -> Floats:
    """Return one chance per label, above 0 and at most 1, or refuse them."""
    chances = row_numbers(propensities, n_labels, "propensities", of="label")
    if (chances == 0).any() or (chances > 1).any():
        raise ValueError("propensities must be above 0 and at most 1; see label_propensities")
    return chances


def _discounts(placement: Placement, k: int | None) -> Floats:
    """Return the sums of the discounts of the first 0, 1, ... k places (all, by default)."""
    last = placement.labels.n_labels if k is None else placement.check_k(k)
    return np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, last + 2)))])


def _mean_discount(placement: Placement, discounts: Floats) -> Floats:
    """Return the discount of each relevant label's place, the mean over the orders of its ties."""
    first, last = placement.above, len(discounts) - 1
    end = np.minimum(first + placement.tied, last)
    return (discounts[end] - discounts[np.minimum(first, last)]) / placement.tied


def _kept(trivial_rows: NDArray[np.bool_], trivial: str) -> Floats:
    return np.where(trivial_rows, choose(KEPT_WHEN_TRIVIAL, trivial, "trivial"), 1.0)
