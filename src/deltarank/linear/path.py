"""Solve the problems of a pass: all labels at once, or along a path of penalties.

Labels are taken in blocks of like frequency, because labels of like frequency converge after
like numbers of passes; a block is as wide as a fixed amount of memory allows.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from deltarank.core.blas import one_blas_thread
from deltarank.core.devices import fitting_device, room_on_device
from deltarank.core.labels import LabelSets
from deltarank.core.progress import progress
from deltarank.linear.rows.curvature import SampledHessian
from deltarank.linear.rows.distributed import DistributedHessian, DistributedPass
from deltarank.linear.rows.local import LocalPass
from deltarank.linear.rows.matrices import Array
from deltarank.linear.rows.small import SmallPass, is_small
from deltarank.linear.solvers.lbfgs import lbfgs
from deltarank.linear.solvers.newton import newton
from deltarank.linear.solvers.solution import Solution
from deltarank.linear.solvers.states import Start, State

if TYPE_CHECKING:
    from deltarank.linear.rows.device import DevicePass
    from deltarank.linear.rows.device_small import DeviceSmallPass

MEMORY = 10
BYTES_PER_BLOCK = 2**28
# A device has more memory, and likes wide products.
BYTES_PER_DEVICE_BLOCK = 2**34
Pass: TypeAlias = "LocalPass | SmallPass | DevicePass | DeviceSmallPass"


def place(
    X: Any, labels: LabelSets, weights: Array, *, device: str = "cpu", **options: Any
) -> Pass:
    """Return the pass for data of this size; for the options see `LocalPass`.

    With ``device="auto"`` data stay here, even where there is a device, if it would not pay.
    """
    small = is_small(X.shape[0], X.shape[1], labels.n_labels)
    target = fitting_device(device, X.shape[0], X.shape[1], labels.n_labels)
    if target is not None:
        from deltarank.linear.rows import device_small
        from deltarank.linear.rows.device import DevicePass

        few = device_small.is_small(X, labels.n_labels, target)
        on_device: Any = device_small.DeviceSmallPass if few else DevicePass
        with room_on_device(target, f"{X.shape[0]} rows of {X.shape[1]} features"):
            placed: Pass = on_device(X, labels, weights, device=target, **options)
        return placed
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
    blocks = problem_blocks(data)
    solutions = []
    with progress("solving", data.shape[0]) as done:
        for block in blocks:
            done.each = len(block)
            begin = start_of(start, block)
            solutions.append(solve_block(data, block, tol=tol, max_iter=max_iter, start=begin))
    order = np.argsort(np.concatenate(blocks))
    return Solution(*(np.concatenate(part)[order] for part in zip(*solutions, strict=True)))


def start_of(start: Any, block: Array) -> Any:
    """Return the start of some problems from that of all, of either kind of pass, or None."""
    if start is None:
        return None
    return start.of(block) if isinstance(start, Start | State) else start[block]


def solve_block(
    data: Pass, block: Array, *, tol: float, max_iter: int, start: Any = None
) -> Solution:
    """Minimise the problems of one of the `problem_blocks`; `start` is theirs alone."""
    return _SOLVERS[data.engine](data, block, tol, max_iter, start)


def _solve_small(
    data: SmallPass, block: Array, tol: float, max_iter: int, start: Array | None
) -> Solution:
    start = data.start()[block] if start is None else start
    return newton(_restricted(data.derivatives, block), start, tol=tol, max_iter=max_iter)


def _solve_by_passes(
    data: LocalPass, block: Array, tol: float, max_iter: int, start: Start | State | None
) -> Solution:
    curvature = _HESSIANS[type(data)](data)
    with one_blas_thread():
        solution, state = lbfgs(
            _restricted(data.value_and_gradient, block),
            data.start(block) if start is None else start,
            tol=tol,
            max_iter=max_iter,
            memory=MEMORY,
            hessian=_restricted(curvature, block),
            due=curvature.due,
        )
    if data.remembers and len(block) == data.shape[0]:
        data.state = state
    return solution


def _solve_on_device(
    data: Any, block: Array, tol: float, max_iter: int, start: Start | None
) -> Solution:
    import torch

    from deltarank.linear.rows.device_curvature import sampled_hessians
    from deltarank.linear.solvers.device_lbfgs import device_lbfgs

    problems = torch.as_tensor(block, device=data.device)
    start = data.start(problems) if start is None else start
    evaluate = _restricted(data.evaluate, problems)
    hessian = _restricted(partial(sampled_hessians, data), problems)
    limits: dict[str, Any] = {"memory": MEMORY, "tol": tol, "max_iter": max_iter}
    found: Any = device_lbfgs(evaluate, start, hessian=hessian, **limits)
    return Solution(*(part.cpu().numpy() for part in found))


def _solve_small_on_device(
    data: Any, block: Array, tol: float, max_iter: int, start: Any
) -> Solution:
    from deltarank.linear.solvers.device_newton import device_newton

    start = data.start() if start is None else start
    return device_newton(data.derivatives, start, tol=tol, max_iter=max_iter)


_HESSIANS: dict[type, type[SampledHessian]] = {
    LocalPass: SampledHessian,
    DistributedPass: DistributedHessian,
}
_SOLVERS: dict[str, Callable[..., Solution]] = {
    "small": _solve_small,
    "local": _solve_by_passes,
    "distributed": _solve_by_passes,
    "device": _solve_on_device,
    "device_small": _solve_small_on_device,
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


def problem_blocks(data: Any, *, at_least: int = 1) -> list[Array]:
    """Cut the problems into blocks to be solved one after the other, or each on its own.

    Parameters
    ----------
    data : Pass
    at_least : int
        How many blocks, where there are as many problems.
    """
    n_problems, n_variables = data.shape
    if data.engine in ("small", "device_small"):
        return [np.arange(n_problems)]
    # Histories in float32, and eight vectors in float64.
    size = BYTES_PER_DEVICE_BLOCK if data.engine == "device" else BYTES_PER_BLOCK
    width = size // (n_variables * (8 * MEMORY + 64))
    width = max(1, min(width, -(-n_problems // at_least)))
    by_frequency = np.argsort(-data.frequencies(), kind="stable")
    return [np.sort(by_frequency[i : i + width]) for i in range(0, n_problems, width)]


def _restricted(function: Callable[..., Any], block: Array) -> Callable[..., Any]:
    """Return the function with problems counted within a block."""
    return lambda points, problems, *more: function(points, block[problems], *more)
