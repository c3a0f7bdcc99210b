"""Scores on their way to a ranking: one finite column per label, and the best of each row."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.kernels.top_labels import select_top
from deltarank.core.scores import check_finite
from deltarank.core.threads import row_blocks, run


def check_scores(scores: NDArray[Any], n_labels: int, first_row: int = 0) -> NDArray[Any]:
    """Return scores that name labels by their columns, or refuse them."""
    if scores.ndim != 2 or scores.shape[1] != n_labels:
        raise ValueError(
            f"the scores must have one column for each of the {n_labels} labels; got shape "
            f"{scores.shape}: attributes of the ranker do not fit each other, so fit it again"
        )
    check_finite(scores, first_row)
    return scores


def select_in_threads(scores: NDArray[Any], ranked: NDArray[np.intp]) -> None:
    """Write the best columns of each row of scores, rows shared out among threads."""
    top = ranked.shape[1]
    blocks = row_blocks(len(scores), 1024)
    run([partial(select_top, scores[rows], top, ranked[rows]) for rows in blocks])


def check_top(top: Any, n_labels: int) -> int:
    """Return `top` as an integer, or refuse it."""
    if not isinstance(top, int | np.integer) or isinstance(top, bool) or not 1 <= top <= n_labels:
        raise ValueError(
            f"top must be an integer from 1 to the number of labels, {n_labels}; got {top!r}"
        )
    return int(top)
