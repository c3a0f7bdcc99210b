"""Losses of boosting with shared stumps: what cells weigh, and how far a step goes."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deltarank.boosting.choice import Stumps
from deltarank.boosting.kernels.votes import (
    add_shared_votes,
    pair_agreement,
    pair_factors,
    turn_cells,
    turn_pairs,
    univariate_weights,
)
from deltarank.boosting.label_search import ROWS_PER_TASK
from deltarank.boosting.places import aligned_empty
from deltarank.boosting.search import StumpSearch
from deltarank.core.kernels.lanes import LANES
from deltarank.core.labels import LabelSets
from deltarank.core.threads import row_blocks

T = TypeVar("T")
# An edge closer to 1 would make the step infinite.
WHOLE_EDGE = 1 - 1e-10
# Votes multiply the weights of the round before. The weights are computed afresh from scores after
# this many rounds, or when votes may have moved them by exp of this much: neither rounding nor what
# is too small for a number adds up.
ROUNDS_UNTIL_FRESH, DRIFT_UNTIL_FRESH = 64, 30.0
# Votes wait in one table per feature; weights are made anew when tables outgrow scores this
# many times.
TABLES_PER_SCORES = 8


class Loss(ABC):
    """A loss of all cells, as boosting sees it: weights of the cells, and the length of a step.

    `total` is the sum of the cells, on the scale of the loss in the round before.
    """

    total: float
    # What a vote of 1 takes off the exponent of a cell.
    share_of_vote: float

    def __init__(self, search: StumpSearch, labels: LabelSets, weights: NDArray[np.float64]):
        self.search, self.tiles = search, search.tiles
        self.log_weights = np.log(weights)
        # The logarithm of the loss, at scores of 0.
        self.level = float(np.log(self._at_zero(labels, weights)))
        self.rows = row_blocks(len(weights), ROWS_PER_TASK)
        self._waiting: dict[int, NDArray[np.float64]] = {}
        self._n_waiting, self._drift = 0, 0.0

    @abstractmethod
    def _at_zero(self, labels: LabelSets, weights: NDArray[np.float64]) -> float: ...

    @abstractmethod
    def weigh(self) -> float:
        """Set the cells from the scores; return the loss over what it was the last time."""

    @abstractmethod
    def _turn(self, stumps: Stumps, votes: NDArray[np.float64]) -> float:
        """Set the cells from those before the votes; return as `weigh`."""

    def step(self, stumps: Stumps, signs: NDArray[np.float64], edge: float) -> float:
        """Return the length of a step along votes of +-1."""
        edge = min(edge, WHOLE_EDGE)
        return float(0.5 * np.log((1 + edge) / (1 - edge)))

    def add_votes(self, stumps: Stumps, votes: NDArray[np.float64]) -> float:
        """Add the votes of a shared stump, (3, places), and weigh the cells anew."""
        feature, cut = int(stumps.feature[0]), int(stumps.cut[0])
        n_bins, n_values = self.search.bins.n_bins, self.search.bins.n_values[feature]
        if feature not in self._waiting:
            self._waiting[feature] = np.zeros((n_bins, self.tiles.n_places))
        table = self._waiting[feature]
        for branch, vote in enumerate(votes):
            table[slice(*((0, cut + 1), (cut + 1, n_values), (n_values, None))[branch])] += vote
        self._n_waiting += 1
        self._drift += self.share_of_vote * float(np.abs(votes).max())
        size = len(self._waiting) * table.size
        if (
            self._n_waiting < ROUNDS_UNTIL_FRESH
            and self._drift < DRIFT_UNTIL_FRESH
            and size < TABLES_PER_SCORES * self.tiles.scores.size
        ):
            return self._turn(stumps, votes)
        self._update_scores()
        return self.weigh()

    def _update_scores(self) -> None:
        for feature, table in self._waiting.items():
            codes = self.search.bins.columns(np.array([feature]))[0]
            by_tile = [
                np.ascontiguousarray(table[:, tile * LANES : (tile + 1) * LANES])
                for tile in range(len(self.tiles))
            ]

            def add(tile: int, rows: slice, codes: Any = codes, by_tile: Any = by_tile) -> None:
                add_shared_votes(codes[rows], by_tile[tile], self.tiles.scores[tile, rows])

            self._run(add)
        self._waiting.clear()
        self._n_waiting, self._drift = 0, 0.0

    def _run(self, task: Callable[[int, slice], T]) -> list[T]:
        tiles = range(len(self.tiles))
        return self.search.run([partial(task, tile, rows) for tile in tiles for rows in self.rows])


class LabelLoss(Loss):
    """The univariate exponential loss, Eq. (11), summed over labels."""

    share_of_vote = 1.0

    def _at_zero(self, labels: LabelSets, weights: NDArray[np.float64]) -> float:
        return float(weights.sum() * labels.n_labels)

    def weigh(self) -> float:
        """See `Loss.weigh`."""
        shift = np.full(LANES, self.level)

        def weigh(tile: int, rows: slice) -> float:
            cells = self.tiles.cells[tile, rows]
            parts = self.tiles.scores[tile, rows], self.tiles.signs[tile, rows]
            gaps = self.tiles.has_gaps[tile]
            univariate_weights(*parts, self.log_weights[rows], shift, gaps, cells)
            return float(cells.sum(dtype=np.float64))

        return self._set_total(sum(self._run(weigh)))

    def _turn(self, stumps: Stumps, votes: NDArray[np.float64]) -> float:
        branches, tiles = self.search.branches(stumps), self.tiles
        relevant, other = (
            _by_tile(np.exp(sign * votes) / self.total, tiles.cells.dtype) for sign in (-1, 1)
        )

        def multiply(tile: int, rows: slice) -> None:
            parts = tiles.signs[tile, rows], tiles.cells[tile, rows]
            turn_cells(branches[rows], relevant[tile], other[tile], *parts)

        self._run(multiply)
        all_cells = stumps.sums[:, 0]
        relevant_cells = np.minimum(stumps.sums[:, 1], all_cells)
        loss = relevant_cells * np.exp(-votes) + (all_cells - relevant_cells) * np.exp(votes)
        return self._set_total(float(loss.sum() / self.total))

    def _set_total(self, loss: float) -> float:
        self.total = loss
        self.level += np.log(loss)
        return loss


class PairLoss(Loss):
    """The pairwise exponential loss of AdaBoost.MR, Eq. (48), in O(n m) by its factors."""

    share_of_vote = 0.5

    def __init__(self, search: StumpSearch, labels: LabelSets, weights: Any, exact: bool) -> None:
        super().__init__(search, labels, weights)
        self.exact = exact
        self.row_weights, self._scales = np.empty((2, len(weights)))
        self._factors = aligned_empty(self.tiles.cells.shape, self.tiles.cells.dtype)

    def _at_zero(self, labels: LabelSets, weights: NDArray[np.float64]) -> float:
        return float(weights @ (labels.sizes * (labels.n_labels - labels.sizes)))

    def weigh(self) -> float:
        """See `Loss.weigh`."""
        tiles = self.tiles

        def find_factors(rows: slice) -> None:
            parts = tiles.scores[:, rows], tiles.signs[:, rows], self.log_weights[rows]
            pair_factors(*parts, self.level, self._factors[:, rows], self._scales[rows])

        self.search.run([partial(find_factors, rows) for rows in self.rows])
        self._fresh_level = self.level
        no_votes = np.zeros((3, tiles.n_places))
        return self._weigh_rows(np.zeros(len(self._scales), np.uint8), no_votes)

    def _turn(self, stumps: Stumps, votes: NDArray[np.float64]) -> float:
        return self._weigh_rows(self.search.branches(stumps), votes)

    def _weigh_rows(self, branches: NDArray[np.uint8], votes: NDArray[np.float64]) -> float:
        dtype = self._factors.dtype
        scale = float(np.exp(self._fresh_level - self.level))
        relevant, other = (
            _by_tile(np.exp(sign * votes), dtype).reshape(-1, LANES) for sign in (-0.5, 0.5)
        )
        signs, factors, cells = (
            part.reshape(-1, LANES) for part in (self.tiles.signs, self._factors, self.tiles.cells)
        )

        def multiply(rows: slice) -> None:
            multipliers = (branches, relevant, other)
            results = (cells, self.row_weights)
            ends = (rows.start, rows.stop)
            turn_pairs(ends, *multipliers, signs, factors, self._scales, scale, *results)

        self.search.run([partial(multiply, rows) for rows in self.rows])
        loss = float(self.row_weights.sum())
        self.total = 2 * loss
        self.level += np.log(loss)
        return loss

    def step(self, stumps: Stumps, signs: NDArray[np.float64], edge: float) -> float:
        """See `Loss.step`."""
        longest = super().step(stumps, signs, 1.0)
        if not self.exact:
            return super().step(stumps, signs, edge)
        parts = self.tiles.signs, self.tiles.cells, self.row_weights
        right, wrong = pair_agreement(self.search.branches(stumps), _by_tile(signs), *parts)
        return float(min(0.5 * np.log(right / wrong), longest)) if wrong > 0 else longest


def _by_tile(branches: NDArray[np.float64], dtype: Any = np.float64) -> NDArray[Any]:
    """Turn numbers of the branches, (3, places), into (tiles, 3, LANES)."""
    by_tile = branches.reshape(len(branches), -1, LANES).transpose(1, 0, 2)
    return np.ascontiguousarray(by_tile, dtype=dtype)
