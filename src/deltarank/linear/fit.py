"""The one driver of fits: problems in blocks, each a job of its own, kept in a folder, joined.

Blocks hold labels of like frequency, because these converge after like numbers of passes; a block
is as wide as the memory that its place gives it allows. Fits and cross-validations, of any loss and
wherever rows lie, all go through `solve_blocks`.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from deltarank.core.blas import one_blas_thread
from deltarank.core.progress import progress
from deltarank.linear.checkpoint import Checkpoint
from deltarank.linear.coefficients import joined, pruned
from deltarank.linear.objective import Objective
from deltarank.linear.solvers.lbfgs import lbfgs
from deltarank.linear.solvers.newton import newton
from deltarank.linear.solvers.solution import Solution
from deltarank.linear.solvers.states import Start

Array = NDArray[Any]
# Pairs (step, change of gradient) that L-BFGS keeps of each problem.
MEMORY = 10


class Fitted(NamedTuple):
    """Coefficients of some labels and how they were found, one row per label."""

    coef: Any
    intercept: Array
    value: NDArray[np.float64]
    gradient_norm: NDArray[np.float64]
    n_iter: NDArray[np.int64]
    converged: NDArray[np.bool_]
    prune_effect: NDArray[np.float64]


class Options(NamedTuple):
    """How problems are solved: see `LogisticRanker`."""

    tol: float
    max_iter: int
    prune: float | None = None
    n_jobs: int | None = None
    checkpoint: str | None = None


def solve(
    objective: Objective, problems: Array, options: Options, start: Start | None = None
) -> Solution:
    """Minimise some of the problems together, to a relative gap of about ``options.tol``.

    The solver is chosen by what the rows say of themselves. `start` is of these problems alone.
    """
    rows = objective.rows
    limits: dict[str, Any] = {"tol": options.tol, "max_iter": options.max_iter}
    chosen = rows.indices(problems)
    begin = objective.start(chosen) if start is None else start
    if rows.takes_newton:
        return newton(_restricted(objective.derivatives, chosen), begin.point, rows, **limits)
    with one_blas_thread():
        return lbfgs(
            _restricted(objective.evaluate, chosen),
            begin,
            rows.make_steps(begin, MEMORY),
            stages=rows.stages,
            hessians=_restricted(objective.hessians, chosen),
            hessians_due=rows.hessians_due,
            **limits,
        )


def _restricted(function: Callable[..., Any], problems: Any) -> Callable[..., Any]:
    """Return the function with problems counted within some of them."""
    return lambda points, which, *more: function(points, problems[which], *more)


def blocks_of(objective: Objective, *, at_least: int = 1) -> list[Array]:
    """Cut the problems into blocks, to be solved one after the other or each on its own.

    Parameters
    ----------
    objective : Objective
    at_least : int
        How many blocks, where there are as many problems.
    """
    rows, (n_problems, n_variables) = objective.rows, objective.shape
    if rows.takes_newton:
        return [np.arange(n_problems)]
    # Histories in float32, and eight vectors in float64.
    width = rows.bytes_per_block // (n_variables * (8 * MEMORY + 64))
    width = max(1, min(width, -(-n_problems // at_least)))
    frequencies = np.repeat(rows.frequencies, rows.n_folds)
    by_frequency = np.argsort(-frequencies, kind="stable")
    return [np.sort(by_frequency[i : i + width]) for i in range(0, n_problems, width)]


def fit(objective: Objective, options: Options, start: Start | None = None) -> Fitted:
    """Fit all labels; with ``options.prune`` small coefficients go as soon as a block is solved."""
    fitted: Fitted = solve_blocks(objective, options, to_fitted, start)
    return fitted


def to_fitted(objective: Objective, solution: Solution, options: Options) -> Fitted:
    """Return the coefficients of a block that is solved."""
    coef, intercept = objective.to_features(solution.point)
    effect = np.zeros(len(intercept))
    if options.prune is not None:
        coef, effect = pruned(coef.astype(objective.rows.dtype), options.prune)
    how = (solution.value, solution.gradient_norm, solution.n_iter, solution.converged)
    return Fitted(coef, intercept, *how, effect)


def to_solution(objective: Objective, solution: Solution, options: Options) -> Solution:
    """Return a block as it was solved, for whoever goes on from there."""
    return solution


def solve_blocks(
    objective: Objective,
    options: Options,
    finish: Callable[[Objective, Solution, Options], Any],
    start: Start | None = None,
) -> Any:
    """Solve all problems, block by block.

    Parameters
    ----------
    objective : Objective
    options : Options
        With ``n_jobs`` blocks are jobs of joblib, where the rows can be sent to them; with
        ``checkpoint`` those found in that folder are not solved again.
    finish : callable
        What becomes of a block where it was solved: `to_fitted` or `to_solution`.
    start : Start, optional
        Of all problems; by default the objective's own.
    """
    n_jobs = options.n_jobs if objective.rows.in_jobs else 1
    blocks = blocks_of(objective, at_least=effective_n_jobs(n_jobs))
    kept = None
    done: dict[int, Any] = {}
    if options.checkpoint is not None:
        kept = Checkpoint(options.checkpoint, fingerprint(objective, blocks, start, options))
        done = {number: kept.load(number) for number in range(len(blocks))}
        done = {number: _KINDS[finish](**part) for number, part in done.items() if part is not None}
    todo = [number for number in range(len(blocks)) if number not in done]
    n_done = objective.shape[0] - sum(len(blocks[number]) for number in todo)
    with progress("fitting labels", total=objective.shape[0]) as report:
        report(n_done)
        report.each = len(blocks[todo[0]]) if todo else 0
        jobs = _jobs(objective, options, finish, start, [blocks[number] for number in todo])
        for place, part in enumerate(_run(jobs, n_jobs if len(todo) > 1 else 1)):
            report.each = len(blocks[todo[place + 1]]) if place + 1 < len(todo) else 0
            if kept is not None:
                kept.save(todo[place], part._asdict())
            done[todo[place]] = part
            n_done += len(blocks[todo[place]])
            report(n_done)
    order = np.argsort(np.concatenate(blocks))
    fields = zip(*(done[number] for number in range(len(blocks))), strict=True)
    return _KINDS[finish](*(joined(list(field), order) for field in fields))


# What a block becomes, for reading it back.
_KINDS: dict[Callable[..., Any], type] = {to_fitted: Fitted, to_solution: Solution}


def _jobs(
    objective: Objective, options: Options, finish: Any, start: Start | None, blocks: list[Array]
) -> Iterator[Any]:
    for block in blocks:
        begin = None if start is None else start.of(objective.rows.indices(block))
        yield delayed(_solve_block)(objective, block, options, finish, begin)


def _run(jobs: Iterable[Any], n_jobs: int | None) -> Iterator[Any]:
    # Held here too: jobs in threads would put each other's settings back in any order.
    with one_blas_thread():
        yield from Parallel(n_jobs=n_jobs, return_as="generator")(jobs)


def _solve_block(
    objective: Objective, block: Array, options: Options, finish: Any, start: Start | None
) -> Any:
    return finish(objective, solve(objective, block, options, start), options)


def solve_path(
    objective: Objective, Cs: Iterable[float], options: Options
) -> Iterator[tuple[Objective, Solution]]:
    """Yield the objective and its solution at each C, each one started from the one before.

    Ascending values of C are cheapest: the first solution is close to constant scores.
    """
    solution, previous = None, objective
    for C in Cs:
        current = objective.with_C(C)
        start = None if solution is None else current.continued(solution, previous.C)
        here = within(options, f"C={C:g}")
        solution, previous = solve_blocks(current, here, to_solution, start), current
        yield current, solution


def within(options: Options, name: str) -> Options:
    """Return the options with a folder of its own, within that of all, for one of several fits."""
    if options.checkpoint is None:
        return options
    return options._replace(checkpoint=f"{options.checkpoint}/{name}")


def fingerprint(
    objective: Objective, blocks: list[Array], start: Start | None, options: Options
) -> str:
    """Return a checksum of all that decides what blocks of problems are solved to."""
    rows, digest = objective.rows, hashlib.blake2b(digest_size=32)
    limits = (options.tol, options.max_iter, options.prune)
    loss = rows.loss.value(np.linspace(-3.0, 3.0, 7)).tolist()
    settings = [objective.shape, objective.C, objective.penalize_intercept, loss, limits]
    digest.update(json.dumps(settings).encode())
    starts = () if start is None else [rows.to_host(part) for part in start[:3]]
    for array in (*blocks, *starts):
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    digest.update(rows.digest())
    return digest.hexdigest()
