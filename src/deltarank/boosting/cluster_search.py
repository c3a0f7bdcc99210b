"""Rounds of boosting over rows on the workers of a cluster, every label with a stump of its own.

Votes go to the workers, histograms come back, added up on the way; the choice of stumps is made
here, by the code that makes it for rows in one place.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.boosting.bins import Cuts
from deltarank.boosting.choice import StumpChoice, Stumps
from deltarank.boosting.places import Places
from deltarank.boosting.worker_rows import BinnedRows, Votes
from deltarank.core.kernels.lanes import LANES
from deltarank.core.threads import row_blocks, run
from deltarank.core.workers import Chunks, added

# Histograms of this many bytes travel at a time; those of one tile of labels always do.
MESSAGE_BYTES = 2**26
# Scores are those of the round before and one vote more. A worker that dies takes them with it, and
# they are made again from as many rounds as hang together, which the scheduler must remember; so
# now and then they are made from the first round on.
LONGEST_CHAIN = 64


class ClusterLabelStumps:
    """See `deltarank.boosting.label_search.LabelStumps`.

    Parameters
    ----------
    rows : Chunks of BinnedRows
    cuts : Cuts
        Between the bins of all rows.
    places : Places
    n_known : array of shape (m,)
        In how many rows each label is known.
    dtype : dtype
        Of histograms.
    criterion : str
    """

    def __init__(
        self,
        rows: Chunks,
        cuts: Cuts,
        places: Places,
        n_known: NDArray[np.int64],
        dtype: Any,
        criterion: str,
    ) -> None:
        self.cuts, self.n_places, self.to_labels = cuts, places.n_places, places.to_labels
        self.n_known = np.ones(places.n_places, np.int64)
        self.n_known[: len(n_known)] = np.maximum(n_known[places.order], 1)
        self._choice = StumpChoice(cuts, places.n_places, dtype, criterion)
        self.tie = self._choice.tie
        self._rows = rows
        self._rounds: list[Votes] = []
        self._last: Stumps | None = None
        self._scores = rows.map(BinnedRows.scores_after, [])
        bytes_of_tile = 2 * cuts.first_lines[-1] * LANES * np.dtype(dtype).itemsize
        self._tiles_per_message = max(1, MESSAGE_BYTES // int(bytes_of_tile))

    def next(
        self, active: NDArray[np.bool_], votes: NDArray[np.float64], shift: NDArray[np.float64]
    ) -> Stumps:
        """See `LabelStumps.next`."""
        if self._last is not None:
            self._add_votes(Votes(self._last.feature, self._last.cut, votes))
        working = np.flatnonzero(active.reshape(-1, LANES).any(axis=1))
        stumps = Stumps(
            np.zeros(self.n_places, np.int64),
            np.zeros(self.n_places, np.int64),
            np.zeros((3, 2, self.n_places)),
        )
        for some in row_blocks(len(working), self._tiles_per_message):
            tiles = working[some]
            lanes = (tiles[:, None] * LANES + np.arange(LANES)).ravel()
            for whole, part in zip(stumps, self._best(tiles, shift), strict=True):
                whole[..., lanes] = part[..., lanes]
        self._last = stumps
        return stumps

    def _add_votes(self, last: Votes) -> None:
        self._rounds.append(last)
        if len(self._rounds) % LONGEST_CHAIN:
            self._scores = self._rows.map(BinnedRows.with_votes, last, beside=self._scores)
        else:
            self._scores = self._rows.map(BinnedRows.scores_after, self._rounds)

    def _best(self, tiles: NDArray[np.int64], shift: NDArray[np.float64]) -> Stumps:
        """Return the best stumps of some tiles."""
        (packed,) = self._rows.total(
            BinnedRows.histograms, tiles, shift, merge=added, beside=self._scores
        )
        of_tile = dict(zip(tiles.tolist(), packed, strict=True))

        def histograms(features: slice, tile: int) -> tuple[NDArray[Any], NDArray[Any]]:
            weights, relevant = self.cuts.padded(of_tile[tile], features)
            return weights, relevant

        return self._choice.per_label(tiles, histograms, run)
