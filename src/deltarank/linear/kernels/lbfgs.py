"""Kernels of the batched L-BFGS: one row per problem, its history contiguous in memory."""

import numpy as np

from deltarank.core.compiling import njit

# Sums may be reordered, so that dot products use vector registers.
FAST = {"contract", "reassoc"}
# A pair (step, change of gradient) whose cosine is below this carries only rounding.
SMALLEST_COSINE = 1e-8


@njit(inline="always", fastmath=FAST)
def _dot(a, b):
    total = 0.0
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def cholesky(matrices):
    """Overwrite the lower triangle of each symmetric matrix by its Cholesky factor.

    A pivot that rounding has made non-positive is replaced by the matrix's own diagonal entry:
    the factor then belongs to a nearby, safely positive matrix.
    """
    for k in range(matrices.shape[0]):
        a = matrices[k]
        for i in range(a.shape[0]):
            for j in range(i):
                a[i, j] = (a[i, j] - _dot(a[i, :j], a[j, :j])) / a[j, j]
            pivot = a[i, i] - _dot(a[i, :i], a[i, :i])
            a[i, i] = np.sqrt(pivot if pivot > 1e-12 * a[i, i] else a[i, i])


@njit(inline="always", fastmath=FAST, error_model="numpy")
def _solve(factor, x):
    """Overwrite x by the solution of (L L^T) z = x."""
    n = x.shape[0]
    for i in range(n):
        x[i] = (x[i] - _dot(factor[i, :i], x[:i])) / factor[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= factor[i, i]
        for j in range(i):
            x[j] -= factor[i, j] * x[i]


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def move(problems, points, gradients, old, histories, products, n_pairs):
    """Move problems to new points; store each pair (step, change of gradient) over the oldest.

    ``old = (point, gradient)`` holds all problems and is overwritten for the given ones.
    """
    old_points, old_gradients = old
    steps, changes = histories
    memory = steps.shape[1]
    for k in range(problems.shape[0]):
        i = problems[k]
        slot = n_pairs[i] % memory
        product, step_square, change_square = 0.0, 0.0, 0.0
        for j in range(points.shape[1]):
            step = points[k, j] - old_points[i, j]
            change = gradients[k, j] - old_gradients[i, j]
            product += step * change
            step_square += step * step
            change_square += change * change
            steps[i, slot, j] = step
            changes[i, slot, j] = change
            old_points[i, j] = points[k, j]
            old_gradients[i, j] = gradients[k, j]
        if product > SMALLEST_COSINE * np.sqrt(step_square * change_square):
            products[i, slot] = product
            n_pairs[i] += 1


@njit(inline="always", fastmath=FAST, error_model="numpy")
def _scale(changes, products, newest, diagonal):
    """Return s.y / y.D^-1.y of the newest pair: how much the diagonal D overstates curvature."""
    if newest == 0:
        return 1.0
    slot = (newest - 1) % changes.shape[0]
    total = 0.0
    for j in range(diagonal.shape[0]):
        total += changes[slot, j] * changes[slot, j] / diagonal[j]
    return products[slot] / total


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def descend(problems, gradients, diagonals, aims, factors, slots, histories, products, n_pairs):
    """Find descent directions: minus the inverse Hessian estimates times the gradients.

    ``aims = (directions, slopes)`` holds all problems, as all other arrays do, and is overwritten
    for the given ones. Problem i starts the two-loop recursion from its Cholesky factor
    ``factors[slots[i]]``, or from its diagonal where ``slots[i]`` is negative.
    """
    directions, slopes = aims
    step_history, change_history = histories
    memory, n_variables = step_history.shape[1:]
    shares = np.empty(memory)
    for k in range(problems.shape[0]):
        i = problems[k]
        direction = directions[i]
        for j in range(n_variables):
            direction[j] = -gradients[i, j]
        newest, oldest = n_pairs[i], max(0, n_pairs[i] - memory)
        for pair in range(newest - 1, oldest - 1, -1):
            slot = pair % memory
            share = _dot(step_history[i, slot], direction) / products[i, slot]
            shares[slot] = share
            for j in range(n_variables):
                direction[j] -= share * change_history[i, slot, j]
        if slots[i] >= 0:
            _solve(factors[slots[i]], direction)
        else:
            scale = _scale(change_history[i], products[i], newest, diagonals[i])
            for j in range(n_variables):
                direction[j] *= scale / diagonals[i, j]
        for pair in range(oldest, newest):
            slot = pair % memory
            share = shares[slot] - _dot(change_history[i, slot], direction) / products[i, slot]
            for j in range(n_variables):
                direction[j] += share * step_history[i, slot, j]
        slopes[i] = _dot(direction, gradients[i])
