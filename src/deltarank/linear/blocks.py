"""Labels fitted block by block, each block a job of its own, and joined in the end."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from deltarank.core.blas import one_blas_thread
from deltarank.core.progress import progress
from deltarank.linear.checkpoint import Checkpoint
from deltarank.linear.coefficients import joined, pruned
from deltarank.linear.fingerprint import fingerprint
from deltarank.linear.path import Pass, problem_blocks, solve_block, start_of


class Fitted(NamedTuple):
    """Coefficients of some labels and how they were found, a row a label."""

    coef: Any
    intercept: NDArray[Any]
    value: NDArray[np.float64]
    gradient_norm: NDArray[np.float64]
    n_iter: NDArray[np.int64]
    converged: NDArray[np.bool_]
    prune_effect: NDArray[np.float64]


class Options(NamedTuple):
    """How blocks are solved: see `LogisticRanker`."""

    tol: float
    max_iter: int
    prune: float | None = None


def fit_blocks(
    data: Pass,
    options: Options,
    *,
    start: Any = None,
    n_jobs: int | None = None,
    checkpoint: str | None = None,
) -> Fitted:
    """Fit all labels of a pass.

    Parameters
    ----------
    data : Pass
    options : Options
    start : optional
        As in `deltarank.linear.path.solve`.
    n_jobs : int or None
        Jobs at a time, through joblib and the backend that is set there.
    checkpoint : str or None
        Folder for blocks that are done; those found there are not fitted again.
    """
    # The workers of a cluster are busy with every single block, and so is a device.
    n_jobs = 1 if data.engine in ("distributed", "device", "device_small") else n_jobs
    blocks = problem_blocks(data, at_least=effective_n_jobs(n_jobs))
    done: dict[int, Fitted] = {}
    kept = None
    if checkpoint is not None:
        kept = Checkpoint(checkpoint, fingerprint(data, blocks, start, **options._asdict()))
        found = {number: kept.load(number) for number in range(len(blocks))}
        done = {number: Fitted(**block) for number, block in found.items() if block is not None}
    todo = [number for number in range(len(blocks)) if number not in done]
    n_done = sum(len(part.intercept) for part in done.values())
    with progress("fitting labels", total=data.shape[0]) as report:
        report(n_done)
        sizes = iter([len(blocks[number]) for number in todo])
        report.each = next(sizes, 0)
        for number, part in zip(
            todo, _fit(data, blocks, todo, options, start, n_jobs), strict=True
        ):
            report.each = next(sizes, 0)
            if kept is not None:
                kept.save(number, part._asdict())
            done[number] = part
            n_done += len(part.intercept)
            report(n_done)
    order = np.argsort(np.concatenate(blocks))
    fields = zip(*(done[number] for number in range(len(blocks))), strict=True)
    return Fitted(*(joined(list(field), order) for field in fields))


def _fit(
    data: Pass, blocks: list[Any], todo: list[int], options: Options, start: Any, n_jobs: int | None
) -> Iterator[Fitted]:
    jobs = (
        delayed(_fit_block)(data, blocks[number], start_of(start, blocks[number]), options)
        for number in todo
    )
    # Held here too: jobs in threads would put each other's settings back in any order.
    with one_blas_thread():
        yield from Parallel(n_jobs=n_jobs if len(todo) > 1 else 1, return_as="generator")(jobs)


def _fit_block(data: Pass, block: NDArray[Any], start: Any, options: Options) -> Fitted:
    found = solve_block(data, block, tol=options.tol, max_iter=options.max_iter, start=start)
    coef, intercept = data.to_features(found.point)
    effect = np.zeros(len(block))
    if options.prune is not None:
        coef, effect = pruned(coef.astype(data.dtype), options.prune)
    how = (found.value, found.gradient_norm, found.n_iter, found.converged)
    return Fitted(coef, intercept, *how, effect)
