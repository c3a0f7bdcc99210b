"""The choice of a stump for every label, from histograms, wherever those were made."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.boosting.bins import Cuts
from deltarank.boosting.kernels.splits import CRITERIA, best_splits
from deltarank.core.kernels.lanes import LANES
from deltarank.core.threads import row_blocks

# Both histograms of a group of features fill at most this, half of a usual second-level cache.
HISTOGRAM_BYTES = 2**19
# Splits whose impurities differ by less, beside the total weight, are equal but for rounding; so
# are the sides of a vote. The first of equal splits wins, whatever the order of additions.
TIES = {"float32": 1e-6, "float64": 1e-12}

# Sums of all and of the relevant cells, one line per bin, of some features and a tile; the caller
# may overwrite them.
Histograms = Callable[[slice, int], tuple[NDArray[Any], NDArray[Any]]]
Run = Callable[[Sequence[Callable[[], Any]]], list[Any]]


class Stumps(NamedTuple):
    """One stump a label, or one for all (then `feature` and `cut` have one entry).

    A row goes left when its bin is at most `cut`; `sums` (3, 2, labels) holds the weight, and the
    relevant weight, of the branches left, right and missing.
    """

    feature: NDArray[np.int64]
    cut: NDArray[np.int64]
    sums: NDArray[np.float64]


def feature_groups(cuts: Cuts, dtype: Any) -> list[slice]:
    """Return features whose histograms fit in cache together."""
    line = 2 * LANES * np.dtype(dtype).itemsize
    size = max(1, HISTOGRAM_BYTES // (line * cuts.n_bins))
    # At least a few groups, so that threads have something to share.
    return row_blocks(cuts.n_features, min(size, max(1, cuts.n_features // 4)))


class StumpChoice:
    """Chooses the purest split of each label; of equal ones the first.

    Parameters
    ----------
    cuts : Cuts
    n_places : int
        Lanes of all tiles.
    dtype : dtype
        Of histograms.
    criterion : str
    """

    def __init__(self, cuts: Cuts, n_places: int, dtype: Any, criterion: str) -> None:
        self.cuts, self.n_places = cuts, n_places
        self.criterion = CRITERIA[criterion]
        self.tie = TIES[np.dtype(dtype).name]
        self.groups = feature_groups(cuts, dtype)

    def per_label(self, tiles: NDArray[np.int64], histograms: Histograms, run: Run) -> Stumps:
        """Return the best stump of every place in some tiles; those of other places mean nothing.

        Parameters
        ----------
        tiles : array of int
        histograms : callable
        run : callable
            Runs tasks, in threads or not.
        """
        n_groups, n_places = len(self.groups), self.n_places
        value = np.full((n_groups, n_places), np.inf)
        feature = np.zeros((n_groups, n_places), np.int64)
        cut = np.zeros((n_groups, n_places), np.int64)
        sums = np.zeros((n_groups, 3, 2, n_places))

        def search(group: int, tile: int) -> None:
            features = self.groups[group]
            lanes = slice(tile * LANES, (tile + 1) * LANES)
            best_splits(
                *histograms(features, tile),
                self.cuts.n_values[features],
                self.cuts.n_bins,
                self.criterion,
                self.tie,
                features.start,
                value[group, lanes],
                feature[group, lanes],
                cut[group, lanes],
                sums[group, :, :, lanes],
            )

        run([partial(search, group, tile) for tile in tiles for group in range(n_groups)])
        every_place = np.arange(n_places)
        slack = self.tie * sums[value.argmin(axis=0), :, 0, every_place].sum(axis=1)
        best = (value <= value.min(axis=0) + slack).argmax(axis=0)
        stumps = Stumps(
            feature[best, every_place],
            cut[best, every_place],
            sums[best, :, :, every_place].transpose(1, 2, 0),
        )
        if np.isinf(value[best, every_place]).any():
            self._without_threshold(stumps, tiles, histograms, np.isinf(value[best, every_place]))
        return stumps

    def _without_threshold(
        self,
        stumps: Stumps,
        tiles: NDArray[np.int64],
        histograms: Histograms,
        without: NDArray[np.bool_],
    ) -> None:
        """Where no feature has two values, send all rows left."""
        stumps.feature[without], stumps.cut[without] = 0, self.cuts.n_values[0] - 1
        for tile in tiles:
            lanes = slice(tile * LANES, (tile + 1) * LANES)
            sums = branch_sums(self.cuts, 0, self.cuts.n_values[0] - 1, histograms, tile)
            stumps.sums[:, :, lanes] = np.where(without[lanes], sums, stumps.sums[:, :, lanes])


def branch_sums(
    cuts: Cuts, feature: int, cut: int, histograms: Histograms, tile: int
) -> NDArray[np.float64]:
    """Return the sums (3, 2, LANES) of the branches of one stump."""
    n_values = cuts.n_values[feature]
    branches = (slice(cut + 1), slice(cut + 1, n_values), slice(n_values, None))
    both = histograms(slice(feature, feature + 1), tile)
    return np.array(
        [[part[branch].sum(axis=0, dtype=np.float64) for part in both] for branch in branches]
    )
