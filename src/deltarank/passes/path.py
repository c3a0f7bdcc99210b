"""Solve the problems of a pass: all labels at once, or along a path of penalties.

Labels are taken in blocks of like frequency, because labels of like frequency converge after
like numbers of passes; a block is as wide as a fixed amount of memory allows.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from deltarank.labels import LabelSets
from deltarank.passes.blas import one_blas_thread
from deltarank.passes.curvature import SampledHessian
from deltarank.passes.devices import find_device
from deltarank.passes.local import LocalPass
from deltarank.passes.matrices import Array
from deltarank.passes.small import SmallPass, is_small
from deltarank.progress import progress
from deltarank.solvers.lbfgs import Start, lbfgs
from deltarank.solvers.newton import newton
from deltarank.solvers.solution import Solution

if TYPE_CHECKING:
    from deltarank.passes.device import DevicePass

MEMORY = 10
BYTES_PER_BLOCK = 2**28
# A device has more memory, and likes wide products.
BYTES_PER_DEVICE_BLOCK = 2**34
# Multiplications of a pass below which launching kernels takes longer than they do: mediamill, 4e8,
# was cross-validated in 2.4 s by 16 cores and in 10 s by an H200.
WORTH_A_DEVICE = 2e9
Pass: TypeAlias = "LocalPass | SmallPass | DevicePass"


def place(
    X: Any, labels: LabelSets, weights: Array, *, device: str = "cpu", **options: Any
) -> Pass:
    """Return the pass for data of this size; for the options see `LocalPass`.

    With ``device="auto"`` data stay here, even where there is a device, if it would not pay.
    """
    small = is_small(X.shape[0], X.shape[1], labels.n_labels)
    pays = X.shape[0] * X.shape[1] * labels.n_labels >= WORTH_A_DEVICE
    target = find_device(device) if pays or device != "auto" else None
    if target is not None:
        from deltarank.passes.device import DevicePass

        return DevicePass(X, labels, weights, device=target, **options)
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
    return _SOLVERS[data.engine](data, tol, max_iter, start)


def _solve_small(data: SmallPass, tol: float, max_iter: int, start: Array | None) -> Solution:
    start = data.start() if start is None else start
    return newton(data.derivatives, start, tol=tol, max_iter=max_iter)


def _solve_local(data: LocalPass, tol: float, max_iter: int, start: Start | None) -> Solution:
    sampled = SampledHessian(data)
    blocks = _blocks(data, BYTES_PER_BLOCK)
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


def _solve_device(data: Any, tol: float, max_iter: int, start: Start | None) -> Solution:
    import torch

    from deltarank.solvers.device_lbfgs import device_lbfgs
    from deltarank.solvers.device_newton import device_newton

    limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
    blocks = _blocks(data, BYTES_PER_DEVICE_BLOCK)
    solutions = []
    for numbers in blocks:
        block = torch.as_tensor(numbers, device=data.device)
        begin = data.start(block) if start is None else start.of(block)
        evaluate = _restricted(data.evaluate, block)
        if data.is_newtonian:
            hessian = _restricted(data.hessian, block)
            solutions.append(device_newton(evaluate, hessian, begin, **limits))
        else:
            solutions.append(device_lbfgs(evaluate, begin, memory=MEMORY, **limits))
    order = torch.as_tensor(np.argsort(np.concatenate(blocks)), device=data.device)
    parts = (torch.cat(part)[order] for part in zip(*solutions, strict=True))
    return Solution(*(part.cpu().numpy() for part in parts))


_SOLVERS: dict[str, Callable[..., Solution]] = {
    "small": _solve_small,
    "local": _solve_local,
    "device": _solve_device,
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


def _blocks(data: Any, size: int) -> list[Array]:
    n_problems, n_variables = data.shape
    # Histories in float32, and eight vectors in float64.
    width = max(1, size // (n_variables * (8 * MEMORY + 64)))
    by_frequency = np.argsort(-data.frequencies(), kind="stable")
    return [np.sort(by_frequency[i : i + width]) for i in range(0, n_problems, width)]


def _restricted(function: Callable[..., Any], block: Array) -> Callable[..., Any]:
    """Return the function with problems counted within a block."""
    return lambda points, problems, *more: function(points, block[problems], *more)
