"""Each metric's value a row, from where the relevant labels stand.

Labels with equal scores have no order, so a metric is its mean over all their orders, in closed
form. It cannot depend on how the labels are numbered, and a model that ties everything gets what
guessing gets. Only `rank_loss` lets other conventions be chosen.

A row function returns two values a row, and the metric of a sample is the sum of the first over the
sum of the second, each multiplied by the sample weights.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

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
    # At the j-th tied place the precision is (found + slope (j - 1)) / (above + j) on average.
    found = placement.better + 1.0
    slope = (placement.equal - 1.0) / np.maximum(tied - 1, 1)
    total = (found - slope * (above + 1)) * (harmonic[above + tied] - harmonic[above])
    precision = (total + slope * tied) / tied
    sizes = placement.labels.sizes
    return placement.row_sums(precision) / np.maximum(sizes, 1), _kept(sizes == 0, trivial)


def precision_at_k_rows(placement: Placement, *, k: int, trivial: str = "zero") -> Rows:
    """Share of the first k labels that are relevant, Eq. (33)."""
    hits = placement.row_sums(_chance_of_place(placement, k))
    return hits / k, _kept(placement.labels.sizes == 0, trivial)


def recall_at_k_rows(placement: Placement, *, k: int, trivial: str = "zero") -> Rows:
    """Share of the relevant labels that are among the first k, Eq. (34)."""
    hits = placement.row_sums(_chance_of_place(placement, k))
    sizes = placement.labels.sizes
    return hits / np.maximum(sizes, 1), _kept(sizes == 0, trivial)


def ndcg_at_k_rows(placement: Placement, *, k: int | None = None, trivial: str = "zero") -> Rows:
    """Discounted gain of the first k labels over the best attainable, Eq. (35)."""
    last = placement.labels.n_labels if k is None else _check_k(placement, k)
    discounts = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, last + 2)))])
    first, end = placement.above, placement.above + placement.tied
    gain = (discounts[np.minimum(end, last)] - discounts[np.minimum(first, last)]) / placement.tied
    sizes = placement.labels.sizes
    ideal = discounts[np.clip(sizes, 1, last)]
    return placement.row_sums(gain) / ideal, _kept(sizes == 0, trivial)


def propensity_scored_precision_at_k_rows(
    placement: Placement, *, k: int, propensities: Any
) -> Rows:
    """Precision at k, a label worth one over its propensity, over the best attainable, Eq. (36)."""
    labels = placement.labels
    chances = row_numbers(propensities, labels.n_labels, "propensities", of="label")
    if (chances == 0).any() or (chances > 1).any():
        raise ValueError("propensities must be above 0 and at most 1; see label_propensities")
    worth = 1 / chances[labels.members]
    gained = placement.row_sums(worth * _chance_of_place(placement, k))
    rows = labels.rows
    # The k worthiest relevant labels of each row, found by one sort of all rows.
    worthiest = np.lexsort((-worth, rows))
    among_first_k = np.arange(len(rows)) - labels.starts[rows] < k
    attainable = placement.row_sums(worth[worthiest] * among_first_k)
    return gained, attainable


def _chance_of_place(placement: Placement, k: int) -> Floats:
    """Probability that a relevant label is among the first k, its ties in random order."""
    room = _check_k(placement, k) - placement.above
    return np.clip(room, 0, placement.tied) / placement.tied


def _check_k(placement: Placement, k: int) -> int:
    n_labels = placement.labels.n_labels
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or not 1 <= k <= n_labels:
        raise ValueError(
            f"k must be an integer from 1 to the number of labels, {n_labels}; got {k!r}"
        )
    return int(k)


def _kept(trivial_rows: NDArray[np.bool_], trivial: str) -> Floats:
    return np.where(trivial_rows, choose(KEPT_WHEN_TRIVIAL, trivial, "trivial"), 1.0)


class Metric(NamedTuple):
    """A metric: its two values a row, and whether more is better."""

    rows: Callable[..., Rows]
    greater_is_better: bool


METRICS: dict[str, Metric] = {
    "rank_loss": Metric(rank_loss_rows, False),
    "coverage": Metric(coverage_rows, False),
    "one_error": Metric(one_error_rows, False),
    "average_precision": Metric(average_precision_rows, True),
    "precision_at_k": Metric(precision_at_k_rows, True),
    "recall_at_k": Metric(recall_at_k_rows, True),
    "ndcg_at_k": Metric(ndcg_at_k_rows, True),
    "propensity_scored_precision_at_k": Metric(propensity_scored_precision_at_k_rows, True),
}
