"""Masses of the parallel update of LLLR: how much of the pair weights would raise or lower a score.

A relevant label wants its score up, an irrelevant one down, each by the pull g of its pairs;
feature a of the row passes g |x_a| of that on to its coefficient, with the sign of x_a. Masses of
either direction are added up apart, never as a difference of sums, so that their ratio keeps its
digits.
"""

import numpy as np

from deltarank.core.compiling import njit
from deltarank.linear.kernels.csr import csr_times_dense
from deltarank.metrics.kernels.pairwise import logistic_pairs


@njit(nogil=True, cache=True)
def _split(X, rows, x, parts):
    """Write rows with a constant feature last, and their positive, then negative parts."""
    n_features = X.shape[1]
    for b in range(rows.shape[0]):
        source, whole = X[rows[b]], x[b]
        positive, negative = parts[b, :n_features], parts[b, n_features + 1 :]
        for j in range(source.shape[0]):
            value = source[j]
            whole[j] = value
            positive[j] = value if value > 0 else 0
            negative[j] = -value if value < 0 else 0
        whole[n_features] = 1
        parts[b, n_features] = 1


@njit(nogil=True, cache=True)
def _take_relevant(residuals, rows, labels, parts, raising, lowering):
    """Add the relevant labels' masses and clear their residuals."""
    starts, members = labels
    n_variables = raising.shape[1]
    for b in range(rows.shape[0]):
        for k in range(starts[rows[b]], starts[rows[b] + 1]):
            pull = -residuals[b, members[k]]
            residuals[b, members[k]] = 0
            up, down = raising[members[k]], lowering[members[k], : n_variables - 1]
            positive, negative = parts[b, :n_variables], parts[b, n_variables:]
            for j in range(up.shape[0]):
                up[j] += pull * positive[j]
            for j in range(down.shape[0]):
                down[j] += pull * negative[j]


@njit(nogil=True, cache=True)
def dense_masses(X, rows, block, theta, weights, labels, raising, lowering):
    """Add the masses of the given rows; return their loss.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    rows : ndarray of int64
    block : int
        Rows taken at a time.
    theta : ndarray of shape (d + 1, m)
        Coefficients, the intercepts last, in the precision of X.
    weights, labels
        See `deltarank.metrics.kernels.pairwise`.
    raising, lowering : ndarray of float64, shape (m, d + 1)
        Added to.
    """
    n_variables, n_labels = theta.shape
    x_space = np.empty((block, n_variables), theta.dtype)
    part_space = np.empty((block, 2 * n_variables - 1), theta.dtype)
    score_space = np.empty((block, n_labels), theta.dtype)
    products = np.empty((n_labels, 2 * n_variables - 1), theta.dtype)
    losses = np.empty(block)
    total = 0.0
    for begin in range(0, rows.shape[0], block):
        some = rows[begin : begin + block]
        x, parts = x_space[: some.shape[0]], part_space[: some.shape[0]]
        scores = score_space[: some.shape[0]]
        _split(X, some, x, parts)
        np.dot(x, theta, scores)
        logistic_pairs(scores, some, weights, labels, losses)
        total += losses[: some.shape[0]].sum()
        _take_relevant(scores, some, labels, parts, raising, lowering)
        np.dot(scores.T, parts, products)
        for label in range(n_labels):
            lowering[label] += products[label, :n_variables]
            raising[label, : n_variables - 1] += products[label, n_variables:]
    return total


@njit(nogil=True, cache=True)
def csr_masses(matrix, rows, block, theta, weights, labels, raising, lowering):
    """Add the masses of rows of a CSR matrix; return their loss.

    ``matrix = (starts, indices, values)``; ``raising`` and ``lowering`` have the shape of
    ``theta``; else as `dense_masses`.
    """
    starts, indices, values = matrix
    constant = theta.shape[0] - 1
    score_space, losses = np.empty((block, theta.shape[1]), theta.dtype), np.empty(block)
    total = 0.0
    for begin in range(0, rows.shape[0], block):
        some = rows[begin : begin + block]
        scores = score_space[: some.shape[0]]
        csr_times_dense(matrix, some, theta, scores)
        for b in range(some.shape[0]):
            scores[b] += theta[constant]
        logistic_pairs(scores, some, weights, labels, losses)
        total += losses[: some.shape[0]].sum()
        for b in range(some.shape[0]):
            for k in range(starts[some[b]], starts[some[b] + 1]):
                _share_out(scores[b], values[k], raising[indices[k]], lowering[indices[k]])
            _share_out(scores[b], values.dtype.type(1), raising[constant], lowering[constant])
    return total


@njit(inline="always")
def _share_out(residuals, value, raising, lowering):
    for j in range(residuals.shape[0]):
        mass = value * residuals[j]
        lowering[j] += mass if mass > 0 else 0
        raising[j] -= mass if mass < 0 else 0
