"""The one pass all ranking metrics share: where the relevant labels stand."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.core.arguments import refuse_hidden
from deltarank.core.labels import LabelSets, label_sets
from deltarank.core.threads import n_threads, row_blocks, run
from deltarank.metrics.kernels.positions import leave_out, place_relevant

_USED_AS_THEY_ARE = (np.float32, np.float64)


class Placement(NamedTuple):
    """Ranked position of each relevant label: one value per member of `labels`.

    `above` labels score higher and `tied` the same (itself included); of those `better` and
    `equal` are relevant. Unknown labels count nowhere. `Y` is kept in its original form for
    weights that are callables, and `scores` for metrics that count irrelevant labels too.
    """

    labels: LabelSets
    Y: Any
    above: NDArray[np.int32]
    tied: NDArray[np.int32]
    better: NDArray[np.int32]
    equal: NDArray[np.int32]
    scores: NDArray[Any]

    def chance_of_place(self, k: int) -> NDArray[np.float64]:
        """Probability that a relevant label is among the first k, its ties in random order."""
        room = self.check_k(k) - self.above
        return np.clip(room, 0, self.tied) / self.tied

    def check_k(self, k: Any) -> int:
        """Return k as an integer from 1 to the number of labels, or refuse it."""
        n_labels = self.labels.n_labels
        if not isinstance(k, int | np.integer) or isinstance(k, bool) or not 1 <= k <= n_labels:
            raise ValueError(
                f"k must be an integer from 1 to the number of labels, {n_labels}; got {k!r}"
            )
        return int(k)

    def row_sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Add up the values of each row's members."""
        return self._reduce(np.add, values)

    def row_maxima(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Take, for each row, the largest of its members' values; 0 where there is none."""
        return self._reduce(np.maximum, values)

    def _reduce(self, operation: np.ufunc, values: NDArray[Any]) -> NDArray[np.float64]:
        result = np.zeros(self.labels.n_rows)
        occupied = self.labels.sizes > 0
        if occupied.any():
            result[occupied] = operation.reduceat(values, self.labels.starts[:-1][occupied])
        return result


def place(Y: Any, scores: Any, classes: Any = None) -> Placement:
    """Check labels and scores, and place each relevant label in its row's ranking."""
    scores = check_scores(scores)
    labels = label_sets(Y, n_labels=scores.shape[1], classes=classes)
    if labels.n_rows != len(scores):
        raise ValueError(
            f"scores must have a row for each of the {labels.n_rows} rows of Y; "
            f"got shape {scores.shape}"
        )
    counts = np.empty((4, len(labels.members)), np.int32)
    tasks = [
        partial(
            place_relevant,
            labels.starts, labels.members, scores, rows.start, rows.stop, *counts,
        )
        for rows in row_blocks(labels.n_rows, -(-labels.n_rows // n_threads()))
    ]  # fmt: skip
    for row in run(tasks):
        if row >= 0:
            raise ValueError(
                f"scores must be finite; row {row} holds NaN or infinity "
                "(replace them, or clip scores to a large finite value)"
            )
    if labels.unknown is not None:
        unknown = labels.unknown.starts, labels.unknown.members
        leave_out(labels.starts, labels.members, *unknown, scores, counts[0], counts[1])
    above, tied, better, equal = counts
    return Placement(labels, Y, above, tied, better, equal, scores)


def check_scores(scores: Any) -> NDArray[Any]:
    """Bring scores to a C-ordered float32 or float64 matrix."""
    refuse_hidden(scores, "scores")
    array = np.asarray(scores)
    if array.dtype.kind not in "buif":
        raise ValueError(f"scores must be numbers; got values of type {array.dtype}")
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            f"scores must have shape (n, m), one row per instance and one column per label; "
            f"got shape {array.shape}"
        )
    wanted = array.dtype if array.dtype in _USED_AS_THEY_ARE else np.float64
    return np.ascontiguousarray(array, dtype=wanted)
