"""The feature matrix as the pass sees it: dense or CSR, and the coordinates it is solved in.

The solver's variables of a label are its rotated coefficients and its centred intercept:
``coef = basis @ variables`` and ``intercept = offset - center @ coef``. In the eigenvectors of
G = sum_i w_i (x_i - center)(x_i - center)^T a label's Hessian is close to a multiple of the
diagonal ``spectrum`` for *every* label, because the weights do not depend on the label. X itself
is never rotated: rotating coefficients and gradients costs d^2 a label, and X may be
memory-mapped.
"""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from deltarank.core import threads
from deltarank.core.blas import one_blas_thread

# Up to here eigenvectors take less time than BLAS's threads spin after helping with them.
FEW_FEATURES = 256
# Large products are shared out in parts of at least so many rows.
ROWS_PER_PRODUCT = 64
# Multiplications, times d^3, that turning and factoring a Hessian are worth: float64, small blocks.
FACTOR_FLOPS = 16
Array = NDArray[Any]
Problem = tuple[Array, Array]
Sample = tuple[Array, Array]
KernelLabels = tuple[Array, Array, Array]
# Turns scores of rows into residuals, in place, and returns the sum of their losses.
RowLoss = Callable[[Array, Array], float]


class Coordinates(NamedTuple):
    """Map between the solver's variables and coefficients of the features.

    Attributes
    ----------
    center : ndarray of shape (d,)
        Weighted mean of the features.
    basis : ndarray of shape (d, d) or None
        Eigenvectors of the weighted covariance, as columns; None stands for the identity.
    spectrum : ndarray of shape (d,)
        Weighted variance along each column of the basis.
    """

    center: Array
    basis: Array | None
    spectrum: Array

    def to_coef(self, variables: Array) -> Array:
        """Return coefficients of the features, shape (p, d), of variables, shape (p, d)."""
        return variables if self.basis is None else product(variables, self.basis.T)

    def to_variables(self, coef: Array) -> Array:
        """Return the variables of coefficients; also turns gradients, the basis is orthogonal."""
        return coef if self.basis is None else product(coef, self.basis)

    def turned(self, hessian: Array) -> Array:
        """Turn a Hessian (d + 1, d + 1), the intercept last, from coefficients to variables."""
        if self.basis is None:
            return hessian
        hessian[:-1] = self.basis.T @ hessian[:-1]
        hessian[:, :-1] = hessian[:, :-1] @ self.basis
        return hessian


def product(rows: Array, matrix: Array) -> Array:
    """Multiply, in float32 and on all threads where the matrix is large.

    The passes round to float32 anyway; many features would make these products as dear as a pass.
    """
    if len(matrix) <= FEW_FEATURES:
        return rows @ matrix
    narrow = matrix.astype(np.float32)
    blocks = threads.even_parts(len(rows), ROWS_PER_PRODUCT)
    tasks = [partial(np.matmul, rows[block].astype(np.float32), narrow) for block in blocks]
    return np.concatenate(threads.run(tasks)).astype(np.float64)


def coordinates(center: Array, covariance: Array) -> Coordinates:
    """Return the coordinates that diagonalise a covariance, given as (d, d) or its diagonal."""
    if covariance.ndim == 1:
        return Coordinates(center, None, covariance)
    with one_blas_thread() if len(center) <= FEW_FEATURES else nullcontext():
        spectrum, basis = np.linalg.eigh(covariance)
    return Coordinates(center, basis, np.maximum(spectrum, 0.0))


class Moments(NamedTuple):
    """Weighted moments of the features over some rows; those of parts merge to those of all.

    Attributes
    ----------
    total : float
        Weight of the rows.
    center, variance : ndarray of shape (d,)
    covariance : ndarray of shape (d, d) or None
        None where there are too many features for it.
    """

    total: float
    center: Array
    variance: Array
    covariance: Array | None


class Frame(NamedTuple):
    """What a matrix is read and solved in: moments of its features, and coordinates made of them.

    Any frame leads to the same minimum; that of the rows at hand leads there soonest.
    """

    moments: Moments
    coordinates: Coordinates

    @classmethod
    def of(cls, moments: Moments) -> "Frame":
        """Return the coordinates that diagonalise the covariance, or the features as they are."""
        spread = moments.variance if moments.covariance is None else moments.covariance
        return cls(moments, coordinates(moments.center, spread))


def merged_moments(parts: list[Moments]) -> Moments:
    """Return the moments of all rows from those of parts: variances within and between them."""
    total = sum(part.total for part in parts)
    shares = [part.total / total if total else 0.0 for part in parts]
    weighted = list(zip(shares, parts, strict=True))
    center = np.sum([share * part.center for share, part in weighted], axis=0)
    variance = np.zeros_like(center)
    for share, part in weighted:
        variance += share * (part.variance + (part.center - center) ** 2)
    covariance: Any = None
    if all(part.covariance is not None for part in parts):
        covariance = np.zeros((len(center), len(center)))
        for share, part in weighted:
            apart = part.center - center
            covariance += share * (part.covariance + np.multiply.outer(apart, apart))
    return Moments(total, center, variance, covariance)


class Cells(NamedTuple):
    """What the kernels need beside the rows to evaluate their cells; see `logistic_block`."""

    problem: Problem
    weights: Array
    labels: KernelLabels
    costs: Array


class Matrix(Protocol):
    """What a pass asks of a feature matrix.

    The kernels see coefficients and sums in a form of the matrix's own (standardised, transposed);
    `problem` leads there, `total` and `centred` lead back.
    """

    frame: Frame
    coordinates: Coordinates
    flops_per_score: float
    columns_at_a_time: int
    dtype: Any

    @staticmethod
    def moments(X: Any, rows: Array, weights: Array) -> Moments:
        """Return the moments of the given rows; other rows are not read."""

    def arrays(self) -> Iterable[Array]:
        """Return the features, in pieces."""

    def first_rows(self, n_rows: int) -> Iterable[Array]:
        """Return arrays that hold the first rows, and nothing else."""

    def problem(self, coef: Array, offset: Array, dtype: Any = np.float32) -> Problem:
        """Return coefficients and offsets as the kernels want them."""

    def chunk(self, rows: Array, cells: Cells) -> tuple[Array, Array]:
        """Return sums (3, p) and the kernels' gradient over the given rows."""

    def coupled_chunk(
        self, rows: Array, problem: Problem, loss: RowLoss
    ) -> tuple[float, Array, Array]:
        """Return value, residual sums (p,) and the kernels' gradient of a loss of whole rows.

        In the precision of the problem, float32 or float64.
        """

    def total(self, gradients: list[Array]) -> Array:
        """Return the sum of the chunks' gradients, shape (p, d)."""

    def centred(self, sums: Array, masses: Array) -> Array:
        """Turn the kernels' sums of rows, of total weight ``masses``, into centred features."""

    def label_sums(
        self, rows: Array, weights: Array, labels: KernelLabels, n_columns: int
    ) -> tuple[Array, Array]:
        """Return the weights (p,) and weighted sums (p, d) of each column's positive rows."""

    def hessian_flops(self, n_rows: int) -> float:
        """Return the multiplications of a Hessian from that many rows; infinite if not offered."""

    def sample(self, rows: Array, cells: Cells, spacing: Array, at_most: int) -> list[Sample]:
        """Return, for each problem, rows sampled by curvature and how often."""

    def hessian(self, rows: Array, curvatures: Array) -> Array:
        """Return sum_i curvature_i (x_i, 1)(x_i, 1)^T in the solver's variables."""
