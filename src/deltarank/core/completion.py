"""Rows with unknown labels as complete rows that share their weight, Eq. (61)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.core.kernels.unknown_labels import list_completed, mean_targets
from deltarank.core.labels import LabelSets
from deltarank.core.weights import Floats, Weight, expected_weights, table_of_sizes


class Completed(NamedTuple):
    """Complete rows: which row each comes from, its labels, and its share of that row's weight."""

    rows: NDArray[np.int64]
    labels: LabelSets
    shares: Floats


def soft_targets(labels: LabelSets, chances: Floats, weight: Weight) -> tuple[Floats, Floats]:
    """Return E[w(Y)] of each row, and E[w(Y) Y_l] / E[w(Y)] of each unknown cell, Eq. (60), (61).

    Given the known labels; for the arguments see `expected_weights`. Targets of rows that weigh
    nothing are 0.
    """
    assert labels.unknown is not None
    means, masses = expected_weights(labels, chances, weight), np.empty(len(chances))
    table = table_of_sizes(weight, labels.n_labels)
    mean_targets(labels.unknown.starts, chances, labels.sizes, table, masses)
    row_means = means[labels.unknown.rows]
    targets = np.divide(masses, row_means, out=np.zeros_like(masses), where=row_means > 0)
    return means, np.clip(targets, 0.0, 1.0)


def completed(labels: LabelSets, targets: Floats) -> Completed:
    """Return complete rows that have the soft targets on average.

    Copy j of a row has the j unknown labels of the largest targets t; its share is the difference
    of the j-th and the next target, so those of the copies that have label l add up to t_l. A row
    with u unknown labels becomes up to u + 1 rows.

    Examples
    --------
    >>> from deltarank.core.labels import label_sets
    >>> labels = label_sets(np.array([[1, np.nan, np.nan]]))
    >>> rows = completed(labels, np.array([0.25, 0.75]))
    >>> rows.labels.to_csr().toarray().tolist(), rows.shares.tolist()
    ([[1, 0, 0], [1, 0, 1], [1, 1, 1]], [0.25, 0.5, 0.25])
    """
    unknown, n_rows = labels.unknown, labels.n_rows
    assert unknown is not None
    order = np.lexsort((-targets, unknown.rows))
    firsts = unknown.starts[:-1] + np.arange(n_rows)
    rows = np.repeat(np.arange(n_rows), unknown.sizes + 1)
    levels = np.ones(len(rows))
    levels[np.delete(np.arange(len(rows)), firsts)] = targets[order]
    lower = np.append(levels[1:], 0.0)
    lower[firsts[1:] - 1] = 0.0
    shares = levels - lower
    kept = np.flatnonzero(shares > 0)
    n_first = (np.arange(len(rows)) - firsts[rows])[kept]
    rows = rows[kept]
    starts = np.zeros(len(rows) + 1, np.int64)
    listed = np.empty(int((labels.sizes[rows] + n_first).sum()), np.int32)
    list_completed(
        rows, n_first, labels.starts, labels.members, unknown.starts, unknown.members[order],
        starts, listed,
    )  # fmt: skip
    return Completed(rows, LabelSets(starts, listed, labels.n_labels), shares[kept])
