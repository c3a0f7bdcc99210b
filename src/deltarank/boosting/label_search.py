"""Rounds of boosting in which every label has a stump of its own."""

from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deltarank.boosting.bins import Bins, Cuts
from deltarank.boosting.choice import Stumps
from deltarank.boosting.kernels.votes import add_label_votes, univariate_weights
from deltarank.boosting.search import StumpSearch, Tiles
from deltarank.core.devices import fitting_device
from deltarank.core.kernels.lanes import LANES
from deltarank.core.labels import LabelSets
from deltarank.core.threads import row_blocks

# Rows reweighted at a time: scores and cells of a tile stay in cache.
ROWS_PER_TASK = 8192


class LabelStumps(Protocol):
    """Weights of all rows and labels, and the search for stumps in them.

    Labels have places, in an order of its own; `to_labels` puts values back.
    """

    cuts: Cuts
    n_places: int
    n_known: NDArray[np.int64]
    tie: float

    def next(
        self, active: NDArray[np.bool_], votes: NDArray[np.float64], shift: NDArray[np.float64]
    ) -> Stumps:
        """Weigh rows by the last stumps' votes (3, places); return the best stumps for that.

        A cell weighs ``w_i exp(-y_il f_l(x_i) - shift_l)``. Stumps of places that are not active
        mean nothing.
        """

    def to_labels(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bring values in the order of places, along the last axis, into that of labels."""


def place_stumps(
    bins: Bins, labels: LabelSets, weights: NDArray[np.float64], criterion: str, device: str
) -> LabelStumps:
    """Return the rounds of boosting on a device, or on this machine's cores.

    With ``device="auto"`` data stay here, even where there is a device, if it would not pay.
    """
    target = fitting_device(device, labels.n_rows, bins.n_features, labels.n_labels)
    if target is None:
        return LocalLabelStumps(bins, labels, weights, criterion)
    from deltarank.boosting.device_search import DeviceLabelStumps

    return DeviceLabelStumps(bins, labels, weights, criterion, target)


class LocalLabelStumps:
    """See `LabelStumps`: eight labels a tile, tiles shared out among threads."""

    def __init__(
        self, bins: Bins, labels: LabelSets, weights: NDArray[np.float64], criterion: str
    ) -> None:
        self.cuts: Cuts = bins
        self._bins, self._tiles = bins, Tiles(labels, bins)
        self._search = StumpSearch(bins, self._tiles, criterion)
        self._log_weights = np.log(weights)
        self._last: Stumps | None = None
        self.n_places, self.tie = self._tiles.n_places, self._search.tie
        self.n_known = np.maximum(np.count_nonzero(self._tiles.signs, axis=1).ravel(), 1)
        self.to_labels = self._tiles.to_labels

    def next(
        self, active: NDArray[np.bool_], votes: NDArray[np.float64], shift: NDArray[np.float64]
    ) -> Stumps:
        """See `LabelStumps.next`."""
        working = np.flatnonzero(active.reshape(-1, LANES).any(axis=1))
        tasks = []
        for tile in map(int, working):
            lanes = slice(tile * LANES, (tile + 1) * LANES)
            codes = None if self._last is None else self._bins.columns(self._last.feature[lanes])
            blocks = row_blocks(len(self._log_weights), ROWS_PER_TASK)
            tasks += [partial(self._reweigh, tile, rows, codes, votes, shift) for rows in blocks]
        self._search.run(tasks)
        self._last = self._search.per_label(working)
        return self._last

    def _reweigh(
        self,
        tile: int,
        rows: slice,
        codes: NDArray[Any] | None,
        votes: NDArray[np.float64],
        shift: NDArray[np.float64],
    ) -> None:
        """Add the votes of the last stumps, if any, to scores, and weigh the rows anew."""
        tiles, lanes = self._tiles, slice(tile * LANES, (tile + 1) * LANES)
        scores = tiles.scores[tile, rows]
        if self._last is not None and codes is not None:
            missing = self._bins.n_values[self._last.feature[lanes]]
            add_label_votes(codes[:, rows], self._last.cut[lanes], missing, votes[:, lanes], scores)
        signs, cells = tiles.signs[tile, rows], tiles.cells[tile, rows]
        gaps = tiles.has_gaps[tile]
        univariate_weights(scores, signs, self._log_weights[rows], shift[lanes], gaps, cells)
