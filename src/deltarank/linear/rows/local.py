"""Rows in this machine's memory, dense or CSR.

Rows are taken in blocks that stay in cache, so no (n, m) array is ever held; blocks are grouped
into chunks, one task per chunk, that depend on the data alone, so that any number of threads gives
the same bits.
"""

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from deltarank.core import threads
from deltarank.core.blas import one_blas_thread
from deltarank.core.caching import cached_property
from deltarank.core.labels import LabelSets
from deltarank.core.losses import LOSSES, Loss
from deltarank.linear.coordinates import Moments
from deltarank.linear.rows.cells import Cells, KernelLabels
from deltarank.linear.rows.csr import CSRMatrix
from deltarank.linear.rows.dense import DenseMatrix
from deltarank.linear.rows.dual import DualProblems
from deltarank.linear.rows.label_masses import sums_by_label
from deltarank.linear.rows.matrices import (
    Array,
    Problem,
    Sample,
    chunks,
    digest_of,
    loss_chunk,
    loss_sample,
)
from deltarank.linear.rows.numpy_place import MatrixPlace
from deltarank.linear.rows.protocol import Sums
from deltarank.linear.rows.tables import Tables, are_small
from deltarank.linear.rows.tuning import LOCAL
from deltarank.linear.solvers.precision import Precision


