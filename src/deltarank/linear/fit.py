"""The one driver of fits: problems in blocks, each a job of its own, kept in a folder, joined.

Blocks hold labels of like frequency, because these converge after like numbers of passes; a block
is as wide as the memory that its place gives it allows. Fits and cross-validations, of any loss and
wherever rows lie, all go through `solve_blocks`.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from deltarank.core import memory
from deltarank.core.blas import one_blas_thread
from deltarank.core.progress import progress
from deltarank.linear.checkpoint import Checkpoint
from deltarank.linear.coefficients import joined, pruned
from deltarank.linear.kernels.lanes import LANES
from deltarank.linear.objective import Objective
from deltarank.linear.rows.dual import Ascent
from deltarank.linear.solvers.lbfgs import lbfgs
from deltarank.linear.solvers.newton import newton
from deltarank.linear.solvers.solution import Solution
from deltarank.linear.solvers.states import Start

Array = NDArray[Any]
# L-BFGS keeps this many pairs (step, change of gradient) of each problem.
MEMORY = 10
# After this many epochs of dual coordinate ascent passes are likely to be quicker.
PATIENCE = 100
TOO_LARGE = (
    "keep the larger coefficients only (prune), fit fewer labels (such as those of five rows or "
    "more), or take fewer features"
)


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
    if objective.takes_dual(objective.C):
        return _ascend(objective, problems, options, start)
    return _descend(objective, problems, options, start)


def _descend(
    objective: Objective, problems: Array, options: Options, start: Start | None
) -> Solution:
    """Minimise by passes over all cells: Newton's method on small data, else L-BFGS."""
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


