"""Between the consistent and the balanced loss: what relevant and irrelevant cells of a row weigh.

With s relevant labels of m, a row of weight w and a balance of lambda, a relevant cell weighs
w (m - s)^lambda and an irrelevant one w s^lambda, Eq. (72). At 1 both sides of a row weigh alike.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.labels import LabelSets

Floats = NDArray[np.float64]


def row_masses(labels: LabelSets, balance: float) -> Floats:
    """Return the mean weight of a row's cells in units of w(y); 0 for a row without a pair."""
    ranked, m, sizes = _known_sizes(labels)
    masses = np.zeros(labels.n_rows)
    masses[ranked] = _mean(m, sizes, balance)
    return masses


def split_weights(labels: LabelSets, weights: NDArray[Any], balance: float) -> tuple[Floats, Any]:
    """Return weights of irrelevant cells, and what relevant ones cost beside them.

    Parameters
    ----------
    labels : LabelSets
    weights : array of shape (n,)
        The mean weight of each row's cells.
    balance : float
    """
    if balance == 0:
        return weights, 1.0
    ranked, m, sizes = _known_sizes(labels)
    others, costs = weights.astype(np.float64), np.ones(labels.n_rows)
    others[ranked] *= sizes**balance / _mean(m, sizes, balance)
    costs[ranked] = ((m - sizes) / sizes) ** balance
    return others, costs


def _known_sizes(labels: LabelSets) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Tell which rows have a pair, and return the numbers of their known and relevant labels."""
    ranked = ~labels.trivial
    return ranked, labels.n_known[ranked].astype(float), labels.sizes[ranked].astype(float)


def _mean(m: Floats, sizes: Floats, balance: float) -> Floats:
    others = m - sizes
    mean: Floats = (others * sizes**balance + sizes * others**balance) / m
    return mean
