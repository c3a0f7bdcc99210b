"""Conformal label sets: the threshold against brute force, the guarantee over repeated draws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from deltarank import AdaBoostRanker, ConformalRanker, LogisticRanker
from deltarank.core.labels import label_sets
from deltarank.datasets import SyntheticModel
from deltarank.decisions.conformal import RISKS, safe_threshold

LEVELS = {"missed-share": 0.2, "any-missed": 0.3, "labels-beyond": 0.8}


def loss_of_set(risk, y, scores, threshold):
    """The loss of one row, read off its set and its ranking."""
    inside = [label for label in range(len(y)) if scores[label] >= threshold]
    relevant = [label for label in range(len(y)) if y[label]]
    missed = [label for label in relevant if label not in inside]
    if risk == "missed-share":
        return len(missed) / len(relevant) if relevant else 0.0
    if risk == "any-missed":
        return float(bool(missed))
    if not missed:
        return 0.0
    lowest = min(scores[label] for label in relevant)
    return float(sum(scores[label] >= lowest for label in range(len(y)) if label not in inside))


def draw(generator, n, m=6):
    """Rows of labels, and scores that know something of them; some scores tie."""
    Y = (generator.random((n, m)) < generator.uniform(0.05, 0.6, (n, 1))).astype(int)
    return Y, np.round(Y + 1.2 * generator.normal(size=(n, m)), 1)


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("seed", range(6))
def test_no_higher_threshold_has_so_low_a_corrected_risk(risk, seed):
    Y, scores = draw(np.random.default_rng(seed), 30)
    largest = 6 if risk == "labels-beyond" else 1

    def corrected(threshold):
        losses = [loss_of_set(risk, y, h, threshold) for y, h in zip(Y, scores, strict=True)]
        return (sum(losses) + largest) / 31

    found = safe_threshold(scores, label_sets(Y), RISKS[risk], LEVELS[risk])
    assert corrected(found) <= LEVELS[risk] + 1e-9
    higher = [t for t in [*np.unique(scores), scores.max() + 1] if t > found]
    assert all(corrected(t) > LEVELS[risk] for t in higher)


@pytest.mark.parametrize("risk", RISKS)
def test_the_risk_of_a_further_row_is_at_most_the_level_over_repeated_draws(risk):
    generator = np.random.default_rng(1)
    losses, n_rows = [], 40
    for _ in range(3000):
        Y, scores = draw(generator, n_rows + 1)
        threshold = safe_threshold(scores[1:], label_sets(Y[1:]), RISKS[risk], LEVELS[risk])
        losses.append(loss_of_set(risk, Y[0], scores[0], threshold))
    error = np.std(losses) / np.sqrt(len(losses))
    assert np.mean(losses) <= LEVELS[risk] + 3 * error
    # Not by caution alone: no more is given away than two rows' worth, and what ties cost.
    largest = 6 if risk == "labels-beyond" else 1
    assert np.mean(losses) >= LEVELS[risk] - 2 * largest / n_rows - 0.05 * largest - 3 * error


@pytest.mark.parametrize("ranker", [LogisticRanker(), AdaBoostRanker(n_stumps=1)])
def test_sets_of_a_fitted_ranker_keep_the_level_whether_it_ranks_well_or_badly(ranker):
    model = SyntheticModel.random(n_labels=5, random_state=0)
    risks = []
    for seed in range(40):
        X, Y = model.sample(1000, random_state=seed)
        fitted = ConformalRanker(ranker, level=0.15, random_state=seed).fit(X[:200], Y[:200])
        found = (fitted.predict(X[200:]) * Y[200:]).sum(axis=1)
        sizes = Y[200:].sum(axis=1)
        risks.append(np.mean(np.where(sizes > 0, 1 - found / sizes.clip(1), 0)))
    assert np.mean(risks) <= 0.15 + 3 * np.std(risks) / np.sqrt(len(risks))


def test_empty_sets_do_where_no_row_has_a_label():
    scores = np.zeros((40, 3))
    for risk in RISKS.values():
        assert safe_threshold(scores, label_sets(np.zeros((40, 3), int)), risk, 0.5) == np.inf


X, Y = SyntheticModel.random(n_labels=5, random_state=0).sample(400, random_state=1)


def test_predictions_come_in_the_form_of_the_labels_and_rankings_are_the_rankers():
    dense = ConformalRanker(LogisticRanker(), random_state=0).fit(X, Y)
    marks = dense.predict(X)
    assert_array_equal(marks, dense.decision_function(X) >= dense.threshold_)
    assert_array_equal(dense.rank(X), dense.ranker_.rank(X))
    assert_allclose(dense.marginal_weights(X), dense.ranker_.marginal_weights(X))
    again = ConformalRanker(LogisticRanker(), random_state=0).fit(X, sparse.csr_array(Y))
    assert_array_equal(again.predict(X).toarray(), marks)
    names = np.array(list("abcde"))
    sets = [set(names[row.astype(bool)]) for row in Y]
    by_name = ConformalRanker(LogisticRanker(), random_state=0).fit(X, sets)
    assert by_name.predict(X) == [set(names[row.astype(bool)].tolist()) for row in marks]


def test_a_lower_level_gives_larger_sets():
    sizes = [
        ConformalRanker(LogisticRanker(), level=level, random_state=0).fit(X, Y).predict(X).sum()
        for level in (0.05, 0.1, 0.3)
    ]
    assert sizes[0] > sizes[1] > sizes[2]


def test_weights_that_are_functions_of_labels_see_the_labels_as_given():
    def by_size(labels):
        assert len(labels) == 400
        return np.array([1.0 + len(row) for row in labels])

    sets = [set(np.flatnonzero(row).tolist()) for row in Y]
    ranker = ConformalRanker(LogisticRanker(weight=by_size), random_state=0).fit(X, sets)
    assert ranker.n_calibration_ == 100


def test_what_is_wrong_is_named():
    for options, message in [
        ({"risk": "coverage"}, "unknown risk 'coverage'; choose one of any-missed"),
        ({"level": 1.5}, "level must be below 1 for risk='missed-share'; got 1.5"),
        ({"level": 0}, "level must be positive and finite; got 0"),
        ({"calibration_size": 1.0}, "calibration_size must be between 0 and 1; got 1.0"),
        ({"level": 0.001}, "level 0.001 needs at least 999 rows to calibrate on; got 100"),
    ]:
        with pytest.raises(ValueError, match=message):
            ConformalRanker(LogisticRanker(), **options).fit(X, Y)
    with pytest.raises(ValueError, match="leaves no row to fit the ranker to"):
        ConformalRanker(LogisticRanker(), calibration_size=0.9).fit(X[:2], Y[:2])
    with pytest.raises(ValueError, match="ConformalRanker takes no unknown labels"):
        ConformalRanker(LogisticRanker()).fit(X, np.where(X[:, :1] > 0.9, np.nan, Y))


def test_the_example_keeps_every_level_and_a_better_ranker_has_smaller_sets(run_example):
    found = run_example("plot_conformal_sets")
    for missed in found["missed"].values():
        errors = missed.std(axis=1) / np.sqrt(missed.shape[1])
        assert (missed.mean(axis=1) <= np.array(found["levels"]) + 3 * errors).all()
    good, bad = found["sizes"].values()
    assert (good.mean(axis=1) < bad.mean(axis=1)).all()
