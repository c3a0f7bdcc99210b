"""Ranking metrics against the pair loop, enumeration of tie orders, and scikit-learn."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import metrics as sklearn_metrics
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier

from deltarank import metrics, rank_loss
from deltarank.core.threads import n_threads
from deltarank.metrics import METRICS, SCORERS, RankingScorer, StreamingMetric
from deltarank.metrics.table import Metric
from oracles import inverse_pairs, mean_over_tie_orders, rank_loss_by_pairs

OPTIONS = {
    "precision_at_k": {"k": 2},
    "recall_at_k": {"k": 2},
    "ndcg_at_k": {"k": 2},
    "propensity_scored_precision_at_k": {"k": 2, "propensities": [0.2, 0.9, 0.5, 0.4, 0.7]},
    "propensity_scored_ndcg_at_k": {"k": 2, "propensities": [0.2, 0.9, 0.5, 0.4, 0.7]},
    "macro_precision_at_k": {"k": 2},
    "macro_recall_at_k": {"k": 2},
    "macro_f1_at_k": {"k": 2},
    "coverage_at_k": {"k": 2},
}
FUNCTIONS = {name: getattr(metrics, name) for name in METRICS}
OF_ROWS = [name for name, metric in METRICS.items() if isinstance(metric, Metric)]


@st.composite
def samples(draw, m=5, max_rows=6):
    """Labels and scores of a few rows, scores with many ties."""
    n = draw(st.integers(1, max_rows))
    Y = draw(hnp.arrays(np.int8, (n, m), elements=st.integers(0, 1)))
    coarse = hnp.arrays(float, (n, m), elements=st.integers(0, 3).map(float))
    fine = hnp.arrays(np.float32, (n, m), elements=st.floats(-5, 5, width=32))
    return Y, draw(st.one_of(coarse, fine))


def untied(n, m, per_row, seed=0, dtype=float):
    generator = np.random.default_rng(seed)
    scores = generator.permuted(np.tile(np.linspace(-3, 3, m), (n, 1)), axis=1).astype(dtype)
    return (generator.random((n, m)) < per_row / m).astype(int), scores


@given(samples(), st.sampled_from([("half", 0.5), ("full", 1.0), ("none", 0.0)]))
def test_rank_loss_is_the_weighted_pair_count(sample, ties):
    Y, scores = sample
    expected = [
        rank_loss_by_pairs(y, h, inverse_pairs(y), ties[1]) for y, h in zip(Y, scores, strict=True)
    ]
    found = rank_loss(Y, scores, ties=ties[0], per_instance=True)
    assert_allclose(found, expected, atol=1e-12)
    assert_allclose(rank_loss(Y, scores, ties=ties[0]), np.mean(expected), atol=1e-12)


@pytest.mark.parametrize("weight", ["rank", "uniform", "recall", "ndcg", "min", ("ndcg", 2)])
@given(sample=samples())
def test_rank_loss_takes_any_weight(weight, sample):
    from deltarank import instance_weights

    Y, scores = sample
    weights = instance_weights(Y, weight, normalize=False)
    expected = [rank_loss_by_pairs(y, h, w) for y, h, w in zip(Y, scores, weights, strict=True)]
    assert_allclose(rank_loss(Y, scores, weight=weight, per_instance=True), expected, atol=1e-12)
    by_callable = rank_loss(Y, scores, weight=lambda _: weights)
    assert_allclose(by_callable, np.mean(expected), atol=1e-12)


@pytest.mark.parametrize("per_row", [3, 60, 90, 140])
@pytest.mark.parametrize("decimals", [1, 15])
def test_rank_loss_is_the_pair_count_with_many_relevant_labels(per_row, decimals):
    generator = np.random.default_rng(per_row)
    Y = (generator.random((20, 150)) < per_row / 150).astype(int)
    scores = generator.normal(size=(20, 150)).round(decimals)
    expected = [rank_loss_by_pairs(y, h, inverse_pairs(y)) for y, h in zip(Y, scores, strict=True)]
    assert_allclose(rank_loss(Y, scores, per_instance=True), expected, atol=1e-12)


def test_all_scores_tied_cost_one_half():
    Y, _ = untied(50, 7, 2)
    pairs = (Y.sum(1) > 0) & (Y.sum(1) < 7)
    assert_allclose(rank_loss(Y, np.zeros(Y.shape), trivial="skip"), 0.5)
    assert_allclose(rank_loss(Y, np.zeros(Y.shape)), 0.5 * pairs.mean())


@given(samples())
def test_trivial_rows_count_as_zero_or_not_at_all(sample):
    Y, scores = sample
    size = Y.sum(axis=1)
    for name in OF_ROWS:
        if name.startswith("propensity"):
            continue
        function = FUNCTIONS[name]
        trivial = (size == 0) | ((size == 5) & (name == "rank_loss"))
        options = OPTIONS.get(name, {})
        values = function(Y, scores, per_instance=True, **options)
        assert_array_equal(values[trivial], 0)
        skipped = function(Y, scores, per_instance=True, trivial="skip", **options)
        assert_array_equal(np.isnan(skipped), trivial)
        mean = function(Y, scores, trivial="skip", **options)
        assert_allclose(mean, values[~trivial].mean() if (~trivial).any() else 0.0, atol=1e-12)


def precision(hits):
    return np.mean(hits[:2])


def coverage(hits):
    return max((i for i, hit in enumerate(hits) if hit), default=0)


def one_error(hits):
    return float(not hits[0]) if any(hits) else 0.0


def average_precision(hits):
    hits = np.array(hits)
    return (np.cumsum(hits) / np.arange(1, 6))[hits > 0].mean() if hits.any() else 0.0


def recall(hits):
    return np.sum(hits[:2]) / max(np.sum(hits), 1)


def ndcg(hits):
    discounts = 1 / np.log2(np.arange(2, 7))
    ideal = discounts[: min(sum(hits), 2)].sum()
    return (np.array(hits) * discounts)[:2].sum() / ideal if any(hits) else 0.0


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("coverage", coverage),
        ("one_error", one_error),
        ("average_precision", average_precision),
        ("precision_at_k", precision),
        ("recall_at_k", recall),
        ("ndcg_at_k", ndcg),
    ],
)
@given(sample=samples(max_rows=2))
def test_a_metric_is_its_mean_over_the_orders_of_tied_labels(name, measure, sample):
    Y, scores = sample
    expected = [mean_over_tie_orders(measure, y, h) for y, h in zip(Y, scores, strict=True)]
    found = FUNCTIONS[name](Y, scores, per_instance=True, **OPTIONS.get(name, {}))
    assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "discounts"),
    [
        ("propensity_scored_precision_at_k", [1, 1, 0, 0, 0]),
        ("propensity_scored_ndcg_at_k", [1, 1 / np.log2(3), 0, 0, 0]),
    ],
)
@given(sample=samples(max_rows=3))
def test_propensity_scored_metrics_are_gained_over_attainable_worth(name, discounts, sample):
    Y, scores = sample
    worth = 1 / np.array(OPTIONS[name]["propensities"])
    gained = attainable = 0.0
    for y, h in zip(Y, scores, strict=True):
        tagged = [(worth[label] if y[label] else 0.0) for label in range(5)]
        gained += mean_over_tie_orders(lambda gains: np.dot(gains, discounts), tagged, h)
        attainable += np.dot(sorted(tagged, reverse=True), discounts)
    found = FUNCTIONS[name](Y, scores, **OPTIONS[name])
    assert_allclose(found, gained / attainable if attainable else 0.0, atol=1e-12)


def test_propensities_follow_their_formula():
    Y, _ = untied(500, 30, 3)
    counts = Y.sum(axis=0)
    c = (np.log(500) - 1) * (1.5 + 1) ** 0.55
    expected = 1 / (1 + c * np.exp(-0.55 * np.log(counts + 1.5)))
    assert_allclose(metrics.label_propensities(Y), expected)
    assert_allclose(metrics.label_propensities(sparse.csr_array(Y)), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_metrics_agree_with_scikit_learn_where_conventions_do(dtype):
    Y, scores = untied(300, 40, 4, dtype=dtype)
    Y = Y[Y.any(axis=1)]
    scores = scores[: len(Y)]
    # The same scores in the same order; in float32 scikit-learn may also add in float32.
    wide = scores.astype(np.float64)
    close = {"rtol": 1e-12, "atol": 1e-12}
    assert_allclose(rank_loss(Y, scores), sklearn_metrics.label_ranking_loss(Y, wide), **close)
    ap = sklearn_metrics.label_ranking_average_precision_score(Y, wide)
    assert_allclose(metrics.average_precision(Y, scores), ap, **close)
    depth = sklearn_metrics.coverage_error(Y, wide)
    assert_allclose(metrics.coverage(Y, scores), depth - 1, **close)
    for k in (1, 5, None):
        gain = sklearn_metrics.ndcg_score(Y, wide, k=k)
        assert_allclose(metrics.ndcg_at_k(Y, scores, k), gain, **close)


def test_metrics_differ_from_scikit_learn_where_documented():
    Y, scores = np.array([[1, 0, 0]]), np.zeros((1, 3))
    assert sklearn_metrics.label_ranking_loss(Y, scores) == 1.0
    assert rank_loss(Y, scores, ties="full") == 1.0
    assert rank_loss(Y, scores) == 0.5
    assert_allclose(
        metrics.ndcg_at_k(Y, scores, 2), sklearn_metrics.ndcg_score(Y, scores, k=2)
    )  # ties averaged by both
    empty = np.array([[0, 0, 0], [0, 1, 0]])
    ranked = np.array([[3.0, 2, 1], [1, 3, 2]])
    assert sklearn_metrics.label_ranking_average_precision_score(empty, ranked) == 1.0
    assert metrics.average_precision(empty, ranked) == 0.5
    assert metrics.average_precision(empty, ranked, trivial="skip") == 1.0


@pytest.mark.parametrize("name", sorted(METRICS))
@given(sample=samples(max_rows=9), cuts=st.lists(st.integers(1, 8), max_size=3))
def test_the_result_does_not_depend_on_batches_to_the_last_bit(name, sample, cuts):
    Y, scores = sample
    options = OPTIONS.get(name, {})
    weights = np.random.default_rng(len(Y)).exponential(size=len(Y))
    whole = FUNCTIONS[name](Y, scores, sample_weight=weights, **options)
    streams = [StreamingMetric(name, **options), StreamingMetric(name, **options)]
    bounds = sorted({0, len(Y), *(cut for cut in cuts if cut < len(Y))})
    for turn, (start, end) in enumerate(pairwise(bounds)):
        streams[turn % 2].update(Y[start:end], scores[start:end], weights[start:end])
    streams[1].merge(streams[0])
    assert streams[1].result() == whole


def test_exact_sums_survive_cancellation():
    Y = np.tile([[1, 0]], (4, 1))
    right, wrong = [1.0, 0.0], [0.0, 1.0]
    scores = np.array([wrong, wrong, wrong, right])
    huge = [1e16, 1.0, 1.0, 1.0]
    loss = rank_loss(Y, scores, sample_weight=huge)
    # (1e16 + 2) / (1e16 + 3), each rounded once; adding one by one would lose the ones.
    assert loss == (1e16 + 2) / 10_000_000_000_000_003


@pytest.mark.parametrize("name", sorted(METRICS))
def test_every_form_of_labels_gives_the_same_value(name):
    Y, scores = untied(60, 5, 1.5)
    function, options = FUNCTIONS[name], OPTIONS.get(name, {})
    expected = function(Y, scores, **options)
    sets = [set(np.flatnonzero(row)) for row in Y]
    names = np.array(["a", "b", "c", "d", "e"])
    with_zeros = sparse.csr_array(Y.astype(float))
    with_zeros.data[:] = 1
    explicit = sparse.coo_array(
        (np.r_[np.ones(Y.sum()), 0.0], (np.r_[Y.nonzero()[0], 3], np.r_[Y.nonzero()[1], 2]))
    )
    forms = [Y.astype(bool), Y.astype(np.float32), Y.tolist(), np.asfortranarray(Y)]
    forms += [sparse.csr_array(Y), sparse.csc_matrix(Y), with_zeros, explicit, sets]
    forms += [Y.astype(object), [np.flatnonzero(row) for row in Y]]
    for form in forms:
        assert function(form, scores, **options) == expected
    named = [set(names[np.flatnonzero(row)]) for row in Y]
    assert function(named, scores, classes=names, **options) == expected
    assert function(Y, np.asfortranarray(scores), **options) == expected


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    Y, scores = untied(999, 30, 4)
    values = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("DELTARANK_NUM_THREADS", threads)
        assert n_threads() == int(threads)
        values.append(rank_loss(Y, scores, per_instance=True))
    assert_array_equal(values[0], values[1])
    assert_array_equal(values[0], values[2])


def test_sample_weights_are_weights_of_the_mean():
    Y, scores = untied(40, 8, 2)
    weights = np.arange(40)
    losses = rank_loss(Y, scores, per_instance=True)
    assert_allclose(
        rank_loss(Y, scores, sample_weight=weights), np.average(losses, weights=weights)
    )


def test_one_label_has_no_pairs():
    assert rank_loss([[1], [0]], [[0.3], [0.2]]) == 0.0
    assert rank_loss([[1], [0]], [[0.3], [0.2]], trivial="skip") == 0.0


class TestScorers:
    X = np.random.default_rng(0).normal(size=(80, 4))
    Y = (X @ np.random.default_rng(1).normal(size=(4, 6)) > 0.6).astype(int)

    def test_a_search_tunes_by_rank_loss(self):
        base = OneVsRestClassifier(LogisticRegression())
        search = GridSearchCV(
            base, {"estimator__C": [1e-4, 1.0]}, scoring=metrics.get_scorer("neg_rank_loss"), cv=3
        ).fit(self.X, self.Y)
        by_hand = -rank_loss(self.Y, search.decision_function(self.X))
        assert SCORERS["neg_rank_loss"](search, self.X, self.Y) == by_hand
        assert search.best_params_ == {"estimator__C": 1.0}
        assert -1 <= search.best_score_ <= 0

    @pytest.mark.parametrize(
        "estimator",
        [
            MultiOutputClassifier(LogisticRegression()),
            RandomForestClassifier(5, random_state=0),
            RidgeClassifier(),
        ],
        ids=lambda e: type(e).__name__,
    )
    def test_scores_come_from_whatever_method_there_is(self, estimator):
        values = cross_val_score(
            estimator, self.X, self.Y, cv=3, scoring=metrics.get_scorer("average_precision")
        )
        assert (values > 0.6).all()

    @pytest.mark.parametrize("name", sorted(SCORERS))
    def test_scorers_are_plain_data(self, name):
        scorer = SCORERS[name]
        assert pickle.loads(pickle.dumps(scorer)) == scorer
        model = OneVsRestClassifier(LogisticRegression()).fit(self.X, self.Y)
        sign = 1 if METRICS[scorer.metric].greater_is_better else -1
        value = FUNCTIONS[scorer.metric](self.Y, model.decision_function(self.X), **scorer.options)
        assert scorer(model, self.X, self.Y) == sign * value

    def test_label_names_are_looked_up_in_the_estimator(self):
        model = OneVsRestClassifier(LogisticRegression()).fit(self.X, self.Y)
        names = list("abcdef")
        sets = [{names[label] for label in np.flatnonzero(row)} for row in self.Y]

        class Named:
            classes_ = np.array(names)
            decision_function = staticmethod(model.decision_function)

        scorer = RankingScorer("rank_loss")
        assert scorer(Named(), self.X, sets) == scorer(model, self.X, self.Y)
