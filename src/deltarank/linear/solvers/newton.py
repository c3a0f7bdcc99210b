"""Batched Newton's method for many small problems, to the last digit of float64."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.linear.solvers.solution import Solution

Floats = NDArray[np.float64]
SUFFICIENT_DECREASE = 1e-4
# Where a loss is almost flat Newton's step may be too long by many powers of ten.
SMALLEST_STEP, SHORTER = 1e-20, 0.25
# Decrements below this are zero: the problems are sums of losses of order one.
NEGLIGIBLE = 1e-12
# Values of order one are known to about this; no smaller decrease can be seen.
ROUNDING = 1e-15


class Derivatives(NamedTuple):
    """Values (p,), gradients (p, v) and Hessians (p, v, v) of p problems."""

    value: Floats
    gradient: Floats
    hessian: Floats


Objective = Callable[[Floats, NDArray[np.intp]], Derivatives]


def newton(derivatives: Objective, start: Floats, *, tol: float, max_iter: int) -> Solution:
    """Minimise p convex problems of v variables, each with its own step length and its own stop.

    A problem has converged when its Newton decrement, which here is the gap to its minimum, is at
    most ``tol`` times its value; it takes that last step too, which squares the gap, and leaves.

    Parameters
    ----------
    derivatives : callable
        ``(points (q, v), problems (q,)) -> Derivatives``; `problems` holds ascending indices.
    start : array of shape (p, v)
    tol : float
    max_iter : int
        Largest number of evaluations.
    """
    n_problems = len(start)
    point, value = start.copy(), np.zeros(n_problems)
    norm, n_iter = np.zeros(n_problems), np.zeros(n_problems, np.int64)
    converged, stuck = np.zeros((2, n_problems), bool)
    step, scale = np.zeros_like(point), np.ones(n_problems)
    slope, diagonal = np.zeros(n_problems), np.ones_like(point)
    active = np.arange(n_problems)
    trial = point.copy()
    for round_ in range(max_iter):
        if not active.size:
            break
        found = derivatives(trial[active], active)
        n_iter[active] += 1
        allowed = value[active] + SUFFICIENT_DECREASE * scale[active] * slope[active]
        allowed += ROUNDING * np.abs(value[active])
        good = np.isfinite(found.value) & ((found.value <= allowed) | (round_ == 0))
        moved, failed = active[good], active[~good]
        point[moved], value[moved] = trial[moved], found.value[good]
        norm[moved] = np.linalg.norm(found.gradient[good], axis=1)
        diagonal[moved] = np.einsum("ijj->ij", found.hessian[good])
        step[moved] = _steps(found.hessian[good], found.gradient[good])
        slope[moved] = np.einsum("ij,ij->i", step[moved], found.gradient[good])
        scale[moved] = 1.0
        converged[moved] = -slope[moved] / 2 <= tol * np.abs(value[moved]) + NEGLIGIBLE
        scale[failed] *= SHORTER
        stuck[failed] |= scale[failed] < SMALLEST_STEP
        trial[active] = point[active] + scale[active, None] * step[active]
        active = active[~(converged | stuck)[active]]
    point[converged] = trial[converged]
    return Solution(point, value, norm, n_iter, converged, diagonal)


def _steps(hessians: Floats, gradients: Floats) -> Floats:
    # A little of the diagonal, so that a flat direction costs no accuracy and stops no solve.
    index = np.arange(hessians.shape[1])
    hessians[:, index, index] *= 1 + 1e-13
    hessians[:, index, index] += np.finfo(float).tiny
    return np.asarray(-np.linalg.solve(hessians, gradients[:, :, None])[:, :, 0], dtype=float)
