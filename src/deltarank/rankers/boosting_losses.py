"""Losses of boosting with shared stumps: what cells weigh, and how far a step goes."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deltarank.kernels.lanes import LANES
from deltarank.kernels.votes import (
    add_shared_votes,
    pair_agreement,
    pair_weights,
    univariate_weights,
)
from deltarank.labels import LabelSets
from deltarank.passes.stumps import Stumps, StumpSearch
from deltarank.rankers.stumps import ROWS_PER_TASK
from deltarank.threads import row_blocks

T = TypeVar("T")
# An edge closer to 1 would make the step infinite.
WHOLE_EDGE = 1 - 1e-10


class Loss(ABC):
    """A loss of all cells, as boosting sees it: weights of the cells, and the length of a step."""

    total: float

    def __init__(self, search: StumpSearch, labels: LabelSets, weights: NDArray[np.float64]):
        self.search, self.tiles = search, search.tiles
        self.log_weights = np.log(weights)
        # The logarithm of the loss, at scores of 0.
        self.level = float(np.log(self._at_zero(labels, weights)))
        self.rows = row_blocks(len(weights), ROWS_PER_TASK)

    @abstractmethod
    def _at_zero(self, labels: LabelSets, weights: NDArray[np.float64]) -> float: ...

    @abstractmethod
    def weigh(self) -> float:
        """Set the cells from the scores; return the loss over what it was the last time.

        Cells are on that scale too: `total` is their sum.
        """

    def step(self, stumps: Stumps, signs: NDArray[np.float64], edge: float) -> float:
        """Return the length of a step along votes of +-1."""
        edge = min(edge, WHOLE_EDGE)
        return float(0.5 * np.log((1 + edge) / (1 - edge)))

    def add_votes(self, stumps: Stumps, votes: NDArray[np.float64]) -> None:
        """Add the votes of a shared stump, (3, places), to the scores."""
        branches = self.search.branches(stumps)

        def add(tile: int, rows: slice) -> None:
            mine = np.ascontiguousarray(votes[:, tile * LANES : (tile + 1) * LANES])
            add_shared_votes(branches[rows], mine, self.tiles.scores[tile, rows])

        self._run(add)

    def _run(self, task: Callable[[int, slice], T]) -> list[T]:
        tiles = range(len(self.tiles))
        return self.search.run([partial(task, tile, rows) for tile in tiles for rows in self.rows])


class LabelLoss(Loss):
    """The univariate exponential loss, Eq. (11), summed over labels."""

    def _at_zero(self, labels: LabelSets, weights: NDArray[np.float64]) -> float:
        return float(weights.sum() * labels.n_labels)

    def weigh(self) -> float:
        """See `Loss.weigh`."""
        shift = np.full(LANES, self.level)

        def weigh(tile: int, rows: slice) -> float:
            cells = self.tiles.cells[tile, rows]
            parts = self.tiles.scores[tile, rows], self.tiles.signs[tile, rows]
            univariate_weights(*parts, self.log_weights[rows], shift, cells)
            return float(cells.sum(dtype=np.float64))

        self.total = loss = sum(self._run(weigh))
        self.level += np.log(loss)
        return loss


class PairLoss(Loss):
    """The pairwise exponential loss of AdaBoost.MR, Eq. (48), in O(n m) by its factors."""

    def __init__(self, search: StumpSearch, labels: LabelSets, weights: Any, exact: bool) -> None:
        super().__init__(search, labels, weights)
        self.exact = exact
        self.row_weights = np.empty(len(weights))

    def _at_zero(self, labels: LabelSets, weights: NDArray[np.float64]) -> float:
        return float(weights @ (labels.sizes * (labels.n_labels - labels.sizes)))

    def weigh(self) -> float:
        """See `Loss.weigh`."""
        tiles = self.tiles

        def weigh(rows: slice) -> None:
            parts = tiles.scores[:, rows], tiles.signs[:, rows], self.log_weights[rows]
            pair_weights(*parts, self.level, tiles.cells[:, rows], self.row_weights[rows])

        self.search.run([partial(weigh, rows) for rows in self.rows])
        loss = float(self.row_weights.sum())
        self.total = 2 * loss
        self.level += np.log(loss)
        return loss

    def step(self, stumps: Stumps, signs: NDArray[np.float64], edge: float) -> float:
        """See `Loss.step`."""
        longest = super().step(stumps, signs, 1.0)
        if not self.exact:
            return super().step(stumps, signs, edge)
        by_tile = np.ascontiguousarray(signs.reshape(3, -1, LANES).transpose(1, 0, 2))
        parts = self.tiles.signs, self.tiles.cells, self.row_weights
        right, wrong = pair_agreement(self.search.branches(stumps), by_tile, *parts)
        return float(min(0.5 * np.log(right / wrong), longest)) if wrong > 0 else longest
