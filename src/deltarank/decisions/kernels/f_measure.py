"""How many of the likeliest labels make the set of largest expected F, labels being independent."""

import numpy as np

from deltarank.core.compiling import njit

# Chances of counts below this are nothing beside the others, and left out.
NEGLIGIBLE = 1e-30


@njit(nogil=True, cache=True)
def _most_relevant(chances):
    """Return a number of relevant labels that is exceeded with a chance below 1e-20 (Bernstein)."""
    mean = chances.sum()
    return min(chances.shape[0], int(mean + 10 * np.sqrt(mean)) + 45)


@njit(nogil=True, cache=True)
def _add_label(counts, size, chance):
    """Take one more label into the chances ``counts[:size]`` of numbers of relevant labels."""
    if size < counts.shape[0]:
        counts[size] = 0.0
        size += 1
    for c in range(size - 1, 0, -1):
        counts[c] += chance * (counts[c - 1] - counts[c])
    counts[0] *= 1 - chance
    while size > 1 and counts[size - 1] < NEGLIGIBLE:
        size -= 1
    return size


@njit(nogil=True, cache=True)
def _row_size(chances, square, most, others):
    """Return the size of one row's best set, its chances falling and above 0.

    ``others`` (n + 1 or more, room) is overwritten: ``others[j, : sizes[j]]`` are the chances of
    numbers of relevant labels among all but the first j.
    """
    n, room = chances.shape[0], others.shape[1]
    sizes = np.ones(n + 1, np.int64)
    others[n, 0] = 1.0
    for j in range(n - 1, -1, -1):
        others[j, : sizes[j + 1]] = others[j + 1, : sizes[j + 1]]
        sizes[j] = _add_label(others[j], sizes[j + 1], chances[j])
    best, best_value = 0, others[0, 0]
    first, size, total = np.zeros(room), 1, 0.0
    first[0] = 1.0
    for j in range(1, min(n, most) + 1):
        size = _add_label(first, size, chances[j - 1])
        total += chances[j - 1]
        # F is at most (1 + square) hits / j, whose expectation falls as j grows.
        if (1 + square) * total / j <= best_value:
            break
        value = 0.0
        for hits in range(1, size):
            share = 0.0
            for missed in range(sizes[j]):
                share += others[j, missed] / (square * (hits + missed) + j)
            value += first[hits] * hits * share
        value *= 1 + square
        if value > best_value:
            best, best_value = j, value
    return best


@njit(nogil=True, cache=True)
def best_sizes(chances, square, most, sizes):
    """Write, for every row, the size of its best set; `square` is beta squared."""
    scratch = np.empty((chances.shape[1] + 1, 1))
    for i in range(chances.shape[0]):
        row = np.sort(chances[i].astype(np.float64))[::-1]
        row = row[: np.searchsorted(-row, 0.0)]  # those above 0
        room = _most_relevant(row) + 1
        if room > scratch.shape[1]:
            scratch = np.empty((chances.shape[1] + 1, 2 * room))
        sizes[i] = _row_size(row, square, most, scratch[:, :room])
