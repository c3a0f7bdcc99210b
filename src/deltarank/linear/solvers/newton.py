"""Batched Newton's method for many problems of few variables, wherever they lie."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.linear.solvers.solution import Solution
from deltarank.linear.solvers.states import Derivatives

Array = NDArray[Any]
SUFFICIENT_DECREASE = 1e-4
SHORTER = 0.25
# Rough Hessians are no longer trusted after this many rounds, or when a step made by them fails
# though it is this short.
TRUSTED_ROUNDS, DOUBTFUL_STEP = 12, 0.1
# The decrement after the next step may exceed the one that is expected by this factor.
SAFETY = 10.0


class Digits(NamedTuple):
    """What the sums of a place can tell, and how it is quickest asked.

    Attributes
    ----------
    noise : float
        A rise of values of this relative size is rounding, not ascent.
    negligible : float
        Decrements below this are zero: the problems are sums of losses of order one.
    smallest_step : float
        Where a loss is almost flat Newton's step may be too long by many powers of ten.
    rough : bool
        Whether the place offers quicker Hessians of few digits; then a problem that clearly will
        converge by the next step has.
    narrows : bool
        Whether evaluating fewer problems is quicker.
    """

    noise: float = 1e-15
    negligible: float = 1e-12
    smallest_step: float = 1e-20
    rough: bool = False
    narrows: bool = True


# Steps of problems that have no Hessian are no numbers, and are rejected.
@np.errstate(over="ignore", invalid="ignore")
def newton(
    derivatives: Callable[[Any, Any, bool], Derivatives],
    start: Any,
    place: Any,
    *,
    tol: float,
    max_iter: int,
) -> Solution:
    """Minimise p convex problems of v variables, each with its own step length and its own stop.

    A problem has converged when its Newton decrement, about the gap to its minimum, is at most
    ``tol`` times its value; it takes that last step too, which squares the gap.

    Parameters
    ----------
    derivatives : callable
        ``(points (q, v), problems (q,), careful) -> Derivatives``; `problems` ascend.
    start : array of shape (p, v)
    place : object
        Has the `digits` of the place, and ``newton_steps``, ``indices`` and ``to_host`` for its
        arrays.
    tol : float
    max_iter : int
        Largest number of evaluations.
    """
    digits, n_problems = place.digits, len(start)
    everyone = np.arange(n_problems)
    careful = not digits.rough
    all_problems = place.indices(everyone)
    state = _State.at(derivatives, start, all_problems, careful, place)
    scale, n_iter = np.ones(n_problems), np.ones(n_problems, np.int64)
    last, converged = np.zeros(n_problems), np.zeros(n_problems, bool)
    for round_ in range(1, max_iter + 1):
        decrement = -state.slope / 2
        goal = tol * np.abs(state.value) + digits.negligible
        converged = decrement <= goal
        if digits.rough:
            converged |= (scale == 1) & (SAFETY * decrement**2 <= goal * last)
        last = decrement
        in_doubt = (scale < DOUBTFUL_STEP) & ~converged
        if not careful and (in_doubt.any() or round_ > TRUSTED_ROUNDS):
            careful, state = True, _State.at(derivatives, state.point, all_problems, True, place)
            scale, last = np.ones(n_problems), np.zeros(n_problems)
            continue
        finished = converged | (scale < digits.smallest_step)
        if finished.all() or round_ == max_iter:
            break
        active, problems = everyone, all_problems
        if digits.narrows:
            active = np.flatnonzero(~finished)
            problems = place.indices(active)
        new = _State.at(derivatives, state.ahead(active, scale, place), problems, careful, place)
        allowed = state.value[active] + SUFFICIENT_DECREASE * scale[active] * state.slope[active]
        good = new.value <= allowed + digits.noise * np.abs(state.value[active])
        n_iter[active] += ~converged[active]
        scale[active] = np.where(good, 1.0, SHORTER * scale[active])
        state = state.replaced(active[good], np.flatnonzero(good), new, place)
    point = state.ahead(everyone, np.where(converged, scale, 0.0), place)
    value = np.where(converged, state.value + state.slope / 2, state.value)
    norm = (state.gradient**2).sum(axis=1) ** 0.5
    point, norm, diagonal = map(place.to_host, (point, norm, state.diagonal))
    return Solution(point, value, norm, n_iter, converged, diagonal)


class _State(NamedTuple):
    """What is known of p problems at their points: vectors where they lie, numbers here."""

    point: Any
    gradient: Any
    diagonal: Any
    step: Any
    value: Array
    slope: Array

    @classmethod
    def at(cls, derivatives: Any, point: Any, problems: Any, careful: bool, place: Any) -> "_State":
        """Evaluate problems, each at its own point, and find Newton's steps."""
        value, gradient, hessian = derivatives(point, problems, careful)
        step = place.newton_steps(hessian, gradient)
        slope = (step * gradient).sum(axis=1)
        diagonal = place.xp.einsum("ijj->ij", hessian)
        # Asking a device for numbers makes it wait, so all are asked for at once.
        numbers = place.to_host(place.xp.stack([value, slope]))
        return cls(point, gradient, diagonal, step, *numbers)

    def ahead(self, problems: Array, scale: Array, place: Any) -> Any:
        """Return the points of problems this many steps ahead; a whole one needs no numbers."""
        if len(problems) == len(self.value) and (scale == 1).all():
            return self.point + self.step
        chosen = place.indices(problems)
        # No step at all where there is none to take: it may not be a number.
        lengths = place.asarray(scale[problems])[:, None]
        steps = place.xp.where(lengths > 0, self.step[chosen], self.point[chosen] * 0)
        return self.point[chosen] + lengths * steps

    def replaced(self, problems: Array, chosen: Array, new: "_State", place: Any) -> "_State":
        """Return what is known with problems where they are now: `chosen` of the new ones."""
        if len(problems) == len(self.value):
            return new
        to, of = place.indices(problems), place.indices(chosen)
        vectors = [place.xp.asarray(part, copy=True) for part in self[:4]]
        for part, moved in zip(vectors, new[:4], strict=True):
            part[to] = moved[of]
        for part, moved in zip(self[4:], new[4:], strict=True):
            part[problems] = moved[chosen]
        return self._replace(**dict(zip(self._fields[:4], vectors, strict=True)))