def _ascend(
    objective: Objective, problems: Array, options: Options, start: Start | None
) -> Solution:
    """Minimise by dual coordinate ascent, and by passes what is slow to converge that way.

    The variables are the features as they are.
    """
    n_epochs = min(options.max_iter, PATIENCE)
    ascent = Ascent(objective.penalize_intercept, options.tol, n_epochs)
    begin = None if start is None else start.point
    points, n_iter, converged = objective.rows.dual.solve(problems, objective.C, ascent, begin)
    points = points.astype(np.float64)
    evaluation = objective.evaluate(points, problems)
    norms = np.linalg.norm(evaluation.gradient, axis=1)
    solution = Solution(points, evaluation.value, norms, n_iter, converged, evaluation.diagonal)
    late = np.flatnonzero(~solution.converged)
    if not late.size or options.max_iter <= n_epochs:
        return solution
    near = Start(points[late], points[late], evaluation.gradient[late], near=True)
    passes = options._replace(max_iter=options.max_iter - n_epochs)
    rest = _descend(objective, problems[late], passes, near)
    for whole, part in zip(solution, rest, strict=True):
        whole[late] = part
    solution.n_iter[late] += n_epochs
    return solution


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
    n_problems = objective.shape[0]
    if objective.rows.takes_newton:
        return [np.arange(n_problems)]
    width = block_bytes(objective) // bytes_per_problem(objective)
    frequencies = np.repeat(objective.rows.frequencies, objective.rows.n_folds)
    return cut(frequencies, max(1, min(width, -(-n_problems // at_least))))


def cut(frequencies: Array, width: int) -> list[Array]:
    """Cut problems into blocks of like frequency, each of this many.

    Where they are that wide, of a multiple of the lanes that dual coordinate ascent fills: with
    any amount of memory the same labels are then solved side by side.
    """
    width = width if width < LANES else width // LANES * LANES
    by_frequency = np.argsort(-frequencies, kind="stable")
    return [np.sort(by_frequency[i : i + width]) for i in range(0, len(frequencies), width)]


def block_bytes(objective: Objective) -> int:
    """Return the memory that a block of problems may take."""
    return min(objective.rows.bytes_per_block, memory.budget())


def bytes_per_problem(objective: Objective) -> int:
    """Return the memory that a solver needs for each problem: histories in float32, and vectors."""
    return objective.shape[1] * (8 * MEMORY + 64)


def fit(objective: Objective, options: Options, start: Start | None = None) -> Fitted:
    """Fit all labels; with ``options.prune`` small coefficients go as soon as a block is solved."""
    (n_labels, n_variables), dtype = objective.shape, np.dtype(objective.rows.dtype)
    # Coefficients that are left out cannot be foretold; the others are held twice while joined.
    kept = 0 if options.prune is not None else 2 * n_labels * n_variables * dtype.itemsize
    one_problem = bytes_per_problem(objective)
    memory.require(
        kept + max(one_problem, min(block_bytes(objective), n_labels * one_problem)),
        f"a fit of {n_labels} labels and {n_variables - 1} features",
        TOO_LARGE,
    )
    fitted: Fitted = solve_blocks(objective, options, FITS, start)
    return fitted


def _fit_block(objective: Objective, block: Array, options: Options, start: Start | None) -> Fitted:
    """Return the coefficients of a block of labels."""
    solution = solve(objective, block, options, start)
    coef, intercept = objective.to_features(solution.point)
    coef, effect = coef.astype(objective.rows.dtype), np.zeros(len(intercept))
    if options.prune is not None:
        coef, effect = pruned(coef, options.prune)
    how = (solution.value, solution.gradient_norm, solution.n_iter, solution.converged)
    return Fitted(coef, intercept, *how, effect)


class Work(NamedTuple):
    """What is done with every block of problems.

    Attributes
    ----------
    run : callable
        ``(objective, block, options, start of the block) -> kind``, where the block is solved.
    kind : type
        A named tuple of arrays with one row per problem: those of all blocks are joined.
    settings : object
        Whatever else decides what comes out, for JSON.
    """

    run: Callable[[Objective, Array, Options, Start | None], Any]
    kind: Any
    settings: Any = None


FITS, SOLUTIONS = Work(_fit_block, Fitted), Work(solve, Solution)


def solve_blocks(
    objective: Objective,
    options: Options,
    work: Work,
    start: Start | None = None,
    blocks: list[Array] | None = None,
) -> Any:
    """Do some work on all problems, block by block.

    Parameters
    ----------
    objective : Objective
    options : Options
        With ``n_jobs`` blocks are jobs of joblib, where the rows can be sent to them; with
        ``checkpoint`` those found in that folder are not solved again.
    work : Work
    start : Start, optional
        Of all problems; by default the objective's own.
    blocks : list of ndarray, optional
        By default `blocks_of` the objective.
    """
    n_jobs = options.n_jobs if objective.rows.in_jobs else 1
    if blocks is None:
        blocks = blocks_of(objective, at_least=effective_n_jobs(n_jobs))
    n_problems = sum(map(len, blocks))
    kept: Any = nullcontext()
    if options.checkpoint is not None:
        identity = fingerprint(objective, blocks, start, options, work)
        kept = Checkpoint(options.checkpoint, identity)
    with kept, progress("fitting labels", total=n_problems) as report:
        done = _blocks_done(kept, len(blocks), work.kind)
        todo = [number for number in range(len(blocks)) if number not in done]
        n_done = n_problems - sum(len(blocks[number]) for number in todo)
        report(n_done)
        report.each = len(blocks[todo[0]]) if todo else 0
        jobs = _jobs(objective, options, work, start, [blocks[number] for number in todo])
        for place, part in enumerate(_run(jobs, n_jobs if len(todo) > 1 else 1)):
            report.each = len(blocks[todo[place + 1]]) if place + 1 < len(todo) else 0
            if isinstance(kept, Checkpoint):
                kept.save(todo[place], part._asdict())
            done[todo[place]] = part
            n_done += len(blocks[todo[place]])
            report(n_done)
    order = np.argsort(np.concatenate(blocks))
    fields = zip(*(done[number] for number in range(len(blocks))), strict=True)
    done.clear()
    return work.kind(*(joined(list(field), order) for field in fields))


def _blocks_done(kept: Any, n_blocks: int, kind: type) -> dict[int, Any]:
    """Return the blocks that an earlier fit has left, by their numbers."""
    if not isinstance(kept, Checkpoint):
        return {}
    kept_blocks = {number: kept.load(number) for number in range(n_blocks)}
    return {number: kind(**part) for number, part in kept_blocks.items() if part is not None}


def _jobs(
    objective: Objective, options: Options, work: Work, start: Start | None, blocks: list[Array]
) -> Iterator[Any]:
    for block in blocks:
        begin = None if start is None else start.of(objective.rows.indices(block))
        yield delayed(work.run)(objective, block, options, begin)


def _run(jobs: Iterable[Any], n_jobs: int | None) -> Iterator[Any]:
    # Held here too: jobs in threads would put each other's settings back in any order.
    with one_blas_thread():
        yield from Parallel(n_jobs=n_jobs, return_as="generator")(jobs)


def solve_path(
    objective: Objective, Cs: Iterable[float], options: Options, problems: Array | None = None
) -> Iterator[tuple[Objective, Solution]]:
    """Yield the objective and its solution at each C, each one started from the one before.

    Ascending values of C are cheapest: the first solution is close to constant scores. All problems
    are solved in blocks, unless `problems` names some to be solved together.
    """
    solution, previous = None, objective
    for C in Cs:
        current = objective.with_C(C)
        start = None if solution is None else current.continued(solution, previous.C)
        if problems is None:
            here = within(options, f"C={C:g}")
            solution = solve_blocks(current, here, SOLUTIONS, start)
        else:
            solution = solve(current, problems, options, start)
        previous = current
        yield current, solution


def within(options: Options, name: str) -> Options:
    """Return the options with a folder of its own, within that of all, for one of several fits."""
    if options.checkpoint is None:
        return options
    return options._replace(checkpoint=f"{options.checkpoint}/{name}")


def fingerprint(
    objective: Objective, blocks: list[Array], start: Start | None, options: Options, work: Work
) -> str:
    """Return a checksum of all that decides what blocks of problems are solved to."""
    rows, digest = objective.rows, hashlib.blake2b(digest_size=32)
    limits = (options.tol, options.max_iter, options.prune)
    loss = rows.loss.value(np.linspace(-3.0, 3.0, 7)).tolist()
    weights = objective.label_weights
    by_label = None if weights is None else weights.tolist()
    how = (objective.C, objective.penalize_intercept, by_label, loss, limits, work.settings)
    settings = [objective.shape, *how]
    digest.update(json.dumps(settings).encode())
    starts = () if start is None else [rows.to_host(part) for part in start[:3]]
    for array in (*blocks, *starts):
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    digest.update(rows.digest())
    return digest.hexdigest()
