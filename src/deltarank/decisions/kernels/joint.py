"""The set of largest expected F of each row, from chances of labels together with their number."""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.top_labels import select_top


@njit(nogil=True, cache=True)
def mark_best_sets(chances, pairs, square, most, marks):
    """Mark every row's best set; `square` is beta squared.

    `pairs` holds the label and the number of relevant labels of each column of `chances` but the
    last, which is the chance that there is none.
    """
    labels, sizes = pairs
    n_labels = marks.shape[1]
    worth, columns = np.empty((1, n_labels)), np.empty((1, n_labels), np.intp)
    for i in range(chances.shape[0]):
        worth[:] = 0.0
        for c in range(labels.shape[0]):
            worth[0, labels[c]] += chances[i, c]
        falling = np.sort(worth[0])[::-1]
        best, total, bound = np.float64(chances[i, -1]), 0.0, 0.0
        for j in range(1, min(most, n_labels) + 1):
            total += falling[j - 1]
            last, bound = bound, (1 + square) * total / (square + j)
            # No set of j labels is worth more; the bound rises up to some j, and then falls.
            if bound <= min(best, last):
                break
            if bound <= best:
                continue
            worth[:] = 0.0
            for c in range(labels.shape[0]):
                worth[0, labels[c]] += chances[i, c] / (square * sizes[c] + j)
            select_top(worth, j, columns)
            value = 0.0
            for label in columns[0, :j]:
                value += (1 + square) * worth[0, label]
            if value > best:
                best = value
                marks[i] = False
                marks[i, columns[0, :j]] = True
