"""Means over labels at k, against plain loops, tie orders, scikit-learn and xcolumns."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import metrics as sklearn_metrics

from deltarank import metrics
from deltarank.metrics import METRICS, StreamingMetric
from deltarank.metrics.labels import ExactSums
from deltarank.metrics.table import LabelMetric
from oracles import rankings_of
from test_metrics import samples, untied

NAMES = [name for name, metric in METRICS.items() if isinstance(metric, LabelMetric)]


def ratio(part, whole):
    return part / whole if whole > 0 else 0.0


def values_by_loop(name, Y, chosen, weights):
    """Each label's value where `chosen[i][l]` is the chance of label l to be among the first k."""
    values = []
    for label in range(len(Y[0])):
        hits = picked = relevant = 0.0
        missed = 1.0
        for i in range(len(Y)):
            picked += weights[i] * chosen[i][label]
            if Y[i][label] == 1:
                hits += weights[i] * chosen[i][label]
                relevant += weights[i]
                missed *= 1 - chosen[i][label] if weights[i] > 0 else 1
        values.append(
            {
                "macro_precision_at_k": ratio(hits, picked),
                "macro_recall_at_k": ratio(hits, relevant),
                "macro_f1_at_k": ratio(2 * hits, picked + relevant),
                "coverage_at_k": 1 - missed,
            }[name]
        )
    return values


def chances_by_orders(scores, k, known=None):
    """Chance of every label to be among the first k, over all orders of tied labels."""
    table = np.zeros(np.shape(scores))
    for i, row in enumerate(scores):
        labels = [label for label in range(len(row)) if known is None or known[i][label]]
        orders = rankings_of([row[label] for label in labels])
        for order in orders:
            for place in order[:k]:
                table[i, labels[place]] += 1 / len(orders)
    return table


@pytest.mark.parametrize("name", NAMES)
@given(sample=samples(), k=st.integers(1, 5), seed=st.integers(0, 99))
def test_a_metric_is_its_plain_loop_over_labels_and_rows(name, sample, k, seed):
    Y, scores = sample
    weights = np.random.default_rng(seed).integers(0, 4, len(Y)).astype(float)
    weights[0] = 1.5
    expected = values_by_loop(name, Y, chances_by_orders(scores, k), weights)
    function = getattr(metrics, name)
    found = function(Y, scores, k, sample_weight=weights, per_label=True)
    assert_allclose(found, expected, atol=1e-12)
    mean = function(Y, scores, k, sample_weight=weights)
    assert_allclose(mean, np.mean(expected), atol=1e-12)


