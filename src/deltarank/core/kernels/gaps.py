"""Row numbers of sparse columns as gaps: a byte or two each, where int32 takes four."""

import numpy as np

from deltarank.core.compiling import njit


@njit(nogil=True, cache=True)
def count_gaps(starts, indices, most):
    """Return how many numbers up to `most` the gaps between row numbers take: see `write_gaps`."""
    n_written = indices.shape[0]
    for column in range(starts.shape[0] - 1):
        row = -1
        for k in range(starts[column], starts[column + 1]):
            n_written += (indices[k] - row - 1) // most
            row = indices[k]
    return n_written


@njit(nogil=True, cache=True)
def write_gaps(starts, indices, most, gaps):
    """Write how many rows lie between the values of each column, and above its first.

    Parameters
    ----------
    starts, indices : ndarray
        Of a CSC matrix, rows of a column ascending.
    most : int
        The largest number of the type of `gaps`. It stands for as many rows, without a value after
        them: more numbers follow until one is smaller.
    gaps : ndarray
        As many as `count_gaps` says.
    """
    place = 0
    for column in range(starts.shape[0] - 1):
        row = -1
        for k in range(starts[column], starts[column + 1]):
            gap = indices[k] - row - 1
            while gap >= most:
                gaps[place] = most
                gap -= most
                place += 1
            gaps[place] = gap
            row = indices[k]
            place += 1


@njit(nogil=True, cache=True)
def read_gaps(starts, gaps, most, n_rows, indices):
    """Write the row numbers that `write_gaps` was given; return whether there are such.

    The starts must ascend from zero to the number of indices. Of gaps nothing is trusted.
    """
    place, n_gaps = 0, gaps.shape[0]
    for column in range(starts.shape[0] - 1):
        row = np.int64(-1)
        for k in range(starts[column], starts[column + 1]):
            row += 1
            while place < n_gaps and gaps[place] == most:
                row += most
                place += 1
            if place == n_gaps:
                return False
            row += np.int64(gaps[place])
            place += 1
            if row >= n_rows:
                return False
            indices[k] = row
    return place == n_gaps
