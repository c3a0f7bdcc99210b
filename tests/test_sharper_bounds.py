"""Bounds over a whole distribution of x, by enumeration, and that they cannot be bettered."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from deltarank.core.losses import LOSSES
from deltarank.theory import (
    LabelDistribution,
    low_noise_regret_bound,
    regret_bound,
    surrogate_minimizer,
    surrogate_regret,
)
from oracles import distributions

PROPER = ["exponential", "logistic", "squared", "squared_hinge"]


def all_alike(Y):
    """Weigh trivial label sets too, so that eta is a plain probability."""
    return np.ones(len(Y))


class Population:
    """Some x with their chances, the labels at each, and scores: all expectations by hand."""

    def __init__(self, seed, m, concentration):
        generator = np.random.default_rng(seed)
        k = int(generator.integers(1, 6))
        self.m, self.chances = m, generator.dirichlet(np.ones(k))
        tables = generator.dirichlet(np.full(2**m, concentration), size=k)
        tables = 0.999 * tables + 0.001 / 2**m
        self.at = [LabelDistribution(table) for table in tables]
        eta = np.stack([here.relevances() for here in self.at])
        # Scores that are nearly right, so that bounds are put to the test.
        chances = np.clip(eta + generator.normal(size=eta.shape) * 0.2, 0.01, 0.99)
        self.estimates = np.where(generator.uniform(size=eta.shape) < 0.2, 0.5, chances)
        self.weights = np.array([here.mean_weight() for here in self.at])

    def mean(self, values):
        return float(self.chances @ np.array(values))

    def regrets(self, loss):
        scores = LOSSES[loss].link(self.estimates)
        name = f"univariate {loss}".replace("_", " ")
        pairs = list(zip(self.at, scores, strict=True))
        return (
            self.mean([here.regret(h) for here, h in pairs]),
            self.mean([max(surrogate_regret(here, h, name), 0.0) for here, h in pairs]),
        )

    def gaps(self):
        """The gaps of all pairs at all x, ascending, and the share of pairs with no larger one."""
        first, second = np.triu_indices(self.m, 1)
        gaps = np.abs([h[first] - h[second] for h in (here.relevances() for here in self.at)])
        masses = (self.chances * self.weights)[:, None] * np.ones_like(gaps)
        order = np.argsort(gaps, axis=None)
        gaps, masses = gaps.ravel()[order], masses.ravel()[order]
        masses = np.where(gaps > 0, masses, 0.0)
        return gaps, np.cumsum(masses) / (self.mean(self.weights) * len(first))


populations = st.builds(
    Population, st.integers(0, 2**32 - 1), st.integers(2, 5), st.sampled_from([0.05, 0.5, 5.0])
)


@pytest.mark.parametrize("loss", PROPER)
@given(population=populations)
@settings(max_examples=50)
def test_the_mean_weight_may_stand_for_the_largest_in_the_sharp_bound(loss, population):
    regret, surrogate = population.regrets(loss)
    mean, largest = population.mean(population.weights), 1 / (population.m - 1)
    bound = regret_bound(surrogate, population.m, loss=loss, form="mean", mean_weight=mean)
    assert regret <= bound + 1e-9
    assert bound <= regret_bound(surrogate, population.m, largest, loss) * (1 + 1e-12)


@pytest.mark.parametrize("loss", PROPER)
@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 3.0, math.inf])
@given(population=populations)
@settings(max_examples=30)
def test_the_low_noise_bound_holds_under_the_largest_gap_that_the_pairs_allow(
    loss, exponent, population
):
    regret, surrogate = population.regrets(loss)
    gaps, shares = population.gaps()
    some = gaps > 0
    if exponent == 0 or not some.any():
        gap = 1.0
    else:
        gap = float((gaps[some] / shares[some] ** (1 / exponent)).min())
    mean = population.mean(population.weights)
    options = {"exponent": exponent, "gap": gap, "loss": loss}
    assert regret <= low_noise_regret_bound(surrogate, population.m, mean, **options) + 1e-9


@pytest.mark.parametrize("loss", PROPER)
@pytest.mark.parametrize(("m", "n_high"), [(2, 1), (5, 2), (6, 3), (7, 1)])
def test_the_bound_of_labels_set_apart_is_attained(loss, m, n_high):
    gap = 1e-3
    high = np.arange(m) < n_high
    at = LabelDistribution.independent(0.5 + np.where(high, 1 - n_high / m, -n_high / m) * gap)
    scores = LOSSES[loss].link(0.5 + np.where(high, -1e-9, 1e-9))
    name = f"univariate {loss}".replace("_", " ")
    surrogate = surrogate_regret(at, scores, name, all_alike)
    bound = low_noise_regret_bound(surrogate, m, 1.0, exponent=math.inf, gap=gap, loss=loss)
    assert 0.999 * bound <= at.regret(scores, all_alike) <= bound * (1 + 1e-5)


def test_the_exponent_moves_the_rate_from_a_root_to_proportion():
    for exponent, rate in [(0.0, 1 / 2), (1.0, 2 / 3), (4.0, 5 / 6), (math.inf, 1.0)]:
        small, large = (
            low_noise_regret_bound(surrogate, 5, 0.2, exponent=exponent, gap=0.1)
            for surrogate in (1e-6, 1e-4)
        )
        assert_allclose(np.log(large / small) / np.log(100), rate)
    nearly = low_noise_regret_bound(1e-4, 5, 0.2, exponent=1e7, gap=0.1)
    assert_allclose(
        nearly, low_noise_regret_bound(1e-4, 5, 0.2, exponent=math.inf, gap=0.1), rtol=1e-4
    )


@pytest.mark.parametrize("loss", PROPER)
@pytest.mark.parametrize("m", range(2, 9))
def test_label_sets_weighted_by_equation_21_attain_the_sharp_bound(loss, m):
    """One relevant label, or all but one: both weigh the most there is, 1 / (m - 1)."""
    tilt = np.linspace(1, -1, m) * 1e-3
    alone, missing = (1 / m + tilt) / 2, (1 / m - tilt) / 2
    table = {}
    for label in range(m):
        for chance, held in ((alone[label], 1), (missing[label], 0)):
            labels = tuple(held if other == label else 1 - held for other in range(m))
            table[labels] = table.get(labels, 0.0) + chance
    at = LabelDistribution(table)
    assert_allclose(at.relevances(), 0.5 + tilt, atol=1e-12)
    scores = LOSSES[loss].link(0.5 + 1e-10 * np.linspace(-1, 1, m))
    surrogate = surrogate_regret(at, scores, f"univariate {loss}".replace("_", " "))
    bound = regret_bound(surrogate, m, 1 / (m - 1), loss)
    assert 0.99998 * bound <= at.regret(scores) <= bound * (1 + 1e-5)


@pytest.mark.parametrize("name", ["squared", "squared_hinge"])
@given(distribution=distributions(max_labels=5))
def test_pairwise_squared_losses_have_finite_minimisers_for_every_distribution(name, distribution):
    """A stationary point of a convex function is a minimum; BFGS finds none lower."""
    pairs, phi = distribution.pair_weights()[1, 0], LOSSES[name]

    def value(h):
        return (pairs * phi.value(h[:, None] - h)).sum()

    def gradient(h):
        pull = pairs * phi.value_and_derivative(h[:, None] - h)[1]
        return pull.sum(axis=1) - pull.sum(axis=0)

    found = surrogate_minimizer(distribution, f"pairwise {name}".replace("_", " "))
    assert np.isfinite(found).all()
    assert_allclose(gradient(found), 0, atol=1e-9)
    other = minimize(value, np.zeros(distribution.n_labels), jac=gradient, method="BFGS")
    assert value(found) <= other.fun + 1e-9


@pytest.mark.parametrize("m", [2, 4])
def test_agarwals_bipartite_constant_is_larger_by_the_root_of_three(m):
    """His regret counts pairs of unlike draws: ours over 2 p (1 - p). See docs/theory.md."""
    from deltarank.theory import bipartite_reduction, bipartite_regret_bound

    at = LabelDistribution.independent(np.linspace(0.2, 0.7, m))
    problem = bipartite_reduction(at, all_alike)
    scores = np.linspace(0.3, -0.3, m)
    share = float(problem.prior @ problem.relevances)
    surrogate = problem.surrogate_regret(scores, "logistic")
    his = math.sqrt(2) / (share * (1 - share) * math.sqrt(4)) * math.sqrt(surrogate)
    ours = bipartite_regret_bound(surrogate) / (2 * share * (1 - share))
    assert_allclose(his / ours, math.sqrt(3))
    assert problem.rank_regret(scores) / (2 * share * (1 - share)) <= ours
