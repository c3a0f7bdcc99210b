"""The label set of largest expected F-measure of each row, labels being independent given x.

Among sets of one size the likeliest labels are the best, so only sizes need to be compared. The
expected F of a size is a sum over the numbers of relevant labels inside and outside the set, whose
chances are two Poisson binomial distributions. (Ye, Chai, Lee, Chieu, ICML 2012.)
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.threads import row_blocks, run
from deltarank.decisions.kernels.f_measure import best_sizes
from deltarank.decisions.top import first_labels

ROWS_PER_TASK = 64


def best_f_sets(chances: NDArray[Any], beta: float, most: int) -> NDArray[np.bool_]:
    """Mark the labels of each row's best set, of at most `most` labels, shape (n, m).

    F of two empty sets is 1.
    """
    sizes = np.empty(len(chances), np.int64)
    blocks = row_blocks(len(chances), ROWS_PER_TASK)
    run([partial(best_sizes, chances[rows], beta**2, most, sizes[rows]) for rows in blocks])
    order = first_labels(chances, max(1, int(sizes.max(initial=0))))
    marks = np.zeros(chances.shape, bool)
    taken = np.arange(order.shape[1]) < sizes[:, None]
    rows = np.repeat(np.arange(len(chances)), sizes)
    marks[rows, order[taken]] = True
    return marks
