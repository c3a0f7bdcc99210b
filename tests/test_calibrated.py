"""Probabilities and label sets from scores: calibration, thresholds, manners."""

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit, ndtr
from sklearn.base import clone
from sklearn.calibration import _sigmoid_calibration
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import accuracy_score, f1_score, hamming_loss
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deltarank import (
    AdaBoostRanker,
    CalibratedRanker,
    LabelStratifiedKFold,
    LogisticRanker,
    PairwiseRanker,
    WeightedBinaryRelevance,
)
from deltarank.datasets import SyntheticModel
from deltarank.wrappers.calibration import isotonic, platt
from deltarank.wrappers.sets import SET_METRICS, Cells

MODEL = SyntheticModel.random(n_labels=6, random_state=0)


def sample(n, seed):
    """Rows, labels and P(y_l = 1 | x) of the synthetic model, Eq. (38), with rarer labels.

    Noise of standard deviation 1/2 is added to a label's own direction, less a constant. Many rows
    then have few labels or none, so that weighted chances are far from probabilities.
    """
    X, _ = MODEL.sample(n, random_state=seed)
    chances = ndtr((X @ MODEL.directions.T - np.linspace(0.2, 1.2, 6)) / 0.5)
    return X, (np.random.default_rng(seed).uniform(size=chances.shape) < chances) * 1, chances


X, Y, _ = sample(3000, 1)
NEW, NEW_Y, TRUTH = sample(20_000, 2)

MEASURES = {
    "micro_f1": lambda Y, P: f1_score(Y, P, average="micro", zero_division=0),
    "macro_f1": lambda Y, P: f1_score(Y, P, average="macro", zero_division=0),
    "example_f1": lambda Y, P: f1_score(Y, P, average="samples", zero_division=1),
    "hamming": lambda Y, P: -hamming_loss(Y, P),
    "subset_accuracy": accuracy_score,
}


@pytest.fixture(scope="module")
def held_out():
    """Scores of rows by rankers fitted without them, folds made by hand."""
    scores = np.empty(Y.shape)
    for train, test in LabelStratifiedKFold(5, random_state=0).split(X, Y):
        scores[test] = LogisticRanker().fit(X[train], Y[train]).decision_function(X[test])
    return scores


def calibration_error(chances):
    """Mean distance, over twentieths of each label's rows by chance, to the mean true chance."""
    parts = [
        abs((chances[rows, label] - TRUTH[rows, label]).mean())
        for label in range(TRUTH.shape[1])
        for rows in np.array_split(np.argsort(chances[:, label]), 20)
    ]
    return np.mean(parts)


@pytest.mark.parametrize("method", ["isotonic", "platt"])
@pytest.mark.parametrize("ranker", [LogisticRanker(), AdaBoostRanker(n_stumps=50)], ids=repr)
def test_probabilities_come_nearer_to_the_true_ones(method, ranker):
    fitted = CalibratedRanker(ranker, method=method, random_state=0).fit(X, Y)
    before = calibration_error(fitted.marginal_weights(NEW))
    assert calibration_error(fitted.predict_proba(NEW)) < 0.5 * before


def test_isotonic_maps_are_those_of_scikit_learn(held_out):
    fitted = CalibratedRanker(LogisticRanker(), random_state=0).fit(X, Y)
    scores = fitted.decision_function(NEW)
    for label in range(Y.shape[1]):
        steps = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        steps.fit(held_out[:, label], Y[:, label])
        assert_allclose(fitted.predict_proba(NEW)[:, label], steps.predict(scores[:, label]))


def test_platt_curves_are_those_of_scikit_learn(held_out):
    fitted = CalibratedRanker(LogisticRanker(), method="platt", random_state=0).fit(X, Y)
    scores = fitted.decision_function(NEW)
    for label in range(Y.shape[1]):
        slope, offset = _sigmoid_calibration(held_out[:, label], Y[:, label])
        expected = expit(-(slope * scores[:, label] + offset))
        assert_allclose(fitted.predict_proba(NEW)[:, label], expected, atol=1e-4)


