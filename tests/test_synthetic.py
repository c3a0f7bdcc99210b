"""The synthetic model: its law, its Bayes ranker and its Bayes risk."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import kstest, multivariate_normal, norm

from deltarank import rank_loss
from deltarank.datasets import SyntheticModel
from deltarank.datasets.kernels.sign_patterns import independent_weights
from deltarank.theory import LabelDistribution


def expectation_of(chances, weights):
    """Marginal weights and pair mass of independent labels, from the kernel under test."""
    m = len(chances)
    marginal, mass = np.empty((1, m)), np.empty(1)
    independent_weights(np.array([chances]), weights, marginal, mass)
    return marginal[0], mass[0]


def rank_weights(m):
    return np.array([0.0, *(1 / (s * (m - s)) for s in range(1, m)), 0.0])


@pytest.mark.parametrize("chances", [(0.2, 0.7, 0.5, 0.9), (0.0, 1.0, 0.3), (1e-9, 0.5, 1 - 1e-9)])
def test_the_recursion_for_independent_labels_equals_enumeration(chances):
    distribution = LabelDistribution.independent(chances)
    marginal, mass = expectation_of(chances, rank_weights(len(chances)))
    assert_allclose(marginal, distribution.marginal_weights(), atol=1e-14)
    sizes = distribution.labelings.sum(axis=1)
    pairs = distribution.weights() * sizes * (len(chances) - sizes)
    assert_allclose(mass, pairs @ distribution.probabilities, atol=1e-14)


def test_the_published_bayes_risk_of_four_independent_labels():
    chances = (0.2, 0.7, 0.5, 0.9)
    marginal, mass = expectation_of(chances, rank_weights(4))
    gaps = np.abs(np.subtract.outer(marginal, marginal)).sum() / 2
    assert_allclose((mass - gaps) / 2, 0.129083333, atol=1e-9)
    assert_allclose(LabelDistribution.independent(chances).bayes_risk(), 0.129083333, atol=1e-9)


def test_taking_a_label_out_of_the_recursion_stays_accurate_for_many_labels():
    chances = np.random.default_rng(3).uniform(size=101)
    weights = np.zeros(102)
    weights[1:101] = 1 / (np.arange(1, 101) * np.arange(100, 0, -1))
    marginal, _ = expectation_of(chances, weights)
    for label in (0, 50, 100):
        pmf = np.ones(1)
        for p in np.delete(chances, label):
            pmf = np.convolve(pmf, [1 - p, p])
        assert_allclose(marginal[label], chances[label] * pmf @ weights[1:], rtol=1e-12)


def test_points_are_uniform_in_the_disk_and_labels_follow_the_probit_law():
    model = SyntheticModel.random(n_labels=4, random_state=0)
    assert_allclose(np.linalg.norm(model.directions, axis=1), 1)
    X, Y = model.sample(40_000, random_state=1)
    assert kstest(np.linalg.norm(X, axis=1) ** 2, "uniform").pvalue > 0.01
    assert kstest(np.arctan2(X[:, 1], X[:, 0]) / (2 * np.pi) + 0.5, "uniform").pvalue > 0.01
    chances = norm.cdf(X @ model.directions.T / 0.5)
    spread = np.sqrt((chances * (1 - chances)).sum(axis=0))
    assert (np.abs(Y.sum(axis=0) - chances.sum(axis=0)) < 4 * spread).all()
    # independent given x: covariance of the residuals vanishes
    residuals = Y - chances
    covariance = residuals.T @ residuals / len(X)
    assert np.abs(covariance[~np.eye(4, dtype=bool)]).max() < 0.01


def test_the_same_seed_gives_the_same_model_and_sample():
    free, tied = (
        SyntheticModel.random(6, dependent, random_state=7) for dependent in (False, True)
    )
    assert_array_equal(free.directions, tied.directions)
    assert np.abs(tied.mixing).max() <= 1
    assert free.independent
    assert not tied.independent
    for first, second in zip(tied.sample(50, 3), tied.sample(50, 3), strict=True):
        assert_array_equal(first, second)


@pytest.mark.parametrize("weight", ["rank", "uniform", "recall", "ndcg", "min"])
def test_bayes_scores_of_dependent_labels_equal_orthant_probabilities(weight):
    model = SyntheticModel.random(3, dependent=True, random_state=5)
    X = np.array([[0.0, 0.0], [0.3, -0.6], [-0.9, 0.1]])
    cov = model.noise**2 * model.mixing @ model.mixing.T
    scores = model.bayes_scores(X, weight, n_draws=2**15)
    for x, found in zip(X, scores, strict=True):
        mean = model.mixing @ model.directions @ x
        table = []
        for y in np.ndindex(2, 2, 2):
            signs = 2 * np.array(y) - 1
            law = multivariate_normal(
                signs * mean, cov * np.outer(signs, signs), allow_singular=True
            )
            table.append(law.cdf(np.full(3, np.inf), lower_limit=np.zeros(3)))
        distribution = LabelDistribution(np.array(table) / sum(table))
        assert_allclose(found, distribution.marginal_weights(weight), atol=1e-3)


@pytest.mark.parametrize("dependent", [False, True])
@pytest.mark.parametrize("m", [3, 10])
def test_bayes_risk_is_what_the_bayes_ranker_loses_on_a_large_sample(dependent, m):
    model = SyntheticModel.random(m, dependent, random_state=11)
    X, Y = model.sample(40_000, random_state=12)
    losses = rank_loss(Y, model.bayes_scores(X, n_draws=1024), per_instance=True)
    risk = model.bayes_risk(n_draws=8192)
    assert risk.error < 1e-3
    noise = losses.std() / np.sqrt(len(losses))
    assert abs(losses.mean() - risk.value) < 4 * noise + risk.error


def test_no_linear_perturbation_beats_the_bayes_ranker():
    model = SyntheticModel.random(5, dependent=True, random_state=2)
    X, Y = model.sample(60_000, random_state=3)
    best = rank_loss(Y, model.bayes_scores(X, n_draws=2048))
    linear = model.mixing @ model.directions
    for seed in range(5):
        other = linear + 0.3 * np.random.default_rng(seed).normal(size=linear.shape)
        assert rank_loss(Y, X @ other.T) > best


def test_quasi_monte_carlo_states_an_error_that_covers_the_exact_value():
    class Mixed(SyntheticModel):
        """The independent model, sent down the path of dependent ones."""

        independent = False

    for seed in range(3):
        model = SyntheticModel.random(6, random_state=seed)
        exact = model.bayes_risk()
        approximate = Mixed(model.directions).bayes_risk(n_draws=8192)
        assert exact.error < 1e-5
        assert abs(approximate.value - exact.value) < approximate.error < 1e-3


# Means over ten models of an independent computation, with their spread between models.
PUBLISHED = [
    (5, False, 0.5, 0.1538, 0.011),
    (5, True, 0.5, 0.184, 0.033),
    (10, False, 0.5, 0.1629, 0.005),
    (10, True, 0.5, 0.186, 0.034),
    (20, False, 0.5, 0.1659, 0.005),
    (25, False, 0.5, 0.1679, 0.007),
    (5, False, 0.25, 0.0573, 0.011),
    (10, False, 0.25, 0.0610, 0.005),
    (20, False, 0.25, 0.0625, 0.005),
    (10, True, 0.25, 0.086, 0.034),
]


@pytest.mark.parametrize(("m", "dependent", "noise", "mean", "spread"), PUBLISHED)
def test_bayes_risks_agree_with_the_published_table(m, dependent, noise, mean, spread):
    models = [SyntheticModel.random(m, dependent, noise, random_state=seed) for seed in range(10)]
    found = np.mean([model.bayes_risk(n_draws=1024).value for model in models])
    # Two means of ten models each: their difference has sqrt(2/10) of the spread between models.
    assert abs(found - mean) < 3 * spread * np.sqrt(2 / 10)
