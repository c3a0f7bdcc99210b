"""The first k labels by slope times chance plus offset, and how often they are right."""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.top_labels import select_top


@njit(nogil=True, cache=True)
def count_choices(chances, rule, k, labels, weights, counts):
    """Add to `counts` what each label's being chosen, and rightly so, in these rows weighs.

    `rule` (2, m) holds slopes and offsets, `labels` the starts and members of the relevant labels
    of the rows, and `counts` (2, m) the weights of rows hit, and of rows chosen.
    """
    starts, members = labels
    n_labels = chances.shape[1]
    scores, best = np.empty((1, n_labels)), np.empty((1, k), np.intp)
    is_relevant = np.zeros(n_labels, np.bool_)
    for i in range(chances.shape[0]):
        for j in range(n_labels):
            scores[0, j] = rule[0, j] * chances[i, j] + rule[1, j]
        select_top(scores, k, best)
        relevant = members[starts[i] : starts[i + 1]]
        for label in relevant:
            is_relevant[label] = True
        for label in best[0]:
            counts[1, label] += weights[i]
            if is_relevant[label]:
                counts[0, label] += weights[i]
        for label in relevant:
            is_relevant[label] = False