def test_rare_labels_share_one_map(held_out):
    rare = Y.copy()
    rare[:, 4:] &= (np.arange(len(Y)) % 200 == 0)[:, None]
    assert (rare[:, 4:].sum(axis=0) < 20).all()
    scores = np.empty(Y.shape)
    for train, test in LabelStratifiedKFold(5, random_state=0).split(X, rare):
        scores[test] = LogisticRanker().fit(X[train], rare[train]).decision_function(X[test])
    steps = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    # Where a fold had no relevant row of a label, its scores tell nothing.
    told = np.abs(scores[:, 4:]) < 1e29
    steps.fit(scores[:, 4:][told], rare[:, 4:][told])
    fitted = CalibratedRanker(LogisticRanker(), random_state=0).fit(X, rare)
    assert_array_equal(fitted.pooled_, [False] * 4 + [True] * 2)
    expected = steps.predict(fitted.decision_function(NEW)[:, 4:].ravel())
    assert_allclose(fitted.predict_proba(NEW)[:, 4:].ravel(), expected)


@pytest.mark.parametrize("fit", [isotonic, platt])
def test_counts_stand_for_repeated_rows(fit):
    rng = np.random.default_rng(0)
    scores, relevant = rng.normal(size=40), rng.uniform(size=40) < 0.4
    counts = rng.integers(1, 4, 40)
    many = fit(np.repeat(scores, counts), np.repeat(relevant, counts), np.ones(counts.sum()))
    assert_allclose(fit(scores, relevant, counts * 1.0)(scores), many(scores), atol=1e-9)


class TestThresholds:
    @pytest.mark.parametrize("metric", list(SET_METRICS))
    @settings(max_examples=20)  # each tries up to 216 sets of thresholds
    @given(data=st.data())
    def test_no_others_are_better(self, metric, data):
        n, m = data.draw(st.integers(2, 5)), data.draw(st.integers(2, 3))
        rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
        chances = rng.integers(0, 5, (n, m)) / 4
        relevant = rng.uniform(size=(n, m)) < chances * 0.8 + 0.1
        known = np.ones((n, m), bool)
        found = SET_METRICS[metric](Cells(chances, relevant, known, np.ones(n)))
        grid = np.array([-1, 0.125, 0.375, 0.625, 0.875, 1])
        shared = metric in ("example_f1", "subset_accuracy")
        tried = [[t] * m for t in grid] if shared else product(grid, repeat=m)
        best = max(MEASURES[metric](relevant, chances > np.array(t)) for t in tried)
        assert_allclose(MEASURES[metric](relevant, chances > found), best)

    @pytest.mark.parametrize("metric", list(SET_METRICS))
    def test_weights_and_unknown_cells_count_as_they_should(self, metric):
        rng = np.random.default_rng(3)
        chances = rng.integers(0, 9, (30, 4)) / 8
        relevant = rng.uniform(size=(30, 4)) < chances
        counts = rng.integers(0, 3, 30)
        every = np.ones((30, 4), bool)
        find = SET_METRICS[metric]
        repeated = Cells(*(np.repeat(part, counts, axis=0) for part in (chances, relevant, every)),
                         np.ones(counts.sum()))  # fmt: skip
        once = find(Cells(chances, relevant, every, counts * 1.0))
        again = find(repeated)
        many = repeated.chances
        assert_array_equal(many > once, many > again)
        wide = np.column_stack([chances, rng.uniform(size=30)])
        hidden = np.column_stack([every, np.zeros(30, bool)])
        labels = np.column_stack([relevant, np.ones(30, bool)])
        with_gap = find(Cells(wide, labels, hidden, np.ones(30)))
        assert_array_equal(with_gap[:4], find(Cells(chances, relevant, every, np.ones(30))))

    @pytest.mark.parametrize("metric", list(SET_METRICS))
    def test_sets_are_better_than_those_of_the_ranker(self, metric):
        fitted = CalibratedRanker(LogisticRanker(), set_metric=metric, random_state=0).fit(X, Y)
        plain = MEASURES[metric](NEW_Y, fitted.ranker_.predict(NEW))
        assert MEASURES[metric](NEW_Y, fitted.predict(NEW)) > plain


