"""LogisticRankerCV against fitting every fold and every C on its own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.model_selection import KFold, ShuffleSplit

from deltarank import LabelStratifiedKFold, LogisticRanker, LogisticRankerCV, rank_loss
from deltarank.linear import logistic_cv
from deltarank.linear.rows import tuning
from deltarank.metrics import get_scorer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 12))
HIDDEN = X @ RNG.normal(size=(12, 7)) + 3 * RNG.normal(size=(240, 7))
Y = (np.linspace(0, 5, 7) < HIDDEN).astype(int)
CS = [1e-3, 1e-2, 1e-1, 1.0]


@pytest.fixture(params=["Newton on small data", "passes over row blocks"], autouse=True)
def engine(request, monkeypatch):
    if request.param == "passes over row blocks":
        monkeypatch.setattr(tuning.LOCAL, "largest_table", 0)


def one_by_one(splits, **options):
    """Mean held-out rank loss at each C, a fit for every split."""
    losses = np.empty((len(splits), len(CS)))
    for row, (train, test) in enumerate(splits):
        for column, C in enumerate(CS):
            ranker = LogisticRanker(C=C, **options).fit(X[train], Y[train])
            losses[row, column] = rank_loss(Y[test], ranker.decision_function(X[test]))
    return losses


@pytest.mark.parametrize(
    "cv", [KFold(4), ShuffleSplit(3, test_size=0.3, random_state=0)], ids=["folds", "no folds"]
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_shared_job_gives_what_single_fits_give(cv, form, monkeypatch):
    monkeypatch.setattr(logistic_cv, "VALIDATION_TOL", 1e-7)

    def everything(labels):  # single fits would normalise each split's weights anew
        return np.ones(labels.shape[0])

    ranker = LogisticRankerCV(Cs=CS[::-1], cv=cv, weight=everything).fit(form(X), Y)
    losses = one_by_one(list(cv.split(X)), weight=everything)
    results = ranker.cv_results_
    assert_array_equal(results["param_C"], CS)
    assert_allclose(results["mean_test_score"], -losses.mean(axis=0), atol=2e-3)
    assert_allclose(results["split1_test_score"], -losses[1], atol=6e-3)
    assert_allclose(results["std_test_score"], losses.std(axis=0), atol=3e-3)
    assert CS[int(np.argmax(results["mean_test_score"]))] == ranker.C_
    assert ranker.best_score_ == results["mean_test_score"].max()


def test_the_loose_tolerance_of_validation_moves_scores_less_than_folds_differ(monkeypatch):
    loose = LogisticRankerCV(random_state=0).fit(X, Y).cv_results_
    monkeypatch.setattr(logistic_cv, "VALIDATION_TOL", 1e-6)
    tight = LogisticRankerCV(random_state=0).fit(X, Y).cv_results_
    moved = np.abs(loose["mean_test_score"] - tight["mean_test_score"])
    assert (moved < tight["std_test_score"] / np.sqrt(5)).all()


def test_the_final_fit_is_that_of_the_chosen_value_on_all_rows():
    ranker = LogisticRankerCV(Cs=CS, random_state=0, tol=1e-9).fit(X, Y)
    alone = LogisticRanker(C=ranker.C_, tol=1e-9).fit(X, Y)
    assert_allclose(ranker.coef_, alone.coef_, atol=2e-4)
    assert ranker.converged_.all()
    assert_array_equal(ranker.rank(X, top=2), alone.rank(X, top=2))


def test_folds_are_stratified_and_seeded():
    ranker = LogisticRankerCV(Cs=CS, cv=3, random_state=5).fit(X, Y)
    folds = LabelStratifiedKFold(3, random_state=5)
    same = LogisticRankerCV(Cs=CS, cv=folds).fit(X, Y)
    assert_array_equal(ranker.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"])


def test_one_standard_error_chooses_the_smallest_c_that_is_as_good():
    best = LogisticRankerCV(random_state=0).fit(X, Y)
    modest = LogisticRankerCV(random_state=0, one_standard_error=True).fit(X, Y)
    scores = np.array([best.cv_results_[f"split{fold}_test_score"] for fold in range(5)])
    top = scores.mean(axis=0).argmax()
    bar = scores.mean(axis=0)[top] - scores[:, top].std(ddof=1) / np.sqrt(5)
    expected = best.cv_results_["param_C"][np.flatnonzero(scores.mean(axis=0) >= bar)[0]]
    assert modest.C_ == expected <= best.C_


def test_any_scorer_may_choose():
    by_name = LogisticRankerCV(Cs=CS, scoring="precision_at_1", random_state=0).fit(X, Y)
    by_object = LogisticRankerCV(Cs=CS, scoring=get_scorer("precision_at_1"), random_state=0)
    by_object.fit(X, Y)
    assert by_name.C_ == by_object.C_
    assert_array_equal(
        by_name.cv_results_["mean_test_score"], by_object.cv_results_["mean_test_score"]
    )
    smallest = LogisticRankerCV(Cs=CS, scoring=lambda ranker, X, Y: -np.abs(ranker.coef_).sum())
    assert CS[0] == smallest.fit(X, Y).C_


def test_label_names_rare_labels_and_rows_without_labels_are_fine():
    names = np.array(list("abcdefgh"))
    labels = np.hstack([Y, np.zeros((240, 1), int)])
    labels[3] = 0
    labels[7, -1] = 1
    sets = [set(names[row == 1]) for row in labels]
    ranker = LogisticRankerCV(Cs=CS, random_state=0).fit(X, sets)
    assert ranker.rank(X[:1], top=2).dtype == names.dtype
    assert np.isfinite(ranker.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"Cs": [1.0, 0.0]}, "each value of Cs must be positive and finite; got 0.0"),
        ({"Cs": []}, "Cs must hold at least one value"),
        ({"scoring": "accuracy"}, "unknown scoring 'accuracy'; choose one of"),
        ({"cv": 1}, "n_splits must be an integer of at least 2; got 1"),
        ({"max_iter": -1}, "max_iter must be a positive integer"),
        ({"tol": np.inf}, "tol must be positive and finite"),
    ],
)
def test_bad_options_are_refused_in_words(options, words):
    with pytest.raises(ValueError, match=words):
        LogisticRankerCV(**options).fit(X, Y)
