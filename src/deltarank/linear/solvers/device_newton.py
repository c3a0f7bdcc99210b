"""Batched Newton's method on a device, for problems of few variables."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deltarank.linear.solvers.lbfgs import NEGLIGIBLE, SUFFICIENT_DECREASE, VALUE_NOISE
from deltarank.linear.solvers.solution import Solution

Array = NDArray[Any]
SHORTER, SMALLEST_STEP = 0.25, 1e-6
# Hessians of few digits are no longer trusted after so many rounds, or when a step made by them
# fails even so short.
TRUSTED_ROUNDS, DOUBTFUL_STEP = 12, 0.1
# What a problem may fall short of the decrement it is expected to have after the next step.
SAFETY = 10.0


# Steps of problems that have no Hessian are no numbers, and are rejected.
@np.errstate(over="ignore", invalid="ignore")
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
        See `deltarank.linear.solvers.newton`.
    """
    careful, found = False, _Found.at(derivatives, start, False)
    n_problems = len(start)
    scale, n_iter = np.ones(n_problems), np.ones(n_problems, np.int64)
    trial, converged = start, np.zeros(n_problems, bool)
    # The decrement before; zero promises nothing.
    last = np.zeros(n_problems)
    for round_ in range(1, max_iter):
        decrement = -found.slope / 2
        goal = tol * np.abs(found.value) + NEGLIGIBLE
        is_promised = (scale == 1) & (SAFETY * decrement**2 <= goal * last)
        converged, last = (decrement <= goal) | is_promised, decrement
        in_doubt = (scale < DOUBTFUL_STEP) & ~converged
        if not careful and (in_doubt.any() or round_ > TRUSTED_ROUNDS):
            careful, found = True, _Found.at(derivatives, found.point, True)
            scale, last = np.ones(n_problems), np.zeros(n_problems)
            continue
        trial = found.ahead(scale)
        if (converged | (scale < SMALLEST_STEP)).all():
            break
        new = _Found.at(derivatives, trial, careful)
        allowed = found.value + SUFFICIENT_DECREASE * scale * found.slope
        good = new.value <= allowed + VALUE_NOISE * np.abs(found.value)
        found = new if good.all() else found.replaced(good, new)
        n_iter += ~converged
        scale = np.where(good, 1.0, SHORTER * scale)
    point = torch.where(_on_device(converged, start)[:, None], trial, found.point)
    return Solution(
        point.cpu().numpy(),
        np.where(converged, found.value + found.slope / 2, found.value),
        found.gradient.norm(dim=1).cpu().numpy(),
        n_iter,
        converged,
        found.diagonal.cpu().numpy(),
    )


class _Found(NamedTuple):
    """What is known of p problems at their points: matrices on a device, numbers here.

    Numbers are few, and a launch takes a device's host longer than computing with them here.
    """

    point: Tensor
    gradient: Tensor
    diagonal: Tensor
    step: Tensor
    value: Array
    slope: Array

    @classmethod
    def at(cls, derivatives: Callable[[Tensor, bool], Any], point: Tensor, careful: bool) -> Self:
        """Evaluate the problems, each at its own point, and find Newton's steps."""
        value, gradient, hessian = derivatives(point, careful)
        step = newton_steps(hessian, gradient)
        slope = torch.linalg.vecdot(step, gradient)
        # Asking a device for numbers makes it wait, so all are asked for at once.
        numbers = torch.stack([value, slope]).cpu().numpy()
        return cls(point, gradient, hessian.diagonal(dim1=1, dim2=2), step, *numbers)

    def ahead(self, scale: Array) -> Tensor:
        """Return the points so many steps ahead; a whole one, as usual, is all on the device."""
        if (scale == 1).all():
            return self.point + self.step
        return torch.addcmul(self.point, _on_device(scale, self.point)[:, None], self.step)

    def replaced(self, good: Array, new: Self) -> Self:
        """Return what is known with the problems of a mask where they are now."""
        mask = _on_device(good, self.point)[:, None]
        return type(self)(
            *(torch.where(mask, b, a) for a, b in zip(self[:4], new[:4], strict=True)),
            *(np.where(good, b, a) for a, b in zip(self[4:], new[4:], strict=True)),
        )


def _on_device(values: Array, like: Tensor) -> Tensor:
    return torch.as_tensor(values).to(like.device)


def newton_steps(hessians: Tensor, gradients: Tensor) -> Tensor:
    """Return minus the inverse Hessians times the gradients; not a number where one has none."""
    factors, _ = torch.linalg.cholesky_ex(hessians)
    half = torch.linalg.solve_triangular(factors, gradients[:, :, None], upper=False)
    return torch.linalg.solve_triangular(factors.mT, half, upper=True)[:, :, 0].neg_()
