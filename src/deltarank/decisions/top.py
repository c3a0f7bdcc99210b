"""The first labels of each row, and of all rows together within a budget."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.kernels.top_labels import select_top
from deltarank.core.threads import row_blocks, run


def first_labels(scores: NDArray[Any], k: int) -> NDArray[np.intp]:
    """Return the columns of the k largest scores of each row, best first, ties by column."""
    ranked = np.empty((len(scores), k), np.intp)
    scores = np.ascontiguousarray(scores)
    blocks = row_blocks(len(scores), 1024)
    run([partial(select_top, scores[rows], k, ranked[rows]) for rows in blocks])
    return ranked


def mark_first(scores: NDArray[Any], k: int) -> NDArray[np.bool_]:
    """Mark the k largest scores of each row."""
    marks = np.zeros(scores.shape, bool)
    np.put_along_axis(marks, first_labels(scores, k), True, axis=1)
    return marks


def mark_within_budget(gains: NDArray[Any], k: int, budget: int) -> NDArray[np.bool_]:
    """Mark the cells of largest sum of gains: at most k per row, `budget` in all, none at a loss.

    Sets of cells with at most this many per row, and in all, form a matroid, in which taking the
    largest gains first is best.
    """
    first = first_labels(gains, k)
    values = np.take_along_axis(gains, first, axis=1)
    # Stable, so that of equal gains those of earlier rows and better places go first.
    order = np.argsort(-values, axis=None, kind="stable")[:budget]
    order = order[values.ravel()[order] > 0]
    marks = np.zeros(gains.shape, bool)
    marks[order // k, first.ravel()[order]] = True
    return marks
