"""The paper's claims, each against enumeration or an independent computation."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import minimize

from deltarank.core.losses import LOSSES
from deltarank.theory import (
    EXAMPLES,
    SURROGATES,
    LabelDistribution,
    bipartite_reduction,
    bipartite_regret_bound,
    regret_bound,
    strong_properness,
    surrogate_minimizer,
    surrogate_regret,
    surrogate_risk,
)
from oracles import (
    all_label_sets,
    distributions,
    inverse_pairs,
    risk_by_enumeration,
    score_vectors,
    weight_tables,
)

PROPER = ["exponential", "logistic", "squared", "squared_hinge"]


def all_alike(Y):
    """Weigh trivial label sets too, unlike "uniform", so that eta is a plain probability."""
    return np.ones(len(Y))


@st.composite
def problems(draw, **options):
    """A distribution, a weight (named or random) and scores."""
    distribution = draw(distributions(**options))
    m = distribution.n_labels
    weight = draw(st.one_of(st.just("rank"), weight_tables(m)))
    return distribution, weight, draw(score_vectors(m))


def as_function(weight):
    return inverse_pairs if weight == "rank" else lambda y: weight(y[None, :])[0]


@given(problems())
def test_risk_is_the_expected_pair_count(problem):
    distribution, weight, scores = problem
    assert_allclose(
        distribution.risk(scores, weight),
        risk_by_enumeration(distribution, scores, as_function(weight)),
        atol=1e-12,
    )


@given(problems())
def test_equation_5_holds_with_its_indicators_swapped_and_fails_as_printed(problem):
    distribution, weight, scores = problem
    pair = distribution.pair_weights(weight)
    correct = printed = 0.0
    for i in range(distribution.n_labels):
        for j in range(i):
            d10, d01 = pair[1, 0, i, j], pair[0, 1, i, j]
            tie = (d10 + d01) / 2 * (scores[i] == scores[j])
            correct += d10 * (scores[i] < scores[j]) + d01 * (scores[i] > scores[j]) + tie
            printed += d10 * (scores[i] > scores[j]) + d01 * (scores[i] < scores[j]) + tie
    truth = risk_by_enumeration(distribution, scores, as_function(weight))
    assert_allclose(correct, truth, atol=1e-12)
    # The printed form is the risk of the reversed ranking.
    reversed_truth = risk_by_enumeration(distribution, -scores, as_function(weight))
    assert_allclose(printed, reversed_truth, atol=1e-12)


@given(problems())
def test_pair_weights_differ_exactly_as_marginal_weights_do(problem):
    distribution, weight, _ = problem
    pair = distribution.pair_weights(weight)
    marginal = distribution.marginal_weights(weight)
    assert_allclose(marginal[:, None] - marginal, pair[1, 0] - pair[0, 1], atol=1e-12)


@given(problems())
def test_pair_and_marginal_weights_are_expectations_over_label_sets(problem):
    distribution, weight, _ = problem
    w = as_function(weight)
    m = distribution.n_labels
    pair, marginal, mean = np.zeros((2, 2, m, m)), np.zeros(m), 0.0
    for y, p in zip(all_label_sets(m), distribution.probabilities, strict=True):
        mean += p * w(y)
        for i in range(m):
            marginal[i] += p * w(y) * y[i]
            for j in range(m):
                pair[y[i], y[j], i, j] += p * w(y)
    assert_allclose(distribution.pair_weights(weight), pair, atol=1e-12)
    assert_allclose(distribution.marginal_weights(weight), marginal, atol=1e-12)
    assert_allclose(distribution.mean_weight(weight), mean, atol=1e-12)


@given(problems(max_labels=4))
def test_no_ranking_beats_marginal_weights_and_equation_7_is_its_risk(problem):
    distribution, weight, _ = problem
    w = as_function(weight)
    least = min(
        risk_by_enumeration(distribution, np.array(order, float), w)
        for order in permutations(range(distribution.n_labels))
    )
    best = risk_by_enumeration(distribution, distribution.bayes_scores(weight), w)
    assert_allclose(best, least, atol=1e-12)
    assert_allclose(distribution.bayes_risk(weight), least, atol=1e-12)


@given(problems())
def test_lemma_3_1_gives_the_regret_from_marginal_weights(problem):
    distribution, weight, scores = problem
    marginal = distribution.marginal_weights(weight)
    by_hand = 0.0
    for i in range(distribution.n_labels):
        for j in range(i):
            by_hand += (
                marginal[i] * (scores[i] < scores[j])
                + marginal[j] * (scores[i] > scores[j])
                + (marginal[i] + marginal[j]) / 2 * (scores[i] == scores[j])
                - min(marginal[i], marginal[j])
            )
    by_definition = distribution.regret(scores, weight, form="definition")
    assert_allclose(by_definition, by_hand, atol=1e-12)
    assert_allclose(distribution.regret(scores, weight, form="lemma"), by_hand, atol=1e-12)


@given(problems())
def test_label_dependence_does_not_change_regret(problem):
    distribution, weight, scores = problem
    mean = distribution.mean_weight(weight)
    if mean < 1e-9:
        return
    independent = LabelDistribution.independent(distribution.relevances(weight))
    constant = independent.regret(scores, lambda Y: np.full(len(Y), mean))
    assert_allclose(constant, distribution.regret(scores, weight), atol=1e-12)


def test_label_dependence_does_change_risk():
    free = LabelDistribution.independent([0.7, 0.4])
    tied = LabelDistribution({"10": 0.3, "11": 0.4, "00": 0.3})
    scores, alike = [0.0, 1.0], "uniform"
    assert_allclose(free.regret(scores, alike), tied.regret(scores, alike))
    assert abs(free.risk(scores, alike) - tied.risk(scores, alike)) > 0.1


@given(problems())
def test_equations_16_and_17_tie_the_bipartite_problem_to_the_label_problem(problem):
    distribution, weight, scores = problem
    mean, m = distribution.mean_weight(weight), distribution.n_labels
    if mean < 1e-9:
        return
    bipartite = bipartite_reduction(distribution, weight)
    assert_allclose(
        bipartite.rank_regret(scores) * mean * m**2 / 2,
        distribution.regret(scores, weight),
        atol=1e-12,
    )
    for loss in ("exponential", "logistic"):
        assert_allclose(
            bipartite.surrogate_regret(scores, loss) * mean * m,
            surrogate_regret(distribution, scores, f"univariate {loss}", weight),
            atol=1e-9,
        )


@given(problems())
def test_bipartite_risk_is_the_chance_of_a_misordered_pair_of_draws(problem):
    distribution, weight, scores = problem
    if distribution.mean_weight(weight) < 1e-9:
        return
    bipartite = bipartite_reduction(distribution, weight)
    risk, k = 0.0, len(scores)
    for i in range(k):
        for j in range(k):
            for a in (0, 1):
                for b in (0, 1):
                    chance = bipartite.prior[i] * bipartite.prior[j]
                    chance *= bipartite.relevances[i] if a else 1 - bipartite.relevances[i]
                    chance *= bipartite.relevances[j] if b else 1 - bipartite.relevances[j]
                    lost = (a > b) * (scores[i] < scores[j]) + (a < b) * (scores[i] > scores[j])
                    risk += chance * (lost + 0.5 * (a != b) * (scores[i] == scores[j]))
    assert_allclose(bipartite.rank_risk(scores), risk, atol=1e-12)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@given(problem=problems())
def test_theorems_3_1_and_3_2_are_never_violated_and_the_sharp_bounds_lie_between(loss, problem):
    distribution, weight, scores = problem
    mean = distribution.mean_weight(weight)
    if mean < 1e-9:
        return
    regret = distribution.regret(scores, weight)
    surrogate = max(surrogate_regret(distribution, scores, f"univariate {loss}", weight), 0.0)
    paper = regret_bound(surrogate, distribution.n_labels, mean, loss, form="paper")
    sharp = regret_bound(surrogate, distribution.n_labels, mean, loss, form="sharp")
    assert regret <= sharp + 1e-7
    assert sharp <= paper + 1e-12
    bipartite = bipartite_reduction(distribution, weight)
    surrogate = max(bipartite.surrogate_regret(scores, loss), 0.0)
    sharp = bipartite_regret_bound(surrogate, loss)
    assert bipartite.rank_regret(scores) <= sharp + 1e-7
    assert sharp <= bipartite_regret_bound(surrogate, loss, form="paper")


@pytest.mark.parametrize("loss", PROPER)
@given(problem=problems())
def test_the_sharp_bound_holds_for_every_strictly_proper_loss(loss, problem):
    distribution, weight, scores = problem
    mean = distribution.mean_weight(weight)
    if mean < 1e-9:
        return
    name = f"univariate {loss}".replace("_", " ")
    surrogate = max(surrogate_regret(distribution, scores, name, weight), 0.0)
    bound = regret_bound(surrogate, distribution.n_labels, mean, loss)
    assert distribution.regret(scores, weight) <= bound + 1e-7


@pytest.mark.parametrize("loss", PROPER)
@pytest.mark.parametrize("m", [2, 3, 5, 8])
def test_the_sharp_bound_is_attained(loss, m):
    delta = 1e-3
    relevances = 0.5 + delta * np.linspace(1, -1, m)
    distribution = LabelDistribution.independent(relevances)
    link = LOSSES[loss].link
    scores = link(0.5 + 1e-9 * np.linspace(-1, 1, m))
    name = f"univariate {loss}".replace("_", " ")
    surrogate = surrogate_regret(distribution, scores, name, all_alike)
    regret = distribution.regret(scores, all_alike)
    bound = regret_bound(surrogate, m, 1.0, loss)
    assert 0.999 * bound <= regret <= bound * (1 + 1e-6)


@pytest.mark.parametrize(
    ("m", "constant"),
    [
        (2, 0.35355),
        (3, 0.38490),
        (4, 0.39528),
        (5, 0.40000),
        (8, 0.40504),
        (16, 0.40745),
        (64, 0.40819),
    ],
)
def test_the_sharp_constant_in_units_of_the_papers_is_as_published_in_the_docs(m, constant):
    unit = m * np.sqrt(m * 0.3)
    assert_allclose(regret_bound(1.0, m, 0.3) / unit, constant, atol=1e-5)
    assert_allclose(regret_bound(1.0, m, 0.3, "exponential", "paper") / unit, np.sqrt(6) / 4)
    assert_allclose(regret_bound(1.0, m, 0.3, "logistic", "paper") / unit, np.sqrt(2) / 2)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@given(seed=st.integers(0, 2**32 - 1), tau=st.floats(0.02, 0.5), m=st.integers(2, 6))
def test_the_sparse_label_bound_is_never_violated(loss, seed, tau, m):
    generator = np.random.default_rng(seed)
    relevances = generator.uniform(1e-6, tau, m)
    estimates = generator.uniform(1e-6, tau, m)
    distribution = LabelDistribution.independent(relevances)
    scores = LOSSES[loss].link(estimates)
    surrogate = surrogate_regret(distribution, scores, f"univariate {loss}", all_alike)
    bound = regret_bound(max(surrogate, 0), m, 1.0, loss, largest_chance=tau)
    assert distribution.regret(scores, all_alike) <= bound + 1e-7
    assert bound <= regret_bound(max(surrogate, 0), m, 1.0, loss) + 1e-12


@pytest.mark.parametrize("loss", PROPER)
def test_regret_of_a_proper_loss_is_its_curvature_integral(loss):
    phi = LOSSES[loss]
    for eta, q in [(0.7, 0.2), (0.1, 0.6), (0.5, 0.45)]:
        t = phi.link(q)
        regret = eta * phi.value(t) + (1 - eta) * phi.value(-t) - phi.bayes_risk(eta)
        integral = quad(lambda x, eta=eta: (eta - x) * phi.proper_curvature(x), q, eta)[0]
        assert_allclose(regret, integral, rtol=1e-9)
    assert strong_properness(loss) == {"squared": 8, "squared_hinge": 8}.get(loss, 4)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_loss_derivatives_match_finite_differences(loss):
    phi = LOSSES[loss]
    t = np.array([-3.1, -0.7, 0.2, 0.95, 1.4, 5.0])
    step = 1e-6
    slope = (phi.value(t + step) - phi.value(t - step)) / (2 * step)
    assert_allclose(phi.value_and_derivative(t)[1], slope, rtol=1e-6, atol=1e-8)
    bend = (phi.value_and_derivative(t + step)[1] - phi.value_and_derivative(t - step)[1]) / (
        2 * step
    )
    assert_allclose(phi.curvature(t), bend, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("loss", PROPER)
def test_links_minimise_the_expected_loss(loss):
    phi = LOSSES[loss]
    for eta in (0.05, 0.3, 0.5, 0.9):
        found = minimize(
            lambda t, eta=eta: float(eta * phi.value(t[0]) + (1 - eta) * phi.value(-t[0])),
            [0.0], method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-15},
        )  # fmt: skip
        assert_allclose(phi.link(eta), found.x[0], atol=1e-6)
        assert_allclose(phi.bayes_risk(eta), found.fun, atol=1e-12)
        assert_allclose(phi.inverse_link(phi.link(eta)), eta, atol=1e-12)


@pytest.mark.parametrize("name", [n for n, s in SURROGATES.items() if s.consistent])
@given(problem=problems())
def test_minimisers_of_consistent_surrogates_are_bayes_rankers(name, problem):
    distribution, weight, _ = problem
    if distribution.mean_weight(weight) < 1e-9:
        return
    minimiser = surrogate_minimizer(distribution, name, weight)
    assert distribution.regret(minimiser, weight) <= 1e-9


@pytest.mark.parametrize("name", list(SURROGATES))
@given(data=st.data())
@settings(max_examples=25)
def test_no_scores_beat_the_minimiser(name, data):
    distribution = data.draw(distributions(max_labels=4, full_support=True))
    best = surrogate_minimizer(distribution, name)
    least = surrogate_risk(distribution, best, name)
    for _ in range(5):
        other = data.draw(score_vectors(distribution.n_labels))
        assert surrogate_risk(distribution, other, name) >= least - 1e-9
        nearby = best + 1e-3 * other
        assert surrogate_risk(distribution, nearby, name) >= least - 1e-9


@given(distribution=distributions(max_labels=4, full_support=True))
def test_surrogate_risks_are_expectations_over_label_sets(distribution):
    m = distribution.n_labels
    scores = np.linspace(-0.7, 1.1, m)[::-1] ** 3
    by_hand = dict.fromkeys(SURROGATES, 0.0)
    for y, p in zip(all_label_sets(m), distribution.probabilities, strict=True):
        w, signs = inverse_pairs(y), 2 * y - 1
        pairs = [(i, j) for i in range(m) for j in range(m) if y[i] > y[j]]
        for loss in [*PROPER, "hinge"]:
            phi, name = LOSSES[loss].value, loss.replace("_", " ")
            by_hand[f"univariate {name}"] += p * w * phi(signs * scores).sum()
            by_hand[f"pairwise {name}"] += p * w * sum(phi(scores[i] - scores[j]) for i, j in pairs)
        linear = -sum(scores[i] - scores[j] for i, j in pairs)
        by_hand["pairwise linear, penalised"] += p * (w * linear + (scores**2).sum() / 2)
        by_hand["all pairs squared"] += (
            p
            * w
            * sum(
                ((y[i] - y[j]) - (scores[i] - scores[j])) ** 2 for i in range(m) for j in range(i)
            )
        )
    for name, expected in by_hand.items():
        assert_allclose(surrogate_risk(distribution, scores, name), expected, atol=1e-12)


# Minimisers of the examples, computed once by quasi-Newton and linear programming outside this
# library, centred to mean 0 where only differences matter.
MINIMISERS = [
    ("A", "pairwise exponential", (0.181219, 0.313935, -0.495154), 0.025),
    ("A", "pairwise logistic", (0.391252, 0.580099, -0.971351), 0.025),
    ("A", "pairwise squared", (0.169005, 0.247161, -0.416166), 0.025),
    ("A", "pairwise squared hinge", (0.169005, 0.247161, -0.416166), 0.025),
    ("A", "pairwise hinge", (1 / 3, 1 / 3, -2 / 3), 0.0125),
    ("A", "univariate exponential", (0.549306, 0.423649, -0.549306), 0.0),
    ("A", "univariate logistic", (1.098612, 0.847298, -1.098612), 0.0),
    ("B", "pairwise exponential", (0.324393, -0.172820, -0.151573), 0.05),
    ("B", "pairwise logistic", (0.642353, -0.328134, -0.314219), 0.05),
]


@pytest.mark.parametrize(("example", "surrogate", "minimiser", "regret"), MINIMISERS)
def test_pairwise_surrogates_misrank_the_examples_and_univariate_ones_do_not(
    example, surrogate, minimiser, regret
):
    distribution = EXAMPLES[example]
    found = surrogate_minimizer(distribution, surrogate)
    assert_allclose(found, minimiser, atol=1e-5)
    assert_allclose(distribution.regret(found), regret, atol=1e-12)


@pytest.mark.parametrize("name", ["exponential", "logistic", "squared", "squared_hinge"])
@given(distribution=distributions(max_labels=5, full_support=True))
@settings(max_examples=15)
def test_pairwise_minimisers_agree_with_a_general_optimiser(name, distribution):
    pairs = distribution.pair_weights()[1, 0]
    phi = LOSSES[name]

    def value(h):
        return (pairs * phi.value(h[:, None] - h)).sum()

    found = minimize(value, np.zeros(distribution.n_labels), method="BFGS", options={"gtol": 1e-9})
    ours = surrogate_minimizer(distribution, f"pairwise {name}".replace("_", " "))
    assert value(ours) <= value(found.x) + 1e-12
    assert_allclose(ours, found.x - found.x.mean(), atol=2e-3)


def test_the_best_and_the_worst_order_of_example_a():
    assert_allclose(EXAMPLES["A"].relevances(), [0.75, 0.70, 0.25])
    assert_allclose(EXAMPLES["A"].bayes_risk(), 0.25)
    assert_allclose(
        EXAMPLES["A"].pair_weights()[1, 0],
        [[0, 0.125, 0.375], [0.100, 0, 0.250], [0.125, 0.025, 0]],
        atol=1e-15,
    )
    assert_allclose(EXAMPLES["B"].marginal_weights(), [0.335, 0.215, 0.165])
    assert_allclose(EXAMPLES["B"].bayes_risk(), 0.33)


def best_rankings(distribution, gain):
    """All rankings with the greatest expected gain, by trying each."""
    m = distribution.n_labels
    values = {
        ranking: sum(
            p * gain(y[list(ranking)])
            for y, p in zip(all_label_sets(m), distribution.probabilities, strict=True)
        )
        for ranking in permutations(range(m))
    }
    best = max(values.values())
    return [ranking for ranking, value in values.items() if value > best - 1e-12]


def precision(k):
    return lambda hits: hits[:k].mean()


def recall(k):
    return lambda hits: hits[:k].sum() / max(hits.sum(), 1)


def ndcg(k):
    def gain(hits):
        discounts = 1 / np.log2(np.arange(2, len(hits) + 2))
        if not hits.any():
            return 0.0
        return (hits * discounts)[:k].sum() / discounts[: min(hits.sum(), k)].sum()

    return gain


@pytest.mark.parametrize(
    ("weight", "gains"),
    [
        ("uniform", [precision(1), precision(2), precision(3)]),
        ("recall", [recall(1), recall(2), recall(3)]),
        ("ndcg", [ndcg(4)]),
        (("ndcg", 2), [ndcg(2)]),
        (("ndcg", 1), [ndcg(1)]),
    ],
    ids=["precision at k", "recall at k", "ndcg", "ndcg at 2", "ndcg at 1"],
)
@given(distribution=distributions(min_labels=4, max_labels=4))
@settings(max_examples=30)
def test_weights_give_the_best_order_for_their_measure(weight, gains, distribution):
    ranking = tuple(np.argsort(-distribution.bayes_scores(weight), kind="stable"))
    for gain in gains:
        assert ranking in best_rankings(distribution, gain)


@given(distribution=distributions(min_labels=3, max_labels=5), extra=st.floats(0, 3))
def test_the_weight_of_trivial_label_sets_changes_no_order(distribution, extra):
    def weight(Y):
        size = Y.sum(axis=1)
        trivial = (size == 0) | (size == Y.shape[1])
        return np.where(trivial, extra, 1 / np.maximum(size * (Y.shape[1] - size), 1))

    plain = distribution.marginal_weights()
    moved = distribution.marginal_weights(weight)
    assert_allclose(moved - plain, moved[0] - plain[0], atol=1e-12)


@given(problem=problems())
def test_risk_follows_from_marginal_weights_and_the_mass_of_pairs(problem):
    distribution, weight, scores = problem
    size = distribution.labelings.sum(axis=1)
    mass = distribution.weights(weight) * size * (distribution.n_labels - size)
    marginal = distribution.marginal_weights(weight)
    signs = np.sign(scores[:, None] - scores)
    gained = np.tril(signs * (marginal[:, None] - marginal)).sum()
    risk = (mass @ distribution.probabilities - gained) / 2
    assert_allclose(risk, distribution.risk(scores, weight), atol=1e-12)
