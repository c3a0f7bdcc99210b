"""Why one label stands above another: what each feature adds to the difference of their scores."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from deltarank.base.ranker import Ranker
from deltarank.boosting.stump_ranker import StumpRanker
from deltarank.explanations.explanation import Explanation, largest
from deltarank.gradient_trees.boosted_trees import BoostedTreeRanker
from deltarank.gradient_trees.contributions import contributions, effects
from deltarank.linear.coefficients import of_label
from deltarank.linear.ranker import LinearRanker
from deltarank.trees.label_tree import LabelTreeRanker
from deltarank.wrappers.calibrated import CalibratedRanker
from deltarank.wrappers.conformal import ConformalRanker
from deltarank.wrappers.pipeline_ranker import PipelineRanker
from deltarank.wrappers.staged import StagedSearchCV

Floats = NDArray[np.float64]


def explain(
    ranker: Any, x: Any, a: Any, b: Any, *, feature_names: Sequence[Any] | None = None
) -> Explanation:
    """Tell which features put label `a` above label `b` in a row.

    For a linear ranker a feature adds the difference of the labels' coefficients times its value,
    for boosted stumps the votes of those that ask for it, and for a label tree its value times the
    mean slope of the scores on the line from a row of zeros to this one. For boosted trees it adds
    its Shapley value: what knowing it changes, in the mean over all orders in which the features
    could become known, where a row whose feature is not known goes both ways, in the shares of the
    rows in training; what a linear score among their features adds, the features it is made of
    share by the size of their parts in it. Together with the intercept that is the difference of
    the scores, whole.

    Parameters
    ----------
    ranker : fitted ranker, or Pipeline that ends in one
        Linear, boosted or a label tree; scores of a kernel are refused. Behind transformers the
        features are theirs: words, categories, scaled numbers.
    x : array, sparse matrix or data frame
        One row, as the ranker or the pipeline takes it.
    a, b : labels
        As in ``ranker.classes_``.
    feature_names : sequence, optional
        By default those of the data frame the ranker was fitted on, or those that transformers
        give; else numbers.

    Examples
    --------
    >>> from deltarank import LogisticRanker, explain
    >>> X = [[30, 0.1], [28, 0.2], [2, 0.9], [-5, 0.8], [12, 0.7], [25, 0.6]]
    >>> Y = [{"beach"}, {"beach"}, {"museum"}, {"museum"}, {"museum"}, {"beach", "museum"}]
    >>> ranker = LogisticRanker().fit(X, Y)
    >>> names = ["warmth", "rain"]
    >>> explanation = explain(ranker, [29, 0.1], "beach", "museum", feature_names=names)
    >>> [feature for feature, _ in explanation.largest()]
    ['warmth', 'rain']
    >>> beach, museum = ranker.decision_function([[29, 0.1]])[0]
    >>> bool(abs(explanation.difference - (beach - museum)) < 1e-12)
    True
    """
    ranker, x, feature_names = _past_transformers(ranker, x, feature_names)
    ranker = _explainable(ranker)
    first, second = (_find_label(ranker, label) for label in (a, b))
    row = _single_row(ranker, x)
    plus, minus = (_part(ranker, row, label) for label in (first, second))
    names = _names(ranker, feature_names)
    return Explanation(names, plus[0] - minus[0], float(plus[1] - minus[1]), (a, b))


def top_features(
    ranker: Any, label: Any, n: int | None = 10, *, feature_names: Sequence[Any] | None = None
) -> list[tuple[Any, float]]:
    """Return the features that move a label's score most, and by how much.

    For a linear ranker that is the coefficient: what the score gains as the feature rises by 1. For
    boosted stumps it is the largest change of the score, up or down, as the feature rises; for
    boosted trees, how much more their splits by it give on the right than on the left, each counted
    with its share of the rows in training (by categories, how much they differ, without a sign);
    for a label tree, what the score of a row of zeros gains
    as the feature rises to 1.

    Parameters
    ----------
    ranker : fitted ranker, or Pipeline that ends in one
        Linear, boosted or a label tree.
    label : label
        As in ``ranker.classes_``.
    n : int, optional
        How many features at most; None for all that have an effect.
    feature_names : sequence, optional
        As in `explain`.

    Examples
    --------
    >>> from deltarank import LogisticRanker, top_features
    >>> ranker = LogisticRanker().fit([[0, 5.0], [1, 5.0]], [{"low"}, {"high"}])
    >>> [(feature, effect > 0) for feature, effect in top_features(ranker, "high")]
    [(0, True)]
    """
    ranker, _, feature_names = _past_transformers(ranker, None, feature_names)
    ranker = _explainable(ranker)
    column, sign = _column(ranker, _find_label(ranker, label))
    return largest(_names(ranker, feature_names), sign * _kind(ranker).effects(ranker, column), n)


def is_explainable(ranker: Any) -> bool:
    """Tell whether `explain` knows what features add to the scores of a ranker."""
    return isinstance(_scoring(ranker), tuple(_KINDS))


def _past_transformers(
    ranker: Any, x: Any, names: Sequence[Any] | None
) -> tuple[Any, Any, Sequence[Any] | None]:
    """Return the ranker at the end of a pipeline, the row as it gets there, and names for it."""
    if isinstance(ranker, CalibratedRanker | ConformalRanker) and not ranks_otherwise(ranker):
        check_is_fitted(ranker)
        ranker = ranker.ranker_
    if isinstance(ranker, PipelineRanker):
        check_is_fitted(ranker)
        ranker = ranker.pipeline_
    while isinstance(ranker, Pipeline):
        check_is_fitted(ranker)
        before, ranker = ranker[:-1], ranker.steps[-1][1]
        if not len(before):
            continue
        if x is not None:
            x = before.transform(_one_row(x))
        if names is None and hasattr(before, "get_feature_names_out"):
            names = before.get_feature_names_out().tolist()
    return ranker, x, names


def _one_row(x: Any) -> Any:
    """Return a row as transformers want it: a table of one."""
    if isinstance(x, str) or (isinstance(x, Sequence) and np.ndim(x[0]) == 0 and len(x) > 1):
        return [x]
    return np.asarray(x)[None] if isinstance(x, np.ndarray) and x.ndim == 1 else x


def _scoring(ranker: Any) -> Any:
    """Return the ranker whose scores another one ranks by."""
    if isinstance(ranker, StagedSearchCV):
        return getattr(ranker, "best_ranker_", ranker.ranker)
    if isinstance(ranker, CalibratedRanker | ConformalRanker) and not ranks_otherwise(ranker):
        return _scoring(getattr(ranker, "ranker_", ranker.ranker))
    return ranker


def ranks_otherwise(ranker: Any) -> bool:
    """Tell whether a ranker round another orders labels by other scores."""
    return bool(getattr(ranker, "rank_by_probability", False))


def _explainable(ranker: Any) -> Any:
    check_is_fitted(ranker)
    ranker = _scoring(ranker)
    if not isinstance(ranker, tuple(_KINDS)):
        raise ValueError(
            "only linear and boosted rankers and label trees can be explained; got "
            f"{type(ranker).__name__} (LogisticRanker and AdaBoostRanker can)"
        )
    return ranker


def _find_label(ranker: Ranker, label: Any) -> int:
    classes = ranker.classes_.tolist()
    if label not in classes:
        shown = ", ".join(map(repr, classes[:20])) + (", ..." if len(classes) > 20 else "")
        raise ValueError(f"unknown label {label!r}; the labels are {shown}")
    return int(classes.index(label))


def _single_row(ranker: Ranker, x: Any) -> Floats:
    if not sparse.issparse(x) and not hasattr(x, "columns") and np.ndim(x) == 1:
        x = np.asarray(x)[None]
    rows = ranker._check_rows(x)
    if rows.shape[0] != 1:
        raise ValueError(f"x must be one row; got {rows.shape[0]}")
    row = rows.toarray() if sparse.issparse(rows) else rows
    return np.asarray(row[0], dtype=np.float64)


def _names(ranker: Ranker, given: Sequence[Any] | None) -> Sequence[Any]:
    n_features = ranker.n_features_in_
    names = given if given is not None else getattr(ranker, "feature_names_in_", None)
    if names is None:
        return range(n_features)
    if len(names) != n_features:
        raise ValueError(f"feature_names must have {n_features} names; got {len(names)}")
    return list(names)


def _column(ranker: Ranker, label: int) -> tuple[int, float]:
    """Return the column of a label's scores; two classes share one, with opposite signs."""
    if ranker._form == "binary":
        return 0, 1.0 if label == len(ranker.classes_) - 1 else -1.0
    return label, 1.0


