"""What all rankers share: reading labels, ranking in chunks, predicting in the form labels came."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from deltarank.base.features import canonical, check_size
from deltarank.base.probabilities import has_probabilities
from deltarank.base.publishing import published_at_end
from deltarank.base.scores import check_scores, check_top, select_in_threads
from deltarank.base.targets import PREDICTIONS, Targets, read_targets
from deltarank.core.arguments import refuse_hidden
from deltarank.core.balance import row_masses
from deltarank.core.chunks import is_chunked
from deltarank.core.labels import LabelSets, row_numbers
from deltarank.core.losses import sigmoid
from deltarank.core.progress import progress
from deltarank.core.scores import FIRST, LAST
from deltarank.core.threads import row_blocks
from deltarank.core.weights import Weight, normalized, raw_weights
from deltarank.metrics import rank_loss

# Scores of this many cells at a time: 16 MB of float32, small beside any model worth chunking for.
CELLS_PER_CHUNK = 4_000_000
NO_ROW_COUNTS = (
    "sample_weight times weight is zero in every row, so no row counts; "
    "give a positive sample_weight to a row with a pair to rank"
)
NO_UNKNOWN = (
    "{} takes no unknown labels; use LogisticRanker, AdaBoostRanker, BoostedTreeRanker or "
    "WeightedBinaryRelevance, or leave such rows out"
)


class Ranker(ClassifierMixin, BaseEstimator, ABC):
    """Base of the rankers: `fit` keeps `classes_`, `_scores` gives the scores of checked rows.

    Examples
    --------
    What every ranker has:

    >>> from deltarank import LogisticRanker
    >>> X, Y = [[0.0], [1.0], [2.0]], [{"low"}, {"low", "high"}, {"high"}]
    >>> ranker = LogisticRanker(C=100).fit(X, Y)
    >>> ranker.rank([[-1.0], [3.0]], top=1).tolist()
    [['low'], ['high']]
    >>> ranker.decision_function([[3.0]]).shape
    (1, 2)
    >>> high, low = ranker.marginal_weights([[3.0]])[0]
    >>> bool(high > 0.9 > 0.1 > low)
    True
    >>> ranker.predict([[3.0]])
    [{'high'}]
    >>> ranker.score(X, Y)
    1.0
    >>> ranker.accepts_missing_values, ranker.accepts_unknown_labels, ranker.estimates_marginals
    (False, True, True)
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "fit" in vars(cls):
            cls.fit = published_at_end(cls.fit)

    @property
    def accepts_missing_values(self) -> bool:
        """Whether NaN may stand in X."""
        return False

    @property
    def accepts_unknown_labels(self) -> bool:
        """Whether NaN may stand in Y, for a label of which nobody knows whether it is relevant."""
        return False

    @property
    def estimates_marginals(self) -> bool:
        """Whether scores estimate something of each label on its own, not only of pairs."""
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.accepts_missing_values
        return tags

    @abstractmethod
    def _scores(self, X: Any) -> NDArray[Any]:
        """Return the scores (n, m) of checked rows."""

    def _label_scores(self, X: Any, first_row: int = 0) -> NDArray[Any]:
        """Return the same, once it is sure that they can be ranked: finite, a column per label."""
        n_labels = 1 if self._form == "binary" else len(self.classes_)
        with np.errstate(over="ignore", invalid="ignore"):  # reported below, with the row
            scores = self._scores(X)
        return check_scores(scores, n_labels, first_row)

    def _check_rows(self, X: Any, *, fitting: bool = False) -> Any:
        """Check features; sparse ones become CSR, other numbers than float32 become float64."""
        if is_chunked(X):
            raise ValueError(
                f"X is a Dask collection, which {type(self).__name__} does not take here; "
                "LogisticRanker.fit and AdaBoostRanker.fit do, and X.compute() makes it an array"
            )
        refuse_hidden(X, "X")
        checked = validate_data(
            self,
            X,
            reset=fitting,
            accept_sparse="csr",
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan" if self.accepts_missing_values else True,
        )
        if fitting:
            check_size(checked, self._largest_feature(checked.dtype), type(self).__name__)
        return canonical(checked)

    def _largest_feature(self, dtype: Any) -> float:
        """Return the size of features beyond which a fit would overflow without a word."""
        return float(np.inf)

    def _check_labels(self, Y: Any, n_rows: int) -> Targets:
        """Read labels and remember their names and form."""
        name = type(self).__name__
        targets = read_targets(Y, None if self.accepts_unknown_labels else NO_UNKNOWN.format(name))
        if targets.labels.n_rows != n_rows:
            raise ValueError(
                f"X and Y must have the same number of rows; X has {n_rows} and "
                f"Y has {targets.labels.n_rows}"
            )
        self.classes_ = targets.classes
        self._form = targets.form
        return targets

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the scores (n, m), higher first; (n,) when fitted on a vector of two classes."""
        check_is_fitted(self)
        if is_chunked(X):
            return self._of_chunks(X, "decision_function")
        scores = self._label_scores(self._check_rows(X))
        return scores[:, 0] if self._form == "binary" else scores

    def _of_chunks(self, X: Any, method: str) -> Any:
        from deltarank.base.chunked import chunked_scores

        return chunked_scores(self, X, method)

    def rank(self, X: Any, top: int | None = None) -> NDArray[Any]:
        """Rank labels, best first.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        top : int, optional
            How many labels per row; all by default. Scores are held for a chunk of rows only.

        Returns
        -------
        names : array of shape (n, top)
            Names of the labels (column indices when Y had none); ties in column order.
        """
        check_is_fitted(self)
        n_labels = len(self.classes_)
        if is_chunked(X):
            from deltarank.base.chunked import chunked_ranks

            return chunked_ranks(self, X, n_labels if top is None else check_top(top, n_labels))
        X = self._check_rows(X)
        top = n_labels if top is None else check_top(top, n_labels)
        return self.classes_[self._best_columns(X, top)]

    def _best_columns(self, X: Any, top: int) -> NDArray[np.intp]:
        """Return the columns of the `top` best classes of checked rows."""
        ranked = np.empty((_num_samples(X), top), np.intp)
        for rows, scores in self._score_blocks(X):
            select_in_threads(scores, ranked[rows])
        return ranked

    def _ranked_blocks(
        self, X: Any, top: int
    ) -> Iterator[tuple[slice, NDArray[np.intp], NDArray[Any]]]:
        """Yield blocks of checked rows, the columns of their `top` best classes, and scores."""
        for rows, scores in self._score_blocks(X):
            columns = np.empty((len(scores), top), np.intp)
            select_in_threads(scores, columns)
            yield rows, columns, np.take_along_axis(scores, columns, axis=1)

    def _score_blocks(self, X: Any) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield blocks of checked rows and their scores, with progress."""
        n_rows = _num_samples(X)
        with progress("scoring", n_rows) as done:
            for rows in row_blocks(n_rows, max(1, CELLS_PER_CHUNK // len(self.classes_))):
                block = X if rows.stop - rows.start == n_rows else _safe_indexing(X, rows)
                yield rows, self._all_class_scores(block, rows.start)
                done(rows.stop)

    def _all_class_scores(self, X: Any, first_row: int = 0) -> NDArray[Any]:
        """Return one score per class, also where two classes share one label."""
        scores = self._label_scores(X, first_row)
        if self._form == "binary" and len(self.classes_) == 2:
            return np.hstack([-scores, scores])
        return scores

    def predict(self, X: Any) -> Any:
        """Return the labels more likely relevant than not, in the form Y had.

        "Likely" in the sense of `marginal_weights`. For a vector of classes: the best class.
        """
        check_is_fitted(self)
        if is_chunked(X):
            return self._of_chunks(X, "predict")
        X = self._check_rows(X)
        scores = self._label_scores(X)
        return PREDICTIONS[self._form](scores, self._relevance(scores) > 0.5, self.classes_)

    @available_if(lambda ranker: ranker.estimates_marginals)
    def marginal_weights(self, X: Any) -> NDArray[Any]:
        """Return eta_l(x), what the scores estimate, Eq. (23): the *weighted* chance of label l.

        It is Delta_l^1 / W, not P(y_l = 1 | x): each label set counts with its weight w(y). With
        ``weight="uniform"`` it is the probability given that the row has a pair to rank.
        """
        check_is_fitted(self)
        if is_chunked(X):
            return self._of_chunks(X, "marginal_weights")
        return self._relevance(self._label_scores(self._check_rows(X)))

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return P(y_l = 1 | x) of every label, shape (n, m): each on its own, not summing to 1.

        There once the ranker has been fitted to label sets, where scores estimate it: with
        ``weight="uniform"``, given that the row has a pair to rank. Wrap other rankers in
        `CalibratedRanker`.

        Examples
        --------
        >>> from deltarank import LogisticRanker
        >>> X, Y = [[0.0], [1.0], [0.0], [1.0]], [{"low"}, {"high"}, {"high"}, {"high", "low"}]
        >>> ranker = LogisticRanker(weight="uniform", C=1e6).fit(X[:3], Y[:3])
        >>> ranker.predict_proba([[0.0]]).round(2)
        array([[0.5, 0.5]])
        >>> hasattr(LogisticRanker().fit(X, Y), "predict_proba")
        False
        """
        return self.marginal_weights(X)

    def _relevance(self, scores: NDArray[Any]) -> NDArray[Any]:
        return sigmoid(scores)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return 1 - rank loss; for a vector of classes, the accuracy."""
        check_is_fitted(self)
        if self._form in ("binary", "classes"):
            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        names = self.classes_ if self._form == "sets" else None
        scores = self.decision_function(X)
        return 1.0 - float(rank_loss(y, scores, sample_weight=sample_weight, classes=names))


def training_weights(
    targets: Targets, Y: Any, weight: Weight, sample_weight: Any, balance: float = 0.0
) -> Any:
    """Return `sample_weight` times w(y), of mean 1 over the rows with a pair, Eq. (44).

    With a balance, the mean weight of a row's cells stands in place of w(y).

    The mean counts a row as often as its sample weight says, so that a weight of 2 is the same as
    the row given twice.
    """
    labels = targets.labels
    counts = np.ones(labels.n_rows)
    if sample_weight is not None:
        counts = row_numbers(sample_weight, labels.n_rows, "sample_weight")
    raw = raw_weights(labels, Y, weight)
    if balance:
        raw = raw * row_masses(labels, balance)
    weights = counts * normalized(raw, labels, counts)
    if not weights.any():
        raise ValueError(NO_ROW_COUNTS)
    return weights


def constant_scores(labels: LabelSets, weights: NDArray[Any]) -> NDArray[np.float64]:
    """Return LAST for a label never relevant in rows that count, FIRST for one always, else NaN.

    A label known in none of these rows was never seen relevant.
    """
    counted = weights > 0
    positives = _counts(labels, counted)
    known = counted.sum() - (0 if labels.unknown is None else _counts(labels.unknown, counted))
    return constants_of(positives, known)


def _counts(labels: LabelSets, counted: NDArray[np.bool_]) -> NDArray[Any]:
    """Return how many of the rows that count hold each label."""
    return np.bincount(labels.members, weights=counted[labels.rows], minlength=labels.n_labels)


def constants_of(positives: NDArray[Any], n_counted: Any) -> NDArray[np.float64]:
    """Return the same from the number of rows that count a label is relevant in, and of all."""
    scores = np.full(len(positives), np.nan)
    scores[positives == n_counted] = FIRST
    scores[positives == 0] = LAST
    return scores
