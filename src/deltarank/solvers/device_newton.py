"""Batched Newton's method on a device, for problems of few variables."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from deltarank.solvers.lbfgs import NEGLIGIBLE, SUFFICIENT_DECREASE, VALUE_NOISE, Evaluation
from deltarank.solvers.solution import Solution

SHORTER, SMALLEST_STEP = 0.25, 1e-6


def device_newton(
    evaluate: Callable[[Tensor, Tensor, bool], Evaluation],
    hessian: Callable[[Tensor, Tensor], Tensor],
    start: Any,
    *,
    tol: float,
    max_iter: int,
) -> Solution:
    """Minimise p problems of v variables, all of them in every round: each is a few operations.

    A problem has converged when its Newton decrement, about the gap to its minimum, is at most
    ``tol`` times its value; the last step is taken too, and squares the gap.

    Parameters
    ----------
    evaluate : callable
        ``(points (p, v), problems (p,), coarse) -> Evaluation``.
    hessian : callable
        ``(points (p, v), problems (p,)) -> Hessians (p, v, v)``.
    start : Start
        Of float64 tensors.
    tol, max_iter
        See `deltarank.solvers.newton`.
    """
    every = torch.arange(len(start.point), device=start.point.device)
    point, scale = start.point, torch.ones_like(start.point[:, 0])
    at: Any = evaluate(point, every, False)
    converged = torch.zeros_like(every, dtype=torch.bool)
    n_iter = torch.ones_like(every)
    for _ in range(1, max_iter):
        factor, _ = torch.linalg.cholesky_ex(hessian(point, every))
        step = -torch.cholesky_solve(at.gradient[:, :, None], factor)[:, :, 0]
        slope = (step * at.gradient).sum(dim=1)
        converged = -slope / 2 <= tol * at.value.abs() + NEGLIGIBLE
        trial = point + scale[:, None] * step
        found: Any = evaluate(trial, every, False)
        allowed = at.value + SUFFICIENT_DECREASE * scale * slope + VALUE_NOISE * at.value.abs()
        good = found.value <= allowed
        point = torch.where(good[:, None], trial, point)
        at = Evaluation(
            torch.where(good, found.value, at.value),
            torch.where(good[:, None], found.gradient, at.gradient),
            torch.where(good[:, None], found.diagonal, at.diagonal),
        )
        n_iter += ~converged
        scale = torch.where(good, 1.0, SHORTER * scale)
        if bool((converged | (scale < SMALLEST_STEP)).all()):
            break
    return Solution(point, at.value, at.gradient.norm(dim=1), n_iter, converged, at.diagonal)
