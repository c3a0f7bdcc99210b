"""The best ranking or label set for a metric, from the chances that any ranker estimates."""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from deltarank.base.parameters import positive_integer, positive_number
from deltarank.base.ranker import LAST
from deltarank.base.selection import Labelled
from deltarank.base.targets import PREDICTIONS
from deltarank.core.arguments import refuse_hidden
from deltarank.core.choices import choose
from deltarank.core.labels import row_numbers
from deltarank.core.memory import require_cells
from deltarank.core.progress import progress
from deltarank.core.weights import Weight
from deltarank.decisions.batch import decide_batch
from deltarank.decisions.f_measure import best_f_sets
from deltarank.decisions.frank_wolfe import HeldOut, frank_wolfe
from deltarank.decisions.metrics import (
    DECISIONS,
    FMeasure,
    Linear,
    Macro,
    check_batch,
    known_of,
)
from deltarank.decisions.top import mark_first, mark_within_budget
from deltarank.wrappers.held_out import held_out
from deltarank.wrappers.marginals import chances_of, require_chances
from deltarank.wrappers.wrapped import (
    ONE_CLASS_A_ROW,
    DecidingRanker,
    as_ranker,
    take_features,
)

# Of each row and label held out: chances, also those of a fold in float64, and gains.
BYTES_PER_CELL = 25


