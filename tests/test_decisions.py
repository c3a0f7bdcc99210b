"""Decisions from chances, against enumeration of all decisions and all label sets."""

from itertools import combinations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime

from deltarank.core.labels import label_sets
from deltarank.decisions.batch import batch_gains, decide_batch
from deltarank.decisions.f_measure import best_f_sets
from deltarank.decisions.frank_wolfe import HeldOut, frank_wolfe
from deltarank.decisions.kernels.utilities import COVERAGE, F1, H_MEAN, JACCARD, slopes, utility
from deltarank.decisions.metrics import DECISIONS, Known
from deltarank.decisions.top import mark_first, mark_within_budget
from deltarank.metrics import coverage_at_k
from oracles import all_label_sets

SEEDS = pytest.mark.parametrize("seed", range(8))


def subsets(m, k):
    """All zero-one vectors with k ones."""
    return [np.isin(range(m), chosen).astype(float) for chosen in combinations(range(m), k)]


class Population:
    """Some points x, each with any distribution of label sets: everything is known of it."""

    def __init__(self, seed, n_points=3, m=4):
        generator = np.random.default_rng(seed)
        self.sets = np.array(all_label_sets(m))
        self.weights = generator.dirichlet(np.ones(n_points))
        self.table = generator.dirichlet(np.full(len(self.sets), 0.3), size=n_points)
        self.chances = self.table @ self.sets
        self.shares = self.weights @ self.chances

    def shares_of(self, decisions):
        """Return the shares hit, chosen and relevant of each label, by adding up all label sets."""
        hit, chosen = np.zeros(self.sets.shape[1]), np.zeros(self.sets.shape[1])
        for weight, row, decision in zip(self.weights, self.table, decisions, strict=True):
            for chance, labels in zip(row, self.sets, strict=True):
                hit += weight * chance * labels * decision
                chosen += weight * chance * decision
        return hit, chosen, self.shares

    def all_decisions(self, k):
        return product(subsets(self.sets.shape[1], k), repeat=len(self.weights))

    def held_out(self):
        """Return one row per point and label set, weighing what it is likely."""
        n_points, n_sets = self.table.shape
        labels = label_sets(np.tile(self.sets, (n_points, 1)))
        weights = (self.weights[:, None] * self.table).ravel()
        return HeldOut(np.repeat(self.chances, n_sets, axis=0), labels, weights)


def precision(hit, chosen, relevant):
    return hit.sum() / 2


def macro_recall(hit, chosen, relevant):
    return np.mean(hit / relevant)


def balanced_accuracy(hit, chosen, relevant):
    return np.mean(hit / relevant + 1 - (chosen - hit) / (1 - relevant)) / 2


PROPENSITIES = np.array([0.9, 0.1, 0.4, 0.2])


def propensity_precision(hit, chosen, relevant):
    return np.sum(hit / PROPENSITIES)


LINEAR = {
    "precision": precision,
    "macro-recall": macro_recall,
    "balanced-accuracy": balanced_accuracy,
    "propensity-precision": propensity_precision,
}


@pytest.mark.parametrize("metric", LINEAR)
@SEEDS
def test_no_other_choice_of_k_labels_beats_the_first_k_gains(metric, seed):
    population = Population(seed)
    slope, offset = DECISIONS[metric].rule(Known(population.shares, PROPENSITIES))
    found = mark_first(slope * population.chances + offset, 2)
    best = max(
        LINEAR[metric](*population.shares_of(decisions))
        for decisions in population.all_decisions(2)
    )
    assert_allclose(LINEAR[metric](*population.shares_of(found)), best, rtol=1e-12)


@pytest.mark.parametrize("metric", LINEAR)
@SEEDS
def test_wrong_chances_cost_at_most_twice_their_weighted_errors(metric, seed):
    population = Population(seed)
    slope, offset = DECISIONS[metric].rule(Known(population.shares, PROPENSITIES))
    noise = np.random.default_rng(seed).normal(size=population.chances.shape) / 5
    gains = slope * population.chances + offset
    wrong = gains + slope * noise
    lost = (gains * mark_first(gains, 2)).sum(axis=1) - (gains * mark_first(wrong, 2)).sum(axis=1)
    errors = np.sort(np.abs(slope * noise), axis=1)[:, -2:].sum(axis=1)
    assert (lost >= -1e-12).all()
    assert (lost <= 2 * errors).all()


@pytest.mark.parametrize("metric", ["recall", "ndcg"])
@SEEDS
def test_recall_and_ndcg_are_best_by_chances_of_their_own_weight(metric, seed):
    population = Population(seed, n_points=1)
    discounts = np.array([1, 1] if metric == "recall" else [1, 1 / np.log2(3)])
    weighted = []
    for chance, y in zip(population.table[0], population.sets, strict=True):
        ideal = y.sum() if metric == "recall" else discounts[: y.sum()].sum()
        weighted.append(chance * y / max(ideal, 1))
    weighted = np.sum(weighted, axis=0)

    def value(order):
        return weighted[list(order)] @ discounts

    slope, offset = DECISIONS[metric].rule(Known(population.shares, PROPENSITIES))
    first = np.argsort(-(slope * weighted + offset))[:2]
    best = max(value(order) for order in product(range(4), repeat=2) if order[0] != order[1])
    assert_allclose(value(first), best, rtol=1e-12)


