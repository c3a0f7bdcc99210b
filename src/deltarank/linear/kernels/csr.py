"""Chunks of rows of a CSR matrix times dense blocks, and the transposed product.

The label axis is contiguous: each stored value multiplies one row of the coefficients, a few
vector registers wide. Memory is the limit, so a batch is best so narrow that its coefficients
stay in the second-level cache.
"""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.linear.kernels.logistic import curvature_block, logistic_block, sample_rows

FAST = {"contract"}
# From this many columns on, sorting a block's values by feature is worth it.
WIDE = 192


@njit(inline="always", fastmath=FAST)
def _add_rows(dense, source_rows, values, k, end, target):
    """Add rows of a dense matrix, those at ``source_rows[k:end]`` times their values, to a target.

    Four stored values at a time: the target is loaded and stored once for all of them.
    """
    while k + 3 < end:
        v0, v1, v2, v3 = values[k], values[k + 1], values[k + 2], values[k + 3]
        s0, s1 = dense[source_rows[k]], dense[source_rows[k + 1]]
        s2, s3 = dense[source_rows[k + 2]], dense[source_rows[k + 3]]
        for j in range(target.shape[0]):
            target[j] += (v0 * s0[j] + v1 * s1[j]) + (v2 * s2[j] + v3 * s3[j])
        k += 4
    while k < end:
        value, source = values[k], dense[source_rows[k]]
        for j in range(target.shape[0]):
            target[j] += value * source[j]
        k += 1


@njit(nogil=True, cache=True, fastmath=FAST)
def csr_times_dense(matrix, rows, dense, out):
    """Write X[rows] @ dense, shape (len(rows), p)."""
    starts, indices, values = matrix
    for b in range(rows.shape[0]):
        target = out[b]
        target[:] = 0
        _add_rows(dense, indices, values, starts[rows[b]], starts[rows[b] + 1], target)


@njit(nogil=True, cache=True, fastmath=FAST)
def add_csr_transposed_times_dense(matrix, rows, dense, out):
    """Add X[rows].T @ dense to ``out``, shape (d, p)."""
    starts, indices, values = matrix
    for b in range(rows.shape[0]):
        source = dense[b]
        for k in range(starts[rows[b]], starts[rows[b] + 1]):
            value, target = values[k], out[indices[k]]
            for j in range(source.shape[0]):
                target[j] += value * source[j]


@njit(nogil=True, cache=True)
def _sort_by_feature(matrix, rows, ends, row_of_entry, sorted_values):
    """Sort the stored values of some rows by feature, rows ascending.

    Those of feature f end before ``ends[f]``; `row_of_entry` says which of the rows each is in.
    """
    starts, indices, values = matrix
    ends[:] = 0
    for b in range(rows.shape[0]):
        for k in range(starts[rows[b]], starts[rows[b] + 1]):
            ends[indices[k]] += 1
    total = 0
    for f in range(ends.shape[0]):
        total, ends[f] = total + ends[f], total
    for b in range(rows.shape[0]):
        for k in range(starts[rows[b]], starts[rows[b] + 1]):
            at = ends[indices[k]]
            row_of_entry[at], sorted_values[at] = b, values[k]
            ends[indices[k]] = at + 1


@njit(nogil=True, cache=True, fastmath=FAST)
def _add_sorted_times_dense(ends, row_of_entry, values, dense, out):
    """Add the same as `add_csr_transposed_times_dense`, of values sorted by feature."""
    begin = 0
    for f in range(out.shape[0]):
        _add_rows(dense, row_of_entry, values, begin, ends[f], out[f])
        begin = ends[f]


@njit(nogil=True, cache=True)
def _most_values(matrix, rows, block):
    """Return how many values the fullest block of rows has."""
    starts, most = matrix[0], 0
    for begin in range(0, rows.shape[0], block):
        n_values = 0
        for i in rows[begin : begin + block]:
            n_values += starts[i + 1] - starts[i]
        most = max(most, n_values)
    return most


