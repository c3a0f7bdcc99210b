"""The best labels of each row, without sorting the row."""

import numpy as np

from deltarank.core.compiling import njit


@njit(nogil=True, cache=True)
def select_top(scores, top, ranked):
    """Write the columns of the `top` largest scores of each row, best first, ties by column.

    A row is read once against the worst of the best so far; few scores pass, and those are put in
    their place by insertion. That is m comparisons a row and about top * log(m / top) insertions.
    """
    n_rows, m = scores.shape
    best = np.empty(top, scores.dtype)
    for i in range(n_rows):
        row = scores[i]
        chosen = ranked[i]
        kept = 0
        for j in range(m):
            value = row[j]
            if kept == top:
                if not value > best[top - 1]:
                    continue
                place = top - 1
            else:
                place = kept
                kept += 1
            while place > 0 and value > best[place - 1]:
                best[place] = best[place - 1]
                chosen[place] = chosen[place - 1]
                place -= 1
            best[place] = value
            chosen[place] = j
