"""How many of the likeliest labels make the set of largest expected F, labels being independent."""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.top_labels import select_top

# Chances of labels and of counts below this are nothing beside the others, and left out.
NEGLIGIBLE = 1e-20
# Labels sorted at first, by far the most that sets have; and how many times more where they do not.
FIRST_SORTED, MORE = 64, 4
# Labels that are taken into the chances of counts in one pass over them.
AT_ONCE = 4


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
    _multiply(counts, size, chance)
    return _trimmed(counts, size)


@njit(nogil=True, cache=True)
def _multiply(counts, size, chance):
    for c in range(size - 1, 0, -1):
        counts[c] += chance * (counts[c - 1] - counts[c])
    counts[0] *= 1 - chance


@njit(nogil=True, cache=True)
def _trimmed(counts, size):
    while size > 1 and counts[size - 1] < NEGLIGIBLE:
        size -= 1
    return size


@njit(nogil=True, cache=True)
def _count_all(chances, counts, scratch):
    """Write the chances of the numbers of relevant labels into `counts`; return how many there are.

    `scratch` (2, AT_ONCE + room or more) begins with zeros, beyond which counts go from one of its
    rows to the other; every four labels are one polynomial of five terms.
    """
    room, size, now = counts.shape[0], 1, 0
    scratch[:, AT_ONCE] = 1.0
    terms = np.empty(AT_ONCE + 1)
    for start in range(0, chances.shape[0], AT_ONCE):
        terms[:] = 0.0
        terms[0] = 1.0
        for chance in chances[start : start + AT_ONCE]:
            _multiply(terms, AT_ONCE + 1, chance)
        grown = min(size + AT_ONCE, room)
        old, new = scratch[now], scratch[1 - now]
        old[AT_ONCE + size : AT_ONCE + grown] = 0.0
        a, b, c, d, e = terms
        for place in range(grown):
            new[place + 4] = (
                a * old[place + 4] + b * old[place + 3] + c * old[place + 2]
                + d * old[place + 1] + e * old[place]
            )  # fmt: skip
        now, size = 1 - now, _trimmed(new[AT_ONCE:], grown)
    counts[:size] = scratch[now, AT_ONCE : AT_ONCE + size]
    return size


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _dot(first, second, n):
    """Return the inner product of n numbers, summed as vectors."""
    total = 0.0
    for i in range(n):
        total += first[i] * second[i]
    return total


@njit(nogil=True, cache=True)
def _row_size(chances, n, square, most, others, scratch):
    """Return the size of one row's best set, or -1 if more labels must be sorted to know it.

    Of the chances, all above 0, the first n fall and the rest are smaller. ``others`` (n + 1 or
    more, room) is overwritten: ``others[j, : sizes[j]]`` are the chances of numbers of relevant
    labels among all but the first j.
    """
    sizes = np.ones(n + 1, np.int64)
    sizes[n] = _count_all(chances[n:], others[n], scratch)
    for j in range(n - 1, -1, -1):
        others[j, : sizes[j + 1]] = others[j + 1, : sizes[j + 1]]
        sizes[j] = _add_label(others[j], sizes[j + 1], chances[j])
    best, best_value = 0, others[0, 0]
    first, size, total = np.zeros(others.shape[1]), 1, 0.0
    inverse = np.empty(2 * others.shape[1])
    first[0] = 1.0
    for j in range(1, min(n, most) + 1):
        size = _add_label(first, size, chances[j - 1])
        total += chances[j - 1]
        # F is at most (1 + square) hits / j, whose expectation falls as j grows.
        if (1 + square) * total / j <= best_value:
            return best
        for relevant in range(size + sizes[j]):
            inverse[relevant] = 1 / (square * relevant + j)
        value = 0.0
        for hits in range(1, size):
            value += first[hits] * hits * _dot(others[j], inverse[hits:], sizes[j])
        value *= 1 + square
        if value > best_value:
            best, best_value = j, value
    return best if n == min(chances.shape[0], most) else -1


@njit(nogil=True, cache=True)
def _sort_first(chances, n):
    """Bring the n largest chances to the front, in falling order."""
    columns = np.empty((1, n), np.intp)
    select_top(chances.reshape(1, -1), n, columns)
    first = chances[columns[0]]
    chances[columns[0]] = -1.0
    rest = chances[chances >= 0]
    chances[:n], chances[n:] = first, rest


@njit(nogil=True, cache=True)
def best_sizes(chances, square, most, sizes):
    """Write, for every row, the size of its best set; `square` is beta squared."""
    others, scratch = np.empty((1, 1)), np.zeros((2, AT_ONCE + 1))
    for i in range(chances.shape[0]):
        row = chances[i].astype(np.float64)
        row = row[row > NEGLIGIBLE]
        room, n = _most_relevant(row) + 1, FIRST_SORTED
        sizes[i] = -1
        while sizes[i] < 0:
            n = min(n, row.shape[0], most)
            if others.shape[0] <= n or others.shape[1] < room:
                others = np.empty((max(n + 1, others.shape[0]), max(room, others.shape[1])))
                scratch = np.zeros((2, AT_ONCE + others.shape[1]))
            _sort_first(row, n)
            sizes[i] = _row_size(row, n, square, most, others[:, :room], scratch)
            n *= MORE
