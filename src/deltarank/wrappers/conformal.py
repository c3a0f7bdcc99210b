"""Label sets with a guarantee for further rows, from the scores of any ranker."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from deltarank.base.parameters import positive_number
from deltarank.base.selection import Labelled
from deltarank.base.targets import PREDICTIONS
from deltarank.core.arguments import refuse_hidden
from deltarank.core.choices import choose
from deltarank.core.labels import row_numbers
from deltarank.core.memory import require_cells
from deltarank.decisions.conformal import RISKS, Risk, safe_threshold
from deltarank.wrappers.wrapped import (
    ONE_CLASS_A_ROW,
    DecidingRanker,
    as_ranker,
    take_features,
)

# Of each row and label calibrated on: a score, and places to sort it.
BYTES_PER_CELL = 60


class ConformalRanker(DecidingRanker):
    """Choose label sets whose risk on further rows is at most a level, guaranteed.

    The ranker is fitted to some rows; the others, which it has not seen, tell at which score to cut
    its rankings off. If rows are exchangeable (drawn alike, in any order), the expected loss of a
    further row is at most `level`, for every ranker, good or bad, and every number of rows: only
    the sets are larger for a bad one. The expectation is over further rows *and* over the rows
    calibrated on.

    Parameters
    ----------
    ranker : ranker, or Pipeline that ends in one
        Any of this package.
    risk : {"missed-share", "any-missed", "labels-beyond"}
        The share of a row's relevant labels that are not in its set (false negative rate); whether
        any of them is not; or how many labels must be read on, below the set, to reach the last
        relevant one, so that the set's size plus `level` bounds the expected rank of that label.
    level : float
        What the risk may be: between 0 and 1, or for "labels-beyond" a number of labels.
    calibration_size : float
        Share of the rows to calibrate on.
    random_state : int, generator or None
        For the choice of these rows.

    Attributes
    ----------
    ranker_ : ranker
        Fitted to the rows that are not calibrated on.
    threshold_ : float
        A label is in the set when its score is at least this.
    n_calibration_ : int
        Rows calibrated on.
    classes_ : array of shape (m,)

    Notes
    -----
    Rankings are those of the ranker. With a vector of classes in place of label sets there is
    nothing to cut off: the ranker is fitted to all rows, and predictions are its own.

    Examples
    --------
    >>> from deltarank import ConformalRanker, LogisticRanker
    >>> from deltarank.datasets import SyntheticModel
    >>> X, Y = SyntheticModel.random(n_labels=6, random_state=0).sample(4000, random_state=1)
    >>> ranker = ConformalRanker(LogisticRanker(), level=0.1, random_state=0)
    >>> ranker = ranker.fit(X[:2000], Y[:2000])
    >>> found = (ranker.predict(X[2000:]) * Y[2000:]).sum(axis=1)
    >>> missed = (Y[2000:].sum(axis=1) - found) / Y[2000:].sum(axis=1).clip(1)
    >>> bool(0.08 < missed.mean() < 0.12)
    True
    """

    def __init__(
        self,
        ranker: Any,
        *,
        risk: str = "missed-share",
        level: float = 0.1,
        calibration_size: float = 0.25,
        random_state: Any = None,
    ) -> None:
        self.ranker = ranker
        self.risk = risk
        self.level = level
        self.calibration_size = calibration_size
        self.random_state = random_state

    @property
    def accepts_unknown_labels(self) -> bool:
        """Whether NaN may stand in Y: no, since what was missed must be known."""
        return False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "ConformalRanker":
        """Fit the ranker to some rows, and find the threshold on the others.

        Parameters
        ----------
        X, y
            As the ranker takes them.
        sample_weight : array of shape (n,), optional
            How often a row counts for the ranker. To calibrate on, all rows are alike, as the
            guarantee is for rows drawn like them.
        """
        as_ranker(self.ranker)
        risk = choose(RISKS, self.risk, "risk")
        self._check_numbers()
        refuse_hidden(X, "X")
        targets = self._check_labels(y, _num_samples(X))
        if sample_weight is not None:
            sample_weight = row_numbers(sample_weight, targets.labels.n_rows, "sample_weight")
        if targets.form in ONE_CLASS_A_ROW:
            self.ranker_ = clone(as_ranker(self.ranker)).fit(X, y, sample_weight)
        else:
            self._fit_and_cut(Labelled(X, y, targets, sample_weight), risk)
        take_features(self, [self.ranker_])
        return self

    def _check_numbers(self) -> None:
        level = positive_number(self.level, "level")
        if self.risk != "labels-beyond" and level >= 1:
            raise ValueError(f"level must be below 1 for risk={self.risk!r}; got {self.level!r}")
        size = self.calibration_size
        if not isinstance(size, Real) or isinstance(size, bool) or not 0 < float(size) < 1:
            raise ValueError(f"calibration_size must be between 0 and 1; got {size!r}")

    def _fit_and_cut(self, data: Labelled, risk: Risk) -> None:
        labels = data.targets.labels
        self.n_calibration_ = int(np.ceil(self.calibration_size * labels.n_rows))
        if self.n_calibration_ == labels.n_rows:
            raise ValueError("calibration_size leaves no row to fit the ranker to; give more rows")
        shape = self.n_calibration_, labels.n_labels
        way_out = "lower calibration_size, or fit fewer labels"
        require_cells("calibrating on", shape, BYTES_PER_CELL, way_out)
        order = check_random_state(self.random_state).permutation(labels.n_rows)
        held, train = np.sort(order[: self.n_calibration_]), np.sort(order[self.n_calibration_ :])
        fitted = clone(as_ranker(self.ranker))
        if (weights := data.weights_of(fitted, train)) is not None:
            fitted.set_params(weight=lambda _: weights)
        fitted.fit(*data.take(train))
        scores = np.asarray(fitted.decision_function(data.take(held)[0]))
        self.threshold_ = safe_threshold(scores, labels.take(held), risk, float(self.level))
        self.ranker_ = fitted

    def _scores(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.ranker_._scores(X))

    def _relevance(self, scores: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.ranker_._relevance(scores))

    def predict(self, X: Any) -> Any:
        """Return the labels whose score is at least the threshold, in the form Y had.

        For a vector of classes: the best class.
        """
        check_is_fitted(self)
        if self._form in ONE_CLASS_A_ROW:
            return self.ranker_.predict(X)
        scores = self._label_scores(self._check_rows(X))
        return PREDICTIONS[self._form](scores, scores >= self.threshold_, self.classes_)
