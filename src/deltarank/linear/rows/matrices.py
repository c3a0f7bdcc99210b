"""What rows in this machine's memory ask of a feature matrix, and passes written on top of it.

A matrix gives the scores of a block of rows and adds up gradients; a loss that has compiled kernels
goes through all blocks of a chunk in one call, which keeps threads away from the interpreter.
"""

import hashlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from deltarank.core import threads
from deltarank.core.losses import Loss
from deltarank.linear.coordinates import Moments
from deltarank.linear.kernels.logistic import sample_rows
from deltarank.linear.rows.cells import Cells, KernelLabels, turn_scores, turn_to_curvatures
from deltarank.linear.rows.tuning import LOCAL

Array = NDArray[Any]
Problem = tuple[Array, Array]
# Rows sampled by their curvature, and how often each was drawn.
Sample = tuple[Array, Array]
# Turns scores of rows into residuals, in place, and returns the sum of their losses.
RowLoss = Callable[[Array, Array], float]


class Fused(NamedTuple):
    """Compiled loops over a chunk of rows under one loss."""

    chunk: Callable[..., None]
    sample: Callable[..., tuple[Array, Array]]


class Matrix(Protocol):
    """A feature matrix in units ``(x - center) / scale``.

    `problem` turns coefficients and offsets into the form that kernels multiply by; gradients come
    in a form of the matrix's own, which `total` adds up and `centred` turns back into the units.
    """

    center: Array
    scale: Array
    is_scaled: bool
    dtype: Any
    columns_at_a_time: int
    flops_per_score: float
    fused: dict[str | None, Fused]
    parts: Any

    @staticmethod
    def moments(X: Any, rows: Array, weights: Array) -> Moments:
        """Return the moments of the given rows; other rows are not read."""

    def arrays(self) -> Iterable[Array]:
        """Return the features, in pieces."""

    def problem(self, coef: Array, offset: Array, dtype: Any = np.float32) -> Problem:
        """Return coefficients (d, p) and offsets (p,) as the kernels want them."""

    def block_size(self, n_columns: int) -> int:
        """Return how many rows a compiled loop takes at a time."""

    def new_gradient(self, n_columns: int, dtype: Any) -> Array:
        """Return a gradient of zeros for residuals of a precision."""

    def scores(self, rows: Array, problem: Problem) -> tuple[Any, Array]:
        """Return the rows as `add_gradient` wants them, and their scores (b, p)."""

    def add_gradient(self, held: Any, residuals: Array, gradient: Array) -> None:
        """Add the residuals (b, p) times the rows to a gradient."""

    def total(self, gradients: list[Array]) -> Array:
        """Return the sum of gradients, shape (p, d)."""

    def centred(self, sums: Array, masses: Array) -> Array:
        """Turn sums of rows, of total weight ``masses``, into the units."""

    def label_sums(
        self, rows: Array, weights: Array, labels: KernelLabels, n_columns: int
    ) -> tuple[Array, Array]:
        """Return the weights (p,) and weighted sums (p, d) of the rows each column lists."""

    def takes_dual(self, n_rows: int, *Cs: float) -> bool:
        """Tell whether one cell after the other is quicker than passes over all of them."""

    def hessian_flops(self, n_rows: int) -> float:
        """Return the multiplications of a Hessian from that many rows; infinite if not offered."""

    def hessian(self, rows: Array, curvatures: Array) -> Array:
        """Return sum_i curvature_i (x_i, 1)(x_i, 1)^T in the units, float64."""


def coupled_chunk(
    matrix: Matrix, rows: Array, problem: Problem, loss: RowLoss
) -> tuple[float, Array, Array]:
    """Return value, residual sums (p,) and the matrix's gradient of a loss of whole rows.

    In the precision of the problem, float32 or float64.
    """
    coefficients, offsets = problem
    value, residuals = 0.0, np.zeros(len(offsets))
    gradient = matrix.new_gradient(len(offsets), coefficients.dtype)
    for block in threads.row_blocks(len(rows), LOCAL.rows_per_block):
        held, scores = matrix.scores(rows[block], problem)
        value += loss(scores, rows[block])
        residuals += scores.sum(axis=0, dtype=np.float64)
        matrix.add_gradient(held, scores, gradient)
    return value, residuals, gradient


def loss_chunk(matrix: Matrix, rows: Array, cells: Cells, loss: Loss) -> tuple[Array, Array]:
    """Return sums (3, p) and the matrix's gradient over the given rows."""
    n_columns = len(cells.problem[1])
    sums, fused = np.zeros((3, n_columns)), matrix.fused.get(loss.fused)
    if fused is None:
        turn_block = partial(turn_scores, loss, cells, sums)
        return sums, coupled_chunk(matrix, rows, cells.problem, turn_block)[2]
    gradient = matrix.new_gradient(n_columns, np.float32)
    fused.chunk(matrix.parts, rows, matrix.block_size(n_columns), *cells, sums, gradient)
    return sums, gradient


def loss_sample(
    matrix: Matrix, rows: Array, cells: Cells, loss: Loss, spacing: Array, at_most: int
) -> list[Sample]:
    """Return, for each problem, rows sampled by curvature and how often; see `sample_rows`."""
    chosen = np.empty((len(spacing), at_most), np.int64)
    fused = matrix.fused.get(loss.fused)
    if fused is not None:
        size = matrix.block_size(len(spacing))
        counts, times = fused.sample(matrix.parts, rows, size, *cells, spacing, chosen)
    else:
        times, counts = np.zeros(chosen.shape, np.int32), np.zeros(len(spacing), np.int64)
        totals = np.full(len(spacing), 0.5)
        for block in threads.row_blocks(len(rows), LOCAL.rows_per_block):
            _, scores = matrix.scores(rows[block], cells.problem)
            turn_to_curvatures(loss, cells, scores, rows[block])
            sample_rows(scores, rows[block], spacing, totals, counts, chosen, times)
    return [(chosen[j, :count], times[j, :count]) for j, count in enumerate(counts)]


def chunks(rows: Array) -> list[Array]:
    """Return rows in pieces, one task each; one empty piece if there are none."""
    return [rows[piece] for piece in threads.even_parts(len(rows), LOCAL.rows_per_chunk)] or [rows]


def digest_of(arrays: Iterable[Array]) -> bytes:
    """Return a checksum of arrays, their shapes and types."""
    digest = hashlib.blake2b(digest_size=32)
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.digest()
