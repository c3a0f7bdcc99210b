"""Costs and weights per label: what is minimised, and what becomes of the ranking."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from deltarank import LogisticRanker, LogisticRankerCV, instance_weights, load, rank_loss, save
from deltarank.core.label_costs import label_weights
from deltarank.linear.rows import tuning
from deltarank.theory import LabelDistribution

GENERATOR = np.random.default_rng(0)
N, M = 600, 4
X = GENERATOR.normal(size=(N, 3))
SCORES = X @ GENERATOR.normal(size=(3, M)) + GENERATOR.logistic(size=(N, M))
Y = (SCORES > [0, 1, 2, 0.5]).astype(int)
COSTS, WEIGHTS = np.array([1.0, 5.0, 0.3, 2.0]), np.array([2.0, 0.1, 1.0, 7.0])


@pytest.fixture(params=["Newton on small data", "passes over row blocks"])
def engine(request, monkeypatch):
    if request.param == "passes over row blocks":
        monkeypatch.setattr(tuning.LOCAL, "largest_table", 0)


def test_the_optimum_is_that_of_a_loop_of_weighted_regressions(engine):
    """A label's weight multiplies its C; its cost, the weights of its relevant rows."""
    rows = instance_weights(Y)
    options = {"positive_cost": COSTS, "label_weight": WEIGHTS, "keep_shift": True}
    ranker = LogisticRanker(C=0.5, tol=1e-10, **options).fit(X, Y)
    for label in range(M):
        peer = LogisticRegression(C=0.5 * WEIGHTS[label], solver="newton-cholesky", tol=1e-12)
        peer.fit(X, Y[:, label], sample_weight=rows * np.where(Y[:, label], COSTS[label], 1.0))
        assert_allclose(ranker.coef_[label], peer.coef_[0], atol=2e-3)
        assert_allclose(ranker.intercept_[label], peer.intercept_[0], atol=2e-3)


def population_scores(distribution, **options):
    used = distribution.probabilities > 0
    rows, chances = distribution.labelings[used].astype(int), distribution.probabilities[used]
    ranker = LogisticRanker(tol=1e-12, **options)
    ranker.fit(np.zeros((len(rows), 1)), rows, sample_weight=chances)
    return ranker.decision_function(np.zeros((1, 1)))[0]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_costs_per_label_keep_the_best_order_of_a_known_distribution(seed, loss):
    generator = np.random.default_rng(seed)
    distribution = LabelDistribution(generator.dirichlet(np.full(16, 0.4)))
    costs = np.exp(generator.normal(size=4))
    plain = population_scores(distribution, loss=loss)
    scores = population_scores(distribution, positive_cost=costs, loss=loss)
    assert_allclose(scores, plain, atol=2e-3)
    assert distribution.regret(scores) < 1e-9
    kept = population_scores(distribution, positive_cost=costs, loss=loss, keep_shift=True)
    size = {"logistic": 1.0, "exponential": 0.5}[loss]
    assert_allclose(kept - plain, size * np.log(costs), atol=2e-3)


def test_kept_shifts_may_spoil_the_order_and_weights_of_labels_do_not():
    distribution = LabelDistribution({"1000": 0.5, "0100": 0.3, "0010": 0.15, "0001": 0.05})
    costs = [1.0, 1.0, 1.0, 50.0]
    assert distribution.regret(population_scores(distribution, positive_cost=costs)) < 1e-9
    kept = population_scores(distribution, positive_cost=costs, keep_shift=True)
    assert kept.argmax() == 3
    weighted = population_scores(distribution, label_weight=[1.0, 100.0, 0.01, 7.0])
    assert distribution.regret(weighted) < 1e-9


@pytest.mark.parametrize("keep_shift", [False, True])
def test_marginal_weights_undo_costs_per_label(keep_shift):
    shares = np.array([0.2, 0.5, 0.8])
    labels = (np.arange(1000)[:, None] < 1000 * shares).astype(int)
    options = {"weight": lambda Y: np.ones(1000), "keep_shift": keep_shift, "C": 1e6}
    ranker = LogisticRanker(positive_cost=[9.0, 1.0, 0.2], **options)
    ranker.fit(np.zeros((1000, 1)), labels)
    assert_allclose(ranker.marginal_weights([[0.0]])[0], shares, atol=2e-3)


