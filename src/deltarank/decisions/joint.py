"""The label set of largest expected F-measure of each row, however its labels depend on each other.

The expected F of a set of j labels is a sum over these of what they are worth in a set of that
size, for which P(y_l = 1, s = k | x) for every label l and number k of relevant labels is enough:
the first j are the best, and j = 0, 1, ... are compared. The chances are those of targets of their
own, "l is relevant and k labels are", which any ranker of plain chances can be fitted to.
(Dembczynski, Waegeman, Cheng, Hullermeier, NIPS 2011.)
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core.labels import LabelSets
from deltarank.core.threads import row_blocks, run
from deltarank.decisions.kernels.joint import mark_best_sets

ROWS_PER_TASK = 64


class Joint(NamedTuple):
    """What targets stand for: a label, and how many there are; the last that there is none."""

    labels: NDArray[np.int64]
    sizes: NDArray[np.int64]


def joint_targets(labels: LabelSets) -> tuple[Joint, sparse.csr_array]:
    """Return the pairs of label and number that rows have, and which row has which (n, pairs + 1).

    Examples
    --------
    >>> from deltarank.core.labels import label_sets
    >>> joint, targets = joint_targets(label_sets([[1, 1], [0, 1], [0, 0]]))
    >>> joint.labels.tolist(), joint.sizes.tolist()
    ([0, 1, 1], [2, 1, 2])
    >>> targets.toarray().tolist()
    [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    """
    most = int(labels.sizes.max(initial=0))
    keys = labels.members.astype(np.int64) * (most + 1) + labels.sizes[labels.rows]
    pairs, columns = np.unique(keys, return_inverse=True)
    empty = np.flatnonzero(labels.sizes == 0)
    rows = np.concatenate([labels.rows, empty])
    columns = np.concatenate([columns, np.full(len(empty), len(pairs))])
    shape = labels.n_rows, len(pairs) + 1
    targets = sparse.csr_array((np.ones(len(rows), np.int8), (rows, columns)), shape=shape)
    return Joint(pairs // (most + 1), pairs % (most + 1)), targets


def sums_by_label(joint: Joint, chances: NDArray[Any], n_labels: int) -> NDArray[Any]:
    """Return the chances of labels (n, m), which those of their pairs add up to."""
    ones = np.ones(len(joint.labels), chances.dtype)
    cells = (np.arange(len(ones)), joint.labels)
    return np.asarray(chances[:, :-1] @ sparse.csr_array((ones, cells), (len(ones), n_labels)))


def best_joint_f_sets(
    joint: Joint, chances: NDArray[Any], n_labels: int, beta: float, most: int
) -> NDArray[np.bool_]:
    """Mark the labels of each row's best set, of at most `most` labels, shape (n, m).

    F of two empty sets is 1. Chances (n, pairs + 1) are of the targets of `joint_targets`.
    """
    marks = np.zeros((len(chances), n_labels), bool)
    pairs = joint.labels, joint.sizes
    blocks = row_blocks(len(chances), ROWS_PER_TASK)
    tasks = [partial(mark_best_sets, chances[rows], pairs, beta**2, most, marks[rows])
             for rows in blocks]  # fmt: skip
    run(tasks)
    return marks