class TestManners:
    def test_the_ranking_is_the_rankers_unless_asked(self):
        plain = LogisticRanker().fit(X, Y)
        fitted = CalibratedRanker(LogisticRanker(), random_state=0).fit(X, Y)
        assert_array_equal(fitted.rank(NEW[:50]), plain.rank(NEW[:50]))
        assert_array_equal(fitted.decision_function(NEW[:50]), plain.decision_function(NEW[:50]))
        asked = clone(fitted).set_params(rank_by_probability=True).fit(X, Y)
        order = np.argsort(-asked.predict_proba(NEW[:50]), axis=1, kind="stable")
        assert_array_equal(asked.rank(NEW[:50]), order)

    @pytest.mark.parametrize("form", ["sparse", "sets", "dense"])
    def test_predictions_have_the_form_of_y(self, form):
        names = np.array(list("abcdef"))
        forms = {"sparse": sparse.csr_array(Y), "sets": [set(names[y == 1]) for y in Y], "dense": Y}
        predicted = (
            CalibratedRanker(LogisticRanker(), random_state=0).fit(X, forms[form]).predict(X)
        )
        marks = CalibratedRanker(LogisticRanker(), random_state=0).fit(X, Y).predict(X)
        back = {
            "sparse": lambda p: p.toarray(),
            "sets": lambda p: np.array([[name in row for name in names] for row in p]),
            "dense": lambda p: p,
        }
        assert_array_equal(back[form](predicted), marks)

    def test_labels_without_two_classes_and_unknown_ones(self):
        odd = Y.astype(float)
        odd[:, 0], odd[:, 1] = 0, 1
        odd[::3, 2] = np.nan
        for method in ("isotonic", "platt"):
            fitted = CalibratedRanker(LogisticRanker(), method=method, random_state=0).fit(X, odd)
            chances = fitted.predict_proba(NEW)
            assert (chances[:, 0] == 0).all()
            assert (chances[:, 1] == 1).all()
            assert np.abs(chances[:, 2:] - TRUTH[:, 2:]).mean() < 0.06
            assert (fitted.predict(NEW)[:, 1] == 1).all()

    def test_it_pickles_and_fits_in_pipelines_and_searches(self):
        pipeline = make_pipeline(StandardScaler(), CalibratedRanker(LogisticRanker(), cv=2))
        grid = {"calibratedranker__ranker__C": [0.1, 1.0]}
        search = GridSearchCV(pipeline, grid, cv=KFold(2)).fit(X, Y)
        again = pickle.loads(pickle.dumps(search))
        assert_array_equal(again.predict_proba(NEW), search.predict_proba(NEW))

    def test_weights_may_be_functions_of_y_as_it_came(self):
        seen = []

        def weigh(labels):
            seen.append(labels)
            return np.ones(len(labels))

        sets = [set(np.flatnonzero(y).tolist()) for y in Y]
        CalibratedRanker(LogisticRanker(weight=weigh), random_state=0).fit(X, sets)
        assert seen
        assert all(labels is sets for labels in seen)

    def test_text_goes_through_to_the_estimator(self):
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression

        words = ["sun and sea", "rain on the hills", "sun on the hills", "sea and rain"] * 20
        sets = [{word for word in text.split() if len(word) > 2} for text in words]
        base = WeightedBinaryRelevance(make_pipeline(TfidfVectorizer(), LogisticRegression()))
        fitted = CalibratedRanker(base, random_state=0).fit(words, sets)
        assert fitted.predict(["sun and sea"])[0] >= {"sun", "sea"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CalibratedRanker(StandardScaler()).fit(X, Y), "ranker must be a ranker of delta"),
        (lambda: CalibratedRanker(LogisticRanker(), method="beta").fit(X, Y), "unknown method"),
        (lambda: CalibratedRanker(LogisticRanker(), set_metric="f1").fit(X, Y), "unknown set_metr"),
        (
            lambda: CalibratedRanker(LogisticRanker(), min_positives=0).fit(X, Y),
            "min_positives must be a positive integer; got 0",
        ),
        (
            lambda: CalibratedRanker(LogisticRanker(), cv=ShuffleSplit(2, random_state=0)).fit(
                X, Y
            ),
            r"cv must hold every row out once; row \d+ is held out",
        ),
        (
            lambda: CalibratedRanker(PairwiseRanker()).fit(X, np.where(Y, Y, np.nan)),
            "CalibratedRanker takes no unknown labels",
        ),
    ],
)
def test_bad_input_is_refused_in_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_example_finds_better_sets(run_example):
    found = run_example("plot_label_sets")["f1"]
    assert found["thresholds"] > found["ranker"] + 0.1
