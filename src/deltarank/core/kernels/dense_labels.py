"""Find the relevant labels in a dense zero-one matrix."""

import numpy as np

from deltarank.core.compiling import njit


@njit(nogil=True, cache=True)
def list_marked(marks, starts, members):
    """List the marked columns of each row.

    `members` must have a place to spare: each cell is written down and kept only if it is marked,
    which costs one store per cell and no branch.
    """
    n_rows, n_columns = marks.shape
    count = 0
    for i in range(n_rows):
        starts[i] = count
        for j in range(n_columns):
            members[count] = np.int32(j)
            count += np.int64(marks[i, j])
    starts[n_rows] = count
