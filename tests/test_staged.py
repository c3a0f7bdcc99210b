"""The number of rounds by cross-validation, against one fit for every number and fold."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from deltarank import (
    AdaBoostMH,
    AdaBoostMR,
    AdaBoostRanker,
    LogisticRanker,
    LogLinearRanker,
    StagedSearchCV,
    instance_weights,
)
from deltarank.metrics import get_scorer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = (X @ RNG.normal(size=(4, 6)) + RNG.normal(size=(120, 6)) > 0.7).astype(int)
GRID = [2, 5, 30]


@pytest.mark.parametrize("ranker", [AdaBoostRanker(), AdaBoostMR(), AdaBoostMH()], ids=str)
def test_the_search_is_a_grid_search_with_one_fit_a_fold(ranker):
    folds = KFold(3)
    slow = GridSearchCV(
        ranker, {"n_stumps": GRID}, cv=folds, scoring=get_scorer("neg_rank_loss")
    ).fit(X, Y)
    ours = StagedSearchCV(ranker, rounds=GRID, cv=folds).fit(X, Y)
    for key in ("mean_test_score", "std_test_score", "split1_test_score"):
        assert_allclose(ours.cv_results_[key], slow.cv_results_[key], atol=1e-12)
    assert_array_equal(ours.cv_results_["param_rounds"], GRID)
    assert ours.best_rounds_ == slow.best_params_["n_stumps"]
    assert_allclose(ours.best_score_, slow.best_score_)
    assert_array_equal(ours.decision_function(X), slow.decision_function(X))


def test_each_fold_is_fitted_once_and_no_further_than_patience_allows(monkeypatch):
    fits = []
    plain = AdaBoostMH.fit_stages

    def fit_stages(self, *data, stages):
        mine = []
        fits.append(mine)
        for stage, ranker in zip(stages, plain(self, *data, stages=stages), strict=True):
            mine.append((stage, len(ranker.features_)))
            yield ranker

    monkeypatch.setattr(AdaBoostMH, "fit_stages", fit_stages)
    grid = [1, 2, 5, 10, 20]
    search = StagedSearchCV(AdaBoostMH(), rounds=grid, cv=4, patience=2, random_state=0).fit(X, Y)
    tried = [(stage, stage) for stage in search.cv_results_["param_rounds"]]
    best = search.best_rounds_
    assert fits == [tried] * 4 + [[(best, best)]]


@pytest.mark.parametrize("votes", ["discrete", "real"])
@pytest.mark.parametrize(
    "ranker", [AdaBoostRanker(), AdaBoostMR(), AdaBoostMH(), LogLinearRanker()], ids=str
)
def test_stages_of_a_fit_are_the_fits_with_fewer_rounds(ranker, votes):
    if "votes" in ranker.get_params():
        ranker = clone(ranker).set_params(votes=votes)
    labels = Y.copy()
    labels[:, 0] = X[:, 0] > 0  # a label with a single stump
    stages = [1, 2, 7]
    growing = clone(ranker).set_params(**{ranker.rounds_parameter: 7})
    staged = None
    for stage, fitted in zip(stages, growing.fit_stages(X, labels, stages=stages), strict=True):
        alone = clone(ranker).set_params(**{ranker.rounds_parameter: stage}).fit(X, labels)
        staged = staged or fitted.staged_decision_function(X, at=stages)
        assert_allclose(next(staged), alone.decision_function(X), atol=1e-12)
        if ranker.rounds_parameter != "n_stumps" or stage > 1 or votes == "real":
            assert_allclose(fitted.decision_function(X), alone.decision_function(X), atol=1e-12)


def test_patience_leaves_out_what_is_far_beyond_the_best(monkeypatch):
    grid = [1, 2, 5, 10, 20, 50, 100, 200]
    full = StagedSearchCV(AdaBoostRanker(), rounds=grid, cv=3, random_state=0).fit(X, Y)
    short = clone(full).set_params(patience=3).fit(X, Y)
    tried = short.cv_results_["param_rounds"]
    assert_array_equal(tried, grid[: len(tried)])
    means = full.cv_results_["mean_test_score"]
    assert_allclose(short.cv_results_["mean_test_score"], means[: len(tried)])
    # The best of those tried, and all numbers up to three times it were tried, none beyond.
    assert short.best_rounds_ == grid[means[: len(tried)].argmax()]
    assert tried[-1] <= 3 * short.best_rounds_ < [*grid, np.inf][len(tried)]


def test_one_standard_error_takes_the_fewest_rounds_within_one():
    search = StagedSearchCV(AdaBoostRanker(), rounds=GRID, cv=5, random_state=0).fit(X, Y)
    modest = clone(search).set_params(one_standard_error=True).fit(X, Y)
    scores = np.array([search.cv_results_[f"split{fold}_test_score"] for fold in range(5)])
    mean, best = scores.mean(axis=0), scores.mean(axis=0).argmax()
    error = scores[:, best].std(ddof=1) / np.sqrt(5)
    assert modest.best_rounds_ == GRID[np.flatnonzero(mean >= mean[best] - error)[0]]


def test_label_sets_keep_their_names_when_a_fold_lacks_a_label():
    names = np.array(["a", "b", "c", "d", "e", "f"])
    sets = [set(names[row == 1]) for row in Y]
    sets[0] = {"only here"}
    search = StagedSearchCV(AdaBoostMR(), rounds=GRID, cv=3, random_state=0).fit(X, sets)
    assert_array_equal(search.classes_, [*names, "only here"])
    assert search.rank(X[:3], top=2).dtype.kind == "U"


def test_weights_and_scorers_may_be_functions():
    seen = []

    def weigh(labels):
        seen.append(len(labels))
        return instance_weights(labels)

    search = StagedSearchCV(
        AdaBoostMH(weight=weigh), rounds=[3], cv=2, scoring=lambda r, X, Y: float(len(r.rank(X)))
    ).fit(X, Y)
    assert search.best_score_ == 60
    named = StagedSearchCV(AdaBoostMH(), rounds=[3], cv=2).fit(X, Y)
    assert_allclose(search.decision_function(X), named.decision_function(X))


def test_sample_weights_reach_fits_and_scores():
    counts = RNG.integers(1, 3, 120)
    folds = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
    weighted = StagedSearchCV(AdaBoostMH(), rounds=GRID, cv=folds).fit(X, Y, counts)
    twice = np.repeat(np.arange(120), counts)
    spread = [tuple(np.flatnonzero(np.isin(twice, part)) for part in fold) for fold in folds]
    repeated = StagedSearchCV(AdaBoostMH(), rounds=GRID, cv=spread).fit(X[twice], Y[twice])
    assert_allclose(
        weighted.cv_results_["mean_test_score"], repeated.cv_results_["mean_test_score"]
    )


def test_what_cannot_be_staged_is_refused():
    with pytest.raises(ValueError, match="fit_stages and staged_decision_function, as boosted"):
        StagedSearchCV(LogisticRanker()).fit(X, Y)
    with pytest.raises(ValueError, match="rounds must hold at least one number"):
        StagedSearchCV(AdaBoostMH(), rounds=[]).fit(X, Y)
    with pytest.raises(ValueError, match="each value of rounds must be a positive integer; got 0"):
        StagedSearchCV(AdaBoostMH(), rounds=[0, 1]).fit(X, Y)
    with pytest.raises(ValueError, match="unknown scoring 'luck'"):
        StagedSearchCV(AdaBoostMH(), scoring="luck").fit(X, Y)
    with pytest.raises(ValueError, match="patience must be at least 1, or None; got 0"):
        StagedSearchCV(AdaBoostMH(), patience=0).fit(X, Y)
