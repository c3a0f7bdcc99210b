"""Balanced groups of labels that occur in like rows: spherical 2-means of their centroids."""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.core.kernels.draws import draw, seeded
from deltarank.core.kernels.elementary import FAST

# The mean similarity to its centre must gain so much in an iteration, or the groups stay.
LEAST_GAIN = 1e-4
MOST_ITERATIONS = 20


@njit(nogil=True, cache=True)
def centroids(matrix, n_features, label_starts, label_rows, first, end):
    """Return sums of the rows of each label from `first` to `end`, scaled to length 1, as CSR.

    Parameters
    ----------
    matrix : tuple (starts, indices, values)
        CSR.
    n_features : int
    label_starts, label_rows : ndarray
        The rows of each label, label after label.
    first, end : int
    """
    starts, indices, values = matrix
    n_cells = 0
    for place in range(label_starts[first], label_starts[end]):
        n_cells += starts[label_rows[place] + 1] - starts[label_rows[place]]
    found_starts = np.zeros(end - first + 1, np.int64)
    found_indices, found_values = np.empty(n_cells, np.int32), np.empty(n_cells, np.float32)
    total, seen = np.zeros(n_features, np.float32), np.zeros(n_features, np.bool_)
    n_found = 0
    for label in range(first, end):
        begin = n_found
        for place in range(label_starts[label], label_starts[label + 1]):
            i = label_rows[place]
            for k in range(starts[i], starts[i + 1]):
                j = indices[k]
                if not seen[j]:
                    seen[j] = True
                    found_indices[n_found] = j
                    n_found += 1
                total[j] += values[k]
        square = 0.0
        for k in range(begin, n_found):
            square += total[found_indices[k]] ** 2
        scale = np.float32(1 / np.sqrt(square)) if square > 0 else np.float32(0)
        for k in range(begin, n_found):
            j = found_indices[k]
            found_values[k] = total[j] * scale
            total[j], seen[j] = 0, False
        found_starts[label - first + 1] = n_found
    return found_starts, found_indices[:n_found].copy(), found_values[:n_found].copy()


@njit(nogil=True, cache=True)
def split_evenly(matrix, n_features, labels, n_groups, seed):
    """Put labels into groups of sizes that differ by one at most, by halving again and again.

    Parameters
    ----------
    matrix : tuple (starts, indices, values)
        CSR of the labels' centroids.
    n_features : int
    labels : ndarray of int
        Permuted: groups follow each other.
    n_groups : int
        At most as many as labels.
    seed : int

    Returns
    -------
    bounds : ndarray of int, shape (n_groups + 1,)
        Where groups begin.
    """
    random = seeded(seed)
    bounds = np.empty(n_groups + 1, np.int64)
    for g in range(n_groups + 1):
        bounds[g] = g * labels.shape[0] // n_groups
    direction = np.zeros(n_features, np.float32)
    todo = [(0, n_groups)]
    while todo:
        first, end = todo.pop()
        if end - first < 2:
            continue
        middle = (first + end) // 2
        part = labels[bounds[first] : bounds[end]]
        _halve(matrix, direction, part, bounds[middle] - bounds[first], random)
        todo.append((first, middle))
        todo.append((middle, end))
    return bounds


@njit(nogil=True, cache=True, fastmath=FAST)
def _halve(matrix, direction, labels, n_left, random):
    """Permute labels so that the first `n_left` are alike, and so are the others."""
    n = labels.shape[0]
    one = draw(random, n)
    other = (one + 1 + draw(random, n - 1)) % n
    direction[:] = 0
    _add(matrix, labels[one], np.float32(1), direction)
    _add(matrix, labels[other], np.float32(-1), direction)
    left, right = np.empty_like(direction), np.empty_like(direction)
    before = -np.inf
    for _ in range(MOST_ITERATIONS):
        order = np.argsort(-_products(matrix, labels, direction), kind="mergesort")
        labels[:] = labels[order]
        left[:], right[:] = 0, 0
        for k in range(n):
            _add(matrix, labels[k], np.float32(1), left if k < n_left else right)
        lengths = np.sqrt(_square(left)), np.sqrt(_square(right))
        # The similarities of all members of a group to its centre are its sum's length.
        similarity = (lengths[0] + lengths[1]) / n
        if similarity < before + LEAST_GAIN:
            break
        before = similarity
        for j in range(direction.shape[0]):
            direction[j] = left[j] / max(lengths[0], 1e-30) - right[j] / max(lengths[1], 1e-30)


@njit(nogil=True, cache=True)
def _square(vector):
    total = 0.0
    for value in vector:
        total += np.float64(value) * value
    return total


@njit(nogil=True, cache=True, fastmath=FAST)
def _add(matrix, label, sign, vector):
    starts, indices, values = matrix
    for k in range(starts[label], starts[label + 1]):
        vector[indices[k]] += sign * values[k]


@njit(nogil=True, cache=True, fastmath=FAST)
def _products(matrix, labels, direction):
    starts, indices, values = matrix
    products = np.empty(labels.shape[0], np.float32)
    for k in range(labels.shape[0]):
        total = np.float32(0)
        for place in range(starts[labels[k]], starts[labels[k] + 1]):
            total += values[place] * direction[indices[place]]
        products[k] = total
    return products
