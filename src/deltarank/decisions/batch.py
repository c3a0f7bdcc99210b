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
    """Labels of each row (n, k), best first, the objective reached, and the last turn's start."""

    labels: NDArray[np.intp]
    value: float
    before: NDArray[np.intp]


def decide_batch(
    chances: NDArray[Any], kind: int, k: int, *, tol: float = 1e-9, max_iter: int = 20
) -> Decided:
    """Choose k labels of every row for the metric of the whole batch.

    The first turn gives every row its best labels given those of the rows before it; no later one
    lowers the objective, and after the last no single row can do better.
    """
    chances, relevant = _with_sums(chances)
    n_rows, n_labels = chances.shape
    chosen = before = np.full((n_rows, k), -1, np.intp)
    counts, room = np.zeros((4, n_labels)), np.empty((1, n_labels))
    value = -np.inf
    for _ in range(max_iter):
        before, chosen = chosen, chosen.copy()
        n_changed = improve(kind, chances, relevant, counts, chosen, room)
        tally(chances, chosen, counts)  # afresh, so that rounding does not add up
        reached = batch_value(kind, counts, relevant, n_rows)
        if n_changed == 0 or reached <= value + tol:
            break
        value = reached
    return Decided(chosen, float(reached), before)


def batch_gains(chances: NDArray[Any], kind: int, decided: Decided) -> NDArray[np.float64]:
    """Return what each label adds to the objective, times m, in each row: the k largest are chosen.

    The last turn is taken again, its gains being kept, which for many rows are much memory.
    """
    chances, relevant = _with_sums(chances)
    counts, gains = np.empty((4, chances.shape[1])), np.empty(chances.shape)
    tally(chances, decided.before, counts)
    improve(kind, chances, relevant, counts, decided.before.copy(), gains)
    return gains


def _with_sums(chances: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    return np.ascontiguousarray(chances), chances.sum(axis=0, dtype=np.float64)