def test_folds_are_scored_without_the_shifts(engine):
    splits = [(np.arange(300), np.arange(300, N))]
    costs = [1.0, 100.0, 0.01, 2.0]
    search = LogisticRankerCV(Cs=[1.0], cv=splits, positive_cost=costs).fit(X, Y)
    alone = LogisticRanker(positive_cost=costs).fit(X[:300], Y[:300])
    loss = rank_loss(Y[300:], alone.decision_function(X[300:]))
    # Folds are solved to two digits.
    assert -search.best_score_ == pytest.approx(loss, abs=0.01)
    kept = alone.decision_function(X[300:]) + np.log(costs)
    assert rank_loss(Y[300:], kept) > loss + 0.05
    again = LogisticRanker(positive_cost=costs).fit(X, Y)
    assert_allclose(search.intercept_, again.intercept_, atol=5e-3)


def test_weights_by_name_are_those_of_their_definitions():
    counts = Y.sum(axis=0)
    plain = 1 / counts
    assert_allclose(label_weights("inverse_frequency", np.arange(M), counts), plain / plain.mean())
    effective = [1 / sum(0.999**i for i in range(n)) for n in counts]
    found = label_weights("effective_number", np.arange(M), counts)
    assert_allclose(found, effective / np.mean(effective))
    named = LogisticRanker(label_weight="inverse_frequency").fit(X, Y)
    by_hand = LogisticRanker(label_weight=plain / plain.mean()).fit(X, Y)
    assert_allclose(named.coef_, by_hand.coef_)


def test_a_mapping_names_labels_as_y_does():
    names = np.array(["soup", "cake", "tea", "pie"])
    sets = [set(names[row == 1].tolist()) for row in Y]
    by_name = LogisticRanker(positive_cost={"cake": 5.0}, label_weight={"pie": 3.0}).fit(X, sets)
    order = np.argsort(names)
    expected = LogisticRanker(
        positive_cost=np.where(names == "cake", 5.0, 1.0)[order],
        label_weight=np.where(names == "pie", 3.0, 1.0)[order],
    ).fit(X, Y[:, order])
    assert_allclose(by_name.coef_, expected.coef_, atol=1e-9)
    with pytest.raises(ValueError, match="positive_cost names labels that Y does not have, such"):
        LogisticRanker(positive_cost={"bread": 2.0}).fit(X, sets)


@pytest.mark.parametrize("form", [list, np.array])
def test_a_model_file_keeps_costs_and_weights(tmp_path, form):
    options = {"positive_cost": form(COSTS), "label_weight": form(WEIGHTS)}
    ranker = LogisticRanker(**options, keep_shift=True).fit(X, Y)
    save(ranker, tmp_path / "costs.delta")
    again = load(tmp_path / "costs.delta")
    assert_allclose(again.marginal_weights(X), ranker.marginal_weights(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positive_cost": [1.0, 2.0]}, "positive_cost must hold one number per label, 4; got 2"),
        ({"positive_cost": [1, 2, 3, 0]}, "positive_cost must be positive and finite; got 0.0 for"),
        ({"positive_cost": "balanced"}, "positive_cost must be positive and finite; got 'balan"),
        ({"positive_cost": ["a"] * 4}, "positive_cost must be a number, one per label"),
        ({"label_weight": "rare"}, "unknown label_weight 'rare'; choose one of"),
        ({"label_weight": [1, np.inf, 1, 1]}, "label_weight must be positive and finite; got inf"),
        (
            {"positive_cost": [1, 2, 3, 4], "loss": "squared"},
            "loss='squared' moves scores otherwise .* keep_shift=True",
        ),
    ],
)
def test_wrong_numbers_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        LogisticRanker(**options).fit(X, Y)


def test_costs_by_propensity_make_up_for_missing_labels_of_small_chances():
    """Relevant labels are recorded with chance p: recorded chances order labels wrongly."""
    n, chances, recorded = 400_000, np.array([0.02, 0.04, 0.03]), np.array([1.0, 0.3, 0.8])
    seen = (np.random.default_rng(5).random((n, 3)) < chances * recorded).astype(int)
    options = {"weight": lambda Y: np.ones(len(Y)), "C": 1e6}
    plain = LogisticRanker(**options).fit(np.zeros((n, 1)), seen)
    scored = LogisticRanker(positive_cost=1 / recorded, keep_shift=True, **options)
    scored.fit(np.zeros((n, 1)), seen)
    assert plain.rank([[0.0]])[0].tolist() == [2, 0, 1]
    assert scored.rank([[0.0]])[0].tolist() == [1, 2, 0]
    odds = np.exp(scored.decision_function([[0.0]])[0])
    assert_allclose(odds / (1 + recorded * odds), chances, rtol=0.05)
