"""The k labels of every row of a batch, chosen together by block coordinate ascent.

The objective is the metric at expected counts or, for coverage, its expectation, given the chances.
A row's labels enter it apart from each other, so that its best k, all other rows' being fixed, are
those of largest gain. Rows take turns until none changes. (Schultheis, Wydmuch, Babbar, Kotlowski,
Dembczynski, NeurIPS 2023.)
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.decisions.kernels.batch import batch_value, improve, tally


class Decided(NamedTuple):
    """Gains (n, m), of which the k largest in each row are chosen, and the objective reached."""

    gains: NDArray[np.float64]
    value: float


def decide_batch(
    chances: NDArray[Any], kind: int, k: int, *, tol: float = 1e-9, max_iter: int = 20
) -> Decided:
    """Choose k labels of every row for the metric of the whole batch.

    The first turn gives every row its best labels given those of the rows before it; no later one
    lowers the objective, and after the last no single row can do better.
    """
    n_rows, n_labels = chances.shape
    relevant = chances.mean(axis=0, dtype=np.float64)
    chosen = np.full((n_rows, k), -1, np.intp)
    counts, gains = np.zeros((4, n_labels)), np.empty((n_rows, n_labels))
    value = -np.inf
    for _ in range(max_iter):
        n_changed = improve(kind, chances, relevant, counts, chosen, gains)
        tally(chances, chosen, counts)  # afresh, so that rounding does not add up
        reached = batch_value(kind, counts, relevant, n_rows)
        if n_changed == 0 or reached <= value + tol:
            break
        value = reached
    return Decided(gains, float(reached))
