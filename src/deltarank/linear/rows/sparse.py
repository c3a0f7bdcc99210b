"""A CSR feature matrix."""

from typing import Any

import numpy as np

from deltarank.core import threads
from deltarank.linear.kernels.csr import (
    add_csr_gram,
    add_csr_transposed_times_dense,
    csr_chunk,
    csr_label_sums,
    csr_moments,
    csr_sample,
    csr_times_dense,
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

# Beyond this turning coefficients and gradients costs more than the passes it saves.
MAX_ROTATED_FEATURES = 1024
# A stored value takes as long as so many multiplications of a dense product.
SLOWER_THAN_DENSE = 8
ROWS_PER_BLOCK = 256


class SparseMatrix:
    """A CSR matrix; centring happens in the offsets, so that zeros stay unstored."""

    # Coefficients and gradients of more would not stay in the second-level cache.
    columns_at_a_time = 512

    def __init__(self, X: Any, rows: Array, weights: Array, frame: Frame | None = None) -> None:
        self.dtype = X.dtype
        self._matrix = _parts(X)
        self._exact = (*self._matrix[:2], X.data)
        self.frame = Frame.of(self.moments(X, rows, weights)) if frame is None else frame
        self.coordinates = self.frame.coordinates
        self.flops_per_score = self.flops(X.nnz / max(X.shape[0], 1))

    def arrays(self) -> tuple[Array, ...]:
        """Return the features."""
        return self._exact

    def first_rows(self, n_rows: int) -> tuple[Array, ...]:
        """Return arrays that hold the first rows, and nothing else."""
        starts, columns, values = self._exact
        end = starts[n_rows]
        return starts[: n_rows + 1], columns[:end], values[:end]

    @staticmethod
    def flops(n_values: float) -> float:
        """Return the multiplications that a score of a row of so many values is worth."""
        return SLOWER_THAN_DENSE * n_values

    @staticmethod
    def moments(X: Any, rows: Array, weights: Array) -> Moments:
        """Return the moments of the given rows; other rows are not read."""
        n_features, matrix = X.shape[1], _parts(X)
        total = float(np.sum(weights[rows], dtype=np.float64))
        mass = total or 1.0
        sums, squares = csr_moments(matrix, rows, weights, n_features)
        center = sums / mass
        variance = np.maximum(squares / mass - center**2, 0.0)
        covariance = None
        if n_features <= MAX_ROTATED_FEATURES:
            gram = np.zeros((n_features, n_features))
            add_csr_gram(matrix, rows, weights[rows], np.zeros(n_features), gram)
            covariance = gram / mass - np.outer(center, center)
        return Moments(total, center, variance, covariance)

    def problem(self, coef: Array, offset: Array, dtype: Any = np.float32) -> Problem:
        """Return what the kernels multiply by; the offsets take the centre in."""
        offset = offset - coef @ self.coordinates.center
        return np.ascontiguousarray(coef.T, dtype=dtype), offset.astype(dtype)

    def chunk(self, rows: Array, cells: Cells) -> tuple[Array, Array]:
        """Return sums (3, p) and gradient (d, p) over the given rows; see `logistic_block`."""
        coefficients, offsets = cells.problem
        sums, gradient = np.zeros((3, len(offsets))), np.zeros(coefficients.shape, np.float32)
        csr_chunk(self._matrix, rows, ROWS_PER_BLOCK, *cells, sums, gradient)
        return sums, gradient

    def coupled_chunk(
        self, rows: Array, problem: Problem, loss: RowLoss
    ) -> tuple[float, Array, Array]:
        """Return value, residual sums (p,) and gradient (d, p) of a loss of whole rows."""
        coefficients, offsets = problem
        value, residuals = 0.0, np.zeros(len(offsets))
        matrix = self._exact if coefficients.dtype == self.dtype else self._matrix
        gradient = np.zeros_like(coefficients)
        for block in threads.row_blocks(len(rows), ROWS_PER_BLOCK):
            scores = np.empty((len(rows[block]), len(offsets)), coefficients.dtype)
            csr_times_dense(matrix, rows[block], coefficients, scores)
            scores += offsets
            value += loss(scores, rows[block])
            residuals += scores.sum(axis=0, dtype=np.float64)
            add_csr_transposed_times_dense(matrix, rows[block], scores, gradient)
        return value, residuals, gradient

    def total(self, gradients: list[Array]) -> Array:
        """Return the sum of the chunks' gradients, shape (p, d)."""
        return np.ascontiguousarray(sum(gradients[1:], start=gradients[0]).T)

    def centred(self, sums: Array, masses: Array) -> Array:
        """Turn the kernels' sums of rows, of total weight ``masses``, into centred features."""
        return sums - np.outer(masses, self.coordinates.center)

    def label_sums(
        self, rows: Array, weights: Array, labels: KernelLabels, n_columns: int
    ) -> tuple[Array, Array]:
        """Return the weights (p,) and weighted sums (p, d) of each column's positive rows."""
        sums = np.zeros((n_columns, len(self.coordinates.center)))
        masses = np.zeros(n_columns)
        csr_label_sums(self._matrix, rows, weights, labels, sums, masses)
        return masses, sums

    def hessian_flops(self, n_rows: int) -> float:
        """Return the multiplications of a Hessian from that many rows."""
        if self.coordinates.basis is None:
            return np.inf
        per_row = self.flops_per_score / SLOWER_THAN_DENSE
        n_features = len(self.coordinates.center)
        return SLOWER_THAN_DENSE * n_rows * per_row**2 + FACTOR_FLOPS * float(n_features) ** 3

    def sample(self, rows: Array, cells: Cells, spacing: Array, at_most: int) -> list[Sample]:
        """Return, for each problem, rows sampled by curvature and how often; see `sample_rows`."""
        chosen = np.empty((len(spacing), at_most), np.int64)
        block = ROWS_PER_BLOCK
        counts, times = csr_sample(self._matrix, rows, block, *cells, spacing, chosen)
        return [(chosen[j, :c], times[j, :c]) for j, c in enumerate(counts)]

    def hessian(self, rows: Array, curvatures: Array) -> Array:
        """Return sum_i curvature_i (x_i, 1)(x_i, 1)^T in the solver's variables, float64."""
        center = self.coordinates.center
        hessian = np.zeros((len(center) + 1, len(center) + 1))
        sums = np.zeros(len(center))
        gram = np.zeros((len(center), len(center)))
        add_csr_gram(self._matrix, rows, curvatures, sums, gram)
        mass = curvatures.sum()
        shifted = sums - mass * center
        hessian[:-1, :-1] = gram - np.outer(sums, center) - np.outer(center, shifted)
        hessian[:-1, -1] = hessian[-1, :-1] = shifted
        hessian[-1, -1] = mass
        return self.coordinates.turned(hessian)


def _parts(X: Any) -> tuple[Array, Array, Array]:
    """Return starts, columns and float32 values of a CSR matrix, copied only where they differ."""
    return (
        X.indptr.astype(np.int64, copy=False),
        X.indices.astype(np.int32, copy=False),
        X.data.astype(np.float32, copy=False),
    )
