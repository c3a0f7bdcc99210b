"""The vectors of L-BFGS as tensors of a device: few operations per round.

The two-loop recursion would be dozens of small operations; its compact form is a handful of batched
products.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deltarank.linear.solvers.lbfgs import Hessians
from deltarank.linear.solvers.states import Start

Array = NDArray[Any]
# A pair (step, change of gradient) whose cosine is below this carries only rounding.
SMALLEST_COSINE = 1e-8


class TensorSteps:
    """Points, gradients and histories, oldest first; see `linear.solvers.lbfgs.Steps`.

    Parameters
    ----------
    start : Start
        Of float64 tensors.
    memory : int
        Pairs (step, change of gradient) kept for each problem.
    """

    def __init__(self, start: Start, memory: int) -> None:
        n_problems, n_variables = start.point.shape
        like: dict[str, Any] = {"device": start.point.device}
        number = {"dtype": torch.float64, **like}
        self.point, self.gradient = start.known_point.clone(), start.known_gradient.clone()
        self.diagonal, self.direction = torch.ones_like(self.point), torch.zeros_like(self.point)
        # float32 halves the memory; the pairs only shape the metric, not the minimum.
        self.steps, self.changes = torch.zeros(2, n_problems, memory, n_variables, **like)
        # s_i . y_j for i <= j; an empty place has 1 on the diagonal and adds nothing.
        self.products = torch.eye(memory, **number).repeat(n_problems, 1, 1)
        self.has_pair = torch.zeros(n_problems, dtype=torch.bool, **like)
        self.factors = torch.empty(0, **number)
        # Which factor is each problem's; -1 stands for the diagonal.
        self.slots = torch.full((n_problems,), -1, **like)

    def of(self, problems: Array) -> Tensor:
        """Return indices on the device."""
        return torch.as_tensor(problems).to(self.point.device)

    def host(self, *values: Tensor) -> tuple[Array, ...]:
        """Return numbers on the host; asking makes a device wait, so all are asked for at once."""
        return tuple(torch.stack(values).cpu().numpy())

    def points(self, problems: Array, lengths: Array | None = None) -> Tensor:
        """Return the points of problems, or those this many steps ahead."""
        chosen = self.of(problems)
        if lengths is None:
            return self.point[chosen]
        ahead = self.of(lengths)[:, None] * self.direction[chosen]
        return self.point[chosen] + ahead

    def accept(
        self, problems: Array, points: Tensor, gradient: Tensor, diagonal: Tensor, moved: bool
    ) -> None:
        """Move problems; if they `moved`, remember step and change of gradient."""
        chosen = self.of(problems)
        if moved:
            self._remember(chosen, points, gradient)
        self.point[chosen], self.gradient[chosen] = points, gradient
        self.diagonal[chosen] = diagonal

    def _remember(self, problems: Tensor, points: Tensor, gradients: Tensor) -> None:
        """Store each pair (step, change of gradient) behind the others, the oldest falling out."""
        step, change = points - self.point[problems], gradients - self.gradient[problems]
        product = (step * change).sum(dim=1)
        good = product > SMALLEST_COSINE * step.norm(dim=1) * change.norm(dim=1)
        step, change = step.float(), change.float()
        steps = torch.cat([self.steps[problems, 1:], step[:, None]], dim=1)
        changes = torch.cat([self.changes[problems, 1:], change[:, None]], dim=1)
        products = torch.zeros_like(self.products[problems])
        products[:, :-1, :-1] = self.products[problems, 1:, 1:]
        products[:, :, -1] = torch.bmm(steps, change[:, :, None])[:, :, 0]
        products[:, -1, -1] = product
        keep = good[:, None, None]
        self.steps[problems] = torch.where(keep, steps, self.steps[problems])
        self.changes[problems] = torch.where(keep, changes, self.changes[problems])
        self.products[problems] = torch.where(keep, products, self.products[problems])
        self.has_pair[problems] |= good

    def aim(self, problems: Array) -> Array:
        """Choose directions of descent; return their slopes, on the host.

        With H_0 the scaled inverse diagonal, S and Y the steps and changes, R the upper triangle
        of S'Y and D its diagonal, the estimate times g is (Byrd, Nocedal and Schnabel, 1994)
        ``H_0 g + S' R^-T ((D + Y H_0 Y') u - Y H_0 g) - H_0 Y' u`` with ``u = R^-1 S g``.
        """
        chosen = self.of(problems)
        steps, changes, R = self.steps[chosen], self.changes[chosen], self.products[chosen]
        gradient, diagonal = self.gradient[chosen], self.diagonal[chosen]
        newest = changes[:, -1]
        flat = R[:, -1, -1] / (newest * newest / diagonal).sum(dim=1)
        inverse = torch.where(self.has_pair[chosen], flat, 1.0)[:, None] / diagonal
        scaled, weighted = inverse * gradient, changes * inverse.float()[:, None, :]
        if len(self.factors):
            self._apply_factors(chosen, gradient, changes, scaled, weighted)
        along = _times(steps, gradient.float())
        u = torch.linalg.solve_triangular(R, along.double()[:, :, None], upper=True)
        middle = torch.bmm(weighted, changes.transpose(1, 2)).double()
        middle += torch.diag_embed(R.diagonal(dim1=1, dim2=2))
        w = torch.bmm(middle, u) - _times(changes, scaled.float()).double()[:, :, None]
        q = torch.linalg.solve_triangular(R.transpose(1, 2), w, upper=False)
        correction = torch.bmm(q.float().transpose(1, 2), steps)
        correction -= torch.bmm(u.float().transpose(1, 2), weighted)
        direction = -(scaled + correction[:, 0].double())
        slope = (direction * gradient).sum(dim=1)
        # Rounding in the histories may turn a direction uphill: then the diagonal must do.
        uphill = slope >= 0
        self.direction[chosen] = torch.where(uphill[:, None], -scaled, direction)
        slopes = torch.where(uphill, -(scaled * gradient).sum(dim=1), slope)
        return slopes.cpu().numpy()

    def _apply_factors(
        self, problems: Tensor, gradient: Tensor, changes: Tensor, scaled: Tensor, weighted: Tensor
    ) -> None:
        """Overwrite gradients and changes times the inverse diagonals by those times inverse H."""
        has_factor = (self.slots[problems] >= 0).nonzero().ravel()
        factors = self.factors[self.slots[problems[has_factor]]]
        vectors = torch.cat([gradient[has_factor, None], changes[has_factor].double()], dim=1)
        solved = torch.cholesky_solve(vectors.mT, factors).mT
        scaled[has_factor], weighted[has_factor] = solved[:, 0], solved[:, 1:].float()

    def centre(self, problems: Array, hessians: Hessians, active: Array) -> None:
        """Let estimates of problems start from Hessians, and forget their pairs."""
        chosen = self.of(problems)
        matrices, owner = hessians(self.point[chosen], chosen, self.diagonal[chosen])
        factors, failed = torch.linalg.cholesky_ex(matrices)
        others = self.of(np.setdiff1d(active, problems))
        others = others[self.slots[others] >= 0]
        kept = self.factors[self.slots[others]] if len(others) else self.factors[:0]
        self.slots[others] = len(factors) + torch.arange(len(others), device=chosen.device)
        slots = self.of(owner)
        self.slots[chosen] = torch.where(failed[slots] == 0, slots, -1)
        self.factors = torch.cat([factors, kept]) if len(others) else factors
        self.steps[chosen], self.changes[chosen] = 0.0, 0.0
        self.products[chosen] = torch.eye(self.products.shape[1]).to(self.products)
        self.has_pair[chosen] = False

    def result(self) -> tuple[Array, Array, Array]:
        """Return points, norms of gradients and diagonals on the host."""
        parts = self.point, self.gradient.norm(dim=1), self.diagonal
        point, norm, diagonal = (part.cpu().numpy() for part in parts)
        return point, norm, diagonal


def _times(rows: Tensor, vector: Tensor) -> Tensor:
    """Return the products (q, k) of rows (q, k, v) and vectors (q, v)."""
    return torch.bmm(rows, vector[:, :, None])[:, :, 0]
