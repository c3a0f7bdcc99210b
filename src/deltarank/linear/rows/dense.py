"""A dense feature matrix, read block by block and standardised on the way."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np

from deltarank.core import threads
from deltarank.core.blas import one_blas_thread
from deltarank.linear.coordinates import Moments
from deltarank.linear.kernels.dense import (
    dense_chunk,
    dense_label_sums,
    dense_moments,
    dense_sample,
    gather,
)
from deltarank.linear.rows.cells import KernelLabels
from deltarank.linear.rows.matrices import Array, Fused, Problem
from deltarank.linear.rows.tuning import LOCAL


class DenseMatrix:
    """A dense matrix, float32 or float64, in any memory order, possibly memory-mapped."""

    columns_at_a_time, is_scaled = 2**31, True
    fused: ClassVar = {"logistic": Fused(dense_chunk, dense_sample)}

    def __init__(self, X: Array, moments: Moments) -> None:
        self.dtype, self.center = X.dtype, moments.center
        self.scale = moments.spread
        self.parts = (X, self.center, 1.0 / self.scale)
        self.flops_per_score = self.flops(X.shape[1])

    def arrays(self) -> Iterator[Array]:
        """Return the features, some rows at a time."""
        X = self.parts[0]
        for block in threads.row_blocks(len(X), LOCAL.rows_per_moment):
            yield X[block]

    @staticmethod
    def empty_like(empty: Array) -> Array:
        """Return a dense matrix of no rows as one of this kind."""
        return empty

    @staticmethod
    def flops(n_values: float) -> float:
        """Return the multiplications that a score of a row of this many values is worth."""
        return float(n_values)

    @staticmethod
    def moments(X: Array, rows: Array, weights: Array) -> Moments:
        """Return the moments of the given rows; other rows are not read."""
        n_features = X.shape[1]
        blocks = [rows[b] for b in threads.row_blocks(len(rows), LOCAL.rows_per_moment)] or [rows]
        total = float(np.sum(weights[rows], dtype=np.float64))
        mass = total or 1.0
        origin = np.zeros(n_features)
        center = _total(partial(dense_moments, X, origin, b, weights) for b in blocks)[0] / mass
        variance = _total(partial(dense_moments, X, center, b, weights) for b in blocks)[1] / mass
        moments = Moments(total, center, variance, None)
        if n_features <= LOCAL.most_rotated_dense:
            scale = moments.spread
            parts = (X, center, 1.0 / scale)
            with one_blas_thread():
                gram = _total(partial(_gram, parts, b, weights) for b in blocks) / mass
            moments = moments._replace(covariance=gram * np.outer(scale, scale))
        return moments

    def problem(self, coef: Array, offset: Array, dtype: Any = np.float32) -> Problem:
        """Return coefficients (d, p) and offsets (p,) as the kernels want them."""
        return np.ascontiguousarray(coef.T, dtype=dtype), offset.astype(dtype)

    def block_size(self, n_columns: int) -> int:
        """Return how many rows a compiled loop takes at a time."""
        rows = LOCAL.small_product // (len(self.scale) * n_columns)
        return min(rows, 512) if rows >= 32 else LOCAL.rows_per_block

    def new_gradient(self, n_columns: int, dtype: Any) -> Array:
        """Return a gradient (p, d) of zeros, in float64 whatever the residuals are."""
        return np.zeros((n_columns, len(self.scale)))

    def scores(self, rows: Array, problem: Problem) -> tuple[Array, Array]:
        """Return the standardised rows, and their scores (b, p)."""
        coefficients, offsets = problem
        x = _standardized(self.parts, rows, coefficients.dtype)
        scores = x @ coefficients
        scores += offsets
        return x, scores

    def add_gradient(self, held: Array, residuals: Array, gradient: Array) -> None:
        """Add the residuals (b, p) times the rows to a gradient."""
        gradient += residuals.T @ held

    def total(self, gradients: list[Array]) -> Array:
        """Return the sum of gradients, shape (p, d)."""
        return sum(gradients[1:], start=gradients[0])

    def centred(self, sums: Array, masses: Array) -> Array:
        """Return sums of rows as they are: the kernels centre every row."""
        return sums

    def label_sums(
        self, rows: Array, weights: Array, labels: KernelLabels, n_columns: int
    ) -> tuple[Array, Array]:
        """Return the weights (p,) and weighted sums (p, d) of the rows each column lists."""
        sums, masses = np.zeros((n_columns, len(self.scale))), np.zeros(n_columns)
        dense_label_sums(self.parts, rows, weights, labels, sums, masses)
        return masses, sums

    def takes_dual(self, n_rows: int, *Cs: float) -> bool:
        """Dense rows are quickest in passes."""
        return False

    def hessian_flops(self, n_rows: int) -> float:
        """Return the multiplications of a Hessian from that many rows."""
        n_features = len(self.scale)
        return n_rows * n_features**2 / 2 + LOCAL.factor_flops * n_features**3

    def hessian(self, rows: Array, curvatures: Array) -> Array:
        """Return sum_i curvature_i (x_i, 1)(x_i, 1)^T of standardised rows, float64."""
        root = np.sqrt(curvatures).astype(np.float32)[:, None]
        x = np.hstack([_standardized(self.parts, rows, np.float32) * root, root])
        return (x.T @ x).astype(np.float64)


def _standardized(parts: tuple[Array, Array, Array], rows: Array, dtype: Any) -> Array:
    x = np.empty((len(rows), len(parts[1])), dtype)
    gather(parts, rows, x)
    return x


def _gram(parts: tuple[Array, Array, Array], rows: Array, weights: Array) -> Array:
    x = _standardized(parts, rows, np.float32) * np.sqrt(weights[rows])[:, None]
    return (x.T @ x).astype(np.float64)


def _total(tasks: Iterable[Callable[[], Any]]) -> Any:
    return sum(threads.run(list(tasks)))