@pytest.mark.parametrize("kind", [F1, JACCARD, H_MEAN])
@SEEDS
def test_slopes_are_finite_differences_of_the_utility(kind, seed):
    relevant, chosen = np.random.default_rng(seed).uniform(0.1, 0.6, 2)
    hit = 0.7 * min(relevant, chosen)
    expected = approx_fprime([hit, chosen], lambda it: utility(kind, *it, relevant), 1e-7)
    assert_allclose(slopes(kind, hit, chosen, relevant), expected, rtol=1e-4, atol=1e-5)


def mean_f1(hit, chosen, relevant):
    return np.mean(2 * hit / (chosen + relevant))


def mean_jaccard(hit, chosen, relevant):
    return np.mean(hit / (chosen + relevant - hit))


def mean_h(hit, chosen, relevant):
    found, spared = hit / relevant, 1 - (chosen - hit) / (1 - relevant)
    return np.mean(2 * found * spared / (found + spared))


@SEEDS
def test_for_a_concave_metric_the_mixture_is_as_good_as_every_classifier(seed):
    population = Population(seed)
    found = frank_wolfe(population.held_out(), H_MEAN, 2, never=-1e30, tol=1e-9, max_iter=500)
    values = [mean_h(*population.shares_of(each)) for each in population.all_decisions(2)]
    assert found.mixture_value >= max(values) - 2e-3
    assert found.value <= max(values) + 1e-12
    decisions = mark_first(found.rule[0] * population.chances + found.rule[1], 2)
    assert_allclose(mean_h(*population.shares_of(decisions)), found.value, rtol=1e-12)


def test_macro_f1_is_nearly_the_best_of_all_classifiers_and_no_worse_than_the_first_by_chance():
    lost, gained = [], []
    for seed in range(40):
        population = Population(seed)
        found = frank_wolfe(population.held_out(), F1, 2, never=-1e30)
        best = max(mean_f1(*population.shares_of(each)) for each in population.all_decisions(2))
        start = mean_f1(*population.shares_of(mark_first(population.chances, 2)))
        assert start - 1e-12 <= found.value <= best + 1e-12
        lost.append(max(best - max(found.value, found.mixture_value), 0))
        gained.append(best - start)
    assert np.mean(lost) < 0.15 * np.mean(gained)


def test_a_label_that_no_row_has_is_not_chosen():
    generator = np.random.default_rng(0)
    Y = (generator.random((50, 4)) < 0.3).astype(int)
    Y[:, 1] = 0
    chances = np.clip(0.3 + 0.4 * Y + generator.normal(size=Y.shape) / 9, 0.01, 0.99)
    rows = HeldOut(chances, label_sets(Y), np.full(50, 1 / 50))
    for kind in (F1, JACCARD, H_MEAN):
        rule = frank_wolfe(rows, kind, 3, never=-1e30).rule
        assert not mark_first(rule[0] * chances + rule[1], 3)[:, 1].any()
        chances[:, 1] = 0
        assert not (decide_batch(chances, kind, 3).labels == 1).any()


def batch_objective(kind, chances, decisions):
    if kind == COVERAGE:
        return np.mean(1 - np.prod(1 - chances * decisions, axis=0))
    hit, chosen = (chances * decisions).mean(axis=0), decisions.mean(axis=0)
    measure = {F1: mean_f1, JACCARD: mean_jaccard, H_MEAN: mean_h}[kind]
    return measure(hit, chosen, chances.mean(axis=0))


@pytest.mark.parametrize("kind", [F1, JACCARD, H_MEAN, COVERAGE])
@SEEDS
def test_in_a_batch_no_row_alone_can_do_better(kind, seed):
    chances = np.random.default_rng(seed).beta(0.5, 1, size=(4, 4))
    decided = decide_batch(chances, kind, 2)
    gains = batch_gains(chances, kind, decided)
    decisions = mark_first(gains, 2).astype(float)
    assert decisions[np.arange(4)[:, None], decided.labels].all()
    assert_allclose(decided.value, batch_objective(kind, chances, decisions), rtol=1e-12)
    for row in range(4):
        for other in subsets(4, 2):
            changed = decisions.copy()
            changed[row] = other
            assert batch_objective(kind, chances, changed) <= decided.value + 1e-9
        for label in range(4):
            one = decisions.copy()
            one[row] = 0
            without = batch_objective(kind, chances, one)
            one[row, label] = 1
            gained = 4 * (batch_objective(kind, chances, one) - without)
            assert_allclose(gains[row, label], gained, atol=1e-12)
    best = max(
        batch_objective(kind, chances, np.array(each)) for each in product(subsets(4, 2), repeat=4)
    )
    assert best / 2 <= decided.value <= best + 1e-12


