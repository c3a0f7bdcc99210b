"""Probabilities and label sets from the scores of any ranker."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from deltarank.base.parameters import positive_integer
from deltarank.base.ranker import Ranker
from deltarank.base.selection import Labelled
from deltarank.base.targets import PREDICTIONS
from deltarank.core.arguments import refuse_hidden
from deltarank.core.choices import choose
from deltarank.core.labels import row_numbers
from deltarank.core.memory import require_cells
from deltarank.core.progress import progress
from deltarank.core.scores import FIRST
from deltarank.wrappers.calibration import METHODS, Calibration
from deltarank.wrappers.held_out import held_out
from deltarank.wrappers.sets import SET_METRICS, Cells
from deltarank.wrappers.wrapped import (
    ONE_CLASS_A_ROW,
    DecidingRanker,
    as_ranker,
    take_features,
)

# Of each row and label: a score, a probability, what is known, and places to sort them.
BYTES_PER_CELL = 60


class CalibratedRanker(DecidingRanker):
    """Turn the scores of a ranker into probabilities and, by thresholds, into label sets.

    Scores order labels; with ``weight="rank"`` they estimate *weighted* chances, Eq. (23), not
    P(y_l = 1 | x). Here every row of the training data is scored by a ranker fitted without it, and
    an increasing function of those scores is fitted to the labels, all rows counting alike: that
    gives probabilities of the plain kind. Thresholds on them are chosen, on the same rows, for a
    metric of label sets. The ranker that stays is then fitted to all rows.

    Parameters
    ----------
    ranker : ranker, or Pipeline that ends in one
        Any of this package.
    method : {"isotonic", "platt"}
        Steps, which need some hundred rows per label to be smooth, or a logistic curve.
    cv : int, splitter or iterable of (train, test)
        Folds; every row must be held out once. An integer stands for as many folds stratified by
        label: see `LabelStratifiedKFold`.
    set_metric : {"micro_f1", "macro_f1", "example_f1", "hamming", "subset_accuracy"}
        What thresholds are best for: one per label for the F1 of all cells, the mean of the
        labels' F1, or the share of wrong cells; one for all labels for the mean of the rows' F1, or
        the share of rows with the right set. Each is the best there is on the held-out rows.
    min_positives : int
        A label with fewer relevant, or fewer irrelevant, rows shares one map with all other such
        labels.
    rank_by_probability : bool
        Rank, and score, by probabilities in place of the ranker's scores. That order is best when
        misordered pairs are counted (``weight="uniform"``), the ranker's for its own weight.
    random_state : int, generator or None
        For the folds, when `cv` is an integer.

    Attributes
    ----------
    ranker_ : ranker
        Fitted to all rows.
    thresholds_ : array of shape (m,)
        A label is predicted when its probability is above.
    pooled_ : array of bool, shape (m,)
        Which labels share a map.
    classes_ : array of shape (m,)

    Notes
    -----
    With a vector of classes in place of label sets there is nothing to threshold: predictions are
    the ranker's, and there is no `predict_proba`.

    Examples
    --------
    >>> from deltarank import CalibratedRanker, LogisticRanker
    >>> from deltarank.datasets import SyntheticModel
    >>> X, Y = SyntheticModel.random(n_labels=5, random_state=0).sample(2000, random_state=1)
    >>> ranker = CalibratedRanker(LogisticRanker(), random_state=0).fit(X, Y)
    >>> bool(abs(ranker.predict_proba(X).mean() - Y.mean()) < 0.01)
    True
    >>> ranker.predict(X[:1])
    array([[0, 1, 1, 0, 0]])
    """

    def __init__(
        self,
        ranker: Any,
        *,
        method: str = "isotonic",
        cv: Any = 5,
        set_metric: str = "micro_f1",
        min_positives: int = 20,
        rank_by_probability: bool = False,
        random_state: Any = None,
    ) -> None:
        self.ranker = ranker
        self.method = method
        self.cv = cv
        self.set_metric = set_metric
        self.min_positives = min_positives
        self.rank_by_probability = rank_by_probability
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "CalibratedRanker":
        """Fit the ranker, the maps to probabilities and the thresholds.

        Parameters
        ----------
        X, y
            As the ranker takes them.
        sample_weight : array of shape (n,), optional
            How often a row counts: for the ranker, the maps and the thresholds.
        """
        as_ranker(self.ranker)
        method = choose(METHODS, self.method, "method")
        find_thresholds = choose(SET_METRICS, self.set_metric, "set_metric")
        positive_integer(self.min_positives, "min_positives")
        refuse_hidden(X, "X")
        targets = self._check_labels(y, _num_samples(X))
        if sample_weight is not None:
            sample_weight = row_numbers(sample_weight, targets.labels.n_rows, "sample_weight")
        with progress("calibrating", 1.0) as done:
            if targets.form not in ONE_CLASS_A_ROW:
                done.each = 0.8
                data = Labelled(X, y, targets, sample_weight)
                cells, self._calibration = self._calibrate(data, method)
                self.pooled_ = self._calibration.pooled
                self.thresholds_ = find_thresholds(cells)
            done.each = done.left
            self.ranker_ = clone(as_ranker(self.ranker)).fit(X, y, sample_weight)
        take_features(self, [self.ranker_])
        return self

    def _calibrate(self, data: Labelled, method: Any) -> tuple[Cells, Calibration]:
        """Return the held-out probabilities with their labels, and the maps that gave them."""
        labels = data.targets.labels
        way_out = "calibrate fewer labels or rows"
        require_cells("calibrating", (labels.n_rows, labels.n_labels), BYTES_PER_CELL, way_out)
        relevant = labels.to_csr().toarray().astype(bool)
        known = np.ones_like(relevant)
        if labels.unknown is not None:
            known[labels.unknown.rows, labels.unknown.members] = False
        counts = data.sample_weight
        counts = np.ones(labels.n_rows) if counts is None else counts
        scores = np.empty((labels.n_rows, labels.n_labels))
        held_out(
            as_ranker(self.ranker),
            data,
            self.cv,
            self.random_state,
            Ranker.decision_function,
            scores,
        )
        calibration = Calibration(
            method, scores, relevant, known, counts, self.min_positives, constant=FIRST / 2
        )
        return Cells(calibration(scores), relevant, known, counts), calibration

    def _scores(self, X: Any) -> NDArray[Any]:
        scores = np.asarray(self.ranker_._scores(X))
        if self.rank_by_probability and self._form not in ONE_CLASS_A_ROW:
            return self._calibration(scores)
        return scores

    def _relevance(self, scores: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.ranker_._relevance(scores))

    @available_if(lambda ranker: getattr(ranker, "_form", "classes") not in ONE_CLASS_A_ROW)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return P(y_l = 1 | x) of every label, shape (n, m): each on its own, not summing to 1.

        There once the ranker has been fitted to label sets.
        """
        check_is_fitted(self)
        return self._chances(self._check_rows(X))

    def _chances(self, X: Any) -> NDArray[np.float64]:
        return self._calibration(self.ranker_._label_scores(X))

    def predict(self, X: Any) -> Any:
        """Return the labels whose probability is above their threshold, in the form Y had.

        For a vector of classes: the best class.
        """
        check_is_fitted(self)
        if self._form in ONE_CLASS_A_ROW:
            return self.ranker_.predict(X)
        chances = self.predict_proba(X)
        return PREDICTIONS[self._form](chances, chances > self.thresholds_, self.classes_)
