"""Weighted binary relevance round any classifier: one weighted fit a label (section 3.3)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import logit
from sklearn import get_config
from sklearn.base import clone, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from deltarank.base.ranker import Ranker, constant_scores, training_weights
from deltarank.core import memory
from deltarank.core.arguments import refuse_hidden
from deltarank.core.labels import LabelSets
from deltarank.core.weights import Weight
from deltarank.wrappers.wrapped import take_features

SMALLEST_CHANCE = 1e-12


class WeightedBinaryRelevance(Ranker):
    """Rank labels by one weighted fit of a scikit-learn estimator a label.

    Consistent for the loss that `weight` stands for whenever the estimator's scores are, in the
    limit, an increasing function of the weighted chance of a label, the same for all labels: so for
    logistic regression, boosting with the exponential or logistic loss, and regression on 0 and 1.

    Parameters
    ----------
    estimator : classifier or regressor
        Its `fit` must take ``sample_weight``. In a `Pipeline` the last step gets the weights.
        Scores come from ``decision_function``, else from ``predict_proba`` (as log-odds), else,
        for a regressor on 0 and 1, from ``predict``. Leave its ``class_weight`` alone:
        "balanced" lifts rare labels above likelier ones, which is not consistent.
    weight : {"rank", "uniform", "recall", "ndcg", "min"}, ("ndcg", k) or callable
        See `deltarank.instance_weights`.
    n_jobs : int, optional
        Labels fitted at a time, by joblib.

    Attributes
    ----------
    classes_ : array of shape (m,)
        Names of the labels.
    estimators_ : list of m estimators
        None for a label that is never, or always, relevant in training: it ranks last, or first.

    See Also
    --------
    LogisticRanker : All labels in one matrix problem, far faster than a loop.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from deltarank import WeightedBinaryRelevance
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> Y = [{"low"}, {"low"}, {"high"}, {"high", "odd"}]
    >>> ranker = WeightedBinaryRelevance(DecisionTreeClassifier(max_depth=1)).fit(X, Y)
    >>> ranker.rank([[2.9]], top=2)
    array([['high', 'odd']], dtype='<U4')
    """

    def __init__(
        self, estimator: Any, *, weight: Weight = "rank", n_jobs: int | None = None
    ) -> None:
        self.estimator = estimator
        self.weight = weight
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self.estimator.__sklearn_tags__().input_tags
        return tags

    @property
    def accepts_unknown_labels(self) -> bool:
        """Whether NaN may stand in Y: a label is fitted on the rows in which it is known."""
        return True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "WeightedBinaryRelevance":
        """Fit one estimator per label, on the rows in which the label is known (not NaN)."""
        keyword = _weight_keyword(self.estimator)
        X = self._check_rows(X, fitting=True)
        targets = self._check_labels(y, _num_samples(X))
        weights = training_weights(targets, y, self.weight, sample_weight)
        # Rows of no weight go: some estimators choke on zeros, or let such rows shape them.
        used = np.flatnonzero(weights)
        if len(used) < len(weights):
            X = _safe_indexing(X, used)
        column = _columns(targets.labels.take(used))
        fit, rest = delayed(_fit_label), {keyword: weights[used]}
        members, n_labels = targets.labels.members, targets.labels.n_labels
        # One tells what all will take.
        frequent = int(np.bincount(members, minlength=n_labels).argmax())
        first = _fit_label(self.estimator, X, *column(frequent), rest)
        memory.require(
            (n_labels - 1) * _bytes_of_arrays(first),
            f"{n_labels} times a fitted {type(self.estimator).__name__}",
            "fit fewer labels or features, or a LogisticRanker with prune",
        )
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            fit(self.estimator, X, *column(label), rest)
            for label in range(n_labels)
            if label != frequent
        )
        self.estimators_.insert(frequent, first)
        self.constant_scores_ = constant_scores(targets.labels, weights)
        take_features(self, self.estimators_)
        return self

    def _check_rows(self, X: Any, *, fitting: bool = False) -> Any:
        """Leave the checking to the estimator, which may take text or categories."""
        refuse_hidden(X, "X")
        return X

    def _scores(self, X: Any) -> NDArray[Any]:
        return self._stack(X, self.constant_scores_, _label_scores)

    def marginal_weights(self, X: Any) -> NDArray[Any]:
        """Return eta_l(x), the weighted chance of label l: see `LogisticRanker.marginal_weights`.

        Needs an estimator with ``predict_proba``, or a regressor.
        """
        check_is_fitted(self)
        return self._stack(
            self._check_rows(X), (self.constant_scores_ > 0).astype(float), _label_chances
        )

    def _stack(
        self, X: Any, constants: NDArray[Any], values: Callable[[Any, Any], NDArray[Any]]
    ) -> NDArray[Any]:
        n_rows = _num_samples(X)
        columns = [
            np.full(n_rows, constant) if fitted is None else values(fitted, X)
            for fitted, constant in zip(self.estimators_, constants, strict=True)
        ]
        return np.column_stack(columns)


def _columns(
    labels: LabelSets,
) -> Callable[[int], tuple[NDArray[np.int64], NDArray[np.int64] | None]]:
    """Return a function that gives a label's zero-one column and, if not all, its known rows."""
    starts, rows = labels.by_label()
    gaps = None if labels.unknown is None else labels.unknown.by_label()

    def column(label: int) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        y = np.zeros(labels.n_rows, np.int64)
        y[rows[starts[label] : starts[label + 1]]] = 1
        if gaps is None:
            return y, None
        hidden = gaps[1][gaps[0][label] : gaps[0][label + 1]]
        return y, np.delete(np.arange(labels.n_rows), hidden)

    return column


