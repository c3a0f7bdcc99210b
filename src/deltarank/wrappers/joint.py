"""Sets of largest expected F from a ranker that was fitted to pairs of a label and a number."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.threads import row_blocks
from deltarank.decisions.joint import Joint, best_joint_f_sets
from deltarank.wrappers.marginals import chances_of

# Rows whose chances of pairs are held at once.
ROWS_AT_ONCE = 4096


def joint_f_sets(
    ranker: Any, joint: Joint, X: Any, n_labels: int, beta: float, most: int
) -> NDArray[np.bool_]:
    """Mark the best set of each checked row, of at most `most` labels, shape (n, m)."""
    marks = np.zeros((X.shape[0] if hasattr(X, "shape") else len(X), n_labels), bool)
    for rows in row_blocks(len(marks), ROWS_AT_ONCE):
        chances = chances_of(ranker, X[rows])
        marks[rows] = best_joint_f_sets(joint, chances, n_labels, beta, most)
    return marks
