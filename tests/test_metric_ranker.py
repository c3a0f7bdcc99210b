"""MetricRanker: each decision in its place, from the right chances, and wins on its own metric."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from deltarank import (
    AdaBoostMR,
    AdaBoostRanker,
    CalibratedRanker,
    LogisticRanker,
    MetricRanker,
    PairwiseRanker,
    StagedSearchCV,
    metrics,
)
from deltarank.datasets import SyntheticModel
from deltarank.decisions.metrics import DECISIONS
from deltarank.wrappers.decided_scorer import DecidedScorer

PLAIN = LogisticRanker(weight="uniform")
GENERATOR = np.random.default_rng(0)
X, Y = SyntheticModel.random(n_labels=8, random_state=0).sample(44000, random_state=1)
# Frequent labels and rare ones; many rows to measure by, so that chance decides little.
Y = Y & (GENERATOR.random(Y.shape) < np.linspace(1, 0.1, 8))
TRAIN, TEST = slice(0, 4000), slice(4000, None)
PROPENSITIES = np.linspace(1, 0.2, 8)
BY_ROW = [
    "precision", "propensity-precision", "macro-recall", "balanced-accuracy", "macro-f1",
    "macro-jaccard", "macro-hmean", "f-beta",
]  # fmt: skip


@pytest.fixture(scope="module")
def fitted():
    """One fitted ranker for each metric, k = 2."""
    made = {}
    for metric in BY_ROW:
        options = {"propensities": PROPENSITIES, "cv": 3, "random_state": 0}
        made[metric] = MetricRanker(PLAIN, metric=metric, k=2, **options).fit(X[TRAIN], Y[TRAIN])
    for metric in ("macro-f1", "coverage"):
        ranker = MetricRanker(PLAIN, metric=metric, k=2, batch=True)
        made[f"{metric} of a batch"] = ranker.fit(X[TRAIN], Y[TRAIN])
    return made


def hmean(Y, marks):
    relevant = Y.mean(axis=0)
    found, false = (Y & marks).mean(axis=0) / relevant, (~Y & marks).mean(axis=0) / (1 - relevant)
    return np.mean(2 * found * (1 - false) / (found + 1 - false))


def measured(metric, Y, marks):
    """Each metric by scikit-learn's conventions or its own definition."""
    Y, marks = Y.astype(bool), marks.astype(bool)
    scores = marks * 1.0
    both, either = (Y & marks).sum(axis=0), (Y | marks).sum(axis=0)
    sizes = Y.sum(axis=1) + marks.sum(axis=1)
    return {
        "precision": lambda: metrics.precision_at_k(Y, scores, 2),
        "propensity-precision": lambda: metrics.propensity_scored_precision_at_k(
            Y, scores, 2, PROPENSITIES
        ),
        "macro-recall": lambda: metrics.macro_recall_at_k(Y, scores, 2),
        "balanced-accuracy": lambda: np.mean(
            both / Y.sum(axis=0) - (marks & ~Y).sum(axis=0) / (~Y).sum(axis=0)
        ),
        "macro-f1": lambda: metrics.macro_f1_at_k(Y, scores, 2),
        "macro-jaccard": lambda: np.mean(both / either),
        "macro-hmean": lambda: hmean(Y, marks),
        "f-beta": lambda: np.mean(
            np.where(sizes > 0, 2 * (Y & marks).sum(axis=1) / np.maximum(sizes, 1), 1.0)
        ),
    }[metric]()


@pytest.mark.parametrize("metric", BY_ROW)
def test_each_decision_wins_its_own_metric_on_new_rows(metric, fitted):
    # Sets of any size and of two labels are not judged alike, but by the F-measure.
    rules = ["precision", "f-beta"] if metric == "f-beta" else BY_ROW[:-1]
    values = {name: measured(metric, Y[TEST], fitted[name].predict(X[TEST])) for name in rules}
    # Rules that differ little may change places by chance: within one part in a hundred.
    assert values[metric] >= 0.99 * max(values.values()), values
    if metric != "precision":
        assert values[metric] > values["precision"]


@pytest.mark.parametrize("metric", ["macro-f1", "coverage"])
def test_a_batch_decided_together_is_no_worse_than_first_by_chance(metric, fitted):
    ranker, rows = fitted[f"{metric} of a batch"], slice(4000, 4400)
    function = {"macro-f1": metrics.macro_f1_at_k, "coverage": metrics.coverage_at_k}[metric]
    together = function(Y[rows], ranker.predict(X[rows]), 2)
    first = function(Y[rows], fitted["precision"].predict(X[rows]), 2)
    assert together >= first
    if metric == "macro-f1":
        assert together > 1.1 * first