def _fit_label(
    estimator: Any,
    X: Any,
    y: NDArray[np.int64],
    known: NDArray[np.int64] | None,
    weights: dict[str, NDArray[Any]],
) -> Any:
    if known is not None and len(known) < len(y):
        X, y = _safe_indexing(X, known), y[known]
        weights = {keyword: values[known] for keyword, values in weights.items()}
    if len(y) == 0 or y.min() == y.max():
        return None
    return clone(estimator).fit(X, y, **weights)


def _bytes_of_arrays(fitted: Any) -> int:
    """Return what the arrays of a fitted estimator take, such as coefficients; 0 for a constant."""
    last = fitted.steps[-1][1] if isinstance(fitted, Pipeline) else fitted
    held = getattr(last, "__dict__", {}).values()
    return sum(value.nbytes for value in held if isinstance(value, np.ndarray))


def _weight_keyword(estimator: Any) -> str:
    """Return the keyword that brings weights to the estimator's fit, or refuse it."""
    last = estimator
    path = []
    while isinstance(last, Pipeline):
        name, last = last.steps[-1]
        path.append(name)
    routed = get_config()["enable_metadata_routing"]
    # A search or another wrapper passes what it is given on as parameters of fit.
    if any(has_fit_parameter(last, name) for name in ("sample_weight", "params", "fit_params")):
        return "sample_weight" if routed else "__".join([*path, "sample_weight"])
    raise ValueError(
        f"estimator must take sample_weight in fit, to weigh rows by w(y); "
        f"{type(last).__name__} does not (LogisticRegression, HistGradientBoostingClassifier, "
        "RandomForestClassifier and others do)"
    )


def _label_scores(fitted: Any, X: Any) -> NDArray[Any]:
    if hasattr(fitted, "decision_function"):
        return np.asarray(fitted.decision_function(X)).ravel()
    if is_regressor(fitted):
        # The tangent of the log-odds at 1/2: on their scale, and without ties beyond 0 and 1.
        return 4 * np.asarray(fitted.predict(X), dtype=float).ravel() - 2
    chances = _label_chances(fitted, X)
    return np.asarray(logit(np.clip(chances, SMALLEST_CHANCE, 1 - SMALLEST_CHANCE)))


def _label_chances(fitted: Any, X: Any) -> NDArray[Any]:
    if is_regressor(fitted):
        return np.clip(np.asarray(fitted.predict(X), dtype=float).ravel(), 0, 1)
    if hasattr(fitted, "predict_proba"):
        return np.asarray(fitted.predict_proba(X))[:, 1]
    raise ValueError(
        f"{type(fitted).__name__} has no predict_proba, so its chances are unknown; "
        "use decision_function or rank, or wrap it in CalibratedClassifierCV"
    )
