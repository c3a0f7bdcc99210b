"""Labels in tiles of eight, and arrays that hold a cell for each row and place."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.boosting.bins import Bins
from deltarank.core.kernels.lanes import LANES
from deltarank.core.labels import LabelSets

# Up to this many cells float64 costs little; beyond, cells and histograms are float32. Scores are
# float64 always, and a vote hangs on sums over 256 bins, so that only the choice between stumps
# that are equally good to about six digits may differ.
FLOAT64_CELLS = 1_000_000


class Places:
    """Which label has which place: lane after lane, tile after tile.

    Parameters
    ----------
    counts : array of shape (m,)
        In how many rows each label is relevant.

    Attributes
    ----------
    order : array of shape (m,)
        The label in each place. The most frequent come first, so that few tiles have many rows
        with a relevant label.
    n_places : int
        Number of lanes of all tiles, those without a label too.
    """

    def __init__(self, counts: NDArray[Any]) -> None:
        self.order = np.argsort(-counts, kind="stable")
        self.n_places = -(-len(counts) // LANES) * LANES

    def to_labels(self, by_place: NDArray[Any]) -> NDArray[Any]:
        """Bring values in the order of places, along the last axis, into that of labels."""
        values = np.empty((*by_place.shape[:-1], len(self.order)), by_place.dtype)
        values[..., self.order] = by_place[..., : len(self.order)]
        return values

    def signs_of(self, labels: LabelSets) -> NDArray[np.int8]:
        """Return +1 for relevant cells and -1 for others, shape (tiles, n, LANES).

        0 where there is no label, or it is unknown.
        """
        place = np.empty_like(self.order)
        place[self.order] = np.arange(labels.n_labels)
        n_tiles = self.n_places // LANES
        signs = np.full((n_tiles, labels.n_rows, LANES), -1, np.int8)
        signs[-1, :, labels.n_labels - (n_tiles - 1) * LANES :] = 0
        tile, lane = np.divmod(place[labels.members], LANES)
        signs[tile, labels.rows, lane] = 1
        if labels.unknown is not None:
            tile, lane = np.divmod(place[labels.unknown.members], LANES)
            signs[tile, labels.unknown.rows, lane] = 0
        return signs


def rows_with_relevant(signs: NDArray[np.int8], bins: Bins) -> list[NDArray[np.int64]]:
    """Return, for each tile, the rows whose relevant cells have histograms of their own."""
    every_row = np.arange(signs.shape[1])
    return [
        every_row if bins.needs_every_row else np.flatnonzero((tile > 0).any(axis=1))
        for tile in signs
    ]


def cell_type(n_cells: int) -> Any:
    """Return the precision of weights and histograms for this many cells."""
    return np.dtype(np.float64 if n_cells <= FLOAT64_CELLS else np.float32)


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return an array that starts with a cache line, so that no row of a tile lies across two."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)
