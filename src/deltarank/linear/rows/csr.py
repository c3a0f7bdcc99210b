"""A CSR feature matrix; centring happens in the offsets, so that zeros stay unstored."""

from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from deltarank.linear.coordinates import Moments
from deltarank.linear.kernels.csr import (
    add_csr_gram,
    add_csr_transposed_times_dense,
    csr_chunk,
    csr_label_sums,
    csr_moments,
    csr_sample,
    csr_times_dense,
)
from deltarank.linear.rows.cells import KernelLabels
from deltarank.linear.rows.costs import ascent_seconds, passes_seconds
from deltarank.linear.rows.matrices import Array, Fused, Problem
from deltarank.linear.rows.tuning import LOCAL


class CSRMatrix:
    """A CSR matrix, its columns in order within each row."""

    # Coefficients and gradients of more would not stay in the second-level cache.
    columns_at_a_time, is_scaled = 512, False
    fused: ClassVar = {"logistic": Fused(csr_chunk, csr_sample)}

    def __init__(self, X: Any, moments: Moments) -> None:
        self.dtype, self.center = X.dtype, moments.center
        self.scale = np.ones_like(moments.center)
        self.parts = _parts(X)
        self._exact = (*self.parts[:2], X.data)
        self._is_rotated = moments.covariance is not None
        self.flops_per_score = self.flops(X.nnz / max(X.shape[0], 1))

    def arrays(self) -> tuple[Array, ...]:
        """Return the features."""
        return self._exact

    @staticmethod
    def empty_like(empty: Array) -> Any:
        """Return a dense matrix of no rows as one of this kind."""
        return sparse.csr_array(empty)

    @staticmethod
    def flops(n_values: float) -> float:
        """Return the multiplications that a score of a row of this many values is worth."""
        return LOCAL.flops_per_stored_value * n_values

    @staticmethod
    def moments(X: Any, rows: Array, weights: Array) -> Moments:
        """Return the moments of the given rows; other rows are not read."""
        n_features, parts = X.shape[1], _parts(X)
        total = float(np.sum(weights[rows], dtype=np.float64))
        mass = total or 1.0
        sums, squares = csr_moments(parts, rows, weights, n_features)
        center = sums / mass
        variance = np.maximum(squares / mass - center**2, 0.0)
        covariance = None
        if n_features <= LOCAL.most_rotated_sparse:
            gram = np.zeros((n_features, n_features))
            add_csr_gram(parts, rows, weights[rows], np.zeros(n_features), gram)
            covariance = gram / mass - np.outer(center, center)
        return Moments(total, center, variance, covariance)

    def problem(self, coef: Array, offset: Array, dtype: Any = np.float32) -> Problem:
        """Return coefficients (d, p) and offsets (p,), which take the centre in."""
        offset = offset - coef @ self.center
        return np.ascontiguousarray(coef.T, dtype=dtype), offset.astype(dtype)

    def block_size(self, n_columns: int) -> int:
        """Return how many rows a compiled loop takes at a time."""
        return LOCAL.rows_per_block

    def new_gradient(self, n_columns: int, dtype: Any) -> Array:
        """Return a gradient (d, p) of zeros for residuals of a precision."""
        return np.zeros((len(self.scale), n_columns), dtype)

    def scores(self, rows: Array, problem: Problem) -> tuple[Any, Array]:
        """Return the rows with the matrix in the problem's precision, and their scores (b, p)."""
        coefficients, offsets = problem
        parts = self._exact if coefficients.dtype == self.dtype else self.parts
        scores = np.empty((len(rows), len(offsets)), coefficients.dtype)
        csr_times_dense(parts, rows, coefficients, scores)
        scores += offsets
        return (parts, rows), scores

    def add_gradient(self, held: Any, residuals: Array, gradient: Array) -> None:
        """Add the residuals (b, p) times the rows to a gradient."""
        parts, rows = held
        add_csr_transposed_times_dense(parts, rows, residuals, gradient)

    def total(self, gradients: list[Array]) -> Array:
        """Return the sum of gradients, shape (p, d)."""
        return np.ascontiguousarray(sum(gradients[1:], start=gradients[0]).T)

    def centred(self, sums: Array, masses: Array) -> Array:
        """Return sums of centred rows, of total weight ``masses``."""
        return sums - np.outer(masses, self.center)

    def label_sums(
        self, rows: Array, weights: Array, labels: KernelLabels, n_columns: int
    ) -> tuple[Array, Array]:
        """Return the weights (p,) and weighted sums (p, d) of the rows each column lists."""
        sums, masses = np.zeros((n_columns, len(self.scale))), np.zeros(n_columns)
        csr_label_sums(self.parts, rows, weights, labels, sums, masses)
        return masses, sums

    def takes_dual(self, n_rows: int, *Cs: float) -> bool:
        """Tell whether dual coordinate ascent is quicker than passes, by what each has taken.

        For all values of C together. Only for so many features that they are not rotated: there
        passes are too many, and each pays for all coefficients, of which a row has few.
        """
        if self._is_rotated:
            return False
        per_row = self.flops_per_score / LOCAL.flops_per_stored_value
        ascent = ascent_seconds(n_rows, per_row, 1, Cs)
        return ascent < passes_seconds(n_rows, per_row, len(self.scale), 1, Cs)

    def hessian_flops(self, n_rows: int) -> float:
        """Return the multiplications of a Hessian from that many rows; infinite if not offered."""
        if not self._is_rotated:
            return np.inf
        per_row = self.flops_per_score / LOCAL.flops_per_stored_value
        n_features = float(len(self.scale))
        return (
            LOCAL.flops_per_stored_value * n_rows * per_row**2 + LOCAL.factor_flops * n_features**3
        )

    def hessian(self, rows: Array, curvatures: Array) -> Array:
        """Return sum_i curvature_i (x_i, 1)(x_i, 1)^T of centred rows, float64."""
        center, d = self.center, len(self.center)
        hessian, gram, sums = np.zeros((d + 1, d + 1)), np.zeros((d, d)), np.zeros(d)
        add_csr_gram(self.parts, rows, curvatures, sums, gram)
        mass = curvatures.sum()
        shifted = sums - mass * center
        hessian[:-1, :-1] = gram - np.outer(sums, center) - np.outer(center, shifted)
        hessian[:-1, -1] = hessian[-1, :-1] = shifted
        hessian[-1, -1] = mass
        return hessian


def _parts(X: Any) -> tuple[Array, Array, Array]:
    """Return starts, columns and float32 values of a CSR matrix, copied only where they differ."""
    return (
        X.indptr.astype(np.int64, copy=False),
        X.indices.astype(np.int32, copy=False),
        X.data.astype(np.float32, copy=False),
    )
