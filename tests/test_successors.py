"""The univariate losses u1 to u4 of Wu et al. (2021): what they minimise, and rank rightly."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from deltarank import LogisticRanker, LogisticRankerCV
from deltarank.linear.rows import tuning
from deltarank.rankers import SUCCESSOR_LOSSES
from deltarank.theory import LabelDistribution

COUNTEREXAMPLE = LabelDistribution({"0010": 2 / 9, "0101": 4 / 9, "1101": 3 / 9})
# What each is consistent for; u3 is for nothing of this form (see test_balance.py).
TARGETS = {"u1": "uniform", "u2": "rank", "u4": "min"}


@pytest.fixture(params=["Newton on small data", "passes over row blocks"], autouse=True)
def engine(request, monkeypatch):
    if request.param == "passes over row blocks":
        monkeypatch.setattr(tuning.LOCAL, "largest_table", 0)


def cell_weights(name, Y):
    """Weights of the cells by the definitions, trivial rows 0."""
    m, s = Y.shape[1], Y.sum(axis=1, keepdims=True)
    ranked = (s % m) > 0
    s = np.where(ranked, s, 1)
    by_definition = {
        "u1": np.full(Y.shape, 1 / m),
        "u2": np.broadcast_to(1 / (s * (m - s)), Y.shape),
        "u3": np.where(Y == 1, 1 / s, 1 / (m - s)),
        "u4": np.broadcast_to(1 / np.minimum(s, m - s), Y.shape),
    }
    return ranked * by_definition[name]


def population_scores(distribution, name):
    """Scores of least expected loss: a fit to all label sets, weighted by their chances."""
    used = distribution.probabilities > 0
    rows, chances = distribution.labelings[used].astype(int), distribution.probabilities[used]
    ranker = LogisticRanker(tol=1e-12, **SUCCESSOR_LOSSES[name])
    ranker.fit(np.zeros((len(rows), 1)), rows, sample_weight=chances)
    return ranker.decision_function(np.zeros((1, 1)))[0]


@pytest.mark.parametrize("name", SUCCESSOR_LOSSES)
def test_the_optimum_is_that_of_cells_weighted_by_the_definition(name):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, 5))
    Y = (X @ generator.normal(size=(5, 6)) + generator.normal(size=(400, 6)) > 0.5).astype(int)
    weights = cell_weights(name, Y)
    ranker = LogisticRanker(C=1e4, tol=1e-10, **SUCCESSOR_LOSSES[name]).fit(X, Y)
    for label in range(6):
        used = weights[:, label] > 0
        scale = used.sum() / weights[used, label].sum()
        exact = LogisticRegression(C=1e4, solver="newton-cholesky", tol=1e-10).fit(
            X[used], Y[used, label], sample_weight=scale * weights[used, label]
        )
        assert_allclose(ranker.coef_[label], exact.coef_[0], atol=5e-3)
        assert_allclose(ranker.intercept_[label], exact.intercept_[0], atol=5e-3)


def test_the_counterexample_ranks_a_worse_label_first_under_u3_only():
    assert_allclose(COUNTEREXAMPLE.marginal_weights(), [1 / 9, 2 / 9, 2 / 27, 2 / 9])
    scores = population_scores(COUNTEREXAMPLE, "u3")
    assert_allclose(scores, [-0.981, 1.504, -0.916, 1.504], atol=1e-3)
    assert scores[2] > scores[0]
    assert COUNTEREXAMPLE.regret(scores) > 0.03
    right = population_scores(COUNTEREXAMPLE, "u2")
    right[1] = right[3]  # two labels of equal weight tie; rounding may not
    assert COUNTEREXAMPLE.regret(right) < 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_each_loss_is_consistent_for_its_own_weight(seed):
    table = np.random.default_rng(seed).dirichlet(np.full(16, 0.3))
    distribution = LabelDistribution(0.99 * table + 0.01 / 16)
    for name, weight in TARGETS.items():
        scores = population_scores(distribution, name)
        assert distribution.regret(scores, weight=weight) < 1e-6
    regrets = [distribution.regret(population_scores(distribution, n)) for n in TARGETS]
    assert min(regrets) == pytest.approx(regrets[1], abs=1e-6)


def test_u3_is_right_when_all_label_sets_have_one_size():
    generator = np.random.default_rng(1)
    chances = generator.dirichlet(np.ones(3))
    classes = LabelDistribution(dict(zip(["100", "010", "001"], chances, strict=True)))
    assert classes.regret(population_scores(classes, "u3")) < 1e-9


def test_folds_share_balanced_costs():
    generator = np.random.default_rng(2)
    X = generator.normal(size=(300, 4))
    Y = (X @ generator.normal(size=(4, 5)) + generator.normal(size=(300, 5)) > 0.5).astype(int)
    chosen = LogisticRankerCV(Cs=[0.1, 10.0], random_state=0, **SUCCESSOR_LOSSES["u3"]).fit(X, Y)
    alone = LogisticRanker(C=chosen.C_, **SUCCESSOR_LOSSES["u3"]).fit(X, Y)
    assert_allclose(chosen.coef_, alone.coef_, atol=5e-3)
