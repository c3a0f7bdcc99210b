"""Hessians of single labels, estimated from rows sampled by their curvature."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from deltarank import threads
from deltarank.passes.local import LocalPass, one_blas_thread
from deltarank.passes.matrices import Array, Sample

# Rows sampled, a variable. The relative error of the Hessian is about 2 / sqrt(this).
ROWS_PER_VARIABLE = 12
# So many draws take every row, as often as its curvature says: no sampling error to speak of.
DRAWS_OF_ALL_ROWS = 10_000_000
# Rounds before a Hessian is worth having: earlier it would be stale at once.
MIN_PATIENCE, MAX_PATIENCE = 6, 10**6
# A Hessian's products are blocked; a late pass is narrow or sparse and runs that much slower.
BLOCKING_GAIN = 8


class SampledHessian:
    """The Hessians of a pass, as the solver asks for them.

    A label's Hessian is sum_i D_i x_i x_i^T with D_i = w_i c_i p_i (1 - p_i). For a rare label a
    few rows hold nearly all of D, so rows drawn in proportion to D give it at a small part of its
    cost: with 12 rows a variable, about three passes for all labels of mediamill.
    """

    def __init__(self, data: LocalPass) -> None:
        self._data = data
        n_rows = sum(len(part) for part in data.parts)
        n_sampled = ROWS_PER_VARIABLE * data.shape[1]
        self._n_draws = n_sampled if n_rows > 2 * n_sampled else DRAWS_OF_ALL_ROWS
        flops = data.matrix.hessian_flops(min(n_rows, n_sampled))
        flops_per_pass = 2 * max(data.matrix.flops_per_score, 1.0) * max(n_rows, 1)
        passes = flops / (BLOCKING_GAIN * flops_per_pass)
        self.patience = int(np.ceil(np.clip(passes, MIN_PATIENCE, MAX_PATIENCE)))
        """Rounds after which a Hessian costs no more than the passes made so far."""

    def __call__(self, points: Array, problems: Array, diagonals: Array) -> tuple[Array, Array]:
        """Return Hessians, shape (h, v, v), and which of them is each problem's, shape (p,).

        Folds of a label share one, taken at the point of the first of them over all rows.
        """
        data = self._data
        label, first, owner = np.unique(
            problems // data.n_folds, return_index=True, return_inverse=True
        )
        spacing = diagonals[first, -1] / self._n_draws
        with one_blas_thread():
            found = self._sample(points[first], label * data.n_folds, spacing)
            tasks = [partial(self._assemble, f, s) for f, s in zip(found, spacing, strict=True)]
            hessians = np.array(threads.run(tasks))
        if data.n_folds > 1:
            hessians *= 1 - 1 / data.n_folds
        at = np.arange(data.shape[1] - 1)
        hessians[:, at, at] += 1 / data.C
        if data.penalize_intercept:
            hessians += (
                np.multiply.outer(data.intercept_direction, data.intercept_direction) / data.C
            )
        return hessians, owner

    def _sample(
        self, points: Array, problems: Array, spacing: Array
    ) -> Iterable[tuple[Sample, ...]]:
        """Return, for each problem, the chunks' sampled rows and how often each was drawn."""
        data = self._data
        coef = data.matrix.coordinates.to_coef(points[:, :-1])
        problem = data.matrix.problem(coef, points[:, -1])
        shared = (problem, data.weights, data.kernel_labels(problems), data.positive_cost, spacing)
        chunks = [rows for part in data.parts for rows in data.chunks(part)]
        tasks = [
            # A fold's spacing is of its own rows, so all rows may give a few more draws.
            partial(data.matrix.sample, rows, *shared, min(len(rows), 2 * self._n_draws))
            for rows in chunks
        ]
        return zip(*threads.run(tasks), strict=True)

    def _assemble(self, found: tuple[Sample, ...], spacing: float) -> Array:
        rows = np.concatenate([rows for rows, _ in found])
        times = np.concatenate([times for _, times in found])
        return self._data.matrix.hessian(rows, times * spacing)
