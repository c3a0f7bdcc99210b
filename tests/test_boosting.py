"""Boosted rankers against boosting written down as defined, bounds, and hand-made stumps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

import deltarank.boosting.search as stump_search
import slow_boosting
from deltarank import AdaBoostMH, AdaBoostMR, AdaBoostRanker, instance_weights, rank_loss

RNG = np.random.default_rng(0)
N, M = 60, 5
X = np.round(RNG.normal(size=(N, 4)), 1)
X[:, 3] = RNG.integers(0, 2, N)
Y = (X @ RNG.normal(size=(4, M)) + RNG.normal(size=(N, M)) > 0.7).astype(int)
Y[0], Y[1] = 0, 1
HOLES = X.copy()
HOLES[RNG.random(X.shape) < 0.2] = np.nan
# Rows of different weights, so that no two splits or votes are equal but for rounding.
SAMPLE_WEIGHT = RNG.exponential(size=N)
W = instance_weights(Y) * SAMPLE_WEIGHT
COUNTED = W > 0


def counted(matrix):
    return matrix[COUNTED]


@pytest.mark.parametrize("data", [X, HOLES], ids=["whole", "missing"])
@pytest.mark.parametrize("votes", ["discrete", "real"])
@pytest.mark.parametrize("criterion", ["entropy", "error", "z"])
def test_each_label_is_boosted_as_defined(criterion, votes, data):
    ranker = AdaBoostRanker(n_stumps=30, criterion=criterion, votes=votes).fit(
        data, Y, SAMPLE_WEIGHT
    )
    scores = ranker.decision_function(data)
    for label in range(M):
        stumps = slow_boosting.adaboost_label(
            counted(data), counted(Y)[:, label], counted(W), 30, criterion, votes
        )
        assert ranker.n_stumps_[label] == len(stumps)
        if criterion != "error":  # where both leaves vote alike, all thresholds have one error
            assert_array_equal(ranker.features_[: len(stumps), label], [s[0] for s in stumps])
            assert_allclose(ranker.thresholds_[: len(stumps), label], [s[1] for s in stumps])
        assert_allclose(scores[:, label], slow_boosting.score_stumps(data, stumps), atol=1e-10)


@pytest.mark.parametrize("data", [X, HOLES], ids=["whole", "missing"])
@pytest.mark.parametrize(
    ("votes", "step"), [("discrete", "edge"), ("discrete", "exact"), ("real", "edge")]
)
def test_pairwise_boosting_keeps_the_distribution_over_triples(votes, step, data):
    ranker = AdaBoostMR(n_stumps=30, votes=votes, step=step).fit(data, Y, SAMPLE_WEIGHT)
    scores, normalizers = slow_boosting.adaboost_mr(
        counted(data), counted(Y), counted(W), 30, votes, step
    )
    assert_allclose(ranker.decision_function(counted(data)), scores, atol=1e-10)
    assert_allclose(ranker.normalizers_, normalizers, rtol=1e-10)


@pytest.mark.parametrize("data", [X, HOLES], ids=["whole", "missing"])
@pytest.mark.parametrize("votes", ["discrete", "real"])
def test_shared_stumps_for_the_univariate_loss_are_boosted_as_defined(votes, data):
    ranker = AdaBoostMH(n_stumps=30, votes=votes).fit(data, Y, SAMPLE_WEIGHT)
    scores, normalizers = slow_boosting.adaboost_mh(
        counted(data), counted(Y), counted(W), 30, votes
    )
    assert_allclose(ranker.decision_function(counted(data)), scores, atol=1e-10)
    assert_allclose(ranker.normalizers_, normalizers, rtol=1e-10)


@pytest.mark.parametrize("weight", ["uniform", "recall", "ndcg"])
def test_any_weight_serves(weight):
    w = instance_weights(Y, weight) * SAMPLE_WEIGHT
    ranker = AdaBoostMR(n_stumps=10, weight=weight).fit(X, Y, SAMPLE_WEIGHT)
    scores, _ = slow_boosting.adaboost_mr(
        counted(X), counted(Y), counted(w), 10, "discrete", "edge"
    )
    assert_allclose(ranker.decision_function(counted(X)), scores, atol=1e-10)


RANKERS = [
    AdaBoostRanker(n_stumps=15),
    AdaBoostRanker(n_stumps=15, criterion="z", votes="real"),
    AdaBoostMR(n_stumps=15),
    AdaBoostMR(n_stumps=15, step="exact"),
    AdaBoostMR(n_stumps=15, votes="real"),
    AdaBoostMH(n_stumps=15),
    AdaBoostMH(n_stumps=15, votes="real"),
]
each_ranker = pytest.mark.parametrize("ranker", RANKERS, ids=str)


@each_ranker
def test_stages_are_the_fits_with_fewer_rounds(ranker):
    stages = [1, 2, 7, 15]
    ranker = ranker.fit(HOLES, Y)
    staged = list(ranker.staged_decision_function(HOLES, at=stages))
    for stage, scores in zip(stages, staged, strict=True):
        ranker.set_params(n_stumps=stage).fit(HOLES, Y)
        assert_array_equal(scores, ranker.decision_function(HOLES))
    ranker.set_params(n_stumps=15)


@each_ranker
def test_sparse_features_give_the_same_stumps_without_being_made_dense(ranker):
    thin = np.where(RNG.random((N, 6)) < 0.7, 0.0, np.round(RNG.normal(size=(N, 6)), 1))
    thin[3, 2] = np.nan
    dense = ranker.fit(thin, Y, SAMPLE_WEIGHT).decision_function(thin)
    thresholds = ranker.thresholds_
    stored = sparse.csr_array(thin)
    assert_allclose(
        ranker.fit(stored, Y, SAMPLE_WEIGHT).decision_function(stored), dense, atol=1e-9
    )
    assert_allclose(ranker.thresholds_, thresholds)


@each_ranker
def test_bins_that_cover_all_values_change_nothing(ranker):
    exact = ranker.set_params(bins=None).fit(X, Y).decision_function(X)
    assert_array_equal(ranker.set_params(bins=256).fit(X, Y).decision_function(X), exact)


@pytest.mark.parametrize("as_features", [np.asarray, sparse.csr_array])
def test_missing_values_have_a_bin_beside_256_values(as_features):
    x = np.append(np.arange(256.0), np.nan)[:, None]
    low = np.append(np.arange(256) < 100, False)[:, None].astype(int)
    ranker = AdaBoostRanker(n_stumps=1, bins=None).fit(as_features(x), np.hstack([low, 1 - low]))
    assert_array_equal(ranker.thresholds_, 99.5)
    assert_array_equal(np.sign(ranker.votes_[0, :, 0]), [1, -1, -1])


def test_without_bins_every_midpoint_of_many_values_is_searched():
    x = RNG.permutation(700).astype(float)[:, None]
    y = (x < 0.5).astype(int)  # one row apart: no quantile of 256 has a cut there
    Y = np.hstack([y, 1 - y])
    exact = AdaBoostRanker(n_stumps=1, bins=None).fit(x, Y)
    assert_array_equal(exact.thresholds_, [[0.5, 0.5]])
    assert rank_loss(Y, exact.decision_function(x)) == 0
    coarse = AdaBoostRanker(n_stumps=1, bins=2).fit(x, Y)
    assert_allclose(coarse.thresholds_, 349.5)


@each_ranker
def test_single_precision_finds_the_same_stumps(ranker, monkeypatch):
    double = ranker.fit(X, Y, SAMPLE_WEIGHT).decision_function(X)
    monkeypatch.setattr("deltarank.boosting.places.FLOAT64_CELLS", 0)
    single = ranker.fit(X, Y, SAMPLE_WEIGHT).decision_function(X)
    assert_allclose(single, double, rtol=1e-4, atol=1e-4)


@each_ranker
def test_threads_change_nothing(ranker, monkeypatch):
    monkeypatch.setattr(stump_search, "SINGLE_THREAD_WORK", 0)
    monkeypatch.setenv("DELTARANK_NUM_THREADS", "4")
    many = ranker.fit(X, Y).decision_function(X)
    monkeypatch.setenv("DELTARANK_NUM_THREADS", "1")
    assert_array_equal(ranker.fit(X, Y).decision_function(X), many)


@pytest.mark.parametrize("votes", ["discrete", "real"])
def test_the_training_rank_loss_is_below_the_product_of_normalizers(votes):
    ranker = AdaBoostMR(n_stumps=40, votes=votes).fit(X, Y)
    for stage, scores in enumerate(ranker.staged_decision_function(counted(X)), start=1):
        assert rank_loss(counted(Y), scores) <= ranker.normalizers_[:stage].prod()


def test_normalizers_respect_the_bounds_of_their_edges():
    # With D of total 1: Z = 2 sqrt(eps (1 - eps)) of a label; at most sqrt(1 - r^2) of pairs.
    ranker = AdaBoostRanker(n_stumps=1).fit(X, Y, SAMPLE_WEIGHT)
    votes = np.sign(ranker.decision_function(counted(X)))
    w = counted(W) / W.sum()
    errors = w @ (votes != 2 * counted(Y) - 1)
    assert_allclose(ranker.normalizers_[0], 2 * np.sqrt(errors * (1 - errors)))
    edge = AdaBoostMR(n_stumps=30).fit(X, Y)
    step = np.abs(edge.votes_).max(axis=(1, 2))
    assert (edge.normalizers_ <= np.sqrt(1 - np.tanh(step) ** 2) + 1e-12).all()
    exact = AdaBoostMR(n_stumps=1, step="exact").fit(X, Y)
    assert exact.normalizers_[0] <= edge.normalizers_[0]


@pytest.mark.parametrize("shrinkage", [0.1, 0.5])
def test_shrinkage_takes_that_share_of_each_step(shrinkage):
    ranker = AdaBoostRanker(n_stumps=10, shrinkage=shrinkage).fit(X, Y, SAMPLE_WEIGHT)
    for label in range(M):
        stumps = slow_boosting.adaboost_label(
            counted(X), counted(Y)[:, label], counted(W), 10, "entropy", "discrete", shrinkage
        )
        slow = slow_boosting.score_stumps(X, stumps)
        assert_allclose(ranker.decision_function(X)[:, label], slow, atol=1e-10)


def test_scikit_learns_adaboost_agrees_where_the_conventions_do():
    """SAMME with an entropy stump is AdaBoost.M1: the same weights, votes and midpoints.

    scikit-learn trains on float32, breaks ties between features at random and has no rule for
    missing values of its own here; so: values exact in float32, no equal splits, none missing. Its
    estimator weight is beta = 2 alpha, and its binary decision is 2 sum beta v / sum beta.
    """
    x = RNG.normal(size=(200, 3)).astype(np.float32)
    y = (x @ [1.0, -1.0, 0.5] + RNG.normal(size=200) > 0).astype(int)
    w = RNG.exponential(size=200)
    peer = AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=1, criterion="entropy", random_state=0), n_estimators=25
    ).fit(x, y, sample_weight=w)
    ours = AdaBoostRanker(n_stumps=25, weight="uniform").fit(x, y, sample_weight=w)
    total = peer.estimator_weights_.sum()
    assert_allclose(ours.decision_function(x), peer.decision_function(x) * total / 2, rtol=1e-6)


def test_ties_take_the_first_feature_and_the_lowest_threshold():
    x = np.array([[0.0, 5.0], [1.0, 6.0], [2.0, 7.0], [3.0, 8.0]])
    Y = np.array([[1, 0], [0, 1], [0, 1], [1, 0]])  # cuts at .5 and 2.5 are equally good
    for ranker in (AdaBoostRanker(n_stumps=1), AdaBoostMR(n_stumps=1), AdaBoostMH(n_stumps=1)):
        ranker.fit(x, Y)
        assert (ranker.features_ == 0).all()
        assert (ranker.thresholds_ == 0.5).all()


def test_a_tied_leaf_votes_irrelevant():
    x = np.array([[0.0], [0.0], [1.0], [1.0], [1.0]])
    Y = np.array([[1, 0], [0, 1], [0, 1], [0, 1], [0, 1]])
    ranker = AdaBoostRanker(n_stumps=1, criterion="error").fit(x, Y)
    # Left: one relevant, one not, so label 0's log odds are 0; right: never relevant.
    scores = ranker.decision_function(x)
    assert scores[0, 0] == 0
    assert_allclose(scores[2, 0], np.log(1e-12), rtol=1e-6)


def test_a_missing_value_never_seen_in_training_votes_with_all_rows():
    ranker = AdaBoostRanker(n_stumps=1).fit(X, Y, SAMPLE_WEIGHT)
    share = (counted(W) @ counted(Y)) / W.sum()
    nothing = np.full((1, 4), np.nan)
    assert_allclose(ranker.decision_function(nothing)[0], np.log(share / (1 - share)))
    assert_array_equal(
        AdaBoostMR(n_stumps=5).fit(X, Y).decision_function(nothing), np.zeros((1, M))
    )


def test_missing_values_are_a_branch_of_their_own():
    x = np.array([[np.nan], [0.0], [1.0], [np.nan]])
    Y = np.array([[1, 0], [0, 1], [0, 1], [1, 0]])
    for ranker in (AdaBoostRanker(), AdaBoostMR(n_stumps=5), AdaBoostMH(n_stumps=5)):
        assert rank_loss(Y, ranker.fit(x, Y).decision_function(x)) == 0


def test_features_without_two_values_leave_the_shares_of_the_labels():
    flat = np.ones((N, 2))
    ranker = AdaBoostRanker(n_stumps=10).fit(flat, Y, SAMPLE_WEIGHT)
    share = (counted(W) @ counted(Y)) / W.sum()
    assert_allclose(ranker.decision_function(flat)[0], np.log(share / (1 - share)))
    assert_array_equal(ranker.n_stumps_, 1)
    assert np.isfinite(AdaBoostMR(n_stumps=10).fit(flat, Y).decision_function(flat)).all()


def test_labels_never_or_always_relevant_take_their_places():
    with_constants = Y[2:].copy()
    with_constants[:, 0], with_constants[:, 3] = 0, 1
    for ranker in (AdaBoostRanker(n_stumps=5), AdaBoostMR(n_stumps=5), AdaBoostMH(n_stumps=5)):
        order = ranker.fit(X[2:], with_constants).rank(X)
        assert (order[:, 0] == 3).all()
        assert (order[:, -1] == 0).all()


def test_scores_stay_finite_after_thousands_of_rounds_of_a_separable_problem():
    x = RNG.permutation(40).astype(float)[:, None]
    Y = np.hstack([x < 13, (x >= 13) & (x < 25), x >= 25]).astype(int)
    ranker = AdaBoostMR(n_stumps=20_000, shrinkage=0.5).fit(x, Y)
    assert len(ranker.votes_) == 20_000
    assert np.abs(ranker.decision_function(x)).max() > 1500  # exp of it overflows
    assert np.isfinite(ranker.votes_).all()
    assert rank_loss(Y, ranker.decision_function(x)) == 0


def test_predicting_in_blocks_and_float32_agree_with_whole_rows():
    many = RNG.normal(size=(1000, 4)).astype(np.float32)
    for ranker in RANKERS:
        ranker.fit(X, Y)
        one_by_one = np.vstack([ranker.decision_function(row[None]) for row in many[:5]])
        assert_array_equal(ranker.decision_function(many)[:5], one_by_one)


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (AdaBoostRanker(n_stumps=0), "n_stumps must be a positive integer; got 0"),
        (AdaBoostRanker(criterion="gini"), "unknown criterion 'gini'; choose one of"),
        (AdaBoostRanker(votes="loud"), "unknown votes 'loud'; choose one of discrete, real"),
        (AdaBoostMH(shrinkage=0), "shrinkage must be above 0 and at most 1; got 0"),
        (AdaBoostMR(bins=1), "bins must be from 2 to 256, or None"),
        (AdaBoostMR(step="long"), "unknown step 'long'; choose one of edge, exact"),
        (AdaBoostMR(step="exact", votes="real"), 'step="exact" is for discrete votes'),
    ],
)
def test_bad_parameters_are_named(ranker, message):
    with pytest.raises(ValueError, match=message):
        ranker.fit(X, Y)


@pytest.mark.parametrize("at", [[0], [2, 1], [1, 1], [4], [1.5]])
def test_bad_stages_are_refused(at):
    ranker = AdaBoostMH(n_stumps=3).fit(X, Y)
    with pytest.raises(ValueError, match="at must"):
        ranker.staged_decision_function(X, at=at)


def test_infinite_features_are_refused():
    wrong = X.copy()
    wrong[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        AdaBoostRanker().fit(wrong, Y)


def test_pairs_are_needed_for_a_pairwise_loss():
    with pytest.raises(ValueError, match="a pair to rank"):
        AdaBoostMR(weight=lambda Y: np.ones(len(Y))).fit(X, np.ones((N, 2)))


def test_pairwise_scores_estimate_no_marginals():
    assert not hasattr(AdaBoostMR(), "marginal_weights")
    eta = AdaBoostMH(n_stumps=20).fit(X, Y).marginal_weights(X)
    assert ((eta > 0) & (eta < 1)).all()