@njit(nogil=True, cache=True)
def csr_chunk(matrix, rows, block, problem, weights, labels, costs, sums, gradient):
    """Add the losses and gradients of the given rows; gradient is float32, shape (d, p).

    The arguments are those of `deltarank.linear.kernels.dense.dense_chunk`, with
    ``matrix = (starts, indices, values)``.
    """
    coefficients, offsets = problem
    n_features, n_columns = coefficients.shape
    scores = np.empty((block, n_columns), np.float32)
    sorts = n_columns >= WIDE
    room = _most_values(matrix, rows, block) if sorts else 0
    ends = np.empty(n_features, np.int64)
    row_of_entry, sorted_values = np.empty(room, np.int32), np.empty(room, np.float32)
    for begin in range(0, rows.shape[0], block):
        part = rows[begin : begin + block]
        s = scores[: part.shape[0]]
        csr_times_dense(matrix, part, coefficients, s)
        logistic_block(s, offsets, part, weights, labels, costs, sums)
        if sorts:
            _sort_by_feature(matrix, part, ends, row_of_entry, sorted_values)
            _add_sorted_times_dense(ends, row_of_entry, sorted_values, s, gradient)
        else:
            add_csr_transposed_times_dense(matrix, part, s, gradient)


@njit(nogil=True, cache=True)
def csr_moments(matrix, rows, weights, n_features):
    """Return each column's weighted sum and sum of squares, float64."""
    starts, indices, values = matrix
    sums, squares = np.zeros(n_features), np.zeros(n_features)
    for b in range(rows.shape[0]):
        i = rows[b]
        for k in range(starts[i], starts[i + 1]):
            product = weights[i] * np.float64(values[k])
            sums[indices[k]] += product
            squares[indices[k]] += product * values[k]
    return sums, squares


@njit(nogil=True, cache=True)
def add_csr_gram(matrix, rows, row_weights, sums, gram):
    """Add sum_b w_b x_b to ``sums`` and sum_b w_b x_b x_b^T to ``gram``, float64, over the rows."""
    starts, indices, values = matrix
    for b in range(rows.shape[0]):
        i = rows[b]
        for k in range(starts[i], starts[i + 1]):
            product = row_weights[b] * np.float64(values[k])
            sums[indices[k]] += product
            target = gram[indices[k]]
            for q in range(starts[i], starts[i + 1]):
                target[indices[q]] += product * values[q]


@njit(nogil=True, cache=True)
def csr_label_sums(matrix, rows, weights, labels, sums, masses):
    """Add up the weights and the weighted rows that are positive for each column.

    ``sums`` has shape (p, d), ``masses`` shape (p,); ``labels`` are those of `logistic_block`.
    """
    starts, indices, values = matrix
    label_starts, members, first_column = labels
    for b in range(rows.shape[0]):
        i = rows[b]
        for q in range(label_starts[i], label_starts[i + 1]):
            for column in range(first_column[members[q]], first_column[members[q] + 1]):
                masses[column] += weights[i]
                target = sums[column]
                for k in range(starts[i], starts[i + 1]):
                    target[indices[k]] += weights[i] * values[k]


@njit(nogil=True, cache=True)
def csr_sample(matrix, rows, block, problem, weights, labels, costs, spacing, chosen):
    """Sample the given rows by curvature; see `deltarank.linear.kernels.dense.dense_sample`."""
    coefficients, offsets = problem
    n_columns = coefficients.shape[1]
    multiplicity = np.zeros(chosen.shape, np.int32)
    counts = np.zeros(n_columns, np.int64)
    totals = np.full(n_columns, 0.5)
    scores = np.empty((block, n_columns), np.float32)
    for begin in range(0, rows.shape[0], block):
        part = rows[begin : begin + block]
        s = scores[: part.shape[0]]
        csr_times_dense(matrix, part, coefficients, s)
        curvature_block(s, offsets, part, weights, labels, costs)
        sample_rows(s, part, spacing, totals, counts, chosen, multiplicity)
    return counts, multiplicity