def test_coverage_of_a_batch_is_its_expectation_over_all_label_sets():
    chances = np.random.default_rng(3).uniform(size=(3, 3))
    chances[1, 2] = 1.0
    decided = decide_batch(chances, COVERAGE, 1)
    scores = (np.arange(3) == decided.labels).astype(float)
    expected = 0.0
    for cells in product((0, 1), repeat=9):
        Y = np.reshape(cells, (3, 3))
        chance = np.prod(np.where(Y == 1, chances, 1 - chances))
        expected += chance * coverage_at_k(Y, scores, 1)
    assert_allclose(decided.value, expected, rtol=1e-12)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("most", [2, 6])
@SEEDS
def test_no_set_has_a_larger_expected_f_when_labels_are_independent(beta, most, seed):
    generator = np.random.default_rng(seed)
    chances = generator.beta(0.4, 1.0, size=6)
    chances[generator.integers(6)] = generator.integers(2)

    def expected_f(chosen):
        total = 0.0
        for y in all_label_sets(6):
            size = beta**2 * y.sum() + chosen.sum()
            f = (1 + beta**2) * (y * chosen).sum() / size if size else 1.0
            total += np.prod(np.where(y == 1, chances, 1 - chances)) * f
        return total

    found = best_f_sets(chances[None], beta, most)[0]
    best = max(expected_f(y) for y in all_label_sets(6) if y.sum() <= most)
    assert_allclose(expected_f(found), best, rtol=1e-12)


def test_dependent_labels_of_the_same_chances_may_have_another_best_set():
    def expected_f(size, chances_of_counts):
        f = [2 * min(s, size) / (s + size) if s + size else 1.0 for s in range(4)]
        return np.dot(chances_of_counts, f)

    together = [0.6, 0, 0, 0.4]
    apart = [0.6**3, 3 * 0.4 * 0.36, 3 * 0.16 * 0.6, 0.4**3]
    assert expected_f(0, together) == 0.6 > expected_f(3, together) == 0.4
    assert_allclose([expected_f(3, apart), expected_f(0, apart)], [0.51, 0.216], atol=1e-3)
    assert best_f_sets(np.full((1, 3), 0.4), 1.0, 3).all()


@pytest.mark.parametrize(("shapes", "most"), [((0.05, 2.0), 60), ((20.0, 30.0), 120)])
def test_the_best_f_set_of_many_labels_is_that_of_the_plain_sums(shapes, most):
    chances = np.sort(np.random.default_rng(0).beta(*shapes, size=most + 80))[::-1]

    def counts(some):
        table = np.ones(1)
        for chance in some:
            table = np.convolve(table, [1 - chance, chance])
        return table

    values = [counts(chances)[0]]
    for size in range(1, most + 1):
        inside, outside = counts(chances[:size]), counts(chances[size:])
        hits, missed = np.arange(len(inside))[:, None], np.arange(len(outside))
        values.append((np.outer(inside, outside) * 2 * hits / (hits + missed + size)).sum())
    shuffled = np.random.default_rng(1).permutation(chances)
    found = best_f_sets(shuffled[None], 1.0, most)[0]
    assert found.sum() == np.argmax(values)
    assert shuffled[found].min() > shuffled[~found].max()


def test_the_best_f_set_of_a_row_without_chances_is_empty():
    chances = np.array([[0.0, 0.0, 1e-30], [0.9, 0.0, 0.8], [0.0, 0.0, 0.0]])
    expected = [[False] * 3, [True, False, True], [False] * 3]
    assert_array_equal(best_f_sets(chances, 1.0, 3), expected)
    assert_array_equal(best_f_sets(chances[:1], 1.0, 2), expected[:1])


@pytest.mark.parametrize("budget", [1, 3, 5, 99])
@SEEDS
def test_no_other_cells_within_the_budget_gain_more(budget, seed):
    gains = np.random.default_rng(seed).normal(0.3, 1, size=(3, 3)).round(1)
    found = mark_within_budget(gains, 2, budget)
    assert found.sum() <= budget
    assert (found.sum(axis=1) <= 2).all()
    best = max(
        (gains.ravel() * cells).sum()
        for cells in product((0, 1), repeat=9)
        if sum(cells) <= budget and np.reshape(cells, (3, 3)).sum(axis=1).max() <= 2
    )
    assert_allclose(gains[found].sum(), best, atol=1e-12)


def test_threads_do_not_change_a_rule(monkeypatch):
    generator = np.random.default_rng(0)
    Y = (generator.random((3000, 9)) < 0.2).astype(int)
    chances = np.clip(0.2 + 0.3 * Y + generator.normal(size=Y.shape) / 5, 0, 1)
    rules = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("DELTARANK_NUM_THREADS", threads)
        rows = HeldOut(chances, label_sets(Y), np.full(3000, 1 / 3000))
        rules.append(frank_wolfe(rows, F1, 2, never=-1e30).rule)
    assert_array_equal(rules[0], rules[1])
    assert_array_equal(rules[0], rules[2])
