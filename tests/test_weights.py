"""Instance weights against their formulas, label set by label set."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from deltarank import instance_weights, weight_diagnostics
from deltarank.core.weights import WEIGHTS
from oracles import all_label_sets

M = 5
Y = np.array(all_label_sets(M))


def ideal_gain(s, k=M):
    return sum(1 / np.log2(1 + r) for r in range(1, min(s, k) + 1))


FORMULAS = {
    "rank": lambda s: 1 / (s * (M - s)),
    "uniform": lambda s: 1.0,
    "recall": lambda s: 1 / s,
    "ndcg": lambda s: 1 / ideal_gain(s),
    ("ndcg", 2): lambda s: 1 / ideal_gain(s, 2),
    ("ndcg", 99): lambda s: 1 / ideal_gain(s),
    "min": lambda s: 1 / min(s, M - s),
}


def test_every_named_weight_has_a_formula_here():
    assert set(WEIGHTS) <= set(FORMULAS)


@pytest.mark.parametrize("weight", FORMULAS, ids=str)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, lambda y: y.astype(bool)])
def test_named_weights_follow_their_formula_and_trivial_rows_weigh_nothing(weight, form):
    sizes = Y.sum(axis=1)
    expected = np.array([FORMULAS[weight](s) if 0 < s < M else 0.0 for s in sizes])
    assert_allclose(instance_weights(form(Y), weight, normalize=False), expected)
    ranked = (sizes > 0) & (sizes < M)
    normalized = instance_weights(form(Y), weight)
    assert_allclose(normalized, expected / expected[ranked].mean())
    assert_allclose(normalized[ranked].mean(), 1)


def test_label_sets_may_be_lists_of_sets():
    sets = [set(np.flatnonzero(y)) for y in Y]
    assert_array_equal(instance_weights(sets, n_labels=M), instance_weights(Y))


def test_a_callable_gets_the_labels_as_they_came_and_decides_for_trivial_rows():
    seen = []

    def weight(labels):
        seen.append(labels)
        return np.full(labels.shape[0], 2.0)

    given = sparse.csr_array(Y)
    assert_array_equal(instance_weights(given, weight, normalize=False), 2.0)
    assert_array_equal(instance_weights(given, weight), 1.0)
    assert all(labels is given for labels in seen)


def test_no_pairs_at_all_fall_back_to_equal_weights():
    no_pairs = np.array([[0, 0], [1, 1], [0, 0]])
    assert_array_equal(instance_weights(no_pairs), 1.0)
    assert_array_equal(instance_weights(no_pairs, normalize=False), 0.0)
    assert_array_equal(instance_weights(np.array([[1], [0]])), 1.0)


def test_normalising_survives_weights_of_any_magnitude():
    for scale in (1e-308, 1e-300, 1e300):
        scaled = instance_weights(Y, lambda labels, scale=scale: np.full(len(labels), scale))
        assert_allclose(scaled, 1.0)


def test_diagnostics_count_what_weights_do():
    report = weight_diagnostics(Y)
    sizes = Y.sum(axis=1)
    weights = np.array([FORMULAS["rank"](s) if 0 < s < M else 0.0 for s in sizes])
    assert report.n_rows == 32
    assert report.n_dropped == 2
    assert_allclose(report.effective_sample_size, weights.sum() ** 2 / (weights**2).sum())
    assert_allclose(report.largest_share, weights.max() / weights.sum())
    assert weight_diagnostics(Y, "uniform").effective_sample_size == 30
    assert "30.0 equally weighted rows" in str(weight_diagnostics(Y, "uniform"))


def test_diagnostics_are_a_table_in_notebooks():
    shown = weight_diagnostics([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]])._repr_html_()
    assert "57.14%" in shown
    assert shown.count("<tr>") == 4
