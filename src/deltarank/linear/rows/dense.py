"""A dense feature matrix, read block by block and standardised on the way."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from deltarank.core import threads
from deltarank.core.blas import one_blas_thread
from deltarank.linear.kernels.dense import (
    dense_chunk,
    dense_label_sums,
    dense_moments,
    dense_sample,
    gather,
)
from deltarank.linear.rows.matrices import (
    FACTOR_FLOPS,
    Array,
    Cells,
    Frame,
    KernelLabels,
    Moments,
    Problem,
    RowLoss,
    Sample,
)

# Beyond this the eigenvectors of G cost more than the passes they save.
MAX_ROTATED_FEATURES = 4096
# OpenBLAS has a quicker kernel, without packing, for products of at most this many steps.
SMALL_PRODUCT = 1_000_000
ROWS_PER_BLOCK = 256
ROWS_PER_MOMENT = 2048


class DenseMatrix:
    """A dense matrix, float32 or float64, in any memory order, possibly memory-mapped."""

    columns_at_a_time = 2**31

    def __init__(self, X: Array, rows: Array, weights: Array, frame: Frame | None = None) -> None:
        self.dtype = X.dtype
        self.frame = Frame.of(self.moments(X, rows, weights)) if frame is None else frame
        moments, self.coordinates = self.frame
        self.scale = _scale(moments.variance)
        self._matrix = (X, moments.center, 1.0 / self.scale)
        self.flops_per_score = self.flops(X.shape[1])

    def arrays(self) -> Iterator[Array]:
        """Return the features, some rows at a time."""
        X = self._matrix[0]
        for block in threads.row_blocks(len(X), ROWS_PER_MOMENT):
            yield X[block]

    def first_rows(self, n_rows: int) -> tuple[Array, ...]:
        """Return arrays that hold the first rows, and nothing else."""
        return (self._matrix[0][:n_rows],)

    @staticmethod
    def flops(n_values: float) -> float:
        """Return the multiplications that a score of a row of so many values is worth."""
        return float(n_values)

    @staticmethod
    def moments(X: Array, rows: Array, weights: Array) -> Moments:
        """Return the moments of the given rows; other rows are not read."""
        n_features = X.shape[1]
        blocks = [rows[b] for b in threads.row_blocks(len(rows), ROWS_PER_MOMENT)] or [rows]
        total = float(np.sum(weights[rows], dtype=np.float64))
        mass = total or 1.0
        origin = np.zeros(n_features)
        center = _total(partial(dense_moments, X, origin, b, weights) for b in blocks)[0] / mass
        variance = _total(partial(dense_moments, X, center, b, weights) for b in blocks)[1] / mass
        covariance = None
        if n_features <= MAX_ROTATED_FEATURES:
            scale = _scale(variance)
            matrix = (X, center, 1.0 / scale)
            with one_blas_thread():
                gram = _total(partial(_gram, matrix, b, weights) for b in blocks) / mass
            covariance = gram * np.outer(scale, scale)
        return Moments(total, center, variance, covariance)

    def standardised(self, rows: Array, dtype: Any = np.float32) -> Array:
        """Return the given rows, centred and scaled."""
        return _standardised(self._matrix, rows, dtype)

    def problem(self, coef: Array, offset: Array, dtype: Any = np.float32) -> Problem:
        """Return what the kernels multiply by: coefficients of the standardised features."""
        scaled = np.ascontiguousarray((coef * self.scale).T, dtype=dtype)
        return scaled, offset.astype(dtype)

    def _block(self, n_columns: int) -> int:
        rows = SMALL_PRODUCT // (len(self.scale) * n_columns)
        return min(rows, 512) if rows >= 32 else ROWS_PER_BLOCK

    def chunk(self, rows: Array, cells: Cells) -> tuple[Array, Array]:
        """Return sums (3, p) and gradient (p, d) over the given rows; see `logistic_block`."""
        n_columns = len(cells.problem[1])
        sums, gradient = np.zeros((3, n_columns)), np.zeros((n_columns, len(self.scale)))
        dense_chunk(self._matrix, rows, self._block(n_columns), *cells, sums, gradient)
        return sums, gradient

    def coupled_chunk(
        self, rows: Array, problem: Problem, loss: RowLoss
    ) -> tuple[float, Array, Array]:
        """Return value, residual sums (p,) and gradient (p, d) of a loss of whole rows."""
        coefficients, offsets = problem
        value, residuals = 0.0, np.zeros(len(offsets))
        gradient = np.zeros((len(offsets), len(self.scale)))
        for block in threads.row_blocks(len(rows), ROWS_PER_BLOCK):
            x = self.standardised(rows[block], coefficients.dtype)
            scores = x @ coefficients
            scores += offsets
            value += loss(scores, rows[block])
            residuals += scores.sum(axis=0, dtype=np.float64)
            gradient += scores.T @ x
        return value, residuals, gradient

    def total(self, gradients: list[Array]) -> Array:
        """Return the sum of the chunks' gradients, shape (p, d)."""
        return sum(gradients[1:], start=gradients[0])

    def centred(self, sums: Array, masses: Array) -> Array:
        """Turn the kernels' sums of rows, of total weight ``masses``, into centred features."""
        return sums * self.scale

    def label_sums(
        self, rows: Array, weights: Array, labels: KernelLabels, n_columns: int
    ) -> tuple[Array, Array]:
        """Return the weights (p,) and weighted sums (p, d) of each column's positive rows."""
        sums, masses = np.zeros((n_columns, len(self.scale))), np.zeros(n_columns)
        dense_label_sums(self._matrix, rows, weights, labels, sums, masses)
        return masses, sums

    def hessian_flops(self, n_rows: int) -> float:
        """Return the multiplications of a Hessian from that many rows."""
        n_features = len(self.scale)
        return n_rows * n_features**2 / 2 + FACTOR_FLOPS * n_features**3

    def sample(self, rows: Array, cells: Cells, spacing: Array, at_most: int) -> list[Sample]:
        """Return, for each problem, rows sampled by curvature and how often; see `sample_rows`."""
        chosen = np.empty((len(spacing), at_most), np.int64)
        block = self._block(len(spacing))
        counts, times = dense_sample(self._matrix, rows, block, *cells, spacing, chosen)
        return [(chosen[j, :c], times[j, :c]) for j, c in enumerate(counts)]

    def hessian(self, rows: Array, curvatures: Array) -> Array:
        """Return sum_i curvature_i (x_i, 1)(x_i, 1)^T in the solver's variables, float64."""
        root = np.sqrt(curvatures).astype(np.float32)[:, None]
        x = np.hstack([self.standardised(rows) * root, root])
        hessian = (x.T @ x).astype(np.float64)
        hessian[:-1] *= self.scale[:, None]
        hessian[:, :-1] *= self.scale
        return self.coordinates.turned(hessian)


def _scale(variance: Array) -> Array:
    return np.sqrt(np.where(variance > 0, variance, 1.0))


def _standardised(matrix: tuple[Array, Array, Array], rows: Array, dtype: Any) -> Array:
    x = np.empty((len(rows), len(matrix[1])), dtype)
    gather(matrix, rows, x)
    return x


def _gram(matrix: tuple[Array, Array, Array], rows: Array, weights: Array) -> Array:
    x = _standardised(matrix, rows, np.float32) * np.sqrt(weights[rows])[:, None]
    return (x.T @ x).astype(np.float64)


def _total(tasks: Iterable[Callable[[], Any]]) -> Any:
    return sum(threads.run(list(tasks)))
