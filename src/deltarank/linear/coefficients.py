"""Coefficients of linear rankers, dense or with the small ones left out, and scores from them."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core import threads
from deltarank.linear.kernels.sparse_scores import add_sparse_scores

Array = NDArray[Any]
ROWS_PER_TASK = 64


def pruned(coef: Array, threshold: float) -> tuple[sparse.csr_array, Array]:
    """Leave out coefficients that are below a threshold in size.

    Returns
    -------
    kept : CSR array of shape (p, d)
    effect : array of shape (p,)
        Euclidean length of what was left out: no score of a row of length 1 changes by more
        (Cauchy and Schwarz).

    Examples
    --------
    >>> kept, effect = pruned(np.array([[2.0, 0.3, -0.4], [0.0, 1.0, -5.0]]), 0.5)
    >>> kept.toarray()
    array([[ 2.,  0.,  0.],
           [ 0.,  1., -5.]])
    >>> effect
    array([0.5, 0. ])
    """
    small = np.abs(coef) < threshold
    lost = np.where(small, coef, 0.0).astype(np.float64)
    return sparse.csr_array(np.where(small, 0.0, coef)), np.linalg.norm(lost, axis=1)


def joined(parts: list[Any], order: Array) -> Any:
    """Put blocks of labels together, in the given order; sparse ones feature after feature.

    The list is emptied on the way: dense parts go as soon as they are copied.
    """
    if sparse.issparse(parts[0]):
        return sparse.csc_array(sparse.vstack(parts, format="csr")[order])
    whole = np.empty((len(order), *parts[0].shape[1:]), parts[0].dtype)
    positions, end = np.argsort(order), len(order)
    while parts:
        part = parts.pop()
        whole[positions[end - len(part) : end]] = part
        end -= len(part)
    return whole


def without(coef: Any, labels: NDArray[np.bool_]) -> Any:
    """Return coefficients with those of some labels set to zero."""
    if not sparse.issparse(coef):
        return np.where(labels[:, None], 0.0, coef)
    kept = coef.copy()
    kept.data[labels[kept.indices]] = 0.0
    kept.eliminate_zeros()
    return kept


def of_label(coef: Any, label: int) -> NDArray[np.float64]:
    """Return the coefficients (d,) of one label."""
    row = coef[[label]].toarray()[0] if sparse.issparse(coef) else coef[label]
    return np.asarray(row, dtype=np.float64)


def linear_scores(X: Any, coef: Any, intercept: Array) -> Array:
    """Return X coef^T + intercept, in the precision of X: wider would widen a copy of X."""
    coef, intercept = coef.astype(X.dtype, copy=False), intercept.astype(X.dtype, copy=False)
    if not sparse.issparse(coef):
        scores = X @ coef.T
        scores += intercept
        return np.asarray(scores)
    scores = np.tile(intercept, (X.shape[0], 1))
    rows, by_feature = _parts(sparse.csr_array(X)), _parts(sparse.csc_array(coef))
    blocks = threads.row_blocks(len(scores), ROWS_PER_TASK)
    tasks = [
        partial(add_sparse_scores, rows, by_feature, block.start, scores[block]) for block in blocks
    ]
    threads.run(tasks)
    return scores


def _parts(matrix: Any) -> tuple[Array, Array, Array]:
    positions = (
        matrix.indptr.astype(np.int64, copy=False),
        matrix.indices.astype(np.int32, copy=False),
    )
    return *positions, matrix.data
