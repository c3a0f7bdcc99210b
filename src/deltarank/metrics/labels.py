"""Metrics of the labels among the first k, each label on its own, then their mean.

What is counted of a label over all rows is no mean of values of rows. So rows add to tallies, one
of each kind a label, and the metric is a function of the tallies.

Labels with equal scores have no order: a label counts with its chance to be among the first k, as
if every row drew an order of its own. `macro_recall_at_k` and `coverage_at_k` are thereby their
mean over all orders, as the metrics of rows are; `macro_precision_at_k` and `macro_f1_at_k`, which
divide by a count that depends on the order, are the value at the mean counts.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.core.choices import choose
from deltarank.core.kernels.exact_sum import add_exactly_at
from deltarank.core.labels import LabelSets
from deltarank.core.threads import n_threads, row_blocks, run
from deltarank.metrics.kernels.first_labels import last_places, list_first
from deltarank.metrics.placement import Placement

Floats = NDArray[np.float64]
# Cells of a block of rows, each of which may be listed where all scores tie.
CELLS_PER_BLOCK = 1_000_000
# Whether a label that is relevant in no row is left out of the mean.
LEFT_OUT = {"zero": False, "skip": True}


class ExactSums:
    """Running sums, one per place, that are rounded only when they are read."""

    def __init__(self, n_places: int) -> None:
        # Sums of whole numbers have one part, and few others have more than four.
        self._parts = np.zeros((n_places, 4))
        self._n_parts = np.zeros(n_places, np.int64)

    def add(self, places: NDArray[Any], values: Floats) -> None:
        """Add each value at its place."""
        added = 0
        while True:
            added = add_exactly_at(self._parts, self._n_parts, places, values, added)
            if added == len(values):
                return
            self._parts = np.hstack([self._parts, np.zeros_like(self._parts)])

    def merge(self, other: "ExactSums") -> None:
        """Add other sums, place by place."""
        for part in range(other._parts.shape[1]):
            places = np.flatnonzero(other._n_parts > part)
            self.add(places, other._parts[places, part])

    def read(self) -> Floats:
        """Return the sums, each rounded once."""
        sums = self._parts[:, 0] * (self._n_parts > 0)
        for place in np.flatnonzero(self._n_parts > 1):
            sums[place] = math.fsum(self._parts[place, : self._n_parts[place]])
        return sums


class Tallies(NamedTuple):
    """What is counted of each label over all rows, shape (m,), rows weighing what they weigh.

    `hits` where it is relevant and among the first k, `chosen` where it is among them, `relevant`
    where it is relevant; `hit_anywhere` is the chance that it is a hit in any row at all.
    """

    hits: Floats
    chosen: Floats
    relevant: Floats
    hit_anywhere: Floats


def precision(tallies: Tallies) -> Floats:
    """Share of the rows with the label among the first k that have it; 0 if there are none."""
    return _ratio(tallies.hits, tallies.chosen)


def recall(tallies: Tallies) -> Floats:
    """Share of the rows that have the label with it among the first k; 0 if there are none."""
    return _ratio(tallies.hits, tallies.relevant)


def f1(tallies: Tallies) -> Floats:
    """Harmonic mean of precision and recall; 0 for a label neither chosen nor relevant."""
    return _ratio(2 * tallies.hits, tallies.chosen + tallies.relevant)


def coverage(tallies: Tallies) -> Floats:
    """Whether the label is among the first k of a row that has it."""
    return tallies.hit_anywhere


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


class LabelSums:
    """Tallies of each label over batches of rows; the result is a mean over labels."""

    def __init__(
        self, values: Callable[[Tallies], Floats], *, k: int, trivial: str = "zero"
    ) -> None:
        self._values, self._k = values, k
        self._skip = choose(LEFT_OUT, trivial, "trivial")
        self._sums: dict[str, ExactSums] = {}

    def add(self, placement: Placement, weights: Floats) -> None:
        """Take in a batch of rows."""
        labels = placement.labels
        self._start(labels.n_labels)
        members, hits = labels.members.astype(np.int64), placement.chance_of_place(self._k)
        counts = weights[labels.rows]
        self._sums["hits"].add(members, counts * hits)
        self._sums["relevant"].add(members, counts)
        self._certain[members[(hits == 1) & (counts > 0)]] = True
        # Rows draw the orders of their ties apart, so chances of a miss multiply.
        open_ones = (hits > 0) & (hits < 1) & (counts > 0)
        self._sums["log_missed"].add(members[open_ones], np.log1p(-hits[open_ones]))
        for rows, columns, chances in _first_cells(placement, self._k):
            self._sums["chosen"].add(columns, weights[rows] * chances)

    def _start(self, n_labels: int) -> None:
        if not self._sums:
            names = ("hits", "chosen", "relevant", "log_missed")
            self._sums = {name: ExactSums(n_labels) for name in names}
            self._certain = np.zeros(n_labels, bool)
        elif len(self._certain) != n_labels:
            raise ValueError(
                f"Y must have {len(self._certain)} labels, as in the batches before; got {n_labels}"
            )

    def merge(self, other: "LabelSums") -> None:
        """Take in what others have counted."""
        if other._sums:
            self._start(len(other._certain))
            for name, sums in self._sums.items():
                sums.merge(other._sums[name])
            self._certain |= other._certain

    def label_values(self) -> Floats:
        """Return the value of each label, NaN for one that is left out."""
        counted = {name: sums.read() for name, sums in self._sums.items()}
        hit_anywhere = np.where(self._certain, 1.0, -np.expm1(counted.pop("log_missed")))
        tallies = Tallies(**counted, hit_anywhere=hit_anywhere)
        left_out = self._skip & (tallies.relevant == 0)
        return np.where(left_out, np.nan, self._values(tallies))

    def result(self) -> float:
        """Return the mean over labels; 0 when all are left out."""
        values = self.label_values()
        values = values[~np.isnan(values)]
        return math.fsum(values) / len(values) if len(values) else 0.0


def _first_cells(placement: Placement, k: int) -> Any:
    """Yield rows, labels and chances of the cells that may be among the first k, by blocks."""
    labels, k = placement.labels, placement.check_k(k)
    for rows in row_blocks(labels.n_rows, max(1, CELLS_PER_BLOCK // labels.n_labels)):
        scores = _without_unknown(placement.scores[rows], rows, labels.unknown)
        lowest, chances = np.empty(len(scores), scores.dtype), np.empty(len(scores))
        run(
            [
                partial(last_places, scores[part], k, lowest[part], chances[part])
                for part in row_blocks(len(scores), -(-len(scores) // n_threads()))
            ]
        )
        listed, columns, values = list_first(scores, lowest, chances)
        yield listed + rows.start, columns, values


def _without_unknown(scores: NDArray[Any], rows: slice, unknown: LabelSets | None) -> NDArray[Any]:
    """Return scores of some rows, minus infinity for labels that are unknown there."""
    if unknown is None:
        return scores
    scores = scores.copy()
    cells = slice(unknown.starts[rows.start], unknown.starts[rows.stop])
    scores[unknown.rows[cells] - rows.start, unknown.members[cells]] = -np.inf
    return scores