class MetricRanker(DecidingRanker):
    """Rank, and choose label sets, in the way that is best for a metric.

    A ranker estimates chances of labels; which labels to show is another question, whose answer
    depends on how one is judged. Here the metric is said, and the chances are turned into its best
    decision: exactly `k` labels per row, except for the F-measure of sets.

    ======================  ========================================  =========================
    metric                  decision                                  chances
    ======================  ========================================  =========================
    "precision"             first k by chance                         plain
    "propensity-precision"  first k by chance over propensity         plain
    "macro-recall"          first k by chance over share of rows      plain
    "balanced-accuracy"     first k by Eq. (62)                       plain
    "macro-f1"              first k by a rule found on held-out rows  plain
    "macro-jaccard"         the same                                  plain
    "macro-hmean"           the same                                  plain
    "coverage"              k a row, all rows of a batch together     plain
    "f-beta"                best set, labels independent given x      plain
    "recall"                first k by chance                         of ``weight="recall"``
    "ndcg"                  first k by chance                         of ``weight=("ndcg", k)``
    ======================  ========================================  =========================

    Plain chances, P(y_l = 1 | x), come from a ranker with ``weight="uniform"`` or from a
    `CalibratedRanker`; any other is refused.

    Parameters
    ----------
    ranker : ranker
        What estimates the chances.
    metric : str
        One of the above.
    k : int or None
        How many labels per row. For "f-beta" at most this many, or None for no limit.
    batch : bool
        Decide over all rows of a call together, by block coordinate ascent, for a macro metric of
        just these rows. "coverage" is only decided so. Otherwise a rule for single rows is found on
        rows held out of fits, by the Frank-Wolfe method.
    beta : float
        Of "f-beta": how many times as important recall is as precision.
    propensities : array of shape (m,), optional
        For "propensity-precision"; estimated by `metrics.label_propensities` by default.
    cv : int, splitter or iterable of (train, test)
        Folds for that rule; every row must be held out once.
    random_state : int, generator or None
        For the folds, when `cv` is an integer.

    Attributes
    ----------
    ranker_ : ranker
        Fitted to all rows.
    slopes_, offsets_ : arrays of shape (m,)
        Scores are slope times chance plus offset, where the metric has such a rule.
    value_, mixture_value_ : float
        Of rules found on held-out rows: the metric there, and that of the mixture of rules with
        which the search ended. Much less for the rule says that rows are too alike for one rule.
    classes_ : array of shape (m,)

    Notes
    -----
    With a vector of classes in place of label sets there is nothing to decide: scores and
    predictions are the ranker's. The page "Theory" says under which conditions each decision is
    best.

    Examples
    --------
    >>> from deltarank import LogisticRanker, MetricRanker, metrics
    >>> from deltarank.datasets import SyntheticModel
    >>> X, Y = SyntheticModel.random(n_labels=8, random_state=0).sample(4000, random_state=1)
    >>> Y[:, 2:] *= X[:, :1] > 0.6  # labels that few rows have
    >>> plain = LogisticRanker(weight="uniform")
    >>> ranker = MetricRanker(plain, metric="macro-f1", k=2, random_state=0).fit(X[:3000], Y[:3000])
    >>> for it in (plain.fit(X[:3000], Y[:3000]), ranker):
    ...     value = metrics.macro_f1_at_k(Y[3000:], it.decision_function(X[3000:]), k=2)
    ...     print(f"{value:.2f}")
    0.38
    0.52
    >>> ranker.predict(X[:2]).sum(axis=1)
    array([2, 2])
    """

    def __init__(
        self,
        ranker: Any,
        *,
        metric: str = "macro-f1",
        k: int | None = 5,
        batch: bool = False,
        beta: float = 1.0,
        propensities: Any = None,
        cv: Any = 5,
        random_state: Any = None,
    ) -> None:
        self.ranker = ranker
        self.metric = metric
        self.k = k
        self.batch = batch
        self.beta = beta
        self.propensities = propensities
        self.cv = cv
        self.random_state = random_state

    @property
    def accepts_unknown_labels(self) -> bool:
        """Whether NaN may stand in Y: no, as what is known of a label is counted over all rows."""
        return False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "MetricRanker":
        """Fit the ranker, and find the rule that its chances are turned into scores by.

        Parameters
        ----------
        X, y
            As the ranker takes them.
        sample_weight : array of shape (n,), optional
            How often a row counts: for the ranker and the rule.
        """
        as_ranker(self.ranker)
        decision = choose(DECISIONS, self.metric, "metric")
        self._check_numbers()
        check_batch(self.metric, self.batch)
        require_chances(as_ranker(self.ranker), self.metric, self._weight(decision))
        refuse_hidden(X, "X")
        targets = self._check_labels(y, _num_samples(X))
        if sample_weight is not None:
            sample_weight = row_numbers(sample_weight, targets.labels.n_rows, "sample_weight")
        with progress("fitting for a metric", 1.0) as done:
            if targets.form not in ONE_CLASS_A_ROW:
                done.each = 0.8
                self._check_k(len(self.classes_))
                self._find_rule(decision, Labelled(X, y, targets, sample_weight))
            done.each = done.left
            self.ranker_ = clone(as_ranker(self.ranker)).fit(X, y, sample_weight)
        take_features(self, [self.ranker_])
        return self

    def _check_numbers(self) -> None:
        if self.k is not None:
            positive_integer(self.k, "k")
        elif self.metric != "f-beta":
            raise ValueError(f"k must be a positive integer for metric={self.metric!r}; got None")
        positive_number(self.beta, "beta")

    def _weight(self, decision: Any) -> Weight:
        """Return the weight that the chances must be of; "uniform" for plain ones."""
        return decision.weight(self._k) if isinstance(decision, Linear) else "uniform"

    def _check_k(self, n_labels: int) -> None:
        if self.k is not None and self.k > n_labels and self.metric != "f-beta":
            raise ValueError(f"k must be at most the number of labels, {n_labels}; got {self.k}")

    def _find_rule(self, decision: Any, data: Labelled) -> None:
        """Keep slopes and offsets: of chances themselves where the decision is no such rule."""
        known = known_of(data.targets.labels, data.sample_weight, self.propensities)
        slopes, offsets = 1.0, 0.0
        if isinstance(decision, Linear):
            slopes, offsets = decision.rule(known)
        elif isinstance(decision, Macro) and not self.batch:
            solution = frank_wolfe(self._held_out(data), decision.kind, self._k, never=LAST)
            self.value_, self.mixture_value_ = solution.value, solution.mixture_value
            slopes, offsets = solution.rule
        n_labels = len(self.classes_)
        self.slopes_ = np.broadcast_to(slopes, n_labels).astype(np.float64)
        # Nothing is lost by choosing a label that is never relevant, but it is of no use to anyone.
        self.offsets_ = np.where(known.shares > 0, offsets, LAST)

    @property
    def _k(self) -> int:
        """How many labels per row, where their number is fixed."""
        return cast(int, self.k)

    def _held_out(self, data: Labelled) -> HeldOut:
        labels = data.targets.labels
        shape, way_out = (labels.n_rows, labels.n_labels), "fit fewer labels or rows"
        require_cells(f"a rule for {self.metric} from", shape, BYTES_PER_CELL, way_out)
        chances = np.empty((labels.n_rows, labels.n_labels), np.float32)

        def ask(ranker: Any, X: Any) -> Any:
            return chances_of(ranker, ranker._check_rows(X))

        held_out(as_ranker(self.ranker), data, self.cv, self.random_state, ask, chances)
        weights = np.ones(labels.n_rows) if data.sample_weight is None else data.sample_weight
        return HeldOut(chances, labels, weights / weights.sum())

    def _scores(self, X: Any) -> NDArray[Any]:
        if self._form in ONE_CLASS_A_ROW:
            return np.asarray(self.ranker_._scores(X))
        chances = chances_of(self.ranker_, X)
        if self.batch:
            macro: Any = DECISIONS[self.metric]
            return decide_batch(chances, macro.kind, self._k).gains
        return self.slopes_ * chances + self.offsets_

    def _score_blocks(self, X: Any) -> Iterator[tuple[slice, NDArray[Any]]]:
        if not self.batch or self._form in ONE_CLASS_A_ROW:
            yield from super()._score_blocks(X)
        else:
            yield slice(0, _num_samples(X)), self._label_scores(X)

    @available_if(lambda ranker: ranker.estimates_marginals)
    def marginal_weights(self, X: Any) -> NDArray[Any]:
        """Return the chances that decisions are made from, as the ranker estimates them.

        Examples
        --------
        >>> from deltarank import LogisticRanker, MetricRanker
        >>> plain = LogisticRanker(weight="uniform")
        >>> ranker = MetricRanker(plain, metric="precision", k=1)
        >>> ranker = ranker.fit([[0.0], [1.0]], [[1, 0], [0, 1]])
        >>> ranker.marginal_weights([[0.5]]).round(2)
        array([[0.5, 0.5]])
        """
        check_is_fitted(self)
        if self._form in ONE_CLASS_A_ROW:
            return np.asarray(self.ranker_.marginal_weights(X))
        return chances_of(self.ranker_, self._check_rows(X))

    def predict(self, X: Any, budget: int | None = None) -> Any:
        """Return the chosen labels of each row, in the form Y had.

        Parameters
        ----------
        X : rows, as in `fit`
        budget : int, optional
            At most this many labels in all rows together, and at most k per row: those of largest
            gain. For the first four metrics of the table, whose gains add up over rows.

        Examples
        --------
        >>> from deltarank import LogisticRanker, MetricRanker
        >>> plain = LogisticRanker(weight="uniform")
        >>> X, Y = [[0.0], [1.0], [2.0]], [{"low"}, {"low", "high"}, {"high"}]
        >>> ranker = MetricRanker(plain, metric="precision", k=1).fit(X, Y)
        >>> ranker.predict([[-1.0], [1.2], [4.0]])
        [{'low'}, {'high'}, {'high'}]
        >>> ranker.predict([[-1.0], [1.2], [4.0]], budget=2)
        [{'low'}, set(), {'high'}]
        """
        check_is_fitted(self)
        decision = DECISIONS[self.metric]
        if budget is not None:
            budget = positive_integer(budget, "budget")
            # Chances of another weight are shares of a row's weight, which differs between rows.
            if not isinstance(decision, Linear) or self._weight(decision) != "uniform":
                raise ValueError(
                    f"budget needs a metric whose gains add up over rows, and {self.metric!r} is "
                    "none: use precision, propensity-precision, macro-recall or balanced-accuracy"
                )
        if self._form in ONE_CLASS_A_ROW:
            return self.ranker_.predict(X)
        scores = self._label_scores(self._check_rows(X))
        if isinstance(decision, FMeasure):
            marks = best_f_sets(scores, self.beta, self.k or scores.shape[1])
        elif budget is not None:
            marks = mark_within_budget(scores, self._k, budget)
        else:
            marks = mark_first(scores, self._k)
        return PREDICTIONS[self._form](scores, marks, self.classes_)