def _part(ranker: Ranker, row: Floats, label: int) -> tuple[Floats, float]:
    """Return what each feature of a row adds to the score of a label, and the intercept."""
    column, sign = _column(ranker, label)
    features, intercept = _kind(ranker).score(ranker, row, column)
    return sign * features, sign * intercept


def _linear_score(ranker: LinearRanker, row: Floats, column: int) -> tuple[Floats, float]:
    return of_label(ranker.coef_, column) * row, float(ranker.intercept_[column])


def _coefficients(ranker: LinearRanker, column: int) -> Floats:
    return of_label(ranker.coef_, column)


def _stump_score(ranker: StumpRanker, row: Floats, column: int) -> tuple[Floats, float]:
    features, thresholds, votes, constant = _stumps(ranker, column)
    if not np.isnan(constant):
        return np.zeros(len(row)), constant
    values = row[features]
    branch = np.where(np.isnan(values), 2, np.where(values <= thresholds, 0, 1))
    cast = votes[np.arange(len(votes)), branch]
    total: Floats = np.bincount(features, weights=cast, minlength=len(row)).astype(np.float64)
    return total, 0.0


def _largest_changes(ranker: StumpRanker, column: int) -> Floats:
    """Return, per feature, the largest change of the sum of votes as the feature rises."""
    features, thresholds, votes, constant = _stumps(ranker, column)
    changes = np.zeros(ranker.n_features_in_)
    if not np.isnan(constant):
        return changes
    for feature in np.unique(features):
        stumps = np.flatnonzero(features == feature)
        cuts, which = np.unique(thresholds[stumps], return_inverse=True)
        steps = np.bincount(which, weights=votes[stumps, 1] - votes[stumps, 0], minlength=len(cuts))
        # A threshold of infinity sends no value to the right.
        level = np.concatenate([[0.0], np.cumsum(steps[np.isfinite(cuts)])])
        rise = float((level - np.minimum.accumulate(level)).max())
        fall = float((level - np.maximum.accumulate(level)).min())
        changes[feature] = rise if rise >= -fall else fall
    return changes


