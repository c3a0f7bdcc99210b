"""Hessians of single labels, estimated from rows sampled by their curvature."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from deltarank.core import threads
from deltarank.core.blas import one_blas_thread
from deltarank.linear.rows.local import LocalPass
from deltarank.linear.rows.matrices import Array, Sample

# Rows sampled, a variable. The relative error of the Hessian is about 2 / sqrt(this).
ROWS_PER_VARIABLE = 12
# So many draws take every row, as often as its curvature says: no sampling error to speak of.
DRAWS_OF_ALL_ROWS = 10_000_000
# Rounds before a Hessian is worth having: earlier it would be stale at once.
MIN_PATIENCE = 6
# A pass over fewer problems than this takes as long as one over so many.
NARROW_PASS = 64
BYTES_OF_HESSIANS = 2**28


class SampledHessian:
    """The Hessians of a pass, as the solver asks for them.

    A label's Hessian is sum_i D_i x_i x_i^T with D_i = w_i c_i p_i (1 - p_i). For a rare label a
    few rows hold nearly all of D, so rows drawn in proportion to D give it at a small part of its
    cost: with 12 rows a variable, about three passes for all labels of mediamill.
    """

    def __init__(self, data: LocalPass) -> None:
        self._data = data
        n_rows = data.n_rows
        n_sampled = ROWS_PER_VARIABLE * data.shape[1]
        self._n_draws = n_sampled if n_rows > 2 * n_sampled else DRAWS_OF_ALL_ROWS
        self._cost = data.matrix.hessian_flops(min(n_rows, n_sampled))
        self._pass_cost = 2 * data.matrix.flops_per_score * n_rows
        self._at_once = BYTES_OF_HESSIANS // (8 * data.shape[1] ** 2)

    def due(self, n_waited: int, n_active: int) -> bool:
        """Tell whether Hessians cost no more than the rounds in which problems waited for one.

        Who has waited long will probably have to wait as long again, so this costs at most about
        twice what knowing the future would.
        """
        waited = n_waited * self._pass_cost * max(1.0, NARROW_PASS / n_active)
        return n_waited >= MIN_PATIENCE and n_active <= self._at_once and self._cost <= waited

    def __call__(self, points: Array, problems: Array, diagonals: Array) -> tuple[Array, Array]:
        """Return Hessians, shape (h, v, v), and which of them is each problem's, shape (p,).

        Folds of a frequent label share one, taken over all rows at the point of the first of
        them. A rare label's curvature sits in a few rows, so there each fold has its own.
        """
        data = self._data
        label, fold = np.divmod(problems, data.n_folds)
        shared = data.frequencies()[problems] >= data.shape[1]
        key = np.where(shared, label * data.n_folds, problems)
        _, first, owner = np.unique(key, return_index=True, return_inverse=True)
        spacing = diagonals[first, -1] / self._n_draws
        left_out = np.where(shared, -1, fold)[first]
        hessians = self._losses(points[first], problems[first], spacing, left_out)
        at = np.arange(data.shape[1] - 1)
        hessians[:, at, at] += 1 / data.C
        if data.penalize_intercept:
            direction = data.intercept_direction
            hessians += np.multiply.outer(direction, direction) / data.C
        return hessians, owner

    def _losses(self, points: Array, problems: Array, spacing: Array, left_out: Array) -> Array:
        """Return the Hessians of the losses, each without one fold, or of an average fold (-1)."""
        data = self._data
        with one_blas_thread():
            found = self._sample(points, problems, spacing)
            folds = [fold for fold, part in enumerate(data.parts) for _ in data.chunks(part)]
            parts = zip(found, spacing, left_out, strict=True)
            tasks = [partial(self._assemble, folds, *part) for part in parts]
            return np.array(threads.run(tasks))

    def _sample(
        self, points: Array, problems: Array, spacing: Array
    ) -> Iterable[tuple[Sample, ...]]:
        """Return, for each problem, the chunks' sampled rows and how often each was drawn."""
        data = self._data
        coef = data.matrix.coordinates.to_coef(points[:, :-1])
        shared = (data.cells(coef, points[:, -1], problems), spacing)
        tasks = [
            # A fold's spacing is of its own rows, so all rows may give a few more draws.
            partial(data.matrix.sample, rows, *shared, min(len(rows), 2 * self._n_draws))
            for part in data.parts
            for rows in data.chunks(part)
        ]
        return zip(*threads.run(tasks), strict=True)

    def _assemble(
        self, folds: list[int], found: tuple[Sample, ...], spacing: float, left_out: int
    ) -> Array:
        """Return the Hessian of the sampled rows outside one fold, or of an average fold (-1).

        `folds` tells the fold of each chunk that `found` has a sample of.
        """
        data = self._data
        average = data.n_folds > 1 and left_out < 0
        outside = [
            sample
            for sample, fold in zip(found, folds, strict=True)
            if average or data.n_folds == 1 or fold != left_out
        ]
        rows = np.concatenate([rows for rows, _ in outside])
        times = np.concatenate([times for _, times in outside])
        scale = 1 - 1 / data.n_folds if average else 1.0
        return data.matrix.hessian(rows, times * (scale * spacing))
