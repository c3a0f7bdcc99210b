"""A finite map for the Gaussian kernel: as exact as its landmarks are many."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core import memory
from deltarank.core.blas import one_blas_thread
from deltarank.core.progress import progress
from deltarank.core.threads import n_threads, row_blocks, run

# Each task holds this many kernel values at a time: 8 MB of float32.
CELLS_PER_TASK = 2_000_000
# Directions of the landmarks' kernel with less than this share of the largest are rounding.
SMALLEST_SHARE = 1e-7


class NystromMap(NamedTuple):
    """Features phi(x) whose products approximate exp(-gamma |x - z|^2).

    Exact between landmarks; elsewhere the kernel of the projections onto their span.

    Attributes
    ----------
    landmarks : array or CSR of shape (k, d)
    gamma : float
    whitening : array of shape (k, r)
        phi(x) is the row of kernel values between x and the landmarks, times this.
    """

    landmarks: Any
    gamma: float
    whitening: NDArray[Any]

    @classmethod
    def fitted(cls, landmarks: Any, gamma: float) -> "NystromMap":
        """Return the map of some landmarks, one per row."""
        kernel = gaussian_kernel(landmarks, landmarks, gamma).astype(np.float64)
        values, vectors = np.linalg.eigh(kernel)
        kept = values > SMALLEST_SHARE * values[-1]
        whitening = vectors[:, kept] / np.sqrt(values[kept])
        return cls(landmarks, gamma, np.ascontiguousarray(whitening, landmarks.dtype))

    def __call__(self, X: Any) -> NDArray[Any]:
        """Return phi of each row, shape (n, r), computed in blocks of rows on all threads."""
        shape = X.shape[0], self.whitening.shape[1]
        memory.require(
            shape[0] * shape[1] * self.whitening.itemsize,
            f"a map of {shape[0]} rows by {shape[1]} landmarks",
            "take fewer landmarks or rows",
        )
        mapped = np.empty((X.shape[0], self.whitening.shape[1]), self.whitening.dtype)

        def fill(rows: slice) -> None:
            kernel = gaussian_kernel(X[rows], self.landmarks, self.gamma)
            np.matmul(kernel, self.whitening, out=mapped[rows])

        blocks = row_blocks(X.shape[0], max(1, CELLS_PER_TASK // len(self.whitening)))
        with one_blas_thread(), progress("mapping", len(blocks)) as done:
            # Threads wait for each other a few times where progress is to be shown.
            at_once = 4 * n_threads() if done.is_heard else max(1, len(blocks))
            for some in row_blocks(len(blocks), at_once):
                run([partial(fill, rows) for rows in blocks[some]])
                done(some.stop)
        return mapped


def gaussian_kernel(X: Any, Z: Any, gamma: float) -> NDArray[Any]:
    """Return exp(-gamma |x - z|^2) of all pairs of rows, in the precision of Z."""
    squares = squared_distances(X, Z)
    squares *= -gamma
    return np.exp(squares, out=squares)


def squared_distances(X: Any, Z: Any) -> NDArray[Any]:
    """Return |x - z|^2 of all pairs of rows, dense or sparse."""
    products = X @ Z.T
    squares = -2 * (products.toarray() if sparse.issparse(products) else products)
    squares += _square_norms(X)[:, None]
    squares += _square_norms(Z)
    return np.maximum(squares, 0, out=squares).astype(Z.dtype, copy=False)


def _square_norms(X: Any) -> NDArray[Any]:
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)
