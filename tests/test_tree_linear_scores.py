"""Linear scores beside the features of trees: each from a fit without its fold, in the open."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from deltarank import (
    BoostedTreeRanker,
    LabelStratifiedKFold,
    LogisticRanker,
    explain,
    instance_weights,
    load,
    rank_loss,
    save,
    top_features,
)
from deltarank.gradient_trees.linear_scores import CS, LinearScores

RNG = np.random.default_rng(2)
N, D, M = 200, 6, 5
X = RNG.normal(size=(N, D)) * [1, 5, 0.1, 1, 1, 1] + [0, 3, 0, 0, 0, -2]
Y = ((X - X.mean(axis=0)) @ RNG.normal(size=(D, M)) + 6 * RNG.normal(size=(N, M)) > 0.5).astype(int)
HOLES = np.where(RNG.random(X.shape) < 0.15, np.nan, X)
UNKNOWN = np.where(RNG.random(Y.shape) < 0.1, np.nan, Y)
FEW = {"n_trees": 8, "max_leaves": 6, "min_child_weight": 2.0, "learning_rate": 0.3}


def standardised(rows):
    means, deviations = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
    return np.where(np.isnan(rows), 0, (rows - means) / deviations)


@pytest.mark.parametrize("data", [X, HOLES], ids=["whole", "missing"])
def test_trees_are_those_of_features_and_scores_of_other_folds(data):
    counted = instance_weights(Y) > 0
    rows, labels = data[counted], Y[counted]
    generator = np.random.default_rng(4)
    folds = LabelStratifiedKFold(5, random_state=int(generator.integers(2**31))).folds(labels)
    features, w = standardised(rows), instance_weights(labels) / instance_weights(labels).mean()
    tried = {}
    for C in CS:
        scores = np.empty(labels.shape)
        for fold in range(5):
            seen = folds != fold
            # The ranker makes weights of mean 1 of what it sees: a larger C says the same.
            linear = LogisticRanker(C=C * w[seen].mean(), weight=lambda _, seen=seen: w[seen])
            linear.fit(features[seen], labels[seen])
            scores[~seen] = linear.decision_function(features[~seen])
        margins = (2 * labels - 1) * scores
        tried[C] = (w @ np.log1p(np.exp(-margins))).sum(), scores
    best = min(tried, key=lambda C: tried[C][0])
    assert CS[0] < best < CS[-1]
    scores = tried[best][1]
    by_hand = BoostedTreeRanker(linear_scores=False, random_state=generator, **FEW)
    by_hand.fit(np.hstack([rows, scores]), labels)
    ranker = BoostedTreeRanker(random_state=np.random.default_rng(4), **FEW).fit(data, Y)
    assert (ranker.features_ >= D).any()
    assert_array_equal(ranker.features_, by_hand.features_)
    assert_allclose(ranker.thresholds_, by_hand.thresholds_, atol=0.02)
    assert_allclose(ranker.values_, by_hand.values_, atol=1e-8)
    # New rows are scored by the fit of all.
    linear = LogisticRanker(C=best).fit(features, labels)
    new = ranker._linear.of(rows)
    assert_allclose(new, linear.decision_function(features), atol=0.02)
    assert_allclose(
        ranker.decision_function(rows), by_hand.decision_function(np.hstack([rows, new]))
    )


def test_they_cut_across_the_features():
    rows = RNG.normal(size=(3000, 10))
    along = rows @ RNG.normal(size=(10, 4))
    labels = ((np.sin(along) > 0.2) | (along > 1)).astype(int)
    with_scores, without = (
        BoostedTreeRanker(n_trees=100, linear_scores=flag, random_state=0).fit(
            rows[:2000], labels[:2000]
        )
        for flag in (True, False)
    )
    losses = [
        rank_loss(labels[2000:], ranker.decision_function(rows[2000:]))
        for ranker in (with_scores, without)
    ]
    assert losses[0] < 0.8 * losses[1]


def test_sparse_rows_have_the_same():
    thin = np.where(np.abs(X) > 0.8, X, 0)
    thin[3, 0] = np.nan
    dense, listed = (
        BoostedTreeRanker(random_state=0, **FEW).fit(form(thin), Y)
        for form in (np.asarray, sparse.csr_array)
    )
    assert_allclose(listed._linear.of(sparse.csr_array(thin)), dense._linear.of(thin), atol=2e-3)
    assert_array_equal(listed.features_, dense.features_)


def test_categories_and_constants_have_no_part():
    rows = np.column_stack([RNG.integers(0, 5, N), X[:, 0], np.ones(N)])
    ranker = BoostedTreeRanker(categorical_features=[0], **FEW).fit(rows, Y)
    other = rows.copy()
    other[:, 0], other[:, 2] = 3, 1e6
    assert_array_equal(ranker._linear.of(rows), ranker._linear.of(other))
    assert (
        len(BoostedTreeRanker(categorical_features=[0], **FEW).fit(rows[:, :1], Y)._linear.coef)
        == 0
    )


def test_few_rows_and_constant_labels_have_none():
    assert len(BoostedTreeRanker(**FEW).fit(X[:9], Y[:9]).linear_coef_) == 0
    ends = np.column_stack([np.zeros(N), Y, np.ones(N)])
    ranker = BoostedTreeRanker(**FEW).fit(X, ends)
    assert len(ranker.linear_coef_) == M
    assert (ranker.rank(X)[:, 0] == M + 1).all()
    rare = np.column_stack([np.eye(N)[:, :1], Y])
    assert np.isfinite(BoostedTreeRanker(**FEW).fit(X, rare).decision_function(X)).all()


def test_the_most_frequent_of_many_labels_have_scores(monkeypatch):
    monkeypatch.setattr("deltarank.gradient_trees.linear_scores.MOST_SCORES", 2)
    frequent = np.sort(np.argsort(-Y.sum(axis=0), kind="stable")[:2])
    ranker = BoostedTreeRanker(**FEW, weight="uniform").fit(X, Y)
    all_scores = LogisticRanker(C=0.1, weight="uniform").fit(standardised(X), Y)
    wanted = all_scores.decision_function(standardised(X))[:, frequent]
    # Rows without a pair weigh nothing, but standardised features are of those that count.
    assert np.corrcoef(ranker._linear.of(X).T, wanted.T)[:2, 2:].diagonal().min() > 0.98


def test_unknown_labels_stages_and_files(tmp_path):
    ranker = BoostedTreeRanker(random_state=0, **FEW).fit(HOLES, UNKNOWN)
    staged = list(ranker.staged_decision_function(HOLES, at=[3, 8]))
    assert_allclose(staged[-1], ranker.decision_function(HOLES))
    save(ranker, tmp_path / "trees.delta")
    assert_array_equal(load(tmp_path / "trees.delta").decision_function(HOLES), staged[-1])
    ranker.features_[0] = D + M
    save(ranker, tmp_path / "broken.delta")
    with pytest.raises(ValueError, match="features_ must be numbers of features, below 11"):
        load(tmp_path / "broken.delta")


def test_a_fit_goes_on_with_the_scores_of_its_trees():
    ranker = BoostedTreeRanker(random_state=0, warm_start=True, **FEW).fit(X, Y)
    coef, first = ranker.linear_coef_, ranker.decision_function(X)
    ranker.set_params(n_trees=20).fit(X[:150], Y[:150])
    assert_array_equal(ranker.linear_coef_, coef)
    assert_allclose(next(ranker.staged_decision_function(X, at=[8])), first, atol=1e-12)


def test_features_share_what_scores_add():
    linear = LinearScores(
        np.array([[1.0, -3.0, 0.0]]), np.zeros(1), np.array([0.0, 1.0, 5.0]), np.ones(3)
    )
    added = np.array([0.5, 0.0, 0.25, 8.0])
    # The score is 2 - 3 (2 - 1) away from its mean: parts of sizes 2 and 3.
    assert_allclose(linear.shared_out(added, np.array([2.0, 2.0, 7.0])), [3.7, 4.8, 0.25])
    assert_allclose(linear.shared_out(added, np.array([2.0, np.nan, 7.0])), [8.5, 0, 0.25])
    assert_allclose(linear.shared_out(added, np.array([0.0, 1.0, 7.0])), [2.5, 6, 0.25])
    assert_allclose(linear.spread(added), [2.5, 6, 0.25])
    assert_allclose(linear.spread(added, signed=True), [2.5, -6, 0.25])


def test_explanations_add_up():
    ranker = BoostedTreeRanker(random_state=0, **FEW).fit(HOLES, Y)
    for row in HOLES[:5]:
        why = explain(ranker, row, 0, 3)
        scores = ranker.decision_function(row[None])[0]
        assert_allclose(why.difference, scores[0] - scores[3], atol=1e-12)
        assert len(why.contributions) == D
    assert_allclose(ranker.feature_importances_.sum(), 1)
    assert len(top_features(ranker, 0, None)) == D
