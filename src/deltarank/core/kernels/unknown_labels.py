"""Compiled loops over what unknown labels may be."""

import numpy as np

from deltarank.core.compiling import njit


@njit(nogil=True, cache=True)
def mean_weights(starts, chances, sizes, weight_of_size, means):
    """Average w over the unknown labels of each row, independent of each other, Eq. (60).

    ``chances[starts[i]:starts[i + 1]]`` are those of row i's unknown labels, and ``sizes[i]`` is
    the number of its labels known to be relevant. A Poisson-binomial recursion, Eq. (39), gives
    the distribution of the number of relevant ones among the unknown.
    """
    for i in range(len(sizes)):
        n_unknown = starts[i + 1] - starts[i]
        counts = np.zeros(n_unknown + 1)
        counts[0] = 1.0
        for label in range(n_unknown):
            p = chances[starts[i] + label]
            for s in range(label + 1, 0, -1):
                counts[s] = counts[s] * (1 - p) + counts[s - 1] * p
            counts[0] *= 1 - p
        total = 0.0
        for s in range(n_unknown + 1):
            total += counts[s] * weight_of_size[sizes[i] + s]
        means[i] = total