def _stumps(ranker: StumpRanker, column: int) -> tuple[NDArray[Any], Floats, Floats, float]:
    """Return features, thresholds, votes (t, 3) and the constant score, if any, of a label."""
    votes, constants = ranker.votes_, ranker.constants_
    if ranker._form == "binary" and votes.shape[2] == 2:
        # The score of two classes is the difference of the scores of two labels.
        votes, constants = np.diff(votes, axis=2), np.diff(constants)
    shared = ranker.features_.ndim == 1
    features = ranker.features_ if shared else ranker.features_[:, column]
    thresholds = ranker.thresholds_ if shared else ranker.thresholds_[:, column]
    return features, thresholds, votes[:, :, column], float(constants[column])


class _Kind(NamedTuple):
    """How a kind of ranker adds up scores: for one row, and as the effects of features."""

    score: Callable[[Any, Floats, int], tuple[Floats, float]]
    effects: Callable[[Any, int], Floats]


def _tree_score(ranker: LabelTreeRanker, row: Floats, column: int) -> tuple[Floats, float]:
    constant = float(ranker.constants_[column])
    if not np.isnan(constant):
        return np.zeros(len(row)), constant
    return ranker.paths_to(column).contributions(row.astype(np.float32).astype(np.float64))


def _tree_effects(ranker: LabelTreeRanker, column: int) -> Floats:
    if not np.isnan(ranker.constants_[column]):
        return np.zeros(ranker.n_features_in_)
    return ranker.paths_to(column).effects()


def _forest_score(ranker: BoostedTreeRanker, row: Floats, column: int) -> tuple[Floats, float]:
    constant = float(ranker.constants_[column])
    if not np.isnan(constant):
        return np.zeros(len(row)), constant
    linear = ranker._linear
    added, mean = contributions(ranker._forest, linear.beside(row[None])[0], column)
    return linear.shared_out(added, row), float(ranker.base_[column]) + mean


def _forest_effects(ranker: BoostedTreeRanker, column: int) -> Floats:
    if not np.isnan(ranker.constants_[column]):
        return np.zeros(ranker.n_features_in_)
    linear = ranker._linear
    n_inputs = ranker.n_features_in_ + len(linear.coef)
    return linear.spread(effects(ranker._forest, column, n_inputs), signed=True)


_KINDS: dict[type[Any], _Kind] = {
    LinearRanker: _Kind(_linear_score, _coefficients),
    StumpRanker: _Kind(_stump_score, _largest_changes),
    BoostedTreeRanker: _Kind(_forest_score, _forest_effects),
    LabelTreeRanker: _Kind(_tree_score, _tree_effects),
}


def _kind(ranker: Ranker) -> _Kind:
    return next(kind for family, kind in _KINDS.items() if isinstance(ranker, family))
