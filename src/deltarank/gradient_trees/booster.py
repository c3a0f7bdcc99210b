"""A fit of boosted trees: rows placed, scores started, rounds run and the best kept."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.base.chances import trainable_loss
from deltarank.base.ranker import constant_scores
from deltarank.boosting.bins import Bins, encode
from deltarank.boosting.places import cell_type
from deltarank.boosting.values import Values, by_columns, each_feature
from deltarank.core.labels import LabelSets
from deltarank.core.memory import require
from deltarank.core.progress import progress
from deltarank.core.splits import LabelStratifiedKFold
from deltarank.core.threads import n_threads
from deltarank.gradient_trees.categories import code_thresholds
from deltarank.gradient_trees.forest import Forest
from deltarank.gradient_trees.growth import Growth
from deltarank.gradient_trees.histograms import place_rows
from deltarank.gradient_trees.kernels.cells import PADDING
from deltarank.gradient_trees.kernels.histograms import WIDTH
from deltarank.gradient_trees.kernels.routes import MOST_CATEGORIES
from deltarank.gradient_trees.options import Options
from deltarank.gradient_trees.rounds import Cells, Rounds
from deltarank.metrics import rank_loss

# One row in this many is held out to stop early.
FOLDS = 10
# The share of features that trees are grown from unless it is given, and the fewest.
USUAL_SHARE, FEWEST_FEATURES = 0.3, 10
# A chance of a label at the start is this far from 0 and 1 at least.
LEAST_CHANCE = 1e-9


class Weighed(NamedTuple):
    """Rows that count: features, label sets, weights, and what their relevant cells cost.

    Of the features, those that `is_categorical` says are numbers of categories.
    """

    X: Any
    is_categorical: NDArray[np.bool_]
    labels: LabelSets
    weights: NDArray[np.float64]
    costs: NDArray[np.float64]


class Booster:
    """Adds trees to a forest, one per round.

    Parameters
    ----------
    data : Weighed
    options : Options
    n_trees : int
        How many are to come, for the estimate of memory.
    held_out : array of int or None
        Rows to leave out, and to measure the rank loss on.
    generator : numpy Generator
    last : tuple of (base, scores), optional
        Where an earlier fit begins, (m,), and what it gives to these rows, (n, m).
    """

    def __init__(
        self,
        data: Weighed,
        options: Options,
        n_trees: int,
        held_out: NDArray[Any] | None,
        generator: np.random.Generator,
        last: tuple[Any, Any] | None = None,
    ) -> None:
        self.options, self.generator = options, generator
        every = np.arange(len(data.weights), dtype=np.int32)
        self.held_out = held_out
        self.rows = every if held_out is None else np.delete(every, held_out)
        weights = np.zeros(len(every))
        weights[self.rows] = data.weights[self.rows]
        self.constants = constant_scores(data.labels, weights)
        dtype = cell_type(data.labels.n_labels * len(every))
        _check_memory(data, options, n_trees, dtype)
        self.bins = _binned(data, options.bins)
        self.cells = Cells.of(data.labels, weights, data.costs, ~np.isnan(self.constants), dtype)
        self.base = self._start(options.loss) if last is None else last[0]
        scores = np.zeros(self.cells.signs.shape, dtype)
        scores[:, : data.labels.n_labels] = self.base if last is None else last[1]
        placed = place_rows(self.bins, n_threads())
        growth = Growth(placed, dtype, options.limits, data.is_categorical)
        self._rounds = Rounds(
            self.cells,
            growth,
            scores,
            options.loss,
            options.limits.l2,
            options.learning_rate,
            options.sketch_size,
            generator,
        )
        self._held_labels = None if held_out is None else data.labels.take(held_out).to_matrix()
        self.n_labels = data.labels.n_labels

    def _start(self, loss: str) -> NDArray[np.float64]:
        """Return the score of each label that is best for all rows together."""
        weights, costs = self.cells.weights.astype(np.float64), self.cells.costs
        signs = self.cells.signs[:, : len(self.constants)]
        relevant = (weights * costs) @ (signs > 0)
        known = relevant + weights @ (signs < 0)
        chance = relevant / np.where(known > 0, known, 1.0)
        link = trainable_loss(loss).link
        assert link is not None, "a loss that is trained has one"
        best_constant = link(np.clip(chance, LEAST_CHANCE, 1 - LEAST_CHANCE))
        return np.where(np.isnan(self.constants), best_constant, 0.0)

    def trees(self) -> Iterator[Forest]:
        """Yield tree after tree, without end."""
        every = np.arange(len(self.cells.weights), dtype=np.int32)
        while True:
            rows = self._drawn(self.rows, self.options.row_share)
            others = np.delete(every, rows) if len(rows) < len(every) else every[:0]
            features = self._drawn(np.arange(self.bins.n_features), self._feature_share)
            tree, values = self._rounds.next(rows, others, features)
            kept = values[:, : self.n_labels].astype(self._rounds.scores.dtype)
            yield Forest.of_tree(tree, kept, self.bins, self.cells.weights)

    def stages(
        self, stages: list[int], n_before: int, patience: int | None
    ) -> Iterator[list[Forest]]:
        """Yield the trees of each stage beyond those of the one before."""
        trees, done_before = self.trees(), n_before
        for stage in stages:
            n_more = max(stage - done_before, 0)
            # The step ends before the stage is handed out: other fits may take their turn then.
            with progress("boosting", n_more) as done:
                if patience is not None:
                    made = until_no_better(self, trees, n_more, patience, done)
                else:
                    made = []
                    for k in range(n_more):
                        made.append(next(trees))
                        done(k + 1)
            yield made
            done_before = max(stage, done_before)

    @property
    def _feature_share(self) -> float:
        if self.options.feature_share is not None:
            return self.options.feature_share
        return min(1.0, max(USUAL_SHARE, FEWEST_FEATURES / self.bins.n_features))

    def _drawn(self, numbers: NDArray[Any], share: float) -> NDArray[Any]:
        if share == 1:
            return numbers
        n_drawn = max(1, round(share * len(numbers)))
        return np.sort(self.generator.choice(numbers, n_drawn, replace=False))

    def held_out_loss(self) -> float:
        """Return the rank loss of the rows held out, as the scores are now."""
        scores = self._rounds.scores[self.held_out, : self.n_labels].astype(np.float64)
        constant = ~np.isnan(self.constants)
        scores[:, constant] = self.constants[constant]
        return float(rank_loss(self._held_labels, scores))


def _binned(data: Weighed, bins: int) -> Bins:
    """Return the rows in bins, each category in one of its own."""
    columns = by_columns(data.X)
    thresholds = each_feature(columns, partial(Values.thresholds, bins=bins))
    for feature in np.flatnonzero(data.is_categorical):
        thresholds[feature] = code_thresholds(columns, int(feature))
    return encode(columns, thresholds)


def hold_out(labels: LabelSets, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return rows to measure the rank loss on, labels spread as in all rows."""
    if labels.n_rows < 2:
        raise ValueError(
            "early_stopping holds rows out, so X must have at least 2 rows that count; "
            f"got {labels.n_rows}: use early_stopping=None"
        )
    seed = int(generator.integers(2**31))
    folds = LabelStratifiedKFold(min(FOLDS, labels.n_rows), random_state=seed)
    return np.flatnonzero(folds.folds(labels.to_csr()) == 0)


