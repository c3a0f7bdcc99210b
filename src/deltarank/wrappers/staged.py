"""The number of rounds by cross-validation, one fit per fold: rankers whose fits are nested."""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from deltarank.base.parameters import positive_integer
from deltarank.base.selection import (
    Labelled,
    Scoring,
    Split,
    choose_scorer,
    choose_value,
    split_rows,
    tabulate,
)
from deltarank.core.labels import row_numbers
from deltarank.core.progress import Step, progress
from deltarank.wrappers.wrapped import WrappedRanker

# The paper's grid for stumps per label.
DEFAULT_ROUNDS = (10, 20, 50, 100, 200)


class StagedSearchCV(WrappedRanker):
    """Choose the number of rounds of a boosted ranker by cross-validation.

    A fit of many rounds contains the fits of fewer, so each fold is fitted once, upwards, and
    scored at every number of the grid on the way; then all rows are fitted with the best.

    Parameters
    ----------
    ranker : ranker with ``fit_stages`` and ``staged_decision_function``
        An `AdaBoostRanker`, `AdaBoostMR`, `AdaBoostMH` or `LogLinearRanker`, or one like them; its
        own number of rounds does not matter.
    rounds : sequence of int, optional
        Numbers to try; 10, 20, 50, 100, 200 by default.
    cv : int, splitter or iterable of (train, test)
        An integer stands for as many folds stratified by label: see `LabelStratifiedKFold`.
    scoring : str or callable
        A name of `deltarank.metrics.SCORERS`, or ``scorer(ranker, X, Y)``, greater being better.
        With a vector of classes in place of label sets, a name stands for the accuracy.
    patience : float, optional
        Leave out numbers above this many times the best of those below, so that a long grid is
        walked no further than it pays: with 10, as soon as a decade brings no better score. None
        tries them all.
    one_standard_error : bool
        Choose the fewest rounds whose mean score is within one standard error of the best.
    random_state : int, generator or None
        For the folds, when `cv` is an integer.

    Attributes
    ----------
    best_rounds_ : int
    best_score_ : float
        Its mean score on held-out rows.
    best_ranker_ : ranker
        Fitted to all rows with `best_rounds_`.
    cv_results_ : dict
        Of the numbers tried: ``param_rounds``, ``mean_test_score``, ``std_test_score`` and
        ``split{i}_test_score``.
    classes_ : array of shape (m,)

    Examples
    --------
    >>> from deltarank import AdaBoostRanker, StagedSearchCV
    >>> from deltarank.datasets import SyntheticModel
    >>> X, Y = SyntheticModel.random(n_labels=5, random_state=0).sample(500, random_state=1)
    >>> search = StagedSearchCV(AdaBoostRanker(), rounds=[10, 50, 100], random_state=0).fit(X, Y)
    >>> search.best_rounds_ in (10, 50, 100)
    True
    >>> search.rank(X[:2], top=1)
    array([[1],
           [3]])
    """

    def __init__(
        self,
        ranker: Any,
        *,
        rounds: Sequence[int] | None = None,
        cv: Any = 5,
        scoring: Scoring = "neg_rank_loss",
        patience: float | None = None,
        one_standard_error: bool = False,
        random_state: Any = None,
    ) -> None:
        self.ranker = ranker
        self.rounds = rounds
        self.cv = cv
        self.scoring = scoring
        self.patience = patience
        self.one_standard_error = one_standard_error
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "StagedSearchCV":
        """Choose the number of rounds on held-out rows, then fit all rows.

        Parameters
        ----------
        X, y, sample_weight
            As the ranker takes them.
        """
        stages = self._stages()
        X = self._check_rows(X, fitting=True)
        targets = self._check_labels(y, X.shape[0])
        scorer = choose_scorer(self.scoring, targets)
        if sample_weight is not None:
            sample_weight = row_numbers(sample_weight, X.shape[0], "sample_weight")
        data = Labelled(X, y, targets, sample_weight)
        splits = split_rows(self.cv, X, y, targets, self.random_state)
        with progress("choosing rounds", 1.0) as done:
            scores = self._search(stages, data, splits, scorer, done)
            stages = stages[: scores.shape[1]]
            best = choose_value(scores, self.one_standard_error)
            self.best_rounds_ = stages[best]
            self.best_score_ = float(scores[:, best].mean())
            self.cv_results_ = tabulate({"rounds": np.array(stages)}, scores)
            done.each = done.left
            self.best_ranker_ = self._ranker(self.best_rounds_).fit(X, y, sample_weight)
        return self

    def _stages(self) -> list[int]:
        if not hasattr(self.ranker, "fit_stages"):
            raise ValueError(
                "ranker must have fit_stages and staged_decision_function, as boosted rankers do; "
                f"got {type(self.ranker).__name__}"
            )
        values = DEFAULT_ROUNDS if self.rounds is None else self.rounds
        stages = sorted({positive_integer(value, "each value of rounds") for value in values})
        if not stages:
            raise ValueError("rounds must hold at least one number; got none")
        if self.patience is not None and not self.patience >= 1:
            raise ValueError(f"patience must be at least 1, or None; got {self.patience!r}")
        return stages

    def _search(
        self,
        stages: list[int],
        data: Labelled,
        splits: list[Split],
        scorer: Any,
        done: Step,
    ) -> NDArray[np.float64]:
        """Return the scores (folds, stages) of as many stages as patience allows."""
        folds = [self._fold_scores(stages, data, split, scorer) for split in splits]
        scores = np.empty((len(folds), 0))
        best, before, n_wanted = stages[0], 0, 1
        while n_wanted > scores.shape[1]:
            stage = stages[scores.shape[1]]
            # If the best so far is the best: folds up to its limit, and the final fit.
            limit = stages[max(n_wanted, self._n_within(stages, best)) - 1]
            column = []
            for k, fold in enumerate(folds):
                behind = k * (stage - before)
                done.each = done.left * (stage - before)
                done.each /= len(folds) * (limit - before) - behind + best
                column.append(next(fold))
            scores = np.column_stack([scores, column])
            best, before = stages[int(scores.mean(axis=0).argmax())], stage
            n_wanted = self._n_within(stages, best)
        return scores

    def _n_within(self, stages: list[int], best: int) -> int:
        """Return how many stages to try when `best` is the best so far."""
        if self.patience is None:
            return len(stages)
        return int(np.searchsorted(stages, best * self.patience, side="right"))

    def _fold_scores(
        self, stages: list[int], data: Labelled, split: Split, scorer: Any
    ) -> Iterator[float]:
        """Yield the score of a fold's held-out rows at each stage, fitted up to it when asked."""
        train, test = split
        rows, labels, counts = data.take(test)
        staged = None
        for fitted in self._fold_fits(stages, data, train):
            staged = staged or fitted.staged_decision_function(rows, at=stages)
            yield scorer(_frozen(fitted, next(staged)), rows, labels, sample_weight=counts)

    def _ranker(self, rounds: int, **parameters: Any) -> Any:
        parameters[self.ranker.rounds_parameter] = rounds
        return clone(self.ranker).set_params(**parameters)

    def _fold_fits(self, stages: list[int], data: Labelled, train: NDArray[Any]) -> Iterator[Any]:
        parameters: dict[str, Any] = {}
        if (weights := data.weights_of(self.ranker, train)) is not None:
            parameters["weight"] = lambda _: weights
        ranker = self._ranker(stages[-1], **parameters)
        yield from ranker.fit_stages(*data.take(train), stages=stages)

    def _scores(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.best_ranker_._scores(X))

    def _relevance(self, scores: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.best_ranker_._relevance(scores))


def _frozen(fitted: Any, scores: NDArray[Any]) -> Any:
    """Return a copy of a ranker that gives these scores, whatever the rows."""
    view = copy(fitted)
    view._scores = lambda X: scores.reshape(len(scores), -1)
    return view
