"""Batched Newton's method on a device, for problems of few variables."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from deltarank.solvers.lbfgs import NEGLIGIBLE, SUFFICIENT_DECREASE, VALUE_NOISE
from deltarank.solvers.solution import Solution

SHORTER, SMALLEST_STEP = 0.25, 1e-6
# Hessians of few digits are no longer trusted after so many rounds, or when a step made by them
# fails even so short.
TRUSTED_ROUNDS, DOUBTFUL_STEP = 12, 0.1
# What a problem may fall short of the decrement it is expected to have after the next step.
SAFETY = 10.0
TINY = torch.finfo(torch.float64).tiny


def device_newton(
    derivatives: Callable[[Tensor, bool], Any], start: Tensor, *, tol: float, max_iter: int
) -> Solution:
    """Minimise p problems of v variables, all of them in every round: each is a few operations.

    A problem has converged when its Newton decrement, about the gap to its minimum, is at most
    ``tol`` times its value, or clearly will be after the next step, going by the last one. When all
    have, they take that step.

    Parameters
    ----------
    derivatives : callable
        ``(points (p, v), careful) -> (value (p,), gradient (p, v), hessian (p, v, v))``, all
        float64. Careful Hessians are asked for once a step made by the others has failed.
    start : tensor of shape (p, v)
    tol, max_iter
        See `deltarank.solvers.newton`.
    """
    point, scale, careful = start, torch.ones_like(start[:, 0]), False
    value, gradient, hessian = derivatives(point, careful)
    n_iter = torch.ones_like(scale, dtype=torch.int64)
    # The decrement before; so small a one promises nothing.
    unknown = torch.full_like(scale, TINY)
    last = unknown
    for round_ in range(1, max_iter):
        step = newton_steps(hessian, gradient)
        slope = torch.linalg.vecdot(step, gradient)
        decrement = -slope / 2
        to_come = torch.where(scale < 1, torch.inf, SAFETY * decrement**2 / last)
        converged = torch.minimum(decrement, to_come) <= tol * value.abs() + NEGLIGIBLE
        last = decrement.clamp(min=TINY)
        is_over = (converged | (scale < SMALLEST_STEP)).all()
        is_doubtful = ((scale < DOUBTFUL_STEP) & ~converged).any()
        # Asking a device for a number makes it wait, so one question has both answers.
        over, in_doubt = torch.stack([is_over, is_doubtful]).tolist()
        if not careful and (in_doubt or round_ > TRUSTED_ROUNDS):
            careful = True
            value, gradient, hessian = derivatives(point, careful)
            scale, last = torch.ones_like(scale), unknown
            continue
        trial = point + scale[:, None] * step
        if over:
            break
        found = derivatives(trial, careful)
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


def newton_steps(hessians: Tensor, gradients: Tensor) -> Tensor:
    """Return minus the inverse Hessians times the gradients; not a number where one has none."""
    factors, _ = torch.linalg.cholesky_ex(hessians)
    return -torch.cholesky_solve(gradients[:, :, None], factors)[:, :, 0]