def until_no_better(
    booster: Booster, trees: Iterator[Forest], n_trees: int, patience: int, done: Any
) -> list[Forest]:
    """Return the trees up to the lowest rank loss of the rows held out."""
    made: list[Forest] = []
    best, n_best = booster.held_out_loss(), 0
    while len(made) < n_trees and (len(made) - n_best < patience or not n_best):
        made.append(next(trees))
        done(len(made))
        loss = booster.held_out_loss()
        if loss < best or not n_best:
            best, n_best = loss, len(made)
    return made[:n_best]


def _check_memory(data: Weighed, options: Options, n_trees: int, dtype: Any) -> None:
    """Refuse a fit whose cells, histograms and trees have no room."""
    n_rows, n_features = data.X.shape
    n_places = -(-data.labels.n_labels // PADDING) * PADDING
    leaves = min(options.limits.max_leaves, n_rows)
    size = dtype.itemsize
    cells = n_rows * (n_places * (size + 1) + WIDTH * size)
    stored = data.X.nnz if hasattr(data.X, "nnz") else 0
    codes = 13 * stored if stored else n_rows * n_features
    n_categorical = int(data.is_categorical.sum())
    lines = (n_features - n_categorical) * (options.bins + 1)
    if stored:
        lines = min(lines, stored + 3 * n_features)
    lines += n_categorical * (MOST_CATEGORIES + 1)
    histograms = leaves * lines * WIDTH * size
    values = 2 * n_trees * leaves * data.labels.n_labels * size
    require(
        cells + codes + histograms + values,
        f"{n_trees} trees of {leaves} leaves for {data.labels.n_labels} labels of {n_rows} rows",
        "use smaller n_trees, max_leaves or bins, or fit fewer rows",
    )
