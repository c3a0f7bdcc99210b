"""Batched L-BFGS: many smooth convex problems, one shared evaluation per round, wherever they lie.

What is decided (steps, stops, when to ask for Hessians) is a few numbers per problem and is decided
here, on the host, for every place. The vectors, one row per problem, lie with the data: `Steps` is
compiled for NumPy arrays (`solvers.array_steps`) and written in torch for tensors
(`solvers.tensor_steps`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from deltarank.core.progress import Step, progress
from deltarank.linear.solvers.precision import Precision
from deltarank.linear.solvers.solution import Solution
from deltarank.linear.solvers.states import Evaluation, Start

Array = NDArray[Any]
SUFFICIENT_DECREASE = 1e-4
# Decrements below this are zero: the problems are sums of losses of order one.
NEGLIGIBLE = 1e-9
# Estimated gaps were seen to be up to four times too small with Hessians, and ten times without.
SAFETY, SAFETY_WITHOUT_HESSIAN = 4.0, 10.0
SMALLEST_SLOWNESS = 1e-2
# After a wait this long Hessians are due wherever they can be had at all.
ENDLESS = 10**12
# A close start counts as having waited this many rounds for a Hessian.
HEAD_START = 6
# A problem whose value fell by less than a tenth of the tolerance in this many rounds is idle.
IDLE_ROUNDS, IDLE_SHARE = 8, 0.1


Hessians = Callable[[Any, Any, Any], tuple[Any, Array]]


class Stage(NamedTuple):
    """A part of the way, made by evaluations of one precision.

    Attributes
    ----------
    precision : Precision
    noise : float
        A rise of values of this relative size is rounding, not ascent.
    least_tol : float
        Gaps below this are left to the next stage.
    stragglers : int
        So few problems go on with the next stage: a round takes as long as reading the data.
    smallest_step : float
        A problem whose steps are rejected even so short is stuck, and left to the next stage.
    idles : bool
        Whether a problem that is idle has converged: near the limits of float32 the decrement says
        no more how far the minimum is.
    everyone : bool
        Whether problems that have converged are evaluated anew, so that values are exact.
    """

    precision: Precision
    noise: float = 1e-7
    least_tol: float = 0.0
    stragglers: int = 0
    smallest_step: float = 1e-10
    idles: bool = False
    everyone: bool = True


class Steps(Protocol):
    """Points, gradients, directions and histories of all problems, one row per problem.

    Problems are given by ascending indices, a NumPy array.
    """

    def points(self, problems: Array, lengths: Array | None = None) -> Any:
        """Return the points of problems, or those this many steps ahead."""

    def of(self, problems: Array) -> Any:
        """Return indices of problems as the place holds them."""

    def accept(
        self, problems: Array, points: Any, gradient: Any, diagonal: Any, moved: bool
    ) -> None:
        """Move problems; if they `moved`, remember step and change of gradient."""

    def aim(self, problems: Array) -> Array:
        """Choose directions of descent; return their slopes, on the host."""

    def centre(self, problems: Array, hessians: Hessians, active: Array) -> None:
        """Let estimates of problems start from Hessians, and forget their pairs.

        Others that are still active keep the Hessians that they have.
        """

    def host(self, *values: Any) -> tuple[Array, ...]:
        """Return numbers of problems on the host, all at once."""

    def result(self) -> tuple[Array, Array, Array]:
        """Return points, norms of gradients and diagonals on the host."""


def lbfgs(
    evaluate: Callable[[Any, Any, Precision], Evaluation],
    start: Start,
    steps: Steps,
    *,
    stages: tuple[Stage, ...],
    hessians: Hessians | None = None,
    hessians_due: Callable[[int, int, Precision], bool] = lambda *wait: False,
    tol: float = 1e-6,
    max_iter: int = 500,
) -> Solution:
    """Minimise p problems of v variables, each with its own step length and its own stop.

    A problem has converged when the estimated gap to its minimum is at most ``tol`` times its
    value; it then leaves the batch. Whenever they are due, the problems still there get Hessians as
    the centres of their inverse-Hessian estimates, in place of the diagonals.

    Parameters
    ----------
    evaluate : callable
        ``(points (q, v), problems (q,), precision) -> Evaluation``; `problems` ascend.
    start : Start
        One that is near the minimum needs no rough way there.
    steps : Steps
        Made from the start.
    stages : tuple of Stage
        Of ascending precision.
    hessians : callable
        ``(points (q, v), problems (q,), diagonals (q, v)) -> hessians (h, v, v), owner (q,)``;
        problem k of the q uses ``hessians[owner[k]]``.
    hessians_due : callable
        ``(rounds since the last Hessians, active problems, precision) -> bool``.
    tol : float
    max_iter : int
        Largest number of rounds, each one evaluation of all active problems.
    """
    batch = _Batch(steps, len(start.point), tol)
    descent = _Descent(batch, evaluate, hessians, hessians_due, max_iter)
    with progress("descending", 1.0) as done:
        for stage in stages:
            if start.near and stage.precision < Precision.EXACT:
                continue
            point = start.point if descent.n_rounds == 0 else None
            descent.go(stage, point, start.close, done)
    return batch.solution()


class _Descent:
    """The rounds of a solve, stage after stage."""

    def __init__(
        self, batch: "_Batch", evaluate: Any, hessians: Any, hessians_due: Any, max_iter: int
    ) -> None:
        self.batch, self.evaluate, self.max_iter = batch, evaluate, max_iter
        self.hessians, self.hessians_due = hessians, hessians_due
        self.n_rounds = 0

    def go(self, stage: Stage, start: Any, close: bool, done: Step) -> None:
        """Go on until few problems are active; from `start` where nothing is known yet."""
        batch = self.batch
        problems = np.arange(len(batch.value)) if stage.everyone else batch.unfinished()
        if not len(problems) or self.n_rounds >= self.max_iter:
            return
        batch.begin(stage)
        points = batch.steps.points(problems) if start is None else start
        evaluation = self.evaluate(points, batch.steps.of(problems), stage.precision)
        batch.accept(problems, points, evaluation, moved=start is not None)
        self.n_rounds += 1
        # Rounds waited for Hessians count from here; a later stage has waited long enough.
        renewed = (1 - HEAD_START) * close if start is not None else -ENDLESS
        active = batch.still_active()
        while len(active) > stage.stragglers and self.n_rounds < self.max_iter:
            if self.hessians_due(self.n_rounds - renewed, len(active), stage.precision):
                batch.renew_curvature(active, self.hessians)
                renewed, active = self.n_rounds, batch.still_active()
                continue
            self._round(active, stage)
            stranded = batch.stranded()
            if stranded.size and self.hessians_due(ENDLESS, stranded.size, stage.precision):
                batch.renew_curvature(stranded, self.hessians)
            active = batch.still_active()
            if done.is_heard:
                done(batch.share_done())

    def _round(self, active: Array, stage: Stage) -> None:
        """Try one step of every active problem."""
        batch = self.batch
        trial = batch.steps.points(active, batch.step[active])
        evaluation = self.evaluate(trial, batch.steps.of(active), stage.precision)
        self.n_rounds += 1
        (value,) = batch.steps.host(evaluation.value)
        decrease = SUFFICIENT_DECREASE * batch.step[active] * batch.slope[active]
        slack = stage.noise * np.abs(batch.value[active])
        good = value <= batch.value[active] + decrease + slack
        if good.all():
            batch.accept(active, trial, evaluation)
            return
        kept = batch.steps.of(np.flatnonzero(good))
        moved = Evaluation(*(part[kept] for part in evaluation))
        batch.accept(active[good], trial[kept], moved)
        batch.shorten(active[~good], value[~good])


class _Batch:
    """What is decided of each problem; every array has one entry per problem."""

    def __init__(self, steps: Steps, n_problems: int, tol: float) -> None:
        self.steps, self._tol, self.stage = steps, tol, Stage(Precision.EXACT)
        self.value, self.slope = np.zeros((2, n_problems))
        self.step = np.ones(n_problems)
        self.has_hessian, self.converged, self.stuck = np.zeros((3, n_problems), bool)
        self.n_iter, self.n_moves = np.zeros((2, n_problems), np.int64)
        self.first_decrement = np.zeros(n_problems)
        self.past = np.full((n_problems, IDLE_ROUNDS), np.inf)
        self.farthest, self.share = np.zeros(n_problems), 0.0

    def begin(self, stage: Stage) -> None:
        """Begin a stage: its values are not compared with those of another precision."""
        self.stage, self.tol = stage, max(self._tol, stage.least_tol)
        self.past[:] = np.inf

    def solution(self) -> Solution:
        """Return where the problems are."""
        point, norm, diagonal = self.steps.result()
        return Solution(point, self.value, norm, self.n_iter, self.converged, diagonal)

    def still_active(self) -> Array:
        """Return the problems that neither converged nor got stuck, ascending."""
        return np.flatnonzero(~(self.converged | self.stuck))

    def unfinished(self) -> Array:
        """Return the problems that have not converged, be they stuck or not, ascending."""
        return np.flatnonzero(~self.converged)

    def stranded(self) -> Array:
        """Return the problems that got stuck without a Hessian of the point where they are.

        Their direction is too poor for the digits that values have; a Hessian's may not be, and
        its decrement tells how far the minimum still is.
        """
        is_fresh = self.has_hessian & (self.n_moves <= 1)
        return np.flatnonzero(self.stuck & ~is_fresh & np.isfinite(self.value))

    def accept(
        self, problems: Array, points: Any, evaluation: Evaluation, *, moved: bool = True
    ) -> None:
        """Move problems to new points and choose their next directions.

        Not `moved`, the points are the old ones, evaluated more exactly.
        """
        if not problems.size:
            return
        self.steps.accept(problems, points, evaluation.gradient, evaluation.diagonal, moved)
        self.n_iter[problems] += 1
        self._aim(problems, evaluation.value)
        self.stuck[problems] = ~np.isfinite(self.value[problems])
        self._check(problems)

    def _aim(self, problems: Array, value: Any = None) -> None:
        slope = self.steps.aim(problems)
        if value is not None:
            (self.value[problems],) = self.steps.host(value)
        self.slope[problems], self.step[problems] = slope, 1.0

    def renew_curvature(self, problems: Array, hessians: Any) -> None:
        """Replace the estimates of the given problems by Hessians at their present points.

        Problems in the middle of a line search keep their direction, or they might take the same
        bad step again and again.
        """
        problems = problems[(self.step[problems] == 1.0) | self.stuck[problems]]
        if not problems.size:
            return
        self.stuck[problems] = False
        self.steps.centre(problems, hessians, self.still_active())
        self.has_hessian[problems] = True
        self.n_moves[problems] = 0
        self._aim(problems)
        self._check(problems)

    def _check(self, problems: Array) -> None:
        value = self.value[problems]
        enough = self.tol * np.abs(value) + NEGLIGIBLE
        is_idle = False
        if self.stage.idles:
            fall = self.past[problems, 0] - value
            self.past[problems] = np.column_stack([self.past[problems, 1:], value])
            is_idle = (fall <= IDLE_SHARE * enough) & ~self.has_hessian[problems]
        self.converged[problems] = (self._gap(problems) <= enough) | is_idle

    def _gap(self, problems: Array) -> Array:
        """Bound the gap to the minimum: the decrement over one minus the rate of convergence.

        A decrement with the true Hessian is the gap itself. With a diagonal it is nearer to the
        next step's gain; at a linear rate r the gains still to come add up to gain / (1 - r).
        """
        decrement = np.maximum(-self.slope[problems] / 2, np.finfo(float).tiny)
        fresh = self.n_moves[problems] == 0
        self.first_decrement[problems[fresh]] = decrement[fresh]
        fall = np.minimum(decrement / self.first_decrement[problems], 1.0)
        rate = fall ** (1 / np.maximum(self.n_moves[problems], 1))
        self.n_moves[problems] += 1
        rough = ~self.has_hessian[problems]
        still_to_come = np.where(rough & ~fresh, np.maximum(1 - rate, SMALLEST_SLOWNESS), 1.0)
        safety = np.where(rough, SAFETY_WITHOUT_HESSIAN, SAFETY)
        return safety * decrement / still_to_come

    def shorten(self, problems: Array, values: Array) -> None:
        """Shorten rejected steps to the minimum of a parabola through what is known."""
        step, slope = self.step[problems], self.slope[problems]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            excess = values - self.value[problems] - step * slope
            share = -slope * step / (2 * excess)
        share = np.where(np.isfinite(values), np.clip(np.nan_to_num(share, nan=0.5), 0.1, 0.5), 0.1)
        self.step[problems] = step * share
        self.n_iter[problems] += 1
        stuck = problems[self.step[problems] < self.stage.smallest_step]
        self.stuck[stuck] = True
        # Values show no more progress. By a Hessian the decrement is the gap, without a margin.
        final = stuck[self.has_hessian[stuck] | (self.stage.idles)]
        self.converged[final] = -self.slope[final] / 2 <= self.tol * np.abs(self.value[final])

    def share_done(self) -> float:
        """Estimate the share of all work done, from how far each problem's decrement has fallen.

        At a linear rate its logarithm falls by the same amount per round, and a round costs as much
        as problems are active, so the mean over problems is the share of the work.
        """
        goal = self._tol * np.abs(self.value) + NEGLIGIBLE
        distance = np.log(np.maximum(-self.slope / (2 * goal), 1.0))
        distance[self.converged | self.stuck] = 0.0
        self.farthest = np.maximum(self.farthest, distance)
        left = np.divide(distance, self.farthest, where=self.farthest > 0, out=distance * 0)
        self.share = max(self.share, float(1 - left.mean()))
        return self.share
