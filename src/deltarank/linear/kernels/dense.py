"""Chunks of rows of a dense matrix: gather, score, loss, gradient, without touching Python.

One call a chunk keeps the threads away from the interpreter's lock; with a Python loop over the
blocks two threads were hardly faster than one.
"""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.linear.kernels.logistic import curvature_block, logistic_block, sample_rows


@njit(nogil=True, cache=True, error_model="numpy")
def gather(matrix, rows, out):
    """Write the standardised rows (X[rows] - center) * inverse_scale as float32.

    Centring before the product matters: in float32 a feature with a mean far above its spread
    would lose its digits in the scores.
    """
    X, center, inverse_scale = matrix
    for b in range(rows.shape[0]):
        i = rows[b]
        for j in range(X.shape[1]):
            out[b, j] = (X[i, j] - center[j]) * inverse_scale[j]


@njit(nogil=True, cache=True, error_model="numpy")
def dense_chunk(matrix, rows, block, problem, weights, labels, costs, sums, gradient):
    """Add the losses and gradients of the given rows, ``block`` rows at a time.

    Parameters
    ----------
    matrix : tuple (X, center, inverse_scale)
    rows : ndarray of int64
    block : int
    problem : tuple (coefficients of float32, shape (d, p); offsets of float32, shape (p,))
    weights, labels, costs, sums
        See `deltarank.linear.kernels.logistic.logistic_block`.
    gradient : ndarray of float64, shape (p, d)
        Added to: residuals transposed times standardised rows.
    """
    coefficients, offsets = problem
    n_features, n_columns = coefficients.shape
    x_block = np.empty((block, n_features), np.float32)
    s_block = np.empty((block, n_columns), np.float32)
    partial = np.empty((n_columns, n_features), np.float32)
    for begin in range(0, rows.shape[0], block):
        part = rows[begin : begin + block]
        x, scores = x_block[: part.shape[0]], s_block[: part.shape[0]]
        gather(matrix, part, x)
        np.dot(x, coefficients, scores)
        logistic_block(scores, offsets, part, weights, labels, costs, sums)
        np.dot(scores.T, x, partial)
        for j in range(n_columns):
            for k in range(n_features):
                gradient[j, k] += partial[j, k]


@njit(nogil=True, cache=True, error_model="numpy")
def dense_sample(matrix, rows, block, problem, weights, labels, costs, spacing, chosen):
    """Sample the given rows by curvature; return counts, shape (p,), and multiplicities.

    ``chosen``, shape (p, at most), receives the rows of each column.
    """
    coefficients, offsets = problem
    n_features, n_columns = coefficients.shape
    multiplicity = np.zeros(chosen.shape, np.int32)
    counts = np.zeros(n_columns, np.int64)
    totals = np.full(n_columns, 0.5)
    x_block = np.empty((block, n_features), np.float32)
    s_block = np.empty((block, n_columns), np.float32)
    for begin in range(0, rows.shape[0], block):
        part = rows[begin : begin + block]
        x, scores = x_block[: part.shape[0]], s_block[: part.shape[0]]
        gather(matrix, part, x)
        np.dot(x, coefficients, scores)
        curvature_block(scores, offsets, part, weights, labels, costs)
        sample_rows(scores, part, spacing, totals, counts, chosen, multiplicity)
    return counts, multiplicity


@njit(nogil=True, cache=True)
def dense_moments(X, center, rows, weights):
    """Return the weighted sums of X[rows] - center and of its squares, float64, shape (2, d)."""
    moments = np.zeros((2, X.shape[1]))
    for b in range(rows.shape[0]):
        i = rows[b]
        for j in range(X.shape[1]):
            value = X[i, j] - center[j]
            moments[0, j] += weights[i] * value
            moments[1, j] += weights[i] * value * value
    return moments


@njit(nogil=True, cache=True)
def dense_label_sums(matrix, rows, weights, labels, sums, masses):
    """Add up the weights and the weighted standardised rows that are positive for each column.

    ``sums`` has shape (p, d), ``masses`` shape (p,); ``labels`` are those of `logistic_block`.
    """
    X, center, inverse_scale = matrix
    starts, members, first_column = labels
    x = np.empty(X.shape[1])
    for b in range(rows.shape[0]):
        i = rows[b]
        for j in range(X.shape[1]):
            x[j] = weights[i] * (X[i, j] - center[j]) * inverse_scale[j]
        for k in range(starts[i], starts[i + 1]):
            for column in range(first_column[members[k]], first_column[members[k] + 1]):
                masses[column] += weights[i]
                target = sums[column]
                for j in range(X.shape[1]):
                    target[j] += x[j]
