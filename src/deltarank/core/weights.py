"""Instance weights w(y): how much one instance's label pairs count."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core import threads
from deltarank.core.choices import choose
from deltarank.core.kernels.unknown_labels import mean_weights
from deltarank.core.labels import LabelSets, label_sets, row_numbers

Weight = str | tuple[str, int] | Callable[[Any], Any]
Floats = NDArray[np.float64]
NO_PAIR_COUNTS = (
    "weight gives 0 to every row that has a pair to rank; nothing can be learned from them"
)


def inverse_pairs(sizes: NDArray[Any], n_labels: Any) -> Floats:
    """Weigh by one over the number of label pairs, Eq. (21): the rank loss."""
    return 1 / (sizes * (n_labels - sizes))


def uniform(sizes: NDArray[Any], n_labels: Any) -> Floats:
    """Weigh all alike: precision at k and the unnormalised rank loss."""
    return np.ones(len(sizes))


def inverse_size(sizes: NDArray[Any], n_labels: Any) -> Floats:
    """Weigh by one over the number of relevant labels: recall at k."""
    return 1 / sizes


def inverse_ideal_gain(sizes: NDArray[Any], n_labels: Any, k: int | None = None) -> Floats:
    """Weigh by one over the best attainable discounted gain, Eq. (28): nDCG, or nDCG at k."""
    most = int(np.max(n_labels, initial=1))
    last = most if k is None else min(k, most)
    ideal = np.cumsum(1 / np.log2(np.arange(2, last + 2)))
    return 1 / ideal[np.minimum(sizes, last) - 1]


def inverse_smaller_side(sizes: NDArray[Any], n_labels: Any) -> Floats:
    """Weigh by one over the smaller of the numbers of relevant and irrelevant labels."""
    return 1 / np.minimum(sizes, n_labels - sizes)


WEIGHTS: dict[str, Callable[..., Floats]] = {
    "rank": inverse_pairs,
    "uniform": uniform,
    "recall": inverse_size,
    "ndcg": inverse_ideal_gain,
    "min": inverse_smaller_side,
}


def instance_weights(
    Y: Any,
    weight: Weight = "rank",
    normalize: bool = True,
    *,
    n_labels: int | None = None,
    chances: Any = None,
) -> Floats:
    """Weigh each row of Y by w(y), Eq. (21) and its family.

    Parameters
    ----------
    Y : array, sparse matrix or list of label sets
        Zero-one matrix of shape (n, m), or label sets (column indices; give `n_labels` then). NaN
        in a matrix means unknown: s and m then count the known labels of a row, Eq. (53), unless
        `chances` are given.
    weight : {"rank", "uniform", "recall", "ndcg", "min"}, ("ndcg", k) or callable
        With s relevant labels out of m: 1/(s(m-s)), 1, 1/s, one over the ideal discounted gain (up
        to position k), 1/min(s, m-s). A callable is given Y as it came and returns n weights.
    normalize : bool
        Scale the weights to mean 1 over the non-trivial rows, so that a regularisation strength
        means the same on every data set. Without, they are the raw values.
    n_labels : int, optional
        Number of labels, for a list of label sets.
    chances : array of shape (n, m), optional
        P(y_l = 1 | x) of every label; those of unknown ones count. A row then weighs the mean of
        w(y) over its unknown labels, taken as independent, Eq. (60). For a named weight.

    Returns
    -------
    weights : array of shape (n,)
        A trivial row (no label relevant, or all) weighs 0 under every named weight, since it has
        no pair to rank; a callable decides for itself. When no row has a pair, normalised weights
        are all 1: every weighting is then equally right, and a fit should still run.

    Examples
    --------
    >>> instance_weights([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]], normalize=False)
    array([0.33333333, 0.25      , 0.        ])
    >>> instance_weights([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]])
    array([1.14285714, 0.85714286, 0.        ])

    The last label is unknown, and relevant with chance 0.4: 0.6 times 1/2 and 0.4 times 1/2.

    >>> instance_weights([[1, 0, np.nan]], normalize=False, chances=[[0.9, 0.1, 0.4]])
    array([0.5])
    """
    labels = label_sets(Y, n_labels=n_labels)
    if chances is None or labels.unknown is None:
        weights = raw_weights(labels, Y, weight)
    else:
        weights = expected_weights(labels, _chances_of_unknown(labels, chances), weight)
    return normalized(weights, labels, np.ones(len(weights))) if normalize else weights


def raw_weights(labels: LabelSets, Y: Any, weight: Weight) -> Floats:
    """Return w(y) of checked label sets; `Y` is their original form, for a callable."""
    if callable(weight):
        return row_numbers(weight(Y), labels.n_rows, "the weights that weight(Y) returned")
    weights = np.zeros(labels.n_rows)
    ranked = ~labels.trivial
    weights[ranked] = weight_of_size(weight)(labels.sizes[ranked], labels.n_known[ranked])
    return weights


def expected_weights(labels: LabelSets, chances: Floats, weight: Weight) -> Floats:
    """Return the mean of w(y) over the unknown labels of each row, Eq. (60).

    Parameters
    ----------
    labels : LabelSets
        With unknown labels.
    chances : array of float
        P(y_l = 1 | x) of the unknown cells, row after row; labels are independent given x.
    weight : str or ("ndcg", k)

    Returns
    -------
    weights : array of shape (n,)
        0 for a row of which nothing is known: no loss is in it.
    """
    unknown = labels.unknown
    assert unknown is not None
    of_size = table_of_sizes(weight, labels.n_labels)
    weights, sizes = np.empty(labels.n_rows), labels.sizes
    threads.run(
        [
            partial(
                mean_weights,
                unknown.starts[rows.start : rows.stop + 1],
                chances,
                sizes[rows],
                of_size,
                weights[rows],
            )
            for rows in threads.even_parts(labels.n_rows, 256)
        ]
    )
    return np.where(labels.n_known > 0, weights, 0.0)


def _chances_of_unknown(labels: LabelSets, chances: Any) -> Floats:
    """Check the chances of all cells, and return those of the unknown ones, row after row."""
    cells, shape = np.asarray(chances, dtype=float), (labels.n_rows, labels.n_labels)
    if cells.shape != shape:
        raise ValueError(
            f"chances must have shape {shape}, a probability per row and label; got {cells.shape}"
        )
    assert labels.unknown is not None
    of_unknown = cells[labels.unknown.rows, labels.unknown.members]
    wrong = np.flatnonzero(~((of_unknown >= 0) & (of_unknown <= 1)))
    if len(wrong):
        raise ValueError(
            f"chances of unknown labels must be probabilities; got {of_unknown[wrong[0]]} in row "
            f"{labels.unknown.rows[wrong[0]]}, column {labels.unknown.members[wrong[0]]}"
        )
    return of_unknown


def weight_of_size(weight: Weight) -> Callable[[NDArray[Any], Any], Floats]:
    """Return the named weight as a function of s and m (one, or one per row), for 0 < s < m."""
    if isinstance(weight, tuple):
        return _cut_off(weight)
    return choose(WEIGHTS, weight, "weight")


def table_of_sizes(weight: Weight, n_labels: int) -> Floats:
    """Return the named weight of label sets with 0, 1, ..., m labels of m."""
    table = np.zeros(n_labels + 1)
    table[1:n_labels] = weight_of_size(weight)(np.arange(1, n_labels), n_labels)
    return table


def _cut_off(weight: tuple[Any, ...]) -> Callable[[NDArray[Any], Any], Floats]:
    if len(weight) != 2 or weight[0] != "ndcg":
        raise ValueError(f"unknown weight {weight!r}; the only pair is ('ndcg', k)")
    k = weight[1]
    if not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k in weight ('ndcg', k) must be a positive integer; got {k!r}")
    return lambda sizes, n_labels: inverse_ideal_gain(sizes, n_labels, int(k))


def normalized(weights: Floats, labels: LabelSets, counts: Floats) -> Floats:
    """Scale to mean 1 over the rows with a pair, each counted as often as `counts` says.

    All 1 when there are no such rows.
    """
    ranked = with_pair(labels, weights) & (counts > 0)
    if not ranked.any():
        return np.ones(labels.n_rows)
    # Divided by the largest first, so that no sum of tiny or huge weights under- or overflows.
    largest = weights[ranked].max()
    if largest == 0:
        raise ValueError(NO_PAIR_COUNTS)
    scaled = weights / largest
    return np.asarray(scaled / np.average(scaled[ranked], weights=counts[ranked]))


def with_pair(labels: LabelSets, weights: Floats) -> NDArray[np.bool_]:
    """Tell which rows have a known pair to rank, or weigh something for one they may have."""
    return ~labels.trivial | ((labels.n_known < labels.n_labels) & (weights > 0))
