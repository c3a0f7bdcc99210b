"""WBR-GT: gradient-boosted trees with a value for every label in each leaf."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from deltarank.base.chances import chances, trainable_loss
from deltarank.base.parameters import positive_integer, positive_number, unit_number
from deltarank.base.ranker import training_weights
from deltarank.base.staged import StagedRanker
from deltarank.core.balance import split_weights
from deltarank.core.weights import Weight
from deltarank.gradient_trees.booster import Booster, Weighed, hold_out
from deltarank.gradient_trees.categories import categorical_mask
from deltarank.gradient_trees.forest import Forest
from deltarank.gradient_trees.kernels.routes import SET_BYTES
from deltarank.gradient_trees.last_fit import check_inputs, last_fit
from deltarank.gradient_trees.linear_scores import LinearScores, fit_scores
from deltarank.gradient_trees.options import Options


class BoostedTreeRanker(StagedRanker):
    r"""Rank labels by gradient-boosted trees, consistent for rank loss, Eq. (12).

    It minimises :math:`\sum_i w(y_i) \sum_l \phi(y_{il} f_l(x_i))` for all labels at once: each
    round grows one tree, whose leaves hold a step of Newton's method for every label. The splits of
    a tree are found on a sketch of the gradients, a few random mixtures of labels that are drawn
    anew for every tree (Iosipoi and Vakhrushev 2022), so that their search costs the same
    for a thousand labels as for fifteen.

    Consistent means: if trees come as close to the log odds of every label's weighted chance as
    one likes, as rows and trees are added, the order becomes the best one. Scores need not be
    linear in the features, nor sums of functions of single ones.

    Parameters
    ----------
    n_trees : int
        Trees, that is rounds; with `early_stopping`, at most this many.
    learning_rate : float
        Share of each step taken, above 0 and at most 1.
    max_leaves : int
        Most leaves of a tree, at least 2. It grows where a split gains most.
    max_depth : int, optional
        Most splits between the root and a leaf.
    min_child_weight : float
        Least weight of a leaf: about how many rows of mean weight it must have, those whose labels
        are still hard to tell counting more.
    l2 : float
        Added to curvatures: leaves of little weight take short steps.
    weight : {"rank", "uniform", "recall", "ndcg", "min"}, ("ndcg", k) or callable
        What a row counts, by its label set: see `deltarank.instance_weights`.
    positive_cost, balance : float
        What a relevant cell costs beside an irrelevant one: see `LogisticRanker`.
    loss : {"logistic", "exponential", "squared", "squared_hinge"}
        What a cell costs by its margin.
    bins : int
        Most bins of a feature, 2 to 256. A feature with no more distinct values is searched
        exactly, one with more at as many quantiles.
    sketch_size : int
        Mixtures of labels that splits are found on, 1 to 15. With no more labels than that, the
        labels themselves.
    row_share : float
        Share of the rows that each tree is grown from, drawn anew for each.
    feature_share : float, optional
        The same of features. None is 0.3, but at least ten features.
    categorical_features : list, optional
        Columns of X that hold categories, by number or by name in a data frame, or a mask of
        all columns. In them categories are numbers 0, 1, ..., 255, as `OrdinalEncoder` gives
        them, and NaN is a missing one. A split brings a set of categories to the left.
    linear_scores : bool
        Let trees split by the scores of a weighted logistic regression too, one for each label, of
        the 128 most frequent at most. Training rows get them from fits without their fold. Of
        fewer than 10 rows, or of more than 50,000 features, there are none.
    early_stopping : int, optional
        Hold a tenth of the rows out, stop when this many trees in a row have not lowered their rank
        loss, and keep the trees up to the lowest.
    warm_start : bool
        Keep the trees of the last fit, and add trees until there are `n_trees`. Features and labels
        must be the same.
    random_state : int, generator or None
        For sketches, shares and rows held out.

    Attributes
    ----------
    n_trees_ : int
        Number of trees, t.
    base_ : array of shape (m,)
        The score before the first tree.
    roots_ : array of shape (t,)
        First node of each tree. A negative number ``~k`` stands for leaf k, here and in
        `children_`.
    features_, thresholds_, missing_left_ : arrays of shape (v,)
        Of inner nodes: values up to the threshold go left, which is NaN at a node that asks for
        categories; where missing values go.
    gains_ : array of shape (v,)
        What each split was worth.
    children_ : array of shape (v, 2)
        Left and right child of each node.
    values_ : array of shape (k, m)
        What a leaf adds to the score of every label.
    leaf_weights_ : array of shape (k,)
        Weight of the rows in training that fell into each leaf.
    category_sets_ : array of shape (s, 32)
        The categories that go left at each node that asks for them, one bit each, lowest first.
    is_categorical_ : array of shape (d,)
        Whether a feature holds categories.
    linear_coef_, linear_intercept_ : arrays of shape (k, d) and (k,)
        Linear scores, features d, d + 1, ... of the trees; k is 0 where there are none.
    linear_means_, linear_factors_ : arrays of shape (d,)
        What these fill missing features with and subtract from all, and then multiply by.
    classes_ : array of shape (m,)
        Names of the labels.

    Notes
    -----
    At each split missing values (NaN) go to the side where they gain more, or that of most rows if
    none was missing there. So do categories that no row in training had at that node; and whatever
    else stands in a column of categories when rows are scored. Entries that a sparse X
    does not store are zeros, not missing. Cells of unknown labels (NaN in Y) have no gradient.

    See Also
    --------
    AdaBoostRanker : Stumps, for each label its own.
    StagedSearchCV : Chooses the number of trees by cross-validation.

    Examples
    --------
    >>> from deltarank import BoostedTreeRanker
    >>> from deltarank.datasets import SyntheticModel
    >>> X, Y = SyntheticModel.random(n_labels=5, random_state=0).sample(2000, random_state=1)
    >>> ranker = BoostedTreeRanker(n_trees=50, random_state=0).fit(X, Y)
    >>> ranker.rank(X[:2], top=2)
    array([[1, 2],
           [3, 2]])
    >>> [scores.shape for scores in ranker.staged_decision_function(X[:2], at=[10, 20, 50])]
    [(2, 5), (2, 5), (2, 5)]

    One split tells categories apart that no threshold could:

    >>> colours = [[0], [1], [2], [3]] * 10
    >>> Y = [{"dog"}, {"cat"}, {"dog"}, {"cat"}] * 10
    >>> options = {"n_trees": 1, "max_leaves": 2, "min_child_weight": 1}
    >>> BoostedTreeRanker(categorical_features=[0], **options).fit(colours, Y).score(colours, Y)
    1.0
    >>> BoostedTreeRanker(**options).fit(colours, Y).score(colours, Y)
    0.75
    """

    rounds_parameter: ClassVar[str] = "n_trees"

    def __init__(
        self,
        *,
        n_trees: int = 1000,
        learning_rate: float = 0.05,
        max_leaves: int = 63,
        max_depth: int | None = None,
        min_child_weight: float = 20.0,
        l2: float = 1.0,
        weight: Weight = "rank",
        positive_cost: float = 1.0,
        balance: float = 0.0,
        loss: str = "logistic",
        bins: int = 64,
        sketch_size: int = 15,
        row_share: float = 1.0,
        feature_share: float | None = None,
        categorical_features: Any = None,
        linear_scores: bool = True,
        early_stopping: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.max_leaves = max_leaves
        self.max_depth = max_depth
        self.min_child_weight = min_child_weight
        self.l2 = l2
        self.weight = weight
        self.positive_cost = positive_cost
        self.balance = balance
        self.loss = loss
        self.bins = bins
        self.sketch_size = sketch_size
        self.row_share = row_share
        self.feature_share = feature_share
        self.categorical_features = categorical_features
        self.linear_scores = linear_scores
        self.early_stopping = early_stopping
        self.warm_start = warm_start
        self.random_state = random_state

    @property
    def accepts_missing_values(self) -> bool:
        """Whether NaN may stand in X: each split knows where it goes."""
        return True

    @property
    def accepts_unknown_labels(self) -> bool:
        """Whether NaN may stand in Y: such a cell has no gradient."""
        return True

    @property
    def _n_rounds(self) -> int:
        return self.n_trees if self.early_stopping is None else self.n_trees_

    @property
    def n_trees_(self) -> int:
        """Number of trees.

        Examples
        --------
        >>> from deltarank import BoostedTreeRanker
        >>> BoostedTreeRanker(n_trees=3).fit([[0.0], [1.0]], [{"low"}, {"high"}]).n_trees_
        3
        """
        return len(self.roots_)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """What the splits by each feature were worth, as shares of all.

        Of splits by a linear score each feature has a share, as its coefficient is large.

        Examples
        --------
        >>> from deltarank import BoostedTreeRanker
        >>> X = [[0, 5.0], [1, 5.0], [2, 5.0], [3, 5.0]] * 5
        >>> Y = [{"a"}, {"a"}, {"b"}, {"b"}] * 5
        >>> ranker = BoostedTreeRanker(n_trees=2, min_child_weight=1).fit(X, Y)
        >>> ranker.feature_importances_
        array([1., 0.])
        """
        n_inputs = self.n_features_in_ + len(self.linear_coef_)
        gains = np.bincount(self.features_, weights=self.gains_, minlength=n_inputs)
        sums = self._linear.spread(gains.astype(np.float64))
        return np.asarray(sums / max(sums.sum(), 1e-300))

    def _check_numbers(self) -> None:
        Options.of(self)
        positive_integer(self.n_trees, "n_trees")
        if self.early_stopping is not None:
            positive_integer(self.early_stopping, "early_stopping")
        positive_number(self.positive_cost, "positive_cost")
        unit_number(self.balance, "balance")
        if not isinstance(self.linear_scores, bool | np.bool_):
            raise ValueError(f"linear_scores must be True or False; got {self.linear_scores!r}")

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, stages: list[int]) -> Iterator[None]:
        """Check and weigh the rows, and boost those that count."""
        if self.early_stopping is not None and len(stages) > 1:
            raise ValueError(
                "early_stopping chooses the number of trees, so there are no stages to fit; use "
                "early_stopping=None"
            )
        before = last_fit(self)
        X = self._check_rows(X, fitting=True)
        names = getattr(self, "feature_names_in_", None)
        self.is_categorical_ = categorical_mask(self.categorical_features, X.shape[1], names)
        targets = self._check_labels(y, X.shape[0])
        weights = training_weights(targets, y, self.weight, sample_weight, self.balance)
        counted = weights > 0
        labels, weights = targets.labels.take(counted), weights[counted]
        generator = _generator(self.random_state)
        X = self._with_scores(X[counted], labels, weights, before, generator)
        data = self._weighed(X, labels, weights)
        held_out = None if self.early_stopping is None else hold_out(data.labels, generator)
        last, forests = None, []
        if before is not None:
            last, forests = (before.base_, before._sums(data.X)), [before._forest]
        n_before = 0 if before is None else before.n_trees_
        n_more = self.n_trees - n_before
        booster = Booster(data, Options.of(self), n_more, held_out, generator, last)
        self.base_, self.constants_ = booster.base, booster.constants
        made = booster.stages(stages, n_before, self.early_stopping)
        for stage, more in zip(stages, made, strict=True):
            forests.extend(more)
            forests = [Forest.joined(forests)]
            self._keep(forests[0].of_first(min(stage, len(forests[0].roots))))
            yield

    def _weighed(self, X: Any, labels: Any, weights: Any) -> Weighed:
        weights, costs = split_weights(labels, weights, self.balance)
        return Weighed(
            X,
            np.append(self.is_categorical_, np.zeros(X.shape[1] - self.n_features_in_, bool)),
            labels,
            weights,
            self.positive_cost * costs * np.ones(len(weights)),
        )

    def _with_scores(
        self, X: Any, labels: Any, weights: Any, before: "BoostedTreeRanker | None", generator: Any
    ) -> Any:
        """Return training rows with linear scores beside their features, and keep what gives them.

        A warm start keeps those that its trees ask for.
        """
        linear, scores = LinearScores.none(X.shape[1]), None
        if before is not None:
            check_inputs(self, before)
            linear = before._linear
        elif self.linear_scores:
            seed = int(generator.integers(2**31))
            linear, scores = fit_scores(X, labels, weights, self.is_categorical_, seed)
        for name, array in linear._asdict().items():
            setattr(self, f"linear_{name}_", array)
        return linear.beside(X, scores)

    @property
    def _linear(self) -> LinearScores:
        return LinearScores(*(getattr(self, f"linear_{name}_") for name in LinearScores._fields))

    @property
    def _forest(self) -> Forest:
        return Forest(*(getattr(self, f"{name}_") for name in Forest._fields))

    def _keep(self, forest: Forest) -> None:
        for name, array in forest._asdict().items():
            setattr(self, f"{name}_", array)

    def _restored(self) -> None:
        """Check what was read from a file, which may know no categories: kernels trust it."""
        if not hasattr(self, "category_sets_"):
            self.category_sets_ = np.zeros((0, SET_BYTES), np.int8)
            self.is_categorical_ = np.zeros(self.n_features_in_, bool)
        if not hasattr(self, "linear_coef_"):
            for name, array in LinearScores.none(self.n_features_in_)._asdict().items():
                setattr(self, f"linear_{name}_", array)
        self._forest.check(self.n_features_in_ + len(self.linear_coef_))

    def _staged(self, X: Any, stages: list[int]) -> Iterator[NDArray[np.float64]]:
        X = self._linear.beside(X)
        scores, done = np.tile(self.base_, (X.shape[0], 1)), 0
        for stage in stages:
            if stage > self.n_trees_:
                raise ValueError(
                    f"at must end at most at the last tree fitted, {self.n_trees_}; got {stage}"
                )
            self._forest.add_scores(X, scores, slice(done, stage))
            done = stage
            at_stage = self._finish(scores.copy())
            yield at_stage[:, 0] if self._form == "binary" else at_stage

    def _scores(self, X: Any) -> NDArray[Any]:
        return self._finish(self._sums(self._linear.beside(X)))

    def _sums(self, X: Any) -> NDArray[np.float64]:
        """Return what all trees add up to, from rows with linear scores beside their features."""
        scores = np.tile(self.base_, (X.shape[0], 1))
        self._forest.add_scores(X, scores)
        return scores

    def _finish(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give labels without two classes in training their place."""
        constant = ~np.isnan(self.constants_)
        scores[:, constant] = self.constants_[constant]
        return scores

    def _relevance(self, scores: NDArray[Any]) -> NDArray[Any]:
        return chances(trainable_loss(self.loss), self.positive_cost, scores)


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31))
