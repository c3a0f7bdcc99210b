"""Kernel logistic ranking against the kernel matrix itself, and its search."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import deltarank.linear.nystrom as nystrom
from deltarank import KernelLogisticRanker, LogisticRanker, instance_weights, rank_loss
from deltarank.linear.kernel_logistic import scale

RNG = np.random.default_rng(0)
N, M = 90, 5
X = RNG.normal(size=(N, 3))
THETA = RNG.normal(size=(3, M))


def curved_labels(X, noise=0.0):
    """Labels by how far each feature is from 0."""
    return ((np.abs(X) - 0.8) @ THETA + noise > 0).astype(int)


Y = curved_labels(X, 0.2 * RNG.normal(size=(N, M)))
W = instance_weights(Y)
USED = W > 0
NEW = RNG.normal(size=(20, 3))


def test_with_all_rows_as_landmarks_it_is_kernel_logistic_regression():
    """The oracle: scikit-learn on the rows of a Cholesky factor of the kernel matrix.

    Scores of new rows follow from the representer theorem: k(x, .) times K^-1 F.
    """
    ranker = KernelLogisticRanker(gamma=0.5, C=2.0, n_landmarks=N, tol=1e-10).fit(X, Y)
    kernel = rbf_kernel(X[USED], gamma=0.5) + 1e-10 * np.eye(USED.sum())
    features = np.linalg.cholesky(kernel)
    for label in range(M):
        peer = LogisticRegression(C=2.0, solver="newton-cholesky", tol=1e-10)
        peer.fit(features, Y[USED, label], sample_weight=W[USED])
        inside = features @ peer.coef_[0]
        scores = rbf_kernel(NEW, X[USED], gamma=0.5) @ np.linalg.solve(kernel, inside)
        assert_allclose(
            ranker.decision_function(NEW)[:, label], scores + peer.intercept_, atol=2e-3
        )


def test_the_map_gives_the_kernel_between_landmarks_and_projections_elsewhere():
    landmarks = X[:30]
    phi = nystrom.NystromMap.fitted(landmarks, 0.7)
    inside, outside = phi(landmarks), phi(NEW)
    assert_allclose(inside @ inside.T, rbf_kernel(landmarks, gamma=0.7), atol=1e-6)
    assert_allclose(outside @ inside.T, rbf_kernel(NEW, landmarks, gamma=0.7), atol=1e-3)


def test_distances_are_scikit_learns():
    assert_allclose(nystrom.squared_distances(NEW, X), euclidean_distances(NEW, X) ** 2)
    thin = sparse.csr_array(np.where(NEW > 0, NEW, 0))
    assert_allclose(
        nystrom.squared_distances(thin, thin[:4]),
        euclidean_distances(thin.toarray(), thin[:4].toarray()) ** 2,
        atol=1e-12,
    )


def test_the_scale_is_the_mean_squared_distance_of_pairs_of_rows():
    assert_allclose(scale(X, np.ones(N)), (euclidean_distances(X) ** 2).mean())
    assert_allclose(scale(X, W), (W @ euclidean_distances(X) ** 2 @ W) / W.sum() ** 2)
    assert scale(np.ones((4, 2)), np.ones(4)) == 1


def test_sparse_features_give_the_same_scores():
    thin = np.where(RNG.random((N, 8)) < 0.6, 0, RNG.normal(size=(N, 8)))
    settings = {"gamma": 0.1, "C": 1.0, "n_landmarks": 40, "random_state": 0}
    dense = KernelLogisticRanker(**settings).fit(thin, Y)
    stored = KernelLogisticRanker(**settings).fit(sparse.csr_array(thin), Y)
    assert_allclose(
        stored.decision_function(sparse.csr_array(thin)), dense.decision_function(thin), atol=1e-6
    )


def test_rows_are_mapped_in_blocks(monkeypatch):
    phi = nystrom.NystromMap.fitted(X[:30], 0.7)
    whole = phi(NEW)
    monkeypatch.setattr(nystrom, "CELLS_PER_TASK", 90)
    assert_allclose(phi(NEW), whole)


def test_the_search_stops_at_a_width_better_than_its_neighbours():
    ranker = KernelLogisticRanker(n_landmarks=[20, 60], cv=3, random_state=0).fit(X, Y)
    tried = ranker.search_
    few = [t for t in tried if t["n_landmarks"] == 20]
    best = max(few, key=lambda t: t["score"])
    assert best["gamma"] == ranker.gamma_
    widths = sorted(t["gamma"] for t in few)
    assert widths[0] < ranker.gamma_ < widths[-1]
    chosen = [
        t for t in tried if (t["gamma"], t["n_landmarks"]) == (ranker.gamma_, ranker.n_landmarks_)
    ]
    assert chosen[0]["C"] == ranker.C_
    assert chosen[0]["score"] == max(t["score"] for t in tried)


def test_what_is_given_is_not_searched():
    fixed = KernelLogisticRanker(gamma=0.3, C=5.0, n_landmarks=20).fit(X, Y)
    assert (fixed.gamma_, fixed.C_, fixed.search_) == (0.3, 5.0, [])
    half = KernelLogisticRanker(gamma=0.3, n_landmarks=20, cv=2).fit(X, Y)
    assert [t["gamma"] for t in half.search_] == [0.3]
    other = KernelLogisticRanker(C=5.0, n_landmarks=20, cv=2).fit(X, Y)
    assert {t["C"] for t in other.search_} == {5.0}


def test_it_ranks_what_no_line_can():
    curved = KernelLogisticRanker(n_landmarks=50, cv=3, random_state=0).fit(X, Y)
    straight = LogisticRanker().fit(X, Y)
    test = RNG.normal(size=(500, 3))
    losses = [rank_loss(curved_labels(test), r.decision_function(test)) for r in (curved, straight)]
    assert losses[0] < losses[1] / 2


def test_it_is_one_step_of_a_pipeline():
    ranker = make_pipeline(StandardScaler(), KernelLogisticRanker(gamma=0.3, C=1.0))
    assert ranker.fit(X * [1, 1e3, 1e-3], Y).score(X * [1, 1e3, 1e-3], Y) > 0.7


def test_the_seed_decides_the_landmarks():
    settings = {"gamma": 0.3, "C": 1.0, "n_landmarks": 10}
    scores = [
        KernelLogisticRanker(**settings, random_state=seed).fit(X, Y).decision_function(NEW)
        for seed in (0, 0, 1)
    ]
    assert_array_equal(scores[0], scores[1])
    assert np.abs(scores[0] - scores[2]).max() > 1e-3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_landmarks": 0}, "each value of n_landmarks must be a positive integer; got 0"),
        ({"n_landmarks": []}, "n_landmarks must hold at least one number"),
        ({"gamma": -1.0}, "gamma must be positive and finite; got -1.0"),
        ({"C": 0}, "C must be positive and finite; got 0"),
        ({"scoring": "luck"}, "unknown scoring 'luck'"),
    ],
)
def test_bad_parameters_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        KernelLogisticRanker(**settings).fit(X, Y)