@pytest.mark.parametrize("name", ["macro_recall_at_k", "coverage_at_k"])
@given(sample=samples(m=5, max_rows=2))
def test_recall_and_coverage_are_their_means_over_the_orders_of_tied_labels(name, sample):
    Y, scores = sample
    ones = np.ones(len(Y))
    values = []
    for orders in product(*(rankings_of(row)[:24] for row in scores)):
        chosen = np.zeros(Y.shape)
        for row, order in zip(chosen, orders, strict=True):
            row[list(order[:2])] = 1
        values.append(np.mean(values_by_loop(name, Y, chosen, ones)))
    if any(len(rankings_of(row)) > 24 for row in scores):
        return  # some orders were left out to keep this short
    assert_allclose(getattr(metrics, name)(Y, scores, 2), np.mean(values), atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_unknown_labels_take_no_place_and_count_nowhere(name):
    generator = np.random.default_rng(5)
    Y = (generator.random((30, 6)) < 0.4).astype(float)
    Y[generator.random(Y.shape) < 0.3] = np.nan
    Y[0] = [1, np.nan, np.nan, np.nan, np.nan, 0]  # fewer labels than places
    scores = np.round(generator.normal(size=Y.shape), 1)
    chances = chances_by_orders(scores, 3, known=~np.isnan(Y))
    expected = values_by_loop(name, Y, chances, np.ones(30))
    assert_allclose(getattr(metrics, name)(Y, scores, 3, per_label=True), expected, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_labels_without_rows_count_as_zero_or_not_at_all(name):
    Y, scores = untied(40, 12, 2)
    Y[:, [3, 7]] = 0
    function = getattr(metrics, name)
    values = function(Y, scores, 3, per_label=True)
    skipped = function(Y, scores, 3, per_label=True, trivial="skip")
    assert_array_equal(np.isnan(skipped), ~Y.any(axis=0))
    assert_array_equal(values[[3, 7]], 0)
    kept = function(Y, scores, 3, trivial="skip")
    assert_allclose(kept, np.mean(values[Y.any(axis=0)]))
    assert function(0 * Y, scores, 3, trivial="skip") == 0.0


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("macro_precision_at_k", sklearn_metrics.precision_score),
        ("macro_recall_at_k", sklearn_metrics.recall_score),
        ("macro_f1_at_k", sklearn_metrics.f1_score),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_ties_they_are_scikit_learns_macro_scores_of_the_first_k(name, theirs, dtype):
    Y, scores = untied(300, 40, 4, dtype=dtype)
    first = (scores > np.sort(scores, axis=1)[:, -6:-5]).astype(int)
    for average, per_label in (("macro", False), (None, True)):
        expected = theirs(Y, first, average=average, zero_division=0)
        found = getattr(metrics, name)(sparse.csr_array(Y), scores, 5, per_label=per_label)
        assert_allclose(found, expected, rtol=1e-12)


def test_without_ties_they_are_those_of_xcolumns():
    theirs = pytest.importorskip("xcolumns.metrics")
    Y, scores = untied(300, 40, 4)
    first = (scores > np.sort(scores, axis=1)[:, -6:-5]).astype(int)
    named = {
        "macro_precision_at_k": theirs.macro_precision,
        "macro_recall_at_k": theirs.macro_recall,
        "macro_f1_at_k": theirs.macro_f1_score,
        "coverage_at_k": theirs.coverage,
    }
    for name, function in named.items():
        # They add a millionth to denominators, of counts over the number of rows.
        assert_allclose(getattr(metrics, name)(Y, scores, 5), function(Y, first), rtol=1e-3)


def test_sums_at_many_places_are_exact_whatever_the_order():
    generator = np.random.default_rng(0)
    places = generator.integers(0, 3, 400)
    values = generator.normal(size=400) * 10.0 ** generator.integers(-300, 300, 400)
    from math import fsum

    whole, parts = ExactSums(3), [ExactSums(3), ExactSums(3)]
    whole.add(places, values)
    parts[0].add(places[:150], values[:150])
    parts[1].add(places[150:], values[150:])
    parts[1].merge(parts[0])
    expected = [fsum(values[places == place]) for place in range(3)]
    assert_array_equal(whole.read(), expected)
    assert_array_equal(parts[1].read(), expected)


def test_batches_must_have_the_same_labels():
    stream = StreamingMetric("macro_f1_at_k", k=1)
    stream.update([[1, 0]], [[0.2, 0.1]])
    with pytest.raises(ValueError, match="Y must have 2 labels, as in the batches before; got 3"):
        stream.update([[1, 0, 0]], [[0.2, 0.1, 0.3]])


def test_what_is_wrong_is_named():
    Y, scores = [[1, 0]], [[0.2, 0.1]]
    with pytest.raises(ValueError, match="k must be an integer from 1 to the number of labels, 2"):
        metrics.macro_f1_at_k(Y, scores, k=3)
    with pytest.raises(ValueError, match="unknown trivial 'drop'; choose one of skip, zero"):
        metrics.coverage_at_k(Y, scores, k=1, trivial="drop")
    with pytest.raises(TypeError, match="its options are k, trivial"):
        StreamingMetric("macro_f1_at_k", k=1, ties="half")
    stream = StreamingMetric("precision_at_k", k=1)
    stream.update(Y, scores)
    with pytest.raises(ValueError, match="precision_at_k is a mean over rows; values of labels"):
        stream.label_values()
