"""What other libraries test or compute, asked of ours; where conventions differ, it is said how.

The toy cases are those by which scikit-learn checks its ranking metrics, as numbers. Differences of
convention: scikit-learn counts a tied pair as wrong (ours: half, unless ``ties="full"``), averages
precision with ties ranked together (ours: over all orders of tied labels), and gives a row without
pairs the value 0 of a loss and 1 of average precision (ours too, the latter under another name).
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import metrics as theirs
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from deltarank import LogisticRanker, PairwiseRanker, metrics, rank_loss

RISING, FALLING = [0.25, 0.5, 0.75], [0.75, 0.5, 0.25]


@pytest.mark.parametrize(
    ("Y", "scores", "loss"),
    [
        ([[0, 1]], [[0.25, 0.75]], 0),
        ([[0, 1]], [[0.75, 0.25]], 1),
        ([[0, 0, 1]], [RISING], 0),
        ([[0, 1, 0]], [RISING], 1 / 2),
        ([[0, 1, 1]], [RISING], 0),
        ([[1, 0, 0]], [RISING], 1),
        ([[1, 0, 1]], [RISING], 1 / 2),
        ([[1, 1, 0]], [RISING], 1),
        ([[0, 0]], [[0.75, 0.25]], 0),
        ([[1, 1]], [[0.75, 0.25]], 0),
        ([[0, 1, 0], [1, 1, 0]], [[0.1, 10.0, -3], [0, 1, 3]], 1 / 2),
        ([[0, 1, 0], [1, 1, 0], [0, 1, 1]], [[0.1, 10, -3], [3, 1, 3], [0, 2, 0]], 4 / 9),
        ([[0, 1, 0, 0, 0, 1]], [[1, 1, 1, 1, 1, 1]], 1),
    ],
)
def test_scikit_learns_cases_of_the_rank_loss(Y, scores, loss):
    # The last two have ties, so all are asked for with scikit-learn's convention.
    assert_allclose(rank_loss(Y, scores, ties="full"), theirs.label_ranking_loss(Y, scores))
    if len(Y) < 3:
        assert_allclose(rank_loss(Y, scores, ties="full"), loss)


@pytest.mark.parametrize(
    ("Y", "scores", "precision"),
    [
        ([[0, 1]], [[0.25, 0.75]], 1),
        ([[0, 1]], [[0.75, 0.25]], 1 / 2),
        ([[1, 1]], [[0.75, 0.25]], 1),
        ([[0, 0, 1]], [RISING], 1),
        ([[0, 1, 0]], [RISING], 1 / 2),
        ([[0, 1, 1]], [RISING], 1),
        ([[1, 0, 0]], [RISING], 1 / 3),
        ([[1, 0, 1]], [RISING], (2 / 3 + 1) / 2),
        ([[1, 1, 0]], [RISING], (2 / 3 + 1 / 2) / 2),
        ([[0, 0, 1]], [FALLING], 1 / 3),
        ([[0, 1, 1]], [FALLING], (1 / 2 + 2 / 3) / 2),
        ([[1, 0, 1]], [FALLING], (1 + 2 / 3) / 2),
        ([[1, 1, 0]], [FALLING], 1),
        ([[1, 1, 1]], [FALLING], 1),
    ],
)
def test_scikit_learns_cases_of_average_precision(Y, scores, precision):
    assert_allclose(metrics.average_precision(Y, scores), precision)


@pytest.mark.parametrize(
    ("Y", "scores", "depth"),
    [
        ([[0, 1]], [[0.25, 0.75]], 1),
        ([[0, 1]], [[0.75, 0.25]], 2),
        ([[1, 1]], [[0.75, 0.25]], 2),
        ([[0, 0, 1]], [RISING], 1),
        ([[0, 1, 0]], [RISING], 2),
        ([[0, 1, 1]], [RISING], 2),
        ([[1, 0, 0]], [RISING], 3),
        ([[1, 0, 1]], [RISING], 3),
        ([[1, 1, 0]], [RISING], 3),
        ([[0, 1, 0], [1, 1, 0]], [[0.1, 10.0, -3], [0, 1, 3]], (1 + 3) / 2),
    ],
)
def test_scikit_learns_cases_of_coverage(Y, scores, depth):
    # Ours is the paper's: how far down the last relevant label is, counted from 0.
    assert_allclose(metrics.coverage(Y, scores) + 1, depth)
    assert_allclose(theirs.coverage_error(Y, scores), depth)


def cases(n_cases, *, ties):
    rng = np.random.default_rng(0)
    for _ in range(n_cases):
        n, m = rng.integers(1, 8), rng.integers(2, 12)
        Y = (rng.random((n, m)) < rng.uniform(0, 1)).astype(int)
        scores = rng.permuted(np.tile(np.arange(m, dtype=float), (n, 1)), axis=1)
        yield Y, np.floor(scores / 3) if ties else scores


def test_thousands_of_random_cases_against_scikit_learn():
    for Y, scores in cases(2000, ties=True):
        assert_allclose(rank_loss(Y, scores, ties="full"), theirs.label_ranking_loss(Y, scores))
    for Y, scores in cases(1000, ties=False):
        ranked = Y[Y.any(axis=1)], scores[Y.any(axis=1)]
        if len(ranked[0]):
            wanted = theirs.label_ranking_average_precision_score(*ranked)
            assert_allclose(metrics.average_precision(*ranked), wanted)
            assert_allclose(metrics.coverage(*ranked) + 1, theirs.coverage_error(*ranked))
            for k in (1, 3, 5):
                wanted = theirs.ndcg_score(*ranked, k=k)
                assert_allclose(metrics.ndcg_at_k(*ranked, k=min(k, Y.shape[1])), wanted)


def test_thousands_of_random_cases_against_torchmetrics():
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    name = "torchmetrics.functional.classification"
    peer = pytest.importorskip(name, reason="needs torchmetrics")
    for Y, scores in cases(1000, ties=False):
        m = Y.shape[1]
        if m < 2 or not Y.any(axis=1).all():
            continue
        # Its chances are squashed unless they are in [0, 1].
        target, chances = torch.as_tensor(Y), torch.as_tensor((scores + 1) / (m + 1))
        loss = peer.multilabel_ranking_loss(chances, target, num_labels=m)
        assert_allclose(rank_loss(Y, scores), float(loss), atol=1e-6)
        precision = peer.multilabel_ranking_average_precision(chances, target, num_labels=m)
        assert_allclose(metrics.average_precision(Y, scores), float(precision), atol=1e-6)
        depth = peer.multilabel_coverage_error(chances, target, num_labels=m)
        assert_allclose(metrics.coverage(Y, scores) + 1, float(depth), atol=1e-6)


class TestModels:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 5))
    Y = (X @ rng.normal(size=(5, 4)) + rng.logistic(size=(400, 4)) > 0.5).astype(int)
    ranked = (Y.sum(axis=1) > 0) & (Y.sum(axis=1) < 4)

    @pytest.mark.parametrize("solver", ["liblinear", "newton-cholesky"])
    def test_logistic_regression_of_each_label(self, solver):
        ours = LogisticRanker(C=0.7, weight="uniform", penalize_intercept=solver == "liblinear")
        ours.fit(self.X, self.Y)
        for label in range(4):
            # liblinear penalises the intercept as the coefficient of a constant feature.
            peer = LogisticRegression(C=0.7, solver=solver, tol=1e-10, max_iter=5000)
            peer.fit(self.X, self.Y[:, label], sample_weight=self.ranked * 1.0)
            assert_allclose(ours.coef_[label], peer.coef_[0], atol=2e-4)
            assert_allclose(ours.intercept_[label], peer.intercept_[0], atol=2e-4)

    def test_newton_by_hand(self):
        ours = LogisticRanker(C=2.0, weight="uniform", tol=1e-10).fit(self.X, self.Y)
        x = np.column_stack([self.X, np.ones(400)])[self.ranked]
        penalty = np.diag([0.5] * 5 + [0.0])
        for label in range(4):
            y, theta = self.Y[self.ranked, label], np.zeros(6)
            for _ in range(30):
                chance = 1 / (1 + np.exp(-x @ theta))
                gradient = x.T @ (chance - y) + penalty @ theta
                hessian = x.T @ (x * (chance * (1 - chance))[:, None]) + penalty
                theta -= np.linalg.solve(hessian, gradient)
            assert_allclose([*ours.coef_[label], ours.intercept_[label]], theta, atol=1e-6)

    def test_two_labels_of_which_one_is_relevant_are_a_support_vector_machine(self):
        # With one pair per row the squared hinge on differences of scores is LinearSVC's problem:
        # h_1 - h_0 = z, and the two coefficients of a feature share its penalty.
        y = (self.X @ [1.0, -1.0, 0.5, 0.0, 2.0] + self.rng.logistic(size=400) > 0).astype(int)
        ours = PairwiseRanker(loss="squared_hinge", C=1.0, tol=1e-10)
        ours.fit(self.X, np.column_stack([1 - y, y]))
        # The penalty of a difference split evenly between two labels is half its own.
        peer = LinearSVC(C=2.0, tol=1e-10, max_iter=100_000, intercept_scaling=1e3).fit(self.X, y)
        assert_allclose(ours.coef_[1] - ours.coef_[0], peer.coef_[0], rtol=2e-3, atol=2e-3)
