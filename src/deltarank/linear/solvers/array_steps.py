"""The vectors of L-BFGS as NumPy arrays, moved and aimed by compiled loops on all threads."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core import threads
from deltarank.linear.kernels.lbfgs import cholesky, descend, move
from deltarank.linear.solvers.lbfgs import Hessians
from deltarank.linear.solvers.states import Start

Array = NDArray[Any]
PROBLEMS_PER_TASK = 64
HESSIANS_PER_TASK = 8


class ArraySteps:
    """Points, gradients and histories; see `linear.solvers.lbfgs.Steps`.

    Parameters
    ----------
    start : Start
    memory : int
        Pairs (step, change of gradient) kept for each problem.
    """

    def __init__(self, start: Start, memory: int) -> None:
        n_problems, n_variables = start.point.shape
        self.point, self.gradient = start.known_point.copy(), start.known_gradient.copy()
        self.diagonal, self.direction = np.ones_like(self.point), np.zeros_like(self.point)
        self.slope = np.zeros(n_problems)
        history = (n_problems, memory, n_variables)
        # float32 halves the traffic; the pairs only shape the metric, not the minimum.
        self.histories = np.zeros(history, np.float32), np.zeros(history, np.float32)
        self.products, self.n_pairs = np.ones((n_problems, memory)), np.zeros(n_problems, np.int64)
        self.factors = np.empty((0, n_variables, n_variables))
        # The number of each problem's factor; -1 stands for the diagonal.
        self.slots = np.full(n_problems, -1)

    def of(self, problems: Array) -> Array:
        """Return indices as they are."""
        return problems

    def host(self, *values: Array) -> tuple[Array, ...]:
        """Return numbers as they are."""
        return values

    def points(self, problems: Array, lengths: Array | None = None) -> Array:
        """Return the points of problems, or those this many steps ahead."""
        if lengths is None:
            return self.point[problems]
        return self.point[problems] + lengths[:, None] * self.direction[problems]

    def accept(
        self, problems: Array, points: Array, gradient: Array, diagonal: Array, moved: bool
    ) -> None:
        """Move problems; if they `moved`, remember step and change of gradient."""
        self.diagonal[problems] = diagonal
        if not moved:
            self.point[problems], self.gradient[problems] = points, gradient
            return
        state = ((self.point, self.gradient), self.histories, self.products, self.n_pairs)
        blocks = threads.row_blocks(len(problems), PROBLEMS_PER_TASK)
        threads.run([partial(move, problems[b], points[b], gradient[b], *state) for b in blocks])

    def aim(self, problems: Array) -> Array:
        """Choose directions of descent; return their slopes."""
        known = (self.gradient, self.diagonal, (self.direction, self.slope))
        centre = (self.factors, self.slots)
        pairs = (self.histories, self.products, self.n_pairs)
        blocks = threads.row_blocks(len(problems), PROBLEMS_PER_TASK)
        threads.run([partial(descend, problems[b], *known, *centre, *pairs) for b in blocks])
        return self.slope[problems]

    def centre(self, problems: Array, hessians: Hessians, active: Array) -> None:
        """Let estimates of problems start from Hessians, and forget their pairs."""
        matrices, owner = hessians(self.point[problems], problems, self.diagonal[problems])
        blocks = threads.row_blocks(len(matrices), HESSIANS_PER_TASK)
        threads.run([partial(cholesky, matrices[b]) for b in blocks])
        others = np.setdiff1d(active[self.slots[active] >= 0], problems)
        kept, slots = np.unique(self.slots[others], return_inverse=True)
        self.slots[others] = slots + len(matrices)
        self.slots[problems] = owner
        self.factors = np.concatenate([matrices, self.factors[kept]])
        self.n_pairs[problems] = 0

    def result(self) -> tuple[Array, Array, Array]:
        """Return points, norms of gradients and diagonals."""
        return self.point, np.linalg.norm(self.gradient, axis=1), self.diagonal
