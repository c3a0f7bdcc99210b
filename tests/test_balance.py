"""Between the consistent and the balanced loss: what is minimised, and what is ranked rightly."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from deltarank import KernelLogisticRanker, LogisticRanker, LogisticRankerCV, rank_loss
from deltarank.linear.rows import tuning
from deltarank.theory import LabelDistribution

BALANCES = (0.0, 0.3, 1.0)
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(500, 4))
Y = (X @ GENERATOR.normal(size=(4, 5)) + GENERATOR.logistic(size=(500, 5)) > 0.8).astype(int)


@pytest.fixture(params=["Newton on small data", "passes over row blocks"])
def engine(request, monkeypatch):
    if request.param == "passes over row blocks":
        monkeypatch.setattr(tuning.LOCAL, "largest_table", 0)


def cell_weights(Y, balance):
    """Weights of the cells by definition, of mean 1 over the cells of rows with a pair."""
    m, s = Y.shape[1], Y.sum(axis=1)
    weights = np.zeros(Y.shape)
    for i, row in enumerate(Y):
        if 0 < s[i] < m:
            relevant = 1 / (s[i] * (m - s[i]) ** (1 - balance))
            irrelevant = 1 / (s[i] ** (1 - balance) * (m - s[i]))
            weights[i] = [relevant if label else irrelevant for label in row]
    return weights / weights[weights.sum(axis=1) > 0].mean()


@pytest.mark.parametrize("balance", BALANCES)
def test_the_optimum_is_that_of_cells_weighted_by_the_definition(balance, engine):
    weights = cell_weights(Y, balance)
    ranker = LogisticRanker(C=2.0, balance=balance, tol=1e-10).fit(X, Y)
    for label in range(Y.shape[1]):
        peer = LogisticRegression(C=2.0, solver="newton-cholesky", tol=1e-12)
        peer.fit(X, Y[:, label], sample_weight=weights[:, label])
        assert_allclose(ranker.coef_[label], peer.coef_[0], atol=2e-3)
        assert_allclose(ranker.intercept_[label], peer.intercept_[0], atol=2e-3)


def population_scores(distribution, balance, weight="rank"):
    """Scores of least expected loss, by a fit to all label sets weighted by their chances."""
    used = distribution.probabilities > 0
    rows, chances = distribution.labelings[used].astype(int), distribution.probabilities[used]
    ranker = LogisticRanker(weight=weight, balance=balance, tol=1e-12)
    ranker.fit(np.zeros((len(rows), 1)), rows, sample_weight=chances)
    return ranker.decision_function(np.zeros((1, 1)))[0]


@pytest.mark.parametrize("balance", BALANCES)
def test_scores_are_log_ratios_of_what_relevant_and_irrelevant_cells_weigh(balance):
    """Eq. (73), summed up over all label sets one by one."""
    distribution = LabelDistribution(GENERATOR.dirichlet(np.full(16, 0.5)))
    up, down = np.zeros(4), np.zeros(4)
    for labels, chance in zip(distribution.labelings, distribution.probabilities, strict=True):
        s = int(labels.sum())
        if 0 < s < 4:
            for label in range(4):
                if labels[label]:
                    up[label] += chance / (s * (4 - s) ** (1 - balance))
                else:
                    down[label] += chance / (s ** (1 - balance) * (4 - s))
    assert_allclose(population_scores(distribution, balance), np.log(up / down), atol=1e-4)


def product(chances):
    """Independent labels."""
    return LabelDistribution(
        {
            "".join(map(str, labels)): float(
                np.prod([p if y else 1 - p for p, y in zip(chances, labels, strict=True)])
            )
            for labels in itertools.product((0, 1), repeat=len(chances))
        }
    )


@pytest.mark.parametrize("balance", BALANCES)
@pytest.mark.parametrize("seed", range(5))
def test_independent_labels_are_ranked_rightly_with_any_balance(balance, seed):
    distribution = product(np.random.default_rng(seed).uniform(0.02, 0.98, 5))
    assert distribution.regret(population_scores(distribution, balance)) < 1e-9


def test_label_sets_of_one_size_are_ranked_rightly_with_any_balance():
    pairs = ["1100", "1010", "1001", "0110", "0101", "0011"]
    chances = np.random.default_rng(3).dirichlet(np.ones(6))
    distribution = LabelDistribution(dict(zip(pairs, chances, strict=True)))
    for balance in BALANCES:
        assert distribution.regret(population_scores(distribution, balance)) < 1e-9


def test_dependent_labels_may_be_ranked_wrongly_unless_the_balance_is_0():
    distribution = LabelDistribution({"0010": 2 / 9, "0101": 4 / 9, "1101": 3 / 9})
    regrets = []
    for balance in (0.0, 0.5, 1.0):
        scores = population_scores(distribution, balance)
        scores[1] = scores[3]  # two labels of equal weight tie; rounding may not
        regrets.append(distribution.regret(scores))
    assert regrets[0] < 1e-12
    assert regrets[2] > 0.03


def test_at_1_the_loss_bounds_the_rank_loss_from_above():
    for labels, scores in zip(Y, GENERATOR.normal(size=Y.shape), strict=True):
        s, m = labels.sum(), len(labels)
        if 0 < s < m:
            losses = np.log2(1 + np.exp(-np.where(labels == 1, 1, -1) * scores))
            bound = losses[labels == 1].sum() / s + losses[labels == 0].sum() / (m - s)
            assert rank_loss([labels], [scores]) <= bound


def test_folds_are_fits_of_their_own_with_every_balance(engine):
    splits = [(np.arange(250), np.arange(250, 500)), (np.arange(250, 500), np.arange(250))]
    search = LogisticRankerCV(Cs=[0.01, 1.0, 100.0], balances=[0.0, 1.0], cv=splits).fit(X, Y)
    results = search.cv_results_
    for place, (C, balance) in enumerate(
        zip(results["param_C"], results["param_balance"], strict=True)
    ):
        for fold, (train, test) in enumerate(splits):
            alone = LogisticRanker(C=C, balance=balance).fit(X[train], Y[train])
            loss = rank_loss(Y[test], alone.decision_function(X[test]))
            assert -results[f"split{fold}_test_score"][place] == pytest.approx(loss, abs=4e-3)


def test_further_balances_are_tried_near_the_best_penalty_only():
    search = LogisticRankerCV(balances=[0.0, 1.0], cv=3, random_state=0).fit(X, Y)
    results = search.cv_results_
    first = results["param_balance"] == 0
    assert_allclose(results["param_C"][first], 10.0 ** np.arange(-3, 4))
    best = results["param_C"][first][results["mean_test_score"][first].argmax()]
    others = results["param_C"][~first]
    at_best = results["mean_test_score"][~first][others == best]
    if at_best > results["mean_test_score"][first].max():
        assert set(others) == {best / 10, best, best * 10}
    else:
        assert set(others) == {best}


def test_a_generator_of_splits_serves_all_balances():
    splits = ((np.arange(start), np.arange(start, 500)) for start in (200, 300))
    search = LogisticRankerCV(Cs=[1.0], balances=[0.0, 0.5, 1.0], cv=splits).fit(X, Y)
    assert len(search.cv_results_["mean_test_score"]) == 3


@pytest.mark.parametrize("kind", [LogisticRanker, LogisticRankerCV, KernelLogisticRanker])
@pytest.mark.parametrize("balance", [-0.1, 1.5, np.nan, "balanced", None])
def test_a_balance_outside_0_to_1_is_refused(kind, balance):
    with pytest.raises(ValueError, match="balance must be a number from 0 to 1; got"):
        kind(balance=balance).fit(X, Y)


def test_a_grid_of_balances_must_hold_numbers():
    with pytest.raises(ValueError, match="each value of balances must be a number from 0 to 1"):
        LogisticRankerCV(balances=[0, 2]).fit(X, Y)
    with pytest.raises(ValueError, match="balances must hold at least one value"):
        LogisticRankerCV(balances=[]).fit(X, Y)
