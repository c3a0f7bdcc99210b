"""Labels recorded by chance: the unbiased loss against enumeration, and fits to the records."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit

from deltarank import LogisticRanker, MetricRanker

torch = pytest.importorskip("torch", reason="PyTorch absent: pip install 'deltarank[torch]'")
from deltarank.torch import PropensityLoss  # noqa: E402

RECORDED = np.array([1.0, 0.25, 0.6])
SETS = np.array(list(product((0, 1), repeat=3)))


def expected_loss(table, scores):
    """Add up the loss over all complete label sets and all ways to record some of each."""
    loss, total = PropensityLoss(RECORDED), 0.0
    scores = torch.tensor(scores[None], dtype=torch.float64)
    for chance, complete in zip(table, SETS, strict=True):
        for seen in SETS:
            kept = np.where(complete == 1, np.where(seen == 1, RECORDED, 1 - RECORDED), seen == 0)
            value = loss(scores, torch.tensor(seen[None])).item()
            total += chance * np.prod(kept) * value
    return total


@pytest.mark.parametrize("seed", range(4))
def test_its_expectation_is_the_loss_of_complete_labels(seed):
    generator = np.random.default_rng(seed)
    table, scores = generator.dirichlet(np.full(8, 0.5)), 2 * generator.normal(size=3)
    complete = [np.logaddexp(0, -(2 * y - 1) * scores).sum() for y in SETS]
    assert_allclose(expected_loss(table, scores), table @ complete, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_its_best_scores_stand_for_the_chances_of_complete_labels(seed):
    table = np.random.default_rng(seed).dirichlet(np.full(8, 1.0))
    best = logit(table @ SETS)
    for step in np.vstack([np.eye(3), -np.eye(3)]):
        ahead, behind = (expected_loss(table, best + h * step) for h in (1e-4, -1e-4))
        assert ahead == pytest.approx(behind, abs=1e-9)  # the slope is zero
        assert ahead > expected_loss(table, best)


def drawn(n=10_000):
    """Draw rows with linear log-odds, and what is recorded of their labels."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n, 2))
    chances = expit(X @ np.array([[1.0, -0.5, 0.3], [0.2, 1.0, -1.0]]) - [1.0, 0.5, 1.5])
    complete = generator.random((n, 3)) < chances
    return X, chances, (complete & (generator.random((n, 3)) < RECORDED)).astype(int)


def learnt(X, seen, propensities):
    """Fit linear scores by the loss, to its minimum."""
    features, targets = torch.tensor(X), torch.tensor(seen)
    linear = torch.nn.Linear(2, 3).double()
    loss, steps = PropensityLoss(propensities), torch.optim.LBFGS(linear.parameters(), max_iter=40)

    def value():
        steps.zero_grad()
        result = loss(linear(features), targets)
        result.backward()
        return result

    steps.step(value)
    return expit(linear(features).detach().numpy())


def test_a_fit_to_records_is_biased_without_propensities_and_not_with_them():
    X, chances, seen = drawn()
    plain, unbiased = learnt(X, seen, np.ones(3)), learnt(X, seen, RECORDED)
    assert np.abs(plain - chances).mean(axis=0)[1] > 0.2
    assert np.abs(unbiased - chances).mean(axis=0).max() < 0.04
    right = chances.argmax(axis=1)
    assert (unbiased.argmax(axis=1) == right).mean() > 0.97
    assert (plain.argmax(axis=1) == right).mean() < 0.75


def test_what_linear_rankers_offer_in_its_stead_orders_labels_nearly_as_well():
    """Recorded chances over propensities; and odds of costly cells, turned back into chances."""
    X, chances, seen = drawn()
    best = learnt(X, seen, RECORDED)
    alike = LogisticRanker(weight=lambda Y: np.ones(len(Y)), C=1e3).fit(X, seen)
    divided = expit(alike.decision_function(X)) / RECORDED
    costly = LogisticRanker(
        weight=lambda Y: np.ones(len(Y)), C=1e3, positive_cost=1 / RECORDED, keep_shift=True
    )
    odds = np.exp(costly.fit(X, seen).decision_function(X))
    turned = odds / (1 + RECORDED * odds)
    right = chances.argmax(axis=1)
    for estimate in (divided, turned):
        assert (estimate.argmax(axis=1) == right).mean() > 0.93
        assert np.abs(estimate - chances).mean() < 0.05
    assert np.abs(best - chances).mean() < min(
        np.abs(each - chances).mean() for each in (divided, turned)
    )
    uniform = LogisticRanker(weight="uniform", C=1e3)
    ranker = MetricRanker(uniform, metric="propensity-precision", k=1, propensities=RECORDED)
    first = ranker.fit(X, seen).rank(X, top=1)[:, 0]
    some = seen.any(axis=1)
    assert (first[some] == right[some]).mean() > 0.9


@pytest.mark.parametrize(
    ("propensities", "message"),
    [
        ([0.5, 0.0], "propensities must be one chance per label, above 0 and at most 1; got 0.0"),
        ([0.5, float("nan")], "at most 1; got nan"),
        (0.5, r"one chance per label, above 0 and at most 1; got shape \(\)"),
        ([0.5], "propensities must be one per label, 2; got 1"),
    ],
)
def test_wrong_propensities_are_refused(propensities, message):
    with pytest.raises(ValueError, match=message):
        PropensityLoss(propensities)(torch.zeros(1, 2), torch.zeros(1, 2))
