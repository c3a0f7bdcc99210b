"""Solve the problems of a pass: all labels at once, or along a path of penalties.

Labels are taken in blocks of like frequency, because labels of like frequency converge after
like numbers of passes; a block is as wide as a fixed amount of memory allows.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from deltarank.labels import LabelSets
from deltarank.passes.blas import one_blas_thread
from deltarank.passes.curvature import SampledHessian
from deltarank.passes.local import LocalPass
from deltarank.passes.matrices import Array
from deltarank.passes.small import SmallPass, is_small
from deltarank.progress import progress
from deltarank.solvers.lbfgs import Start, lbfgs
from deltarank.solvers.newton import newton
from deltarank.solvers.solution import Solution

MEMORY = 10
BYTES_PER_BLOCK = 2**28
Pass = LocalPass | SmallPass


def place(X: Any, labels: LabelSets, weights: Array, **options: Any) -> Pass:
    """Return the pass for data of this size; for the options see `LocalPass`."""
    small = is_small(X.shape[0], X.shape[1], labels.n_labels)
    kind = SmallPass if small else LocalPass.over
    return kind(X, labels, weights, **options)


def solve(data: Pass, *, tol: float, max_iter: int, start: Any = None) -> Solution:
    """Minimise every problem of a pass to a relative gap of about ``tol``.

    Parameters
    ----------
    data : LocalPass or SmallPass
    tol : float
        Largest estimated gap to the minimum, relative to the objective.
    max_iter : int
        Largest number of passes a block of problems may take.
    start : optional
        From the pass's `start_at` or `continued`; by default its own start.
    """
    return _SOLVERS[type(data)](data, tol, max_iter, start)


def _solve_small(data: SmallPass, tol: float, max_iter: int, start: Array | None) -> Solution:
    start = data.start() if start is None else start
    return newton(data.derivatives, start, tol=tol, max_iter=max_iter)


def _solve_local(data: LocalPass, tol: float, max_iter: int, start: Start | None) -> Solution:
    sampled = SampledHessian(data)
    blocks = _blocks(data)
    solutions = []
    with one_blas_thread(), progress("solving", data.shape[0]) as done:
        for block in blocks:
            done.each = len(block)
            begin = data.start(block) if start is None else start.of(block)
            solutions.append(
                lbfgs(
                    _restricted(data.value_and_gradient, block),
                    begin,
                    tol=tol,
                    max_iter=max_iter,
                    memory=MEMORY,
                    hessian=_restricted(sampled, block),
                    due=sampled.due,
                )
            )
    order = np.argsort(np.concatenate(blocks))
    return Solution(*(np.concatenate(part)[order] for part in zip(*solutions, strict=True)))


_SOLVERS: dict[type, Callable[..., Solution]] = {
    SmallPass: _solve_small,
    LocalPass: _solve_local,
}


def solve_path(
    data: Pass, Cs: Iterable[float], *, tol: float, max_iter: int
) -> Iterator[tuple[Pass, Solution]]:
    """Yield the pass and its solution at each C, each one started from the one before.

    Ascending values of C are cheapest: the first solution is close to constant scores.
    """
    solution, previous = None, data
    for C in Cs:
        current = data.at(C)
        start = None if solution is None else current.continued(solution, previous.C)
        solution, previous = solve(current, tol=tol, max_iter=max_iter, start=start), current
        yield current, solution


def _blocks(data: LocalPass) -> list[Array]:
    n_problems, n_variables = data.shape
    # Histories in float32, and eight vectors in float64.
    width = max(1, BYTES_PER_BLOCK // (n_variables * (8 * MEMORY + 64)))
    by_frequency = np.argsort(-data.frequencies(), kind="stable")
    return [np.sort(by_frequency[i : i + width]) for i in range(0, n_problems, width)]


def _restricted(function: Callable[..., Any], block: Array) -> Callable[..., Any]:
    """Return the function with problems counted within a block."""
    return lambda points, problems, *more: function(points, block[problems], *more)
