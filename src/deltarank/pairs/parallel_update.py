"""The parallel update of log-linear label ranking (Dekel, Manning and Singer), one pass each."""

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from deltarank.core import threads
from deltarank.core.blas import one_blas_thread
from deltarank.core.labels import LabelSets
from deltarank.linear.kernels.csr import csr_moments
from deltarank.linear.kernels.dense import dense_moments
from deltarank.linear.rows.matrices import Array
from deltarank.pairs.kernels.parallel import csr_masses, dense_masses

ROWS_PER_BLOCK = 256
# At least this many rows per task.
ROWS_PER_TASK = 1024
# Added to both masses, as a share of the mean mass: a coefficient that nothing holds back may not
# leave for infinity in one step.
SMALLEST_SHARE = 1e-12


def bytes_of_update(n_rows: int, dtype: Any) -> int:
    """Return what an update takes for each coefficient: masses of every part of the rows, and sums.

    The number beside the masses was measured.
    """
    return 56 + 2 * np.dtype(dtype).itemsize * len(threads.even_parts(n_rows, ROWS_PER_TASK))


class ParallelUpdate:
    """One update of all coefficients at once, Eq. (46), for features as they are given.

    Parameters
    ----------
    X : dense or CSR matrix
    labels : LabelSets
    weights : ndarray of shape (n, 2)
        What a pair of a row counts, and what the row counts; rows whose pairs count 0 are not read.

    Attributes
    ----------
    rho : float
        Twice the largest sum of absolute features of a row, the constant one included.
    """

    def __init__(self, X: Any, labels: LabelSets, weights: Array) -> None:
        self._dtype, self._weights = X.dtype, weights
        self._labels = (labels.starts, labels.members)
        self._rows = np.flatnonzero(weights[:, 0])
        self._shape = (labels.n_labels, X.shape[1] + 1)
        self._sparse = sparse.issparse(X)
        if self._sparse:
            self._matrix = (X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data)
            sums = np.asarray(abs(X).sum(axis=1)).ravel()[self._rows]
        else:
            self._matrix = X
            blocks = threads.row_blocks(len(self._rows), ROWS_PER_BLOCK)
            sums = np.concatenate([np.abs(X[self._rows[b]]).sum(axis=1) for b in blocks])
        self.rho = 2 * (1 + float(sums.max()))
        self._typical_rho = 2 * (1 + float(np.median(sums)))

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the loss at coefficients (m, d + 1), intercepts last, and the step from there."""
        with one_blas_thread():
            loss, raising, lowering = self.masses(theta)
        least = SMALLEST_SHARE * (raising.sum() + lowering.sum()) / raising.size
        if least == 0:
            return loss, np.zeros_like(theta)
        return loss, np.log((raising + least) / (lowering + least)) / (2 * self.rho)

    def masses(self, theta: Array) -> tuple[float, Array, Array]:
        """Return the loss, and the masses W- and W+ that would raise or lower each coefficient."""
        turned = np.ascontiguousarray(theta.T, dtype=self._dtype)
        pieces = [self._rows[part] for part in threads.even_parts(len(self._rows), ROWS_PER_TASK)]
        losses, raising, lowering = zip(
            *threads.run([partial(self._chunk, rows, turned) for rows in pieces]), strict=True
        )
        return float(sum(losses)), sum(raising), sum(lowering)

    def _chunk(self, rows: Array, theta: Array) -> tuple[float, Array, Array]:
        kernel = csr_masses if self._sparse else dense_masses
        shape = theta.shape if self._sparse else theta.shape[::-1]
        raising, lowering = np.zeros((2, *shape))
        shared = (theta, self._weights, self._labels, raising, lowering)
        loss = kernel(self._matrix, rows, ROWS_PER_BLOCK, *shared)
        return (loss, raising.T, lowering.T) if self._sparse else (loss, raising, lowering)

    def slowness(self) -> float:
        """Return about how many times longer than need be most coefficients take to move.

        Rho over what it is for a typical row, or over what it would be if all features varied as
        the median feature does, whichever is larger.
        """
        n_features = self._shape[1] - 1
        ones = np.ones(len(self._weights))
        if self._sparse:
            moments = np.stack(csr_moments(self._matrix, self._rows, ones, n_features))
        else:
            moments = dense_moments(self._matrix, np.zeros(n_features), self._rows, ones)
        mean, square = moments / len(self._rows)
        spread = np.sqrt(np.maximum(square - mean**2, 0))
        typical = np.median(spread[spread > 0]) if spread.any() else np.inf
        return self.rho / min(self._typical_rho, 2 * (1 + n_features * float(typical)))
