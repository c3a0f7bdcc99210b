"""Explanations add up to the difference of scores, for every ranker that has any."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from deltarank import (
    AdaBoostMH,
    AdaBoostMR,
    AdaBoostRanker,
    BoostedTreeRanker,
    KernelLogisticRanker,
    LabelTreeRanker,
    LogisticRanker,
    LogisticRankerCV,
    LogLinearRanker,
    PairwiseRanker,
    StagedSearchCV,
    explain,
    top_features,
)
from deltarank.explanations import Explanation

RANKERS = [
    LogisticRanker(C=10),
    LogisticRankerCV(Cs=[0.1, 1], cv=2, random_state=0),
    PairwiseRanker(),
    LogLinearRanker(n_iterations=20),
    BoostedTreeRanker(n_trees=10),
    AdaBoostRanker(n_stumps=20),
    AdaBoostRanker(n_stumps=1),
    AdaBoostRanker(n_stumps=10, criterion="z", votes="real"),
    AdaBoostMR(n_stumps=30),
    AdaBoostMH(n_stumps=30, votes="real"),
    StagedSearchCV(AdaBoostMH(), rounds=[5, 20], cv=2, random_state=0),
]
NAMES = ["never", "a", "b", "c", "always"]


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(3)
    X = generator.normal(size=(120, 6)) * [1, 10, 0.1, 1, 1, 1]
    Y = (X[:, :3] + generator.normal(size=(120, 3)) > 0).astype(int)
    Y = np.column_stack([np.zeros(120, int), Y, np.ones(120, int)])
    return X, pd.DataFrame(Y, columns=NAMES)


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: f"{type(r).__name__}")
def test_contributions_add_up_to_the_difference_of_scores(ranker, data):
    X, Y = data
    ranker.fit(X, Y)
    scores = ranker.decision_function(X[:4])
    for row in range(4):
        for a, b in [("a", "b"), ("b", "c"), ("c", "a")]:
            found = explain(ranker, X[row], a, b)
            wanted = scores[row, NAMES.index(a)] - scores[row, NAMES.index(b)]
            np.testing.assert_allclose(found.difference, wanted, rtol=1e-12, atol=1e-12)
            assert found.contributions.shape == (6,)


@pytest.mark.parametrize("n_trees", [1, 3])
def test_features_add_up_to_the_scores_of_a_label_tree(n_trees, data):
    X, Y = data
    X = X.astype(np.float32).astype(np.float64)  # as trees see them
    options = {"C": 1.0, "arity": 2, "leaf_size": 1, "n_trees": n_trees, "random_state": 0}
    ranker = LabelTreeRanker(**options).fit(X, Y)
    scores = ranker.decision_function(np.vstack([X[:4], np.zeros(6), np.eye(6)]))
    for row in range(4):
        found = explain(ranker, X[row], "a", "b")
        np.testing.assert_allclose(found.difference, scores[row, 1] - scores[row, 2], rtol=1e-9)
        np.testing.assert_allclose(found.intercept, scores[4, 1] - scores[4, 2], rtol=1e-9)
    effects = dict(top_features(ranker, "c", None))
    gained = scores[5:, 3] - scores[4, 3]
    np.testing.assert_allclose([effects.get(j, 0.0) for j in range(6)], gained, atol=1e-12)


def test_what_a_feature_adds_in_a_label_tree_is_its_mean_slope_on_the_way_from_zeros(data):
    X, Y = data
    ranker = LabelTreeRanker(C=1.0, arity=2, leaf_size=1, random_state=0).fit(X, Y)
    row, step = X[0].astype(np.float32).astype(np.float64), 2.0**-6
    ways = (np.arange(2000) + 0.5) / 2000
    for j in range(6):
        up, down = (np.outer(ways, row) + side * step * np.eye(6)[j] for side in (1, -1))
        slopes = (ranker.decision_function(up) - ranker.decision_function(down)) / (2 * step)
        found = explain(ranker, row, "a", "b").contributions[j]
        np.testing.assert_allclose(found, row[j] * (slopes[:, 1] - slopes[:, 2]).mean(), rtol=1e-2)


@pytest.mark.parametrize("ranker", [*RANKERS, LabelTreeRanker()], ids=lambda r: type(r).__name__)
def test_a_label_never_or_always_relevant_is_explained_by_no_feature(ranker, data):
    X, Y = data
    ranker.fit(X, Y)
    found = explain(ranker, X[0], "always", "never")
    assert not found.contributions.any()
    assert found.difference == 2e30
    assert top_features(ranker, "never") == []


@pytest.mark.parametrize(
    "ranker",
    [
        LogisticRanker(),
        AdaBoostRanker(n_stumps=9),
        AdaBoostMR(n_stumps=9),
        BoostedTreeRanker(n_trees=9),
    ],
    ids=lambda r: type(r).__name__,
)
def test_two_classes_share_a_score_with_opposite_signs(ranker, data):
    X, Y = data
    y = np.where(Y["a"], "yes", "no")
    score = ranker.fit(X, y).decision_function(X[:1])[0]
    np.testing.assert_allclose(explain(ranker, X[0], "yes", "no").difference, 2 * score, rtol=1e-12)
    np.testing.assert_allclose(
        explain(ranker, X[0], "no", "yes").difference, -2 * score, rtol=1e-12
    )


def test_numbers_that_binary_fractions_hold_add_up_to_the_last_bit():
    ranker = LogisticRanker().fit(np.eye(3), [{"a"}, {"b"}, {"c"}])
    ranker.coef_ = np.array([[1.5, -2, 0.25], [0.5, 4, -8], [0, 0, 0]])
    ranker.intercept_ = np.array([0.125, -3.0, 0])
    found = explain(ranker, [2, 0.5, -4], "a", "b", feature_names=["x", "y", "z"])
    assert found.contributions.tolist() == [2.0, -3.0, -33.0]
    assert (found.intercept, found.difference) == (3.125, -30.875)
    assert found.largest(2) == [("z", -33.0), ("y", -3.0)]
    assert top_features(ranker, "b", 2) == [(2, -8.0), (1, 4.0)]


def test_sparse_rows_missing_values_and_frames_are_explained_like_any_other(data):
    X, Y = data
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    linear = LogisticRanker().fit(frame, Y)
    found = explain(linear, frame.iloc[[5]], "a", "b")
    assert list(found.features) == list("uvwxyz")
    thin = np.where(np.abs(X) > 1, X, 0)
    ranker = LogisticRanker().fit(sparse.csr_array(thin), Y.to_numpy())
    found = explain(ranker, sparse.csr_array(thin[:1]), 1, 2)
    np.testing.assert_array_equal(found.contributions[thin[0] == 0], 0)
    with_gaps = np.where(X > 1.5, np.nan, X)
    boosted = AdaBoostRanker(n_stumps=30).fit(with_gaps, Y)
    gap = int(np.flatnonzero(np.isnan(with_gaps).any(axis=1))[0])
    scores = boosted.decision_function(with_gaps[[gap]])[0]
    found = explain(boosted, with_gaps[gap], "a", "b")
    np.testing.assert_allclose(found.difference, scores[1] - scores[2], rtol=1e-12)


@pytest.mark.parametrize("ranker", RANKERS[5:], ids=lambda r: type(r).__name__)
def test_the_effect_of_a_feature_on_stumps_is_the_largest_change_as_it_rises(ranker, data):
    X, Y = data
    ranker.fit(X, Y)
    grid = np.unique(X[:, 1])
    rows = np.zeros((len(grid), 6))
    rows[:, 1] = grid
    scores = ranker.decision_function(rows)[:, NAMES.index("b")]
    changes = scores[None] - scores[:, None]
    changes = changes[np.triu_indices(len(grid))]
    wanted = changes[np.abs(changes).argmax()]
    found = dict(top_features(ranker, "b", None))
    np.testing.assert_allclose(found.get(1, 0.0), wanted, rtol=1e-9)


def test_what_cannot_be_explained_is_refused_with_a_reason(data):
    X, Y = data
    kernel = KernelLogisticRanker(n_landmarks=10, gamma=0.1, C=1.0).fit(X, Y)
    with pytest.raises(ValueError, match="label trees can be explained; got KernelLogisticRanker"):
        explain(kernel, X[0], "a", "b")
    ranker = LogisticRanker().fit(X, Y)
    with pytest.raises(ValueError, match="unknown label 'd'; the labels are 'never', 'a'"):
        explain(ranker, X[0], "a", "d")
    with pytest.raises(ValueError, match="x must be one row; got 2"):
        explain(ranker, X[:2], "a", "b")
    with pytest.raises(ValueError, match="feature_names must have 6 names; got 1"):
        top_features(ranker, "a", feature_names=["u"])
    with pytest.raises(ValueError, match="n must be a positive integer; got 0"):
        top_features(ranker, "a", 0)


def test_an_explanation_reads_as_a_table_whose_lines_add_up():
    values = np.array([0.5, -2.0, *([0.25] * 11)])
    found = Explanation([f"f{j}" for j in range(13)], values, 1.0, ("a", "b"))
    heading, *lines = repr(found).splitlines()
    assert heading.split() == ["what", "puts", "a", "above", "b", "adds"]
    assert lines[0].split() == ["f1", "-2.000"]
    assert lines[-3].split() == ["(3", "other", "features)", "+0.7500"]
    *parts, difference = (float(line.split()[-1]) for line in lines)
    assert sum(parts) == difference == found.difference
    assert len({len(line) for line in (heading, *lines)}) == 1, "numbers end in one column"


def test_names_of_others_command_neither_terminals_nor_notebooks():
    found = Explanation(["<b>\x1b[2J"], np.ones(1), 0.0, ("<i>", "b"))
    assert "\x1b" not in repr(found)
    assert "&lt;b&gt;" in found._repr_html_()
    assert "<i>" not in found._repr_html_()


def test_an_explanation_knows_its_labels(data):
    X, Y = data
    assert explain(LogisticRanker().fit(X, Y), X[0], "a", "b").labels == ("a", "b")
