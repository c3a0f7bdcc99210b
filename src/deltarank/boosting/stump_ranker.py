"""What boosted rankers share: features with missing values, votes of stumps, scores by stage."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.base.parameters import positive_integer
from deltarank.base.ranker import constant_scores, training_weights
from deltarank.base.staged import StagedRanker
from deltarank.base.targets import Targets
from deltarank.boosting.places import cell_type
from deltarank.boosting.values import MOST_BINS
from deltarank.core import memory
from deltarank.core.choices import choose
from deltarank.core.labels import LabelSets
from deltarank.core.threads import row_blocks, run
from deltarank.core.weights import Weight

# Rows whose features and scores stay in cache while all stumps pass over them.
ROWS_PER_BLOCK = 128
# Of each row and label beside the weights, which are there twice; of each stored value, as columns
# and as codes; and of each stump and label, kept and while they are joined: measured.
BYTES_PER_CELL, BYTES_PER_STORED, BYTES_PER_STUMP = 13, 26, 100
VOTES = {"discrete": "one step for all branches", "real": "a step a branch"}


class StumpRanker(StagedRanker):
    """A ranker whose scores are sums of votes of stumps, one round after the other.

    Attributes
    ----------
    features_, thresholds_ : arrays of shape (t, m), or (t,) where all labels share a stump
        A value goes left when it is at most the threshold.
    votes_ : array of shape (t, 3, m)
        What a stump adds to the scores of rows it sends left, right, or nowhere (value missing).
    """

    rounds_parameter: ClassVar[str] = "n_stumps"
    _predict_votes: ClassVar[Callable[..., None]]

    n_stumps: int
    bins: int | None
    shrinkage: float
    votes: str
    weight: Weight
    features_: NDArray[np.int32]
    thresholds_: NDArray[np.float64]
    votes_: NDArray[np.float64]
    constants_: NDArray[np.float64]

    @property
    def accepts_missing_values(self) -> bool:
        """Whether NaN may stand in X: it is a branch of its own."""
        return True

    def _check_numbers(self) -> None:
        positive_integer(self.n_stumps, "n_stumps")
        choose(VOTES, self.votes, "votes")
        if not 0 < self.shrinkage <= 1:
            raise ValueError(f"shrinkage must be above 0 and at most 1; got {self.shrinkage!r}")
        if self.bins is not None and not 2 <= positive_integer(self.bins, "bins") <= MOST_BINS:
            raise ValueError(
                f"bins must be from 2 to {MOST_BINS}, or None for every distinct value; "
                f"got {self.bins!r}"
            )

    def _labels_to_boost(self, targets: Targets) -> LabelSets:
        """Return the label sets as the loss sees them."""
        return targets.labels

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, stages: list[int]) -> Iterator[None]:
        """Check and weigh the rows, and boost those that count."""
        X = self._check_rows(X, fitting=True)
        targets = self._check_labels(y, X.shape[0])
        labels = self._labels_to_boost(targets)
        weights = training_weights(targets._replace(labels=labels), y, self.weight, sample_weight)
        self.constants_ = constant_scores(labels, weights)
        counted = self._counted(labels, weights)
        self._check_memory(X, labels)
        yield from self._boost(X[counted], labels.take(counted), weights[counted], stages)

    def _check_memory(self, X: Any, labels: LabelSets) -> None:
        """Refuse a fit whose cells, bins and stumps have no room."""
        (n_rows, n_features), n_labels = X.shape, labels.n_labels
        size = cell_type(n_rows * n_labels).itemsize
        cells = n_rows * n_labels * (BYTES_PER_CELL + 2 * size)
        codes = BYTES_PER_STORED * X.nnz if sparse.issparse(X) else n_rows * n_features
        memory.require(
            cells + codes + self.n_stumps * n_labels * BYTES_PER_STUMP,
            f"{self.n_stumps} rounds for {n_labels} labels of {n_rows} rows",
            "fit fewer labels, rows or rounds, or a LabelTreeRanker",
        )

    def _counted(self, labels: LabelSets, weights: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which rows have any loss."""
        return weights > 0

    @abstractmethod
    def _boost(
        self, X: Any, labels: LabelSets, weights: NDArray[np.float64], stages: list[int]
    ) -> Iterator[None]:
        """Fit the stumps to the rows that count, and keep them at every stage."""

    def _staged(self, X: Any, stages: list[int]) -> Iterator[NDArray[np.float64]]:
        scores = np.zeros((X.shape[0], self.votes_.shape[2]))
        done = 0
        for stage in stages:
            self._add_votes(X, slice(done, stage), scores)
            done = stage
            at_stage = self._finish(self._at_stage(X, scores, stage))
            yield at_stage[:, 0] if self._form == "binary" else at_stage

    def _at_stage(self, X: Any, scores: NDArray[np.float64], stage: int) -> NDArray[np.float64]:
        """Return the scores after some rounds from the sums of their votes."""
        return scores.copy()

    def _scores(self, X: Any) -> NDArray[Any]:
        scores = np.zeros((X.shape[0], self.votes_.shape[2]))
        self._add_votes(X, slice(None), scores)
        return self._finish(scores)

    def _finish(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give labels without two classes in training their place."""
        constant = ~np.isnan(self.constants_)
        scores[:, constant] = self.constants_[constant]
        return scores

    def _add_votes(
        self,
        X: Any,
        rounds: slice,
        scores: NDArray[np.float64],
        votes: NDArray[np.float64] | None = None,
    ) -> None:
        """Add the votes of some rounds, rows shared out among threads."""
        features, thresholds = self.features_[rounds], self.thresholds_[rounds]
        votes = self.votes_[rounds] if votes is None else votes

        def add(rows: slice) -> None:
            block = X[rows].toarray() if sparse.issparse(X) else np.ascontiguousarray(X[rows])
            type(self)._predict_votes(block, features, thresholds, votes, scores[rows])

        if len(features):
            run([partial(add, rows) for rows in row_blocks(X.shape[0], ROWS_PER_BLOCK)])