class LocalRows(MatrixPlace):
    """Rows in this machine's memory; see `linear.rows.protocol.Rows`.

    Parameters
    ----------
    X : dense or CSR matrix
    labels : LabelSets
    weights : ndarray of shape (n,)
        Weights of the rows; rows of weight zero are never read.
    positive_cost : float or ndarray of shape (n,)
        What a relevant cell costs, one for all rows or one per row; the others cost one.
    label_cost : float or ndarray of shape (m,)
        What it costs besides by its label.
    loss : Loss
    moments : Moments, optional
        Of other rows, to share their units.
    """

    in_jobs = True

    def __init__(
        self,
        X: Any,
        labels: LabelSets,
        weights: Array,
        *,
        positive_cost: float | Array = 1.0,
        label_cost: float | Array = 1.0,
        loss: Loss = LOSSES["logistic"],
        moments: Moments | None = None,
    ) -> None:
        kind = matrix_kind(X)
        self.X, self.labels, self.loss = X, labels, loss
        self._exact_weights, self._exact_cost = weights, positive_cost
        self.label_cost = np.broadcast_to(label_cost, labels.n_labels).astype(np.float64)
        self.weights = weights.astype(np.float32)
        self.positive_cost = np.broadcast_to(positive_cost, len(weights)).astype(np.float32)
        self._marked, is_relevant = labels.with_unknown()
        by_label = self.label_cost.astype(np.float32)[self._marked.members]
        costs = self.positive_cost[self._marked.rows] * by_label
        self._costs = np.where(is_relevant, costs, np.float32(0.0))
        counted = np.flatnonzero(self.weights > 0)
        self._moments = kind.moments(X, counted, weights) if moments is None else moments
        self.matrix: Any = kind(X, self._moments)
        self.parts, self.n_folds = [counted], 1
        # The rows of each fold, also those that do not count in fits.
        self.held_out = [np.empty(0, np.int64)]
        self.n_labels, self.n_features = labels.n_labels, X.shape[1]
        self.has_costs = bool((self.positive_cost != 1).any() or (self.label_cost != 1).any())
        self.has_unknown = labels.unknown is not None
        self.takes_newton = are_small(X.shape[0], X.shape[1], labels.n_labels)

    @property
    def dtype(self) -> Any:
        """Kind of numbers the features are."""
        return self.matrix.dtype

    @property
    def center(self) -> Array:
        """Weighted mean of the features."""
        return self.matrix.center

    @property
    def scale(self) -> Array:
        """Unit of each feature."""
        return self.matrix.scale

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows that count."""
        return sum(len(part) for part in self.parts)

    @cached_property
    def frequencies(self) -> Array:
        """How many rows hold each label."""
        return np.bincount(self.labels.members, minlength=self.n_labels)

    def moments(self) -> Moments:
        """Return the moments of the features as they were given."""
        return self._moments

    def with_folds(self, folds: Array, n_folds: int | None = None) -> "LocalRows":
        """Return the same rows with folds held out."""
        other = copy.copy(self)
        other.n_folds = int(folds.max()) + 1 if n_folds is None else n_folds
        (rows,) = self.parts
        other.parts = [rows[folds[rows] == fold] for fold in range(other.n_folds)]
        other.held_out = [np.flatnonzero(folds == fold) for fold in range(other.n_folds)]
        for name in ("tables", "dual", "_masses"):
            other.__dict__.pop(name, None)
        return other

    def masses(self, problems: Array) -> Array:
        """Return the weights (3, p) of relevant cells, of their costs, and of the other cells."""
        return self._masses[:, problems]

    @cached_property
    def _masses(self) -> Array:
        """Those of all problems: every block of labels asks for some of them."""
        masses = sums_by_label(self.labels, self.parts, self.weights, self.positive_cost)
        masses[1] *= np.repeat(self.label_cost, self.n_folds)
        return masses

    def counts(self) -> Array:
        """Return the numbers (3, p) of rows that count: relevant, the same again, and others."""
        ones = np.ones_like(self.weights)
        return sums_by_label(self.labels, self.parts, (self.weights > 0) * 1.0, ones)

    def label_sums(self, problems: Array, cells: str) -> Array:
        """Return the sums (p, d) of the rows of "relevant", "costly" or "unknown" cells."""
        labels = self.labels.unknown if cells == "unknown" else self.labels
        if labels is None:  # as in some chunks of a cluster
            return np.zeros((len(problems), self.n_features))
        weights = self.weights * self.positive_cost if cells == "costly" else self.weights
        mass, sums = np.zeros(len(problems)), np.zeros((len(problems), self.n_features))
        for part, columns in self._groups(problems):
            listed = self._kernel_labels(labels, problems[columns])
            shared = (weights, listed, len(problems[columns]))
            tasks = [partial(self.matrix.label_sums, rows, *shared) for rows in chunks(part)]
            # Every chunk's sums are a matrix of all problems: only some wait to be added up.
            at_a_time = max(1, LOCAL.bytes_of_gradients // (8 * sums[columns].size))
            for some in threads.row_blocks(len(tasks), at_a_time):
                for masses, row_sums in threads.run(tasks[some]):
                    mass[columns] += masses
                    sums[columns] += row_sums
        centred = self.matrix.centred(sums, mass)
        if cells == "costly":
            centred = centred * self.label_cost[problems // self.n_folds, None]
        return centred

    def evaluate(
        self, coef: Array, offset: Array, problems: Array, precision: Precision = Precision.EXACT
    ) -> Sums:
        """Return the sums of the given problems; there is one precision here."""
        sums, gradient = np.zeros((3, len(problems))), np.zeros_like(coef)
        for tiles in self._tiles_at_a_time(problems):
            tasks, owners = [], []
            for part, columns in tiles:
                cells = self.cells(self.problem(coef[columns], offset[columns]), problems[columns])
                pieces = chunks(part)
                tasks += [
                    partial(loss_chunk, self.matrix, rows, cells, self.loss) for rows in pieces
                ]
                owners.append((columns, len(pieces)))
            with one_blas_thread():
                results = iter(threads.run(tasks))
            for columns, n_pieces in owners:
                parts = [next(results) for _ in range(n_pieces)]
                sums[:, columns] += sum(s for s, _ in parts)
                gradient[columns] += self.matrix.total([g for _, g in parts])
        losses, curvatures, residuals = sums
        return Sums(losses, curvatures, residuals, self.matrix.centred(gradient, residuals))

    def _tiles_at_a_time(self, problems: Array) -> Iterator[list[tuple[Array, Any]]]:
        """Yield as many tiles as have gradients, one for each chunk of rows, that fit in memory."""
        taken: list[tuple[Array, Any]] = []
        n_bytes = 0
        for part, columns in self._tiles(problems):
            n_columns = np.arange(len(problems))[columns].size
            size = 4 * self.n_features * n_columns * len(chunks(part))
            if taken and n_bytes + size > LOCAL.bytes_of_gradients:
                yield taken
                taken, n_bytes = [], 0
            taken.append((part, columns))
            n_bytes += size
        yield taken

    def problem(self, coef: Array, offset: Array) -> Problem:
        """Return coefficients and offsets as the kernels of the loss want them."""
        is_fused = self.loss.fused in self.matrix.fused
        return self.matrix.problem(coef, offset, np.float32 if is_fused else np.float64)

    def cells(self, problem: Problem, problems: Array) -> Cells:
        """Return what the kernels need to evaluate the cells of problems."""
        listed = self._kernel_labels(self._marked, problems)
        return Cells(problem, self.weights, listed, self._costs)

    def takes_dual(self, *Cs: float) -> bool:
        """Tell whether one cell after the other is quicker than passes over all of them."""
        return self.loss.fused == "logistic" and self.matrix.takes_dual(self.n_rows, *Cs)

    @cached_property
    def dual(self) -> DualProblems:
        """The same rows for dual coordinate ascent."""
        return DualProblems(
            self.matrix.parts,
            self.center,
            self.weights,
            self._marked,
            self._costs,
            list(zip(self.parts, self.held_out, strict=True)),
        )

    @cached_property
    def tables(self) -> Tables:
        """The same rows as tables, for Newton's method."""
        folds = np.full(len(self.weights), -1)
        for fold, part in enumerate(self.parts):
            folds[part] = fold
        return Tables(
            self.X,
            self.labels,
            self._exact_weights,
            positive_cost=self._exact_cost,
            label_cost=self.label_cost,
            moments=self._moments,
            folds=folds,
            n_folds=self.n_folds,
            loss=self.loss,
        )

    def derivatives(
        self, points: Array, problems: Array, careful: bool
    ) -> tuple[Array, Array, Array]:
        """Return losses (p,), gradients (p, d + 1) and Hessians (p, d + 1, d + 1), in float64."""
        return self.tables.derivatives(points, problems)

    def hessians(
        self, coef: Array, offset: Array, problems: Array, curvatures: Array, left_out: Array
    ) -> list[Array]:
        """Return Hessians of the losses from rows sampled by their curvature.

        A label's Hessian is sum_i D_i x_i x_i^T with D_i the curvatures of its cells. For a rare
        label a few rows hold nearly all of D, so rows drawn in proportion to D give it at a small
        part of its cost: with 12 rows per variable, about three passes for all labels of mediamill.
        """
        spacing = curvatures / self.n_draws
        return self.sampled_hessians(coef, offset, problems, spacing, self.n_draws, left_out)

    def sampled_hessians(
        self,
        coef: Array,
        offset: Array,
        problems: Array,
        spacing: Array,
        n_draws: int,
        left_out: Array,
    ) -> list[Array]:
        """Return the same with rows drawn once for every `spacing` (p,) of curvature."""
        pieces = [(fold, rows) for fold, part in enumerate(self.parts) for rows in chunks(part)]
        cells = self.cells(self.problem(coef, offset), problems)
        tasks = [
            # A fold's spacing is of its own rows, so all rows may give a few more draws.
            partial(loss_sample, self.matrix, rows, cells, self.loss, spacing,
                    min(len(rows), 2 * n_draws))
            for _, rows in pieces
        ]  # fmt: skip
        with one_blas_thread():
            samples = zip(*threads.run(tasks), strict=True)
            folds = [fold for fold, _ in pieces]
            parts = zip(samples, spacing, left_out, strict=True)
            return threads.run([partial(self._assemble, folds, *part) for part in parts])

    def _assemble(
        self, folds: list[int], samples: tuple[Sample, ...], spacing: float, left_out: int
    ) -> Array:
        """Return the Hessian of the sampled rows outside one fold, or of an average fold (-1)."""
        average = self.n_folds > 1 and left_out < 0
        outside = [
            sample
            for sample, fold in zip(samples, folds, strict=True)
            if average or self.n_folds == 1 or fold != left_out
        ]
        rows = np.concatenate([rows for rows, _ in outside])
        times = np.concatenate([times for _, times in outside])
        share = 1 - 1 / self.n_folds if average else 1.0
        return self.matrix.hessian(rows, times * (share * spacing))

    def _tiles(self, problems: Array) -> Iterator[tuple[Array, Any]]:
        """Cut the groups into as many columns at a time as the matrix is quickest with."""
        largest_part = max(len(part) for part in self.parts)
        n_chunks = len(threads.even_parts(largest_part, LOCAL.rows_per_chunk))
        room = LOCAL.bytes_of_gradients // (4 * self.n_features * max(n_chunks, 1))
        width = min(self.matrix.columns_at_a_time, max(room, LOCAL.fewest_columns))
        for part, columns in self._groups(problems):
            chosen = np.arange(len(problems))[columns]
            n_tiles = -(-len(chosen) // width)
            tiles = [columns] if n_tiles == 1 else np.array_split(chosen, n_tiles)
            for tile in tiles:
                yield part, tile

    def _groups(self, problems: Array) -> Iterator[tuple[Array, Any]]:
        """Yield rows that the same problems see, and those problems."""
        if self.n_folds == 1:
            yield self.parts[0], slice(None)
            return
        for fold, part in enumerate(self.parts):
            columns = np.flatnonzero(problems % self.n_folds != fold)
            if columns.size:
                yield part, columns

    def _kernel_labels(self, labels: LabelSets, problems: Array) -> KernelLabels:
        """Return label sets as the kernels want them; see `logistic_block`."""
        first = np.searchsorted(problems // self.n_folds, np.arange(self.n_labels + 1))
        return labels.starts, labels.members, first.astype(np.int32)

    def arrays(self) -> Iterator[Array]:
        """Yield all that the sums are made of."""
        yield from (self._marked.starts, self._marked.members, self._costs, self.weights)
        yield from self.matrix.arrays()

    def digest(self) -> bytes:
        """Return something short that other rows would hardly have."""
        return digest_of(self.arrays())


def matrix_kind(X: Any) -> type[CSRMatrix] | type[DenseMatrix]:
    """Return the kind of matrix that features are."""
    return CSRMatrix if sparse.issparse(X) else DenseMatrix