@pytest.mark.parametrize("name", ["macro-f1", "macro-f1 of a batch", "coverage of a batch"])
def test_a_row_is_given_exactly_k_labels_the_first_of_its_ranking(name, fitted):
    ranker, rows = fitted[name], X[3000:3100]
    chosen = ranker.predict(rows)
    assert_array_equal(chosen.sum(axis=1), 2)
    ranked = ranker.rank(rows, top=2)
    assert_array_equal(np.take_along_axis(chosen, ranked, axis=1), 1)


@pytest.mark.parametrize("metric", BY_ROW)
def test_a_rule_for_single_rows_does_not_depend_on_the_others(metric, fitted):
    ranker = fitted[metric]
    alone = np.vstack([ranker.decision_function(X[[row]]) for row in range(20)])
    assert_allclose(ranker.decision_function(X[:20]), alone, rtol=1e-6)


def test_f_sets_are_smaller_than_a_limit_and_may_be_empty():
    ranker = MetricRanker(PLAIN, metric="f-beta", k=None).fit(X[TRAIN], Y[TRAIN])
    sizes = ranker.predict(X[TEST]).sum(axis=1)
    assert sizes.max() > 2
    ranker = MetricRanker(PLAIN, metric="f-beta", k=2).fit(X[TRAIN], Y[TRAIN])
    limited = ranker.predict(X[TEST]).sum(axis=1)
    assert limited.max() == 2
    assert_array_equal(limited[sizes <= 2], sizes[sizes <= 2])
    rarely = Y * (GENERATOR.random((len(Y), 1)) < 0.05)
    ranker = MetricRanker(CalibratedRanker(PLAIN, random_state=0), metric="f-beta")
    assert (ranker.fit(X[TRAIN], rarely[TRAIN]).predict(X[TEST]).sum(axis=1) == 0).all()


def test_propensities_are_estimated_where_none_are_given():
    ranker = MetricRanker(PLAIN, metric="propensity-precision", k=2).fit(X[:500], Y[:500])
    assert_allclose(ranker.slopes_, 1 / metrics.label_propensities(Y[:500]))


def test_a_calibrated_ranker_gives_plain_chances():
    calibrated = CalibratedRanker(LogisticRanker(), random_state=0)
    ranker = MetricRanker(calibrated, metric="macro-recall", k=2).fit(X[TRAIN], Y[TRAIN])
    chances = ranker.ranker_.predict_proba(X[TEST])
    assert_allclose(ranker.marginal_weights(X[TEST]), chances)
    assert_allclose(ranker.decision_function(X[TEST]), chances / Y[TRAIN].mean(axis=0))


def test_a_budget_is_kept_and_spent_on_the_largest_gains(fitted):
    ranker = fitted["macro-recall"]
    marks, scores = ranker.predict(X[TEST], budget=500), ranker.decision_function(X[TEST])
    assert marks.sum() == 500
    assert marks.sum(axis=1).max() <= 2
    second = np.sort(scores, axis=1)[:, -2]
    left_out = (scores >= second[:, None]) & (marks == 0)
    assert scores[marks == 1].min() >= scores[left_out].max()


@pytest.mark.parametrize(
    ("ranker", "metric", "message"),
    [
        (LogisticRanker(), "precision", "weight='uniform', or wrap the ranker in CalibratedRanker"),
        (LogisticRanker(weight="recall"), "macro-f1", "plain chances .* has weight='recall'"),
        (PairwiseRanker(), "f-beta", "its scores tell pairs of labels apart"),
        (AdaBoostMR(weight="uniform"), "precision", "its scores tell pairs of labels apart"),
        (
            LogisticRanker(weight="uniform", balance=1.0),
            "macro-f1",
            "a balance of 1 moves each row's chances otherwise: use balance=0",
        ),
        (StagedSearchCV(AdaBoostRanker()), "precision", "it has weight='rank'"),
        (PLAIN, "recall", "needs chances of weight='recall' from LogisticRanker, but"),
        (LogisticRanker(weight="ndcg"), "ndcg", r"use weight=\('ndcg', 2\)"),
        (CalibratedRanker(PLAIN), "recall", "its probabilities are plain: pass a ranker with"),
    ],
)
def test_chances_of_another_kind_than_the_metric_needs_are_refused(ranker, metric, message):
    with pytest.raises(ValueError, match=message):
        MetricRanker(ranker, metric=metric, k=2).fit(X[TRAIN], Y[TRAIN])


@pytest.mark.parametrize("metric", DECISIONS)
def test_every_metric_takes_the_chances_it_says(metric):
    weights = {"recall": "recall", "ndcg": ("ndcg", 2)}
    ranker = LogisticRanker(weight=weights.get(metric, "uniform"))
    chosen = MetricRanker(ranker, metric=metric, k=2, batch=metric == "coverage", cv=2)
    chosen.fit(X[:300], sparse.csr_array(Y[:300]))
    predicted = chosen.predict(X[:9])
    assert sparse.issparse(predicted)
    assert (predicted.sum(axis=1) <= 2).all()
    if metric in weights:
        assert_array_equal(chosen.rank(X[:9]), chosen.ranker_.rank(X[:9]))


