"""The threshold at which label sets keep a risk below a level, whatever the ranker.

Sets are the labels whose score is at least a threshold t. Each risk is a mean over rows of a loss
that only grows with t, at each of some cells by a known amount when t passes the cell's score. With
n rows that the ranker has not seen, and losses of at most B, the largest t at which

    (sum of losses + B) / (n + 1) <= level

keeps the expected loss of a further row at or below the level, if rows are exchangeable: conformal
risk control (Angelopoulos, Bates, Fisch, Lei, Schuster 2022).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.core.labels import LabelSets

Floats = NDArray[np.float64]
# Scores of cells, and the loss of leaving each out.
Cells = tuple[Floats, Floats]


def missed_share(scores: NDArray[Any], labels: LabelSets) -> Cells:
    """Share of a row's relevant labels that are not in its set; 0 for a row without any."""
    rows = labels.rows
    return scores[rows, labels.members], 1 / labels.sizes[rows]


def any_missed(scores: NDArray[Any], labels: LabelSets) -> Cells:
    """Whether any relevant label of a row is not in its set."""
    last = _last_relevant(scores, labels)
    return last, np.ones(len(last))


def labels_beyond(scores: NDArray[Any], labels: LabelSets) -> Cells:
    """Labels to read on, below the set, until the last relevant one has been read."""
    last = _last_relevant(scores, labels)
    scores = scores[labels.sizes > 0]
    read = scores[scores >= last[:, None]]
    return read, np.ones(len(read))


def _last_relevant(scores: NDArray[Any], labels: LabelSets) -> Floats:
    """Return the lowest score of a relevant label of each row that has one."""
    starts = labels.starts[:-1][labels.sizes > 0]
    if not len(starts):
        return np.empty(0)
    return np.minimum.reduceat(scores[labels.rows, labels.members], starts)


class Risk(NamedTuple):
    """A risk: its cells, and the largest loss of a row with m labels."""

    cells: Callable[[NDArray[Any], LabelSets], Cells]
    largest: Callable[[int], float]


RISKS: dict[str, Risk] = {
    "missed-share": Risk(missed_share, lambda m: 1.0),
    "any-missed": Risk(any_missed, lambda m: 1.0),
    "labels-beyond": Risk(labels_beyond, float),
}


def safe_threshold(scores: NDArray[Any], labels: LabelSets, risk: Risk, level: float) -> float:
    """Return the largest threshold that keeps the risk of a further row at the level.

    Infinity where even empty sets do.
    """
    n_rows, n_labels = scores.shape
    largest = risk.largest(n_labels)
    allowed = level * (n_rows + 1) - largest
    if allowed < 0:
        needed = int(np.ceil(largest / level)) - 1
        raise ValueError(
            f"level {level} needs at least {needed} rows to calibrate on; got {n_rows}: give more "
            "rows, a larger calibration_size or a larger level"
        )
    at, losses = risk.cells(scores, labels)
    order = np.argsort(at, kind="stable")
    # Leaving out a cell leaves out all of lower score; at its own score it is in.
    total = np.cumsum(losses[order])
    beyond = int(np.searchsorted(total, allowed + 1e-9 * max(1.0, allowed), side="right"))
    return float(at[order[beyond]]) if beyond < len(at) else np.inf
