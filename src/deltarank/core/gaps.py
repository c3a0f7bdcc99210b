"""Sparse matrices in files, with gaps between row numbers instead of the numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core.kernels.gaps import count_gaps, read_gaps, write_gaps

Array = NDArray[Any]
_TYPES = (np.uint8, np.uint16)


def split_gaps(matrix: Any) -> tuple[Array, Array, Array]:
    """Return the values of a sparse matrix column by column, where columns start, and gaps.

    A gap is the number of rows before a value that have none in its column. All are of the one type
    in which they take less room: a number that is the largest of its type stands for that many
    rows, and the gap goes on with the next number.

    Examples
    --------
    >>> values, starts, gaps = split_gaps(sparse.csc_array([[0, 0], [5, 0], [6, 0], [0, 7]]))
    >>> values.tolist(), starts.tolist(), gaps
    ([5, 6, 7], [0, 2, 3], array([1, 0, 3], dtype=uint8))
    >>> join_gaps(values, starts, gaps, 4).toarray()
    array([[0, 0],
           [5, 0],
           [6, 0],
           [0, 7]])
    """
    matrix = sparse.csc_array(matrix)
    matrix.sum_duplicates()  # rows ascend from here on, if they did not before
    starts, indices = matrix.indptr.astype(np.int64), matrix.indices
    most = [int(np.iinfo(kind).max) for kind in _TYPES]
    lengths = [count_gaps(starts, indices, it) for it in most]
    sizes = [n * np.dtype(kind).itemsize for n, kind in zip(lengths, _TYPES, strict=True)]
    best = int(np.argmin(sizes))
    gaps = np.empty(lengths[best], _TYPES[best])
    write_gaps(starts, indices, most[best], gaps)
    return matrix.data, matrix.indptr, gaps


def join_gaps(values: Array, starts: Array, gaps: Array, n_rows: int) -> sparse.csc_array:
    """Return the matrix that `split_gaps` was given; its values are used as they are.

    Raises ValueError where there is no such matrix.
    """
    if values.ndim != 1 or starts.ndim != 1 or starts.dtype.kind not in "iu":
        raise ValueError("values and starts must be vectors, starts of integers")
    starts = starts.astype(np.int64)
    ends = [*starts[:1].tolist(), *starts[-1:].tolist()]
    if ends != [0, len(values)] or (np.diff(starts) < 0).any():
        raise ValueError("starts must ascend from zero to the number of values")
    if gaps.ndim != 1 or gaps.dtype not in _TYPES:
        raise ValueError(f"gaps must be a vector of uint8 or uint16; got {gaps.dtype}")
    kind = sparse.get_index_dtype(maxval=max(n_rows, len(starts), len(values)))
    indices = np.empty(len(values), kind)
    if not read_gaps(starts, gaps, int(np.iinfo(gaps.dtype).max), n_rows, indices):
        raise ValueError(f"gaps must lead to one of {n_rows} rows for each value")
    shape = (n_rows, len(starts) - 1)
    return sparse.csc_array((values, indices, starts.astype(kind)), shape=shape)