def test_a_sample_weight_is_a_number_of_rows():
    counts = GENERATOR.integers(0, 3, 400)
    repeated = np.repeat(np.arange(400), counts)

    def halves(rows):
        even, odd = np.flatnonzero(rows % 2 == 0), np.flatnonzero(rows % 2)
        return [(even, odd), (odd, even)]

    weighted = MetricRanker(PLAIN, k=2, cv=halves(np.arange(400))).fit(X[:400], Y[:400], counts)
    plain = MetricRanker(PLAIN, k=2, cv=halves(repeated)).fit(X[repeated], Y[repeated])
    assert_allclose(weighted.slopes_, plain.slopes_, rtol=0.02)
    assert_allclose(weighted.value_, plain.value_, rtol=1e-3)


def test_a_label_never_relevant_ranks_last_and_names_come_back():
    names = np.array(list("abcdefgh"))
    sets = [set(names[row.astype(bool)]) - {"c"} for row in Y[:600]]
    some = [*sets[:-1], {"c"}]
    for metric in ("macro-f1", "balanced-accuracy"):
        ranker = MetricRanker(PLAIN, metric=metric, k=2, cv=2, random_state=0)
        without = (Y[:600] * (names != "c")).astype(int)
        assert (ranker.fit(X[:600], without).rank(X[:50])[:, -1] == 2).all()
        chosen = ranker.fit(X[:600], some).predict(X[:5])
        assert all(len(row) == 2 and row <= set(names) for row in chosen)


def test_what_is_wrong_is_named():
    for options, message in [
        ({"metric": "f2"}, "unknown metric 'f2'; choose one of"),
        ({"k": 9}, "k must be at most the number of labels, 8; got 9"),
        ({"k": 0}, "k must be a positive integer; got 0"),
        ({"k": None}, "k must be a positive integer for metric='macro-f1'; got None"),
        ({"metric": "f-beta", "beta": 0.0}, "beta must be positive"),
        ({"metric": "coverage"}, "has no rule for single rows; with batch=True"),
        ({"metric": "precision", "batch": True}, "is decided row by row"),
        ({"metric": "propensity-precision", "propensities": [2.0] * 8}, "propensities must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            MetricRanker(PLAIN, **options).fit(X[:100], Y[:100])
    with pytest.raises(ValueError, match="ranker must be a ranker of deltarank; got str"):
        MetricRanker("logistic").fit(X[:100], Y[:100])
    unknown = Y[:100].astype(float)
    unknown[0, 0] = np.nan
    with pytest.raises(ValueError, match="MetricRanker takes no unknown labels"):
        MetricRanker(PLAIN).fit(X[:100], unknown)
    ranker = MetricRanker(PLAIN, k=2, cv=2).fit(X[:100], Y[:100])
    with pytest.raises(ValueError, match="budget needs a metric whose gains add up over rows"):
        ranker.predict(X[:3], budget=2)
    weighted = MetricRanker(LogisticRanker(weight="recall"), metric="recall", k=2)
    with pytest.raises(ValueError, match="and 'recall' is none: use precision"):
        weighted.fit(X[:100], Y[:100]).predict(X[:3], budget=2)


def test_it_survives_pickling(fitted):
    again = pickle.loads(pickle.dumps(fitted["macro-f1"]))
    assert_array_equal(again.rank(X[:9]), fitted["macro-f1"].rank(X[:9]))


@pytest.mark.parametrize(
    ("rule", "metric"), [("macro-f1", "macro_f1_at_k"), ("macro-recall", "macro_recall_at_k")]
)
def test_parameters_are_scored_under_the_rule_that_they_serve(rule, metric):
    """On the rows of a fit: what a rule for just these rows comes to, no less than the order."""
    ranker = LogisticRanker(weight="uniform").fit(X[TRAIN], Y[TRAIN])
    scored = DecidedScorer(rule, metric, 2)(ranker, X[TRAIN], Y[TRAIN])
    function, chances = getattr(metrics, metric), ranker.marginal_weights(X[TRAIN])
    assert scored > 1.05 * function(Y[TRAIN], chances, 2)
    shares = Y[TRAIN].mean(axis=0)
    if rule == "macro-recall":
        assert_allclose(scored, function(Y[TRAIN], chances / shares, 2))
    else:
        everywhere = np.arange(TRAIN.stop)
        decided = MetricRanker(PLAIN, metric=rule, k=2, cv=[(everywhere, everywhere)])
        assert_allclose(scored, decided.fit(X[TRAIN], Y[TRAIN]).value_, rtol=1e-3)


def test_the_example_shows_that_each_rule_wins_its_own_metric(run_example):
    values = run_example("plot_metrics_at_k")["values"]
    for number, metric in enumerate(values):
        assert np.argmax(values[metric]) == number
