"""Which labels are among the first k of each row, and with what chance where they tie."""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.top_labels import select_top


@njit(nogil=True, cache=True)
def last_places(scores, k, lowest, chances):
    """Write each row's k-th largest score, and the chance that a label with it is among the first.

    A score of minus infinity is that of a label left out, which has no chance.
    """
    best = np.empty((1, k), np.intp)
    for i in range(scores.shape[0]):
        row = scores[i]
        select_top(scores[i : i + 1], k, best)
        last = row[best[0, k - 1]]
        above = 0
        tied = 0
        for j in range(row.shape[0]):
            above += row[j] > last
            tied += row[j] == last
        lowest[i] = last
        chances[i] = 0.0 if last == -np.inf else (k - above) / tied


@njit(nogil=True, cache=True)
def list_first(scores, lowest, chances):
    """Return the row and label of every cell with a chance to be among the first, and the chance.

    `lowest` and `chances` are those of `last_places`.
    """
    n_cells = 0
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            n_cells += scores[i, j] >= lowest[i]
    rows, labels = np.empty(n_cells, np.int64), np.empty(n_cells, np.int64)
    values = np.empty(n_cells)
    k = 0
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            if scores[i, j] >= lowest[i]:
                rows[k], labels[k] = i, j
                values[k] = 1.0 if scores[i, j] > lowest[i] else chances[i]
                k += 1
    return rows, labels, values
