"""Weighted binary relevance round scikit-learn estimators, and stratified folds."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import logit
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from deltarank import (
    LabelStratifiedKFold,
    WeightedBinaryRelevance,
    instance_weights,
    rank_loss,
)
from deltarank.metrics import get_scorer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
Y = (X @ RNG.normal(size=(4, 6)) + RNG.normal(size=(150, 6)) > 0.7).astype(int)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_the_reduction_is_one_weighted_fit_a_label(n_jobs):
    ranker = WeightedBinaryRelevance(LogisticRegression(), n_jobs=n_jobs).fit(X, Y)
    used = instance_weights(Y) > 0
    for label in range(6):
        alone = LogisticRegression().fit(
            X[used], Y[used, label], sample_weight=instance_weights(Y)[used]
        )
        assert_allclose(ranker.decision_function(X)[:, label], alone.decision_function(X))
        assert_allclose(ranker.marginal_weights(X)[:, label], alone.predict_proba(X)[:, 1])


def test_sample_weights_multiply_the_weights_of_label_sets():
    extra = RNG.exponential(size=150)
    ranker = WeightedBinaryRelevance(LogisticRegression()).fit(X, Y, sample_weight=extra)
    weights = instance_weights(Y) * extra
    used = weights > 0
    weights *= extra[used].sum() / weights.sum()  # mean 1, rows counted by their sample weight
    alone = LogisticRegression().fit(X[used], Y[used, 2], sample_weight=weights[used])
    assert_allclose(ranker.decision_function(X)[:, 2], alone.decision_function(X))


@pytest.mark.parametrize(
    "estimator",
    [
        HistGradientBoostingClassifier(max_iter=5),
        RandomForestClassifier(5, random_state=0),
        LinearRegression(),
        LinearSVC(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), LogisticRegression())),
    ],
    ids=lambda e: type(e).__name__,
)
def test_any_estimator_that_takes_weights_ranks_better_than_chance(estimator):
    ranker = WeightedBinaryRelevance(estimator).fit(X, Y)
    assert rank_loss(Y, ranker.decision_function(X)) < 0.25


def test_weights_reach_a_pipeline_by_metadata_routing_too():
    by_name = WeightedBinaryRelevance(make_pipeline(StandardScaler(), LogisticRegression()))
    expected = by_name.fit(X, Y).decision_function(X)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            LogisticRegression().set_fit_request(sample_weight=True),
        )
        found = WeightedBinaryRelevance(routed).fit(X, Y).decision_function(X)
    assert_allclose(found, expected)


def test_probabilities_become_log_odds_and_regressions_stay_untied():
    forest = WeightedBinaryRelevance(RandomForestClassifier(5, random_state=0)).fit(X, Y)
    chances = forest.marginal_weights(X)
    assert_allclose(forest.decision_function(X), logit(np.clip(chances, 1e-12, 1 - 1e-12)))
    regression = WeightedBinaryRelevance(LinearRegression()).fit(X, Y)
    scores = regression.decision_function(5 * X)
    assert len(np.unique(scores)) == scores.size
    assert regression.marginal_weights(5 * X).min() == 0
    assert_array_equal(regression.predict(X), (scores_of(regression) > 0.5).astype(int))


def scores_of(regression):
    return np.column_stack([fitted.predict(X) for fitted in regression.estimators_])


def test_text_goes_straight_to_a_pipeline():
    texts = ["sun and sea", "sea and sand", "snow and ice", "ice and fog"]
    tags = [{"summer", "sea"}, {"summer", "sea"}, {"winter"}, {"winter", "fog"}]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=100))
    ranker = WeightedBinaryRelevance(model).fit(texts, tags)
    assert ranker.rank(["sand and sun"], top=1)[0, 0] in {"summer", "sea"}
    assert ranker.predict(["snow, ice"]) == [{"winter"}]


def test_a_label_never_seen_ranks_last_and_one_always_seen_first():
    never, always = np.zeros((150, 1), int), np.ones((150, 1), int)
    labels = np.hstack([never, Y, always])
    ranker = WeightedBinaryRelevance(LogisticRegression()).fit(X, labels)
    ranked = ranker.rank(100 * X)
    assert (ranked[:, 0] == 7).all()
    assert (ranked[:, -1] == 0).all()
    assert_array_equal(ranker.predict(X)[:, [0, 7]], np.hstack([never, always]))
    assert_array_equal(ranker.marginal_weights(X)[:, [0, 7]], np.hstack([never, always]))


def test_an_estimator_without_weights_or_chances_is_refused_in_words():
    with pytest.raises(ValueError, match=r"must take sample_weight.*KNeighborsClassifier does not"):
        WeightedBinaryRelevance(KNeighborsClassifier()).fit(X, Y)
    with pytest.raises(ValueError, match="LinearSVC has no predict_proba"):
        WeightedBinaryRelevance(LinearSVC()).fit(X, Y).marginal_weights(X)


def test_cross_validation_with_stratified_folds_and_rank_loss():
    ranker = WeightedBinaryRelevance(LogisticRegression())
    scores = cross_val_score(
        ranker,
        X,
        Y,
        cv=LabelStratifiedKFold(3, random_state=0),
        scoring=get_scorer("neg_rank_loss"),
    )
    assert (scores > -0.3).all()
    assert clone(ranker).get_params()["weight"] == "rank"


class TestFolds:
    labels = (np.random.default_rng(5).random((400, 12)) < np.geomspace(0.5, 0.015, 12)).astype(int)

    def test_every_row_is_tested_once(self):
        tested = [test for _, test in LabelStratifiedKFold(5, 0).split(self.labels, self.labels)]
        assert_array_equal(np.sort(np.concatenate(tested)), np.arange(400))
        for train, test in LabelStratifiedKFold(5, 0).split(self.labels, self.labels):
            assert set(train) | set(test) == set(range(400))
            assert not set(train) & set(test)

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_labels_are_spread_more_evenly_than_by_chance(self, form):
        folds = LabelStratifiedKFold(5, 0).folds(form(self.labels))
        assert_array_equal(np.bincount(folds), 80)
        random = np.random.default_rng(0).permutation(np.arange(400) % 5)

        def unevenness(folds):
            counts = np.array([self.labels[folds == f].sum(axis=0) for f in range(5)])
            return (counts.std(axis=0) / counts.mean(axis=0)).mean()

        assert unevenness(folds) < 0.5 * unevenness(random)
        rare = np.array([self.labels[folds == f][:, -1].sum() for f in range(5)])
        assert rare.max() - rare.min() <= 1

    def test_the_seed_decides(self):
        first, again, other = (LabelStratifiedKFold(5, s).folds(self.labels) for s in (0, 0, 1))
        assert_array_equal(first, again)
        assert (first != other).any()

    def test_rows_without_labels_are_dealt_out_too(self):
        folds = LabelStratifiedKFold(2, 0).folds(np.zeros((10, 3), int))
        assert_array_equal(np.bincount(folds), 5)

    def test_bad_numbers_of_folds_are_refused(self):
        with pytest.raises(ValueError, match="n_splits must be an integer of at least 2; got 1"):
            LabelStratifiedKFold(1)
        with pytest.raises(
            ValueError, match="n_splits must be at most the number of rows; got 3 with n_samples=2"
        ):
            LabelStratifiedKFold(3).folds([[1, 0], [0, 1]])


def test_class_weight_of_the_estimator_hides_that_one_label_is_likelier():
    """What docs/faq.md warns of. One x; labels relevant in 30 % and 60 % of its rows."""
    X = np.zeros((100, 1))
    Y = np.zeros((100, 2), int)
    Y[:30, 0], Y[30:90, 1] = 1, 1  # one label per row at most: every row weighs the same
    plain = WeightedBinaryRelevance(LogisticRegression()).fit(X, Y)
    balanced = WeightedBinaryRelevance(LogisticRegression(class_weight="balanced")).fit(X, Y)
    likelier, rarer = plain.decision_function(X[:1])[0][::-1]
    assert likelier > rarer + 1
    np.testing.assert_allclose(np.diff(balanced.decision_function(X[:1])[0]), 0, atol=1e-3)


def test_searches_of_scikit_learn_take_scorers_but_no_names_of_ours():
    X = np.arange(20.0)[:, None]
    Y = (X > [[5, 10, 15]]).astype(int)
    ranker = WeightedBinaryRelevance(LogisticRegression())
    with pytest.raises(ValueError, match="scoring"):
        cross_val_score(ranker, X, Y, scoring="neg_rank_loss", cv=2)
    by_scorer = cross_val_score(ranker, X, Y, scoring=get_scorer("neg_rank_loss"), cv=2)
    assert_allclose(cross_val_score(ranker, X, Y, cv=2), 1 + by_scorer)
