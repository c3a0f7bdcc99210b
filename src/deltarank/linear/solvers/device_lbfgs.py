"""Batched L-BFGS on a device: the state of all problems as tensors, few operations a round.

The steps are those of `linear.solvers.lbfgs`, with Hessians for the last few problems only. The
two-loop recursion would be dozens of small operations a round; its compact form is a handful of
batched products.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from deltarank.linear.solvers.lbfgs import (
    NEGLIGIBLE,
    SAFETY_WITHOUT_HESSIAN,
    SMALLEST_SLOWNESS,
    SMALLEST_STEP,
    SUFFICIENT_DECREASE,
    VALUE_NOISE,
)
from deltarank.linear.solvers.precision import Precision
from deltarank.linear.solvers.solution import Solution
from deltarank.linear.solvers.states import Evaluation, Start

# A pair (step, change of gradient) whose cosine is below this carries only rounding.
SMALLEST_COSINE = 1e-8
# Values of double evaluations are known to about this.
DOUBLE_NOISE = 1e-13
# Gaps below this are left to finer products, and so is a problem whose steps coarse ones reject
# even when they are short.
COARSE_TOL, SHORTEST_COARSE_STEP = 1e-5, 0.05
# So few problems go on with the next precision: a round takes as long as reading the data.
STRAGGLERS = 16
# Hessians of the last problems may take so much memory, or those go on without; old ones are stale.
BYTES_OF_HESSIANS, ROUNDS_PER_HESSIAN = 2**31, 8
# A problem whose value fell by less than a tenth of the tolerance in so many rounds has converged:
# near the limits of float32 the decrement says no more how far the minimum is.
IDLE_ROUNDS, IDLE_SHARE = 8, 0.1


def device_lbfgs(
    evaluate: Callable[[Tensor, Tensor, Precision], Evaluation],
    start: Start,
    *,
    hessian: Callable[[Tensor, Tensor], Tensor],
    tol: float,
    max_iter: int,
    memory: int,
) -> Solution:
    """Minimise p problems of v variables, each with its own step length and its own stop.

    The way is made by coarse and fine evaluations; exact ones finish, from all that was learnt.
    A start close to the minimum needs no way. The last few problems, which converge slowly, and
    those whose values differ by less than float32 can tell, end with double ones and Hessians.

    Parameters
    ----------
    evaluate : callable
        ``(points (q, v), problems (q,), precision) -> Evaluation`` of tensors; `problems` ascend.
    start : Start
        Of float64 tensors.
    hessian : callable
        ``(points (q, v), problems (q,)) -> hessians (q, v, v)``, roughly.
    tol, max_iter, memory
        See `deltarank.linear.solvers.lbfgs`.
    """
    batch = _Batch(start, memory)
    n_rounds = 0
    most_hessians = BYTES_OF_HESSIANS // (8 * start.point.shape[1] ** 2)
    for precision in Precision:
        if start.close and precision < Precision.EXACT:
            continue
        is_last, finishes = precision == Precision.DOUBLE, precision >= Precision.EXACT
        problems = batch.unfinished() if is_last else batch.every
        if not len(problems) or n_rounds >= max_iter:
            break
        enough = max(tol, COARSE_TOL) if precision == Precision.COARSE else tol
        noise = DOUBLE_NOISE if is_last else VALUE_NOISE
        point = batch.point[problems] if n_rounds else start.point
        batch.forget_values()
        found = evaluate(point, problems, precision)
        batch.accept(problems, point, found, enough, moved=n_rounds == 0)
        n_rounds += 1
        active = batch.still_active()
        renewed = n_rounds if len(active) <= most_hessians else max_iter
        while len(active) > (0 if is_last else STRAGGLERS) and n_rounds < max_iter:
            if is_last and n_rounds >= renewed:
                batch.centre(active, hessian(batch.point[active], active), enough)
                renewed, active = n_rounds + ROUNDS_PER_HESSIAN, batch.still_active()
                continue
            trial = batch.point[active] + batch.step[active, None] * batch.direction[active]
            found = evaluate(trial, active, precision)
            n_rounds += 1
            value = batch.value[active]
            decrease = SUFFICIENT_DECREASE * batch.step[active] * batch.slope[active]
            good = found.value <= value + decrease + noise * value.abs()
            if bool(good.all()):
                batch.accept(active, trial, found, enough)
            else:
                moved = Evaluation(*(part[good] for part in found))
                batch.accept(active[good], trial[good], moved, enough)
                batch.shorten(active[~good], found.value[~good], enough, give_up=not finishes)
            active = batch.still_active()
    return batch.solution()


class _Batch:
    """State of all problems; every tensor has a row a problem, histories oldest first."""

    def __init__(self, start: Any, memory: int) -> None:
        n_problems, n_variables = start.point.shape
        like: dict[str, Any] = {"device": start.point.device}
        self.every = torch.arange(n_problems, **like)
        self.point, self.gradient = start.known_point.clone(), start.known_gradient.clone()
        number = {"dtype": torch.float64, **like}
        self.value, self.slope = torch.zeros(2, n_problems, **number)
        self.step, self.first_decrement = torch.ones(2, n_problems, **number)
        self.diagonal, self.direction = torch.ones_like(self.point), torch.zeros_like(self.point)
        # float32 halves the memory; the pairs only shape the metric, not the minimum.
        self.steps, self.changes = torch.zeros(2, n_problems, memory, n_variables, **like)
        # s_i . y_j for i <= j; an empty place has 1 on the diagonal and adds nothing.
        self.products = torch.eye(memory, **number).repeat(n_problems, 1, 1)
        self.has_pair = torch.zeros(n_problems, dtype=torch.bool, **like)
        self.n_iter, self.n_moves = torch.zeros(2, n_problems, dtype=torch.int64, **like)
        self.past = torch.full((n_problems, IDLE_ROUNDS), torch.inf, **number)
        self.factors, self.slots = torch.empty(0, **number), torch.full_like(self.n_iter, -1)
        self.converged, self.stuck = torch.zeros(2, n_problems, dtype=torch.bool, **like)

    def still_active(self) -> Tensor:
        """Return the problems that neither converged nor got stuck, ascending."""
        return (~(self.converged | self.stuck)).nonzero().ravel()

    def unfinished(self) -> Tensor:
        """Return the problems that have not converged, be they stuck or not, ascending."""
        return (~self.converged).nonzero().ravel()

    def centre(self, problems: Tensor, hessians: Tensor, tol: float) -> None:
        """Let the given problems, and no others from now on, use Hessians in place of diagonals.

        The pairs so far were corrections of what they had before.
        """
        self.factors, failed = torch.linalg.cholesky_ex(hessians)
        self.slots[problems] = torch.where(failed == 0, self.every[: len(problems)], -1)
        self.steps[problems], self.changes[problems] = 0.0, 0.0
        self.products[problems] = torch.eye(self.products.shape[1]).to(self.products)
        self.has_pair[problems], self.n_moves[problems] = False, 0
        known = (self.value[problems], self.gradient[problems], self.diagonal[problems])
        self._aim(problems, Evaluation(*known))
        self._check(problems, tol)

    def forget_values(self) -> None:
        """Compare no further values with those of another precision."""
        self.past.fill_(torch.inf)

    def accept(
        self, problems: Tensor, points: Tensor, found: Any, tol: float, moved: bool = True
    ) -> None:
        """Move problems to new points and choose their next directions.

        Not `moved`, the points are the old ones, evaluated more exactly.
        """
        if moved:
            self._remember(problems, points, found.gradient)
        self.point[problems], self.gradient[problems] = points, found.gradient
        self.value[problems], self.diagonal[problems] = found.value, found.diagonal
        self.n_iter[problems] += 1
        self.stuck[problems] = ~found.value.isfinite()
        self._aim(problems, found)
        self._check(problems, tol)

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

    def _aim(self, problems: Tensor, found: Any) -> None:
        """Set directions to minus the inverse Hessian estimates times the gradients.

        With H_0 the scaled inverse diagonal, S and Y the steps and changes, R the upper triangle
        of S'Y and D its diagonal, the estimate times g is (Byrd, Nocedal and Schnabel, 1994)
        ``H_0 g + S' R^-T ((D + Y H_0 Y') u - Y H_0 g) - H_0 Y' u`` with ``u = R^-1 S g``.
        """
        steps, changes = self.steps[problems], self.changes[problems]
        R, gradient = self.products[problems], found.gradient
        newest = changes[:, -1]
        flat = R[:, -1, -1] / (newest * newest / found.diagonal).sum(dim=1)
        scale = torch.where(self.has_pair[problems], flat, 1.0)[:, None]
        inverse = scale / found.diagonal
        scaled, weighted = inverse * gradient, changes * inverse.float()[:, None, :]
        if len(self.factors):
            self._apply_factors(problems, gradient, changes, scaled, weighted)
        slim = scaled.float()
        along = _times(steps, gradient.float())
        u = torch.linalg.solve_triangular(R, along.double()[:, :, None], upper=True)
        middle = torch.bmm(weighted, changes.transpose(1, 2)).double()
        middle += torch.diag_embed(R.diagonal(dim1=1, dim2=2))
        w = torch.bmm(middle, u) - _times(changes, slim).double()[:, :, None]
        q = torch.linalg.solve_triangular(R.transpose(1, 2), w, upper=False)
        correction = torch.bmm(q.float().transpose(1, 2), steps)
        correction -= torch.bmm(u.float().transpose(1, 2), weighted)
        direction = -(scaled + correction[:, 0].double())
        slope = (direction * gradient).sum(dim=1)
        # Rounding in the histories may turn a direction uphill: then the diagonal must do.
        uphill = slope >= 0
        direction = torch.where(uphill[:, None], -scaled, direction)
        self.direction[problems] = direction
        self.slope[problems] = torch.where(uphill, -(scaled * gradient).sum(dim=1), slope)
        self.step[problems] = 1.0

    def _apply_factors(
        self, problems: Tensor, gradient: Tensor, changes: Tensor, scaled: Tensor, weighted: Tensor
    ) -> None:
        """Overwrite gradients and changes times the inverse diagonals by those times inverse H."""
        mine = (self.slots[problems] >= 0).nonzero().ravel()
        factors = self.factors[self.slots[problems[mine]]]
        vectors = torch.cat([gradient[mine, None], changes[mine].double()], dim=1)
        solved = torch.cholesky_solve(vectors.mT, factors).mT
        scaled[mine], weighted[mine] = solved[:, 0], solved[:, 1:].float()

    def _check(self, problems: Tensor, tol: float) -> None:
        """Mark who has converged, by the bound on the gap that `lbfgs` uses without Hessians."""
        decrement = (-self.slope[problems] / 2).clamp(min=torch.finfo(torch.float64).tiny)
        n_moves = self.n_moves[problems]
        first = torch.where(n_moves == 0, decrement, self.first_decrement[problems])
        self.first_decrement[problems] = first
        rate = (decrement / first).clamp(max=1.0) ** (1 / n_moves.clamp(min=1))
        to_come = torch.where(n_moves > 0, (1 - rate).clamp(min=SMALLEST_SLOWNESS), 1.0)
        self.n_moves[problems] += 1
        gap = SAFETY_WITHOUT_HESSIAN * decrement / to_come
        value, past = self.value[problems], self.past[problems]
        fall = past[:, 0] - value
        self.past[problems] = torch.column_stack([past[:, 1:], value])
        enough = tol * value.abs() + NEGLIGIBLE
        is_idle = (fall <= IDLE_SHARE * enough) & (self.slots[problems] < 0)
        self.converged[problems] = (gap <= enough) | is_idle

    def shorten(self, problems: Tensor, values: Tensor, tol: float, give_up: bool) -> None:
        """Shorten rejected steps to the minimum of a parabola through what is known."""
        step, slope = self.step[problems], self.slope[problems]
        excess = values - self.value[problems] - step * slope
        share = (-slope * step / (2 * excess)).nan_to_num(nan=0.5).clamp(0.1, 0.5)
        self.step[problems] = step * torch.where(values.isfinite(), share, 0.1)
        self.n_iter[problems] += 1
        stuck = self.step[problems] < (SHORTEST_COARSE_STEP if give_up else SMALLEST_STEP)
        self.stuck[problems] = stuck
        # Values show no more progress: then the decrement counts without a margin.
        self.converged[problems] = stuck & (-slope / 2 <= tol * self.value[problems].abs())

    def solution(self) -> Solution:
        """Return where the problems are, still on the device."""
        norm = self.gradient.norm(dim=1)
        return Solution(self.point, self.value, norm, self.n_iter, self.converged, self.diagonal)


def _times(rows: Tensor, vector: Tensor) -> Tensor:
    """Return the products (q, k) of rows (q, k, v) and vectors (q, v)."""
    return torch.bmm(rows, vector[:, :, None])[:, :, 0]
