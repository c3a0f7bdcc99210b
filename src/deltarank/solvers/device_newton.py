"""Batched Newton's method on a device, for problems of few variables."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from deltarank.solvers.lbfgs import NEGLIGIBLE, SUFFICIENT_DECREASE, VALUE_NOISE
from deltarank.solvers.solution import Solution

SHORTER, SMALLEST_STEP = 0.25, 1e-6


def device_newton(
    derivatives: Callable[[Tensor], Any], start: Tensor, *, tol: float, max_iter: int
) -> Solution:
    """Minimise p problems of v variables, all of them in every round: each is a few operations.

    A problem has converged when its Newton decrement, about the gap to its minimum, is at most
    ``tol`` times its value. When all have, they take their last steps too, which square the gaps.

    Parameters
    ----------
    derivatives : callable
        ``points (p, v) -> (value (p,), gradient (p, v), hessian (p, v, v))``, all float64.
    start : tensor of shape (p, v)
    tol, max_iter
        See `deltarank.solvers.newton`.
    """
    point, scale = start, torch.ones_like(start[:, 0])
    value, gradient, hessian = derivatives(point)
    n_iter = torch.ones_like(scale, dtype=torch.int64)
    for _ in range(1, max_iter):
        factor, _ = torch.linalg.cholesky_ex(hessian)
        step = -torch.cholesky_solve(gradient[:, :, None], factor)[:, :, 0]
        slope = (step * gradient).sum(dim=1)
        converged = -slope / 2 <= tol * value.abs() + NEGLIGIBLE
        trial = point + scale[:, None] * step
        if bool((converged | (scale < SMALLEST_STEP)).all()):
            break
        found = derivatives(trial)
        allowed = value + SUFFICIENT_DECREASE * scale * slope + VALUE_NOISE * value.abs()
        good = found.value <= allowed
        point = torch.where(good[:, None], trial, point)
        value = torch.where(good, found.value, value)
        gradient = torch.where(good[:, None], found.gradient, gradient)
        hessian = torch.where(good[:, None, None], found.hessian, hessian)
        n_iter += ~converged
        scale = torch.where(good, 1.0, SHORTER * scale)
    point = torch.where(converged[:, None], trial, point)
    value = torch.where(converged, value + slope / 2, value)
    diagonal = hessian.diagonal(dim1=1, dim2=2)
    return Solution(point, value, gradient.norm(dim=1), n_iter, converged, diagonal)
