"""Batched L-BFGS: many small smooth convex problems, one shared evaluation a round."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core import threads
from deltarank.core.progress import Step, progress
from deltarank.linear.kernels.lbfgs import cholesky, descend, move
from deltarank.linear.solvers.solution import Solution
from deltarank.linear.solvers.states import Evaluation, Start, State

Array = NDArray[Any]
SUFFICIENT_DECREASE = 1e-4
# Values are sums of float32 cells; a rise of this relative size is rounding, not ascent.
VALUE_NOISE = 1e-7
# Decrements below this are zero: the problems are sums of losses of order one.
NEGLIGIBLE = 1e-9
# Estimated gaps were seen to be up to four times too small with Hessians, and ten times without.
SAFETY, SAFETY_WITHOUT_HESSIAN = 4.0, 10.0
# Where curvature was known from the start, gaps that fall fast are estimated better: by their rate.
LEAST_SAFETY, SAFETY_PER_RATE = 2.0, 100.0
SMALLEST_STEP = 1e-10
SMALLEST_SLOWNESS = 1e-2
PROBLEMS_PER_TASK = 64
HESSIANS_PER_TASK = 8
# A wait after which anything that can be had at all is due.
ENDLESS = 10**12
# Rounds that a close start counts as having waited for a Hessian.
HEAD_START = 6
# Factors of problems that need them no more are kept up to here, for whoever goes on from there.
BYTES_OF_FACTORS = 2**26


Objective = Callable[[Array, Array], Evaluation]
Hessian = Callable[[Array, Array, Array], tuple[Array, Array]]


def lbfgs(
    value_and_gradient: Objective,
    start: Start | State,
    *,
    tol: float = 1e-6,
    max_iter: int = 500,
    memory: int = 8,
    hessian: Hessian,
    due: Callable[[int, int], bool],
) -> tuple[Solution, State]:
    """Minimise p problems of v variables, each with its own step length and its own stop.

    A problem has converged when the estimated gap to its minimum is at most ``tol`` times its
    value; it then leaves the batch. Whenever they are `due`, the problems still there get Hessians
    as the centres of their inverse-Hessian estimates, in place of the diagonals.

    Parameters
    ----------
    value_and_gradient : callable
        ``(points (q, v), problems (q,)) -> Evaluation``; `problems` holds ascending indices.
    start : Start or State
        From a state, perhaps of problems that differ a little, with what is found at its points
        now, it goes on with the curvature known there; the state's arrays are overwritten.
    tol : float
    max_iter : int
        Largest number of rounds, each one evaluation of all active problems.
    memory : int
        Pairs (step, change of gradient) kept for each problem.
    hessian : callable
        ``(points (q, v), problems (q,), diagonals (q, v)) -> hessians (h, v, v), owner (q,)``;
        problem k of the q uses ``hessians[owner[k]]``.
    due : callable
        ``(rounds since the last Hessians, active problems) -> bool``.
    """
    with progress("descending", 1.0) as done:
        if isinstance(start, Start):
            batch, renewed = _Batch(start, memory, tol), (1 - HEAD_START) * start.close
            everyone = np.arange(len(start.point))
            batch.accept(everyone, start.point, value_and_gradient(start.point, everyone))
        else:
            batch, renewed = _Batch.resumed(start, tol), 0
        _minimise(batch, value_and_gradient, max_iter, hessian, due, renewed, done)
    return batch.solution(), batch.state()


def _minimise(
    batch: "_Batch",
    value_and_gradient: Objective,
    max_iter: int,
    hessian: Hessian,
    due: Callable[[int, int], bool],
    renewed: int,
    done: Step,
) -> None:
    """Go on until no problem is active; Hessians count as having been had in round `renewed`."""
    n_rounds = 1
    active = batch.still_active()
    while active.size and n_rounds < max_iter:
        if due(n_rounds - renewed, active.size):
            batch.renew_curvature(active, hessian)
            renewed = n_rounds
        trial = batch.point[active] + batch.step[active, None] * batch.direction[active]
        evaluation = value_and_gradient(trial, active)
        n_rounds += 1
        decrease = SUFFICIENT_DECREASE * batch.step[active] * batch.slope[active]
        slack = VALUE_NOISE * np.abs(batch.value[active])
        good = evaluation.value <= batch.value[active] + decrease + slack
        if good.all():
            batch.accept(active, trial, evaluation)
        else:
            batch.accept(active[good], trial[good], Evaluation(*(e[good] for e in evaluation)))
            batch.shorten(active[~good], evaluation.value[~good])
        stranded = batch.stranded()
        if stranded.size and due(ENDLESS, stranded.size):
            batch.renew_curvature(stranded, hessian)
        active = batch.still_active()
        if done.is_heard:
            done(batch.share_done())


class _Batch:
    """State of all problems; every array has a row a problem."""

    def __init__(self, start: Start, memory: int, tol: float) -> None:
        n_problems, n_variables = start.point.shape
        self.tol = tol
        self.point, self.gradient = start.known_point.copy(), start.known_gradient.copy()
        self.value = np.zeros(n_problems)
        self.diagonal = np.ones_like(self.point)
        self.direction = np.zeros_like(self.point)
        self.slope, self.step = np.zeros(n_problems), np.ones(n_problems)
        history = (n_problems, memory, n_variables)
        # float32 halves the traffic; the pairs only shape the metric, not the minimum.
        self.histories = np.zeros(history, np.float32), np.zeros(history, np.float32)
        self.products = np.ones((n_problems, memory))
        self.n_pairs = np.zeros(n_problems, np.int64)
        self.factors = np.empty((0, n_variables, n_variables))
        self.slots = np.full(n_problems, -1)
        self.has_factor = np.zeros(n_problems, bool)
        self.n_iter, self.n_moves = np.zeros((2, n_problems), np.int64)
        self.first_decrement, self.last_decrement = np.zeros((2, n_problems))
        self.farthest, self.share = np.zeros(n_problems), 0.0
        self.converged = np.zeros(n_problems, bool)
        self.stuck = np.zeros(n_problems, bool)
        self.knows_curvature = False

    @classmethod
    def resumed(cls, state: State, tol: float) -> "_Batch":
        """Return problems that have been evaluated, with what is known of their curvature.

        Pairs found beside a Hessian that is no longer quite theirs held some problems up for long.
        """
        start = Start(state.point, state.point, state.found.gradient)
        batch = cls(start, state.products.shape[1], tol)
        batch.histories, batch.products = (state.steps, state.changes), state.products
        batch.n_pairs = np.where(state.slots < 0, state.n_pairs, 0)
        batch.factors, batch.slots, batch.has_factor = state.factors, state.slots, state.slots >= 0
        batch.value, batch.diagonal = state.found.value, state.found.diagonal
        batch.knows_curvature = True
        everyone = np.arange(len(state.point))
        batch._aim(everyone)
        batch._check(everyone)
        return batch

    def solution(self) -> Solution:
        """Return where the problems are."""
        norm = np.linalg.norm(self.gradient, axis=1)
        return Solution(self.point, self.value, norm, self.n_iter, self.converged, self.diagonal)

    def state(self) -> State:
        """Return what the batch knows, where it was last evaluated."""
        found = Evaluation(self.value, self.gradient, self.diagonal)
        slots = np.where(self.has_factor, self.slots, -1)
        known = (*self.histories, self.products, self.n_pairs, self.factors, slots)
        return State(self.point, found, *known)

    def still_active(self) -> Array:
        """Return the problems that neither converged nor got stuck, ascending."""
        return np.flatnonzero(~(self.converged | self.stuck))

    def share_done(self) -> float:
        """Estimate the share of all work done, from how far each problem's decrement has fallen.

        At a linear rate its logarithm falls by the same amount a round, and a round costs as much
        as problems are active, so the mean over problems is the share of the work.
        """
        goal = self.tol * np.abs(self.value) + NEGLIGIBLE
        distance = np.log(np.maximum(-self.slope / (2 * goal), 1.0))
        distance[self.converged | self.stuck] = 0.0
        self.farthest = np.maximum(self.farthest, distance)
        left = np.divide(distance, self.farthest, where=self.farthest > 0, out=distance * 0)
        self.share = max(self.share, float(1 - left.mean()))
        return self.share

    def stranded(self) -> Array:
        """Return the problems that got stuck with no Hessian yet.

        Their direction is too poor for the digits that values have; a Hessian's may not be, and
        its decrement tells how far the minimum still is.
        """
        return np.flatnonzero(self.stuck & (self.slots < 0) & np.isfinite(self.value))

    def accept(self, problems: Array, points: Array, evaluation: Evaluation) -> None:
        """Move the given problems to their new points and choose their next directions."""
        old = self.point, self.gradient
        kept = (old, self.histories, self.products, self.n_pairs)
        blocks = threads.row_blocks(len(problems), PROBLEMS_PER_TASK)
        gradients = evaluation.gradient
        threads.run([partial(move, problems[b], points[b], gradients[b], *kept) for b in blocks])
        self.value[problems], self.diagonal[problems] = evaluation.value, evaluation.diagonal
        self.n_iter[problems] += 1
        self.stuck[problems] |= ~np.isfinite(evaluation.value)
        self._aim(problems)
        self._check(problems)

    def _check(self, problems: Array) -> None:
        enough = self.tol * np.abs(self.value[problems]) + NEGLIGIBLE
        self.converged[problems] = self._gap(problems) <= enough

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
        latest = decrement / np.where(fresh, decrement, self.last_decrement[problems])
        self.last_decrement[problems] = decrement
        self.n_moves[problems] += 1
        rough = self.slots[problems] < 0
        still_to_come = np.where(rough & ~fresh, np.maximum(1 - rate, SMALLEST_SLOWNESS), 1.0)
        safety = np.where(rough, SAFETY_WITHOUT_HESSIAN, SAFETY)
        if self.knows_curvature:
            by_rate = SAFETY_PER_RATE * np.maximum(rate, latest)
            safety = np.where(fresh, safety, np.clip(by_rate, LEAST_SAFETY, safety))
        return safety * decrement / still_to_come

    def shorten(self, problems: Array, values: Array) -> None:
        """Shorten rejected steps to the minimum of a parabola through what is known."""
        if not problems.size:
            return
        step, slope = self.step[problems], self.slope[problems]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            excess = values - self.value[problems] - step * slope
            share = -slope * step / (2 * excess)
        share = np.where(np.isfinite(values), np.clip(np.nan_to_num(share, nan=0.5), 0.1, 0.5), 0.1)
        self.step[problems] = step * share
        self.n_iter[problems] += 1
        stuck = problems[self.step[problems] < SMALLEST_STEP]
        self.stuck[stuck] = True
        # Values show no more progress. By a Hessian the decrement is the gap, without a margin.
        final = stuck[self.slots[stuck] >= 0]
        self.converged[final] = -self.slope[final] / 2 <= self.tol * np.abs(self.value[final])

    def renew_curvature(self, problems: Array, hessian: Hessian) -> None:
        """Replace the estimates of the given problems by Hessians at their present points.

        Problems in the middle of a line search keep their direction, or they might take the same
        bad step again and again.
        """
        problems = problems[(self.step[problems] == 1.0) | self.stuck[problems]]
        if not problems.size:
            return
        self.stuck[problems] = False
        matrices, owner = hessian(self.point[problems], problems, self.diagonal[problems])
        blocks = threads.row_blocks(len(matrices), HESSIANS_PER_TASK)
        threads.run([partial(cholesky, matrices[b]) for b in blocks])
        self._keep_factors(problems, matrices, owner)
        self.n_pairs[problems] = 0
        self.n_moves[problems] = 0
        self._aim(problems)
        self._check(problems)

    def _keep_factors(self, problems: Array, matrices: Array, owner: Array) -> None:
        self.has_factor[problems] = False
        others = np.flatnonzero(self.has_factor)
        if (len(matrices) + len(self.factors)) * matrices[0].nbytes > BYTES_OF_FACTORS:
            others = np.intersect1d(others, self.still_active())
        kept, self.slots[others] = np.unique(self.slots[others], return_inverse=True)
        self.slots[others] += len(matrices)
        self.slots[problems] = owner
        self.has_factor[:] = False
        self.has_factor[others] = self.has_factor[problems] = True
        self.factors = np.concatenate([matrices, self.factors[kept]])

    def _aim(self, problems: Array) -> None:
        known = (self.gradient, self.diagonal, (self.direction, self.slope))
        centre = (self.factors, self.slots)
        pairs = (self.histories, self.products, self.n_pairs)
        blocks = threads.row_blocks(len(problems), PROBLEMS_PER_TASK)
        threads.run([partial(descend, problems[b], *known, *centre, *pairs) for b in blocks])
        self.step[problems] = 1.0
