"""The search for stumps: the best threshold of any feature, for each label or for all together.

Labels are taken in tiles of eight. A round of boosting keeps, for every tile, scores and weights
(cells) of shape (n, 8); the search turns them into one histogram per feature and reads the best
threshold off it. Histograms of a group of features and a tile stay in cache; groups are shared out
among threads.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deltarank.boosting.bins import Bins, DenseBins
from deltarank.boosting.choice import HISTOGRAM_BYTES, StumpChoice, Stumps, branch_sums
from deltarank.boosting.kernels.splits import add_impurities, compact_split
from deltarank.boosting.kernels.votes import take_relevant
from deltarank.boosting.places import Places, aligned_empty, cell_type, rows_with_relevant
from deltarank.core.kernels.lanes import LANES
from deltarank.core.labels import LabelSets
from deltarank.core.threads import run

T = TypeVar("T")
# A round with less work than this, in additions of eight cells, is not worth waking threads for.
SINGLE_THREAD_WORK = 50_000


class Tiles(Places):
    """Signs, scores and weights of all labels, eight labels a tile.

    Parameters
    ----------
    labels : LabelSets
        Of the rows that count.
    bins : Bins

    Attributes
    ----------
    signs : array of int8, shape (tiles, n, LANES)
        See `Places.signs_of`.
    has_gaps : array of bool, shape (tiles,)
        Whether a tile has signs that are 0.
    scores : array of float64, shape (tiles, n, LANES)
    cells : array of shape (tiles, n, LANES)
        Weights, not negative.
    relevant_rows, relevant : lists of arrays
        For each tile, the rows with a relevant label, and their cells with the others zero.
    """

    def __init__(self, labels: LabelSets, bins: Bins) -> None:
        super().__init__(np.bincount(labels.members, minlength=labels.n_labels))
        self.signs = self.signs_of(labels)
        self.has_gaps = (self.signs == 0).any(axis=(1, 2))
        self.scores = np.zeros(self.signs.shape)
        dtype = cell_type(self.signs.size)
        self.cells = aligned_empty(self.signs.shape, dtype)
        self.relevant_rows = rows_with_relevant(self.signs, bins)
        self.relevant = [aligned_empty((len(rows), LANES), dtype) for rows in self.relevant_rows]

    def __len__(self) -> int:
        return len(self.signs)


class StumpSearch:
    """Finds stumps for the weights in `tiles` among the thresholds of `bins`."""

    def __init__(self, bins: Bins, tiles: Tiles, criterion: str) -> None:
        self.bins = bins
        self.tiles = tiles
        self.choice = StumpChoice(bins, tiles.n_places, tiles.cells.dtype, criterion)
        self.tie = self.choice.tie
        self.is_small = bins.n_features * tiles.cells.size // LANES < SINGLE_THREAD_WORK
        largest = max(group.stop - group.start for group in self.choice.groups)
        self._room = (largest * bins.n_bins, LANES)
        self._buffers = threading.local()
        n_lines = len(tiles) * bins.n_features * bins.n_bins
        self._compact = None
        line = 2 * LANES * tiles.cells.itemsize
        if isinstance(bins, DenseBins) and line * n_lines <= HISTOGRAM_BYTES:
            self._compact = aligned_empty((2, n_lines, LANES), tiles.cells.dtype)

    def run(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Run tasks, in threads if the data make that worth while."""
        return [task() for task in tasks] if self.is_small else run(tasks)

    def _update_relevant(self, active: Iterable[int]) -> None:
        """Bring the relevant cells of tiles up to date with their cells."""
        tiles = self.tiles
        self.run(
            [
                partial(
                    take_relevant,
                    tiles.cells[tile],
                    tiles.signs[tile],
                    tiles.relevant_rows[tile],
                    tiles.relevant[tile],
                )
                for tile in active
            ]
        )

    def per_label(self, active: NDArray[np.int64]) -> Stumps:
        """Return the best stump of every place in the `active` tiles."""
        self._update_relevant(active)
        return self.choice.per_label(active, self._histograms, self.run)

    def shared(self, total: float) -> Stumps:
        """Return the stump that is best for all labels together; `total` is the sum of cells."""
        if self._compact is not None:
            return self._shared_compact(self._compact)
        self._update_relevant(range(len(self.tiles)))
        impurities = np.zeros((self.bins.n_features, self.bins.n_bins))

        def search(features: slice) -> None:
            for tile in range(len(self.tiles)):
                add_impurities(
                    *self._histograms(features, tile),
                    self.bins.n_values[features],
                    self.bins.n_bins,
                    self.choice.criterion,
                    impurities[features],
                )

        self.run([partial(search, features) for features in self.choice.groups])
        first_best = (impurities <= impurities.min() + self.tie * total).argmax()
        feature, cut = np.unravel_index(first_best, impurities.shape)
        if np.isinf(impurities[feature, cut]):
            cut = self.bins.n_values[feature] - 1
        stump = int(feature), int(cut)
        sums = [
            branch_sums(self.bins, *stump, self._histograms, tile)
            for tile in range(len(self.tiles))
        ]
        return Stumps(np.array([feature]), np.array([cut]), np.concatenate(sums, axis=2))

    def _shared_compact(self, histograms: NDArray[Any]) -> Stumps:
        """Search all features and tiles in one go: few enough for one thread and one cache."""
        bins, tiles = self.bins, self.tiles
        sums = np.empty((3, 2, tiles.n_places))
        relevant, other = histograms
        feature, cut = compact_split(
            bins.columns(slice(None)),
            bins.n_values,
            bins.n_bins,
            tiles.cells.reshape(-1, LANES),
            tiles.signs.reshape(-1, LANES),
            self.choice.criterion,
            self.tie,
            relevant,
            other,
            sums,
        )
        return Stumps(np.array([feature]), np.array([cut]), sums)

    def _histograms(self, features: slice, tile: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the histograms of all and of the relevant cells, in this thread's buffers."""
        buffers = self._buffers.__dict__.setdefault("pair", None)
        if buffers is None:
            dtype = self.tiles.cells.dtype
            buffers = (aligned_empty(self._room, dtype), aligned_empty(self._room, dtype))
            self._buffers.pair = buffers
        n_lines = (features.stop - features.start) * self.bins.n_bins
        weights, relevant = buffers[0][:n_lines], buffers[1][:n_lines]
        self.bins.fill(features, self.tiles.cells[tile], weights)
        rows, cells = self.tiles.relevant_rows[tile], self.tiles.relevant[tile]
        self.bins.fill_relevant(features, rows, cells, relevant)
        return weights, relevant

    def branches(self, stumps: Stumps) -> NDArray[np.uint8]:
        """Return the branch of each row under a shared stump: 0 left, 1 right, 2 missing."""
        codes = self.bins.columns(stumps.feature)[0]
        sides = (codes > stumps.cut[0]).astype(np.uint8)
        sides[codes == self.bins.n_values[stumps.feature[0]]] = 2
        return sides
