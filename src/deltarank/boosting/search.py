"""The search for stumps: the best threshold of any feature, for each label or for all together.

Labels are taken in tiles of eight. A round of boosting keeps, for every tile, scores and weights
(cells) of shape (n, 8); the search turns them into one histogram a feature and reads the best
threshold off it. Histograms of a group of features and a tile stay in cache; groups are shared out
among threads.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from deltarank.boosting.bins import Bins, DenseBins
from deltarank.boosting.kernels.splits import CRITERIA, add_impurities, best_splits, compact_split
from deltarank.boosting.kernels.votes import take_relevant
from deltarank.core.kernels.lanes import LANES
from deltarank.core.labels import LabelSets
from deltarank.core.threads import row_blocks, run

T = TypeVar("T")
# Both histograms of a group of features fill at most this, half of a usual second-level cache.
HISTOGRAM_BYTES = 2**19
# Up to so many cells float64 costs little; beyond, cells and histograms are float32. Scores are
# float64 always, and a vote hangs on sums over 256 bins, so that only the choice between stumps
# that are equally good to about six digits may differ.
FLOAT64_CELLS = 1_000_000
# Splits whose impurities differ by less, beside the total weight, are equal but for rounding; so
# are the sides of a vote. The first of equal splits wins, whatever the order of additions.
TIES = {"float32": 1e-6, "float64": 1e-12}
# A round with less work than this, in additions of eight cells, is not worth waking threads for.
SINGLE_THREAD_WORK = 50_000


class Stumps(NamedTuple):
    """One stump a label, or one for all (then `feature` and `cut` have one entry).

    A row goes left when its bin is at most `cut`; `sums` (3, 2, labels) holds the weight, and the
    relevant weight, of the branches left, right and missing.
    """

    feature: NDArray[np.int64]
    cut: NDArray[np.int64]
    sums: NDArray[np.float64]


class Tiles:
    """Signs, scores and weights of all labels, eight labels a tile.

    Parameters
    ----------
    labels : LabelSets
        Of the rows that count.
    bins : Bins

    Attributes
    ----------
    order : array of shape (m,)
        The label in each place. The most frequent come first, so that few tiles have many rows
        with a relevant label.
    signs : array of int8, shape (tiles, n, LANES)
        +1 relevant, -1 not, 0 where there is no label, or it is unknown.
    has_gaps : array of bool, shape (tiles,)
        Whether a tile has signs that are 0.
    scores : array of float64, shape (tiles, n, LANES)
    cells : array of shape (tiles, n, LANES)
        Weights, not negative.
    relevant_rows, relevant : lists of arrays
        For each tile, the rows with a relevant label, and their cells with the others zero.
    """

    def __init__(self, labels: LabelSets, bins: Bins) -> None:
        counts = np.bincount(labels.members, minlength=labels.n_labels)
        self.order = np.argsort(-counts, kind="stable")
        place = np.empty_like(self.order)
        place[self.order] = np.arange(labels.n_labels)
        n_tiles = -(-labels.n_labels // LANES)
        shape = (n_tiles, labels.n_rows, LANES)
        dtype = np.float64 if np.prod(shape) <= FLOAT64_CELLS else np.float32
        self.signs = np.full(shape, -1, np.int8)
        self.signs[-1, :, labels.n_labels - (n_tiles - 1) * LANES :] = 0
        tile, lane = np.divmod(place[labels.members], LANES)
        self.signs[tile, labels.rows, lane] = 1
        if labels.unknown is not None:
            tile, lane = np.divmod(place[labels.unknown.members], LANES)
            self.signs[tile, labels.unknown.rows, lane] = 0
        self.has_gaps = (self.signs == 0).any(axis=(1, 2))
        self.scores = np.zeros(shape)
        self.cells = aligned_empty(shape, dtype)
        every_row = np.arange(labels.n_rows)
        self.relevant_rows = [
            every_row if bins.needs_every_row else np.flatnonzero((signs > 0).any(axis=1))
            for signs in self.signs
        ]
        self.relevant = [aligned_empty((len(rows), LANES), dtype) for rows in self.relevant_rows]

    def __len__(self) -> int:
        return len(self.signs)

    @property
    def n_places(self) -> int:
        """Number of lanes of all tiles, those without a label too."""
        return len(self.signs) * LANES

    def to_labels(self, places: NDArray[Any]) -> NDArray[Any]:
        """Bring values in the order of places, along the last axis, into that of labels."""
        values = np.empty((*places.shape[:-1], len(self.order)), places.dtype)
        values[..., self.order] = places[..., : len(self.order)]
        return values


class StumpSearch:
    """Finds stumps for the weights in `tiles` among the thresholds of `bins`."""

    def __init__(self, bins: Bins, tiles: Tiles, criterion: str) -> None:
        self.bins = bins
        self.tiles = tiles
        self.criterion = CRITERIA[criterion]
        self.tie = TIES[tiles.cells.dtype.name]
        line = 2 * LANES * tiles.cells.itemsize
        group = max(1, HISTOGRAM_BYTES // (line * bins.n_bins))
        # At least a few groups, so that threads have something to share.
        group = min(group, max(1, bins.n_features // 4))
        self.groups = row_blocks(bins.n_features, group)
        self.is_small = bins.n_features * tiles.cells.size // LANES < SINGLE_THREAD_WORK
        self._room = (group * bins.n_bins, LANES)
        self._buffers = threading.local()
        n_lines = len(tiles) * bins.n_features * bins.n_bins
        self._compact = None
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
        n_groups, n_places = len(self.groups), self.tiles.n_places
        value = np.full((n_groups, n_places), np.inf)
        feature = np.zeros((n_groups, n_places), np.int64)
        cut = np.zeros((n_groups, n_places), np.int64)
        sums = np.zeros((n_groups, 3, 2, n_places))

        def search(group: int, tile: int) -> None:
            features = self.groups[group]
            mine = slice(tile * LANES, (tile + 1) * LANES)
            best_splits(
                *self._histograms(features, tile),
                self.bins.n_values[features],
                self.bins.n_bins,
                self.criterion,
                self.tie,
                features.start,
                value[group, mine],
                feature[group, mine],
                cut[group, mine],
                sums[group, :, :, mine],
            )

        tasks = [partial(search, group, tile) for tile in active for group in range(n_groups)]
        self.run(tasks)
        places = np.arange(n_places)
        slack = self.tie * sums[value.argmin(axis=0), :, 0, places].sum(axis=1)
        best = (value <= value.min(axis=0) + slack).argmax(axis=0)
        found = Stumps(
            feature[best, places], cut[best, places], sums[best, :, :, places].transpose(1, 2, 0)
        )
        if np.isinf(value[best, places]).any():
            self._without_threshold(found, active, np.isinf(value[best, places]))
        return found

    def _without_threshold(
        self, found: Stumps, active: NDArray[np.int64], without: NDArray[np.bool_]
    ) -> None:
        """Where no feature has two values, send all rows left."""
        found.feature[without], found.cut[without] = 0, self.bins.n_values[0] - 1
        for tile in active:
            mine = slice(tile * LANES, (tile + 1) * LANES)
            sums = self._branch_sums(tile, 0, self.bins.n_values[0] - 1)
            found.sums[:, :, mine] = np.where(without[mine], sums, found.sums[:, :, mine])

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
                    self.criterion,
                    impurities[features],
                )

        self.run([partial(search, features) for features in self.groups])
        first_best = (impurities <= impurities.min() + self.tie * total).argmax()
        feature, cut = np.unravel_index(first_best, impurities.shape)
        if np.isinf(impurities[feature, cut]):
            cut = self.bins.n_values[feature] - 1
        sums = [self._branch_sums(tile, int(feature), int(cut)) for tile in range(len(self.tiles))]
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
            self.criterion,
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

    def _branch_sums(self, tile: int, feature: int, cut: int) -> NDArray[np.float64]:
        """Return the sums (3, 2, LANES) of the branches of one stump."""
        n_values = self.bins.n_values[feature]
        branches = (slice(cut + 1), slice(cut + 1, n_values), slice(n_values, None))
        both = self._histograms(slice(feature, feature + 1), tile)
        return np.array(
            [[part[branch].sum(axis=0, dtype=np.float64) for part in both] for branch in branches]
        )

    def branches(self, stumps: Stumps) -> NDArray[np.uint8]:
        """Return the branch of each row under a shared stump: 0 left, 1 right, 2 missing."""
        codes = self.bins.columns(stumps.feature)[0]
        sides = (codes > stumps.cut[0]).astype(np.uint8)
        sides[codes == self.bins.n_values[stumps.feature[0]]] = 2
        return sides


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return an array that starts with a cache line, so that no row of a tile lies across two."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)
