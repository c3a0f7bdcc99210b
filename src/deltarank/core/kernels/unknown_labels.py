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


@njit(nogil=True, cache=True)
def mean_targets(starts, chances, sizes, weight_of_size, targets):
    """Average w times whether an unknown label is relevant, for every unknown cell, Eq. (61).

    Arguments as in `mean_weights`. Taking a label out of the distribution of the number of relevant
    ones, upwards or downwards, whichever divides by the larger chance, gives that of the others.
    """
    for i in range(len(sizes)):
        unknown_chances = chances[starts[i] : starts[i + 1]]
        n_unknown = len(unknown_chances)
        counts = np.zeros(n_unknown + 1)
        counts[0] = 1.0
        for label in range(n_unknown):
            p = unknown_chances[label]
            for s in range(label + 1, 0, -1):
                counts[s] = counts[s] * (1 - p) + counts[s - 1] * p
            counts[0] *= 1 - p
        without = np.empty(n_unknown)
        for label in range(n_unknown):
            p = unknown_chances[label]
            if p <= 0.5:
                without[0] = counts[0] / (1 - p)
                for s in range(1, n_unknown):
                    without[s] = (counts[s] - p * without[s - 1]) / (1 - p)
            else:
                without[n_unknown - 1] = counts[n_unknown] / p
                for s in range(n_unknown - 1, 0, -1):
                    without[s - 1] = (counts[s] - (1 - p) * without[s]) / p
            total = 0.0
            for s in range(n_unknown):
                total += without[s] * weight_of_size[sizes[i] + s + 1]
            targets[starts[i] + label] = p * total


@njit(nogil=True, cache=True)
def list_completed(rows, n_first, starts, members, unknown_starts, ordered, new_starts, listed):
    """List the labels of copies: those known to be relevant, and the first of the unknown ones."""
    end = 0
    for copy in range(len(rows)):
        row = rows[copy]
        begin = end
        for k in range(starts[row], starts[row + 1]):
            listed[end] = members[k]
            end += 1
        for k in range(unknown_starts[row], unknown_starts[row] + n_first[copy]):
            listed[end] = ordered[k]
            end += 1
        listed[begin:end].sort()
        new_starts[copy + 1] = end
