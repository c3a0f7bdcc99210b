"""Boosted trees against boosting written down as defined, and what their options promise."""

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import deltarank.boosting.places as places
import slow_trees
from deltarank import (
    AdaBoostRanker,
    BoostedTreeRanker,
    StagedSearchCV,
    explain,
    instance_weights,
    load,
    rank_loss,
    save,
    top_features,
)
from deltarank.core.losses import LOSSES
from deltarank.datasets import SyntheticModel
from deltarank.gradient_trees.kernels.cells import NUMBERS, add_up

RNG = np.random.default_rng(0)
N, M = 90, 5
X = np.round(RNG.normal(size=(N, 4)), 1)
X[:, 3] = RNG.integers(0, 2, N)
Y = (X @ RNG.normal(size=(4, M)) + RNG.normal(size=(N, M)) > 0.5).astype(float)
HOLES = X.copy()
HOLES[RNG.random(X.shape) < 0.2] = np.nan
UNKNOWN = np.where(RNG.random(Y.shape) < 0.2, np.nan, Y)
# Rows of different weights, so that no two splits are equal but for rounding.
SAMPLE_WEIGHT = RNG.exponential(size=N) + 0.1
W = instance_weights(Y) * SAMPLE_WEIGHT
# As training weighs them: of mean 1 over the rows with a pair.
W /= np.average(instance_weights(Y)[W > 0], weights=SAMPLE_WEIGHT[W > 0])
COUNTED = W > 0
LIMITS = {"max_leaves": 6, "min_child_weight": 3.0, "learning_rate": 0.3}
FEW = {**LIMITS, "linear_scores": False}
LOSS_NAMES = list(slow_trees.STARTS)
DRAWN_SO_FAR = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def the_same_draws_in_any_order():
    """Let no test depend on what others have drawn."""
    RNG.bit_generator.state = DRAWN_SO_FAR


@pytest.mark.parametrize("data", [X, HOLES], ids=["whole", "missing"])
@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_ten_rounds_are_as_defined(loss, data):
    ranker = BoostedTreeRanker(n_trees=10, loss=loss, **FEW).fit(data, Y, SAMPLE_WEIGHT)
    slow = slow_trees.Trees(data[COUNTED], Y[COUNTED], W[COUNTED], loss=loss, **LIMITS)
    for stage, scores in enumerate(ranker.staged_decision_function(data[COUNTED]), 1):
        slow.round()
        assert_allclose(scores, slow.scores, atol=1e-10, err_msg=f"round {stage}")
    assert_allclose(ranker.base_, slow.base, atol=1e-12)
    others = np.round(RNG.normal(size=(50, 4)), 2)
    others[RNG.random(others.shape) < 0.1] = np.nan
    assert_allclose(ranker.decision_function(others), slow.score(others), atol=1e-10)


@pytest.mark.parametrize("cost", [1.0, 3.0])
def test_unknown_labels_are_cells_without_gradient(cost):
    ranker = BoostedTreeRanker(n_trees=10, positive_cost=cost, weight=lambda _: W, **FEW)
    ranker.fit(X, UNKNOWN)
    slow = slow_trees.Trees(
        X[COUNTED], UNKNOWN[COUNTED], W[COUNTED] / W[COUNTED].mean(), cost=cost, **LIMITS
    )
    for _ in range(10):
        slow.round()
    assert_allclose(ranker.decision_function(X[COUNTED]), slow.scores, atol=1e-10)


def test_a_balance_is_a_cost_of_relevant_cells_where_rows_have_as_many_labels():
    two = np.zeros_like(Y)
    two[np.arange(N)[:, None], np.argsort(-(X @ RNG.normal(size=(4, M))), axis=1)[:, :2]] = 1
    # Without a penalty nothing but the ratio of the cells' weights counts.
    options = {"n_trees": 5, "max_leaves": 4, "l2": 1e-12, "min_child_weight": 1e-9}
    options["linear_scores"] = False
    balanced = BoostedTreeRanker(balance=0.5, **options).fit(X, two, SAMPLE_WEIGHT)
    costly = BoostedTreeRanker(positive_cost=(3 / 2) ** 0.5, **options).fit(X, two, SAMPLE_WEIGHT)
    assert_allclose(balanced.decision_function(X), costly.decision_function(X), atol=1e-8)
    plain = BoostedTreeRanker(**options).fit(X, two, SAMPLE_WEIGHT)
    assert np.abs(balanced.decision_function(X) - plain.decision_function(X)).max() > 0.1


def test_splits_of_many_labels_are_found_on_a_sketch():
    many = np.tile(Y, 5)[:, :20].copy()
    flipped = RNG.random(many.shape) < 0.2
    many[flipped] = 1 - many[flipped]
    ranker = BoostedTreeRanker(
        n_trees=10, weight="uniform", sketch_size=4, random_state=np.random.default_rng(7), **FEW
    ).fit(X, many)
    generator = np.random.default_rng(7)
    slow = slow_trees.Trees(
        X, many, np.ones(N), draw=lambda: generator.standard_normal((20, 4)) / 2, **LIMITS
    )
    for _ in range(10):
        slow.round()
    assert_allclose(ranker.decision_function(X), slow.scores, atol=1e-10)


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kernels_take_the_derivatives_of_the_losses(loss, dtype):
    scores = RNG.normal(size=(6, 16), scale=3).astype(dtype)
    signs = RNG.integers(-1, 2, scores.shape).astype(np.int8)
    weights, costs = RNG.random((2, 6)).astype(dtype)
    found = np.empty((3, 2, 16))
    rows = np.array([4, 0, 5], np.int32)
    add_up(NUMBERS[loss], rows, np.arange(4), scores, signs, weights, costs, found)
    found = found.transpose(1, 0, 2)
    margin = signs[rows] * scores[rows].astype(float)
    cell = weights[rows, None] * np.where(signs[rows] > 0, costs[rows, None], np.abs(signs[rows]))
    slope = LOSSES[loss].value_and_derivative(margin)[1]
    tolerance = 1e-12 if dtype is np.float64 else 3e-5
    assert_allclose(found[0], cell * signs[rows] * slope, rtol=tolerance, atol=tolerance)
    curvature = cell * LOSSES[loss].curvature(margin)
    assert_allclose(found[1], curvature, rtol=tolerance, atol=tolerance)


def test_what_a_sparse_matrix_does_not_store_are_zeros():
    thin = np.where(np.abs(X) > 0.8, X, 0)
    thin[3, 0] = np.nan
    dense, listed = (
        BoostedTreeRanker(n_trees=20, **FEW).fit(form(thin), Y, SAMPLE_WEIGHT)
        for form in (np.asarray, sparse.csr_array)
    )
    assert_array_equal(dense.features_, listed.features_)
    assert_allclose(dense.thresholds_, listed.thresholds_)
    assert_allclose(
        listed.decision_function(sparse.csr_array(thin)), dense.decision_function(thin), atol=1e-10
    )


def test_float32_of_large_data_is_close_to_float64(monkeypatch):
    exact = BoostedTreeRanker(n_trees=20, **FEW).fit(X, Y, SAMPLE_WEIGHT)
    monkeypatch.setattr(places, "FLOAT64_CELLS", 0)
    short = BoostedTreeRanker(n_trees=20, **FEW).fit(X, Y, SAMPLE_WEIGHT)
    assert (exact.values_.dtype, short.values_.dtype) == (np.float64, np.float32)
    assert_array_equal(short.features_, exact.features_)
    assert_allclose(short.decision_function(X), exact.decision_function(X), atol=1e-4)


def test_a_fit_goes_on_from_the_last():
    whole = BoostedTreeRanker(n_trees=12, **FEW).fit(X, Y)
    parts = BoostedTreeRanker(n_trees=5, warm_start=True, **FEW).fit(X, Y)
    parts.set_params(n_trees=12).fit(X, Y)
    # Sketches are scaled by curvatures of the round before, which a new fit computes afresh.
    assert parts.n_trees_ == 12
    first = next(whole.staged_decision_function(X, at=[5]))
    assert_allclose(next(parts.staged_decision_function(X, at=[5])), first, atol=1e-12)
    assert rank_loss(Y, parts.decision_function(X)) < rank_loss(Y, first)
    with pytest.raises(ValueError, match=r"12 trees of the last fit.*at least as many; got 3"):
        parts.set_params(n_trees=3).fit(X, Y)
    parts.set_params(n_trees=20)
    with pytest.raises(ValueError, match=r"fit of 4 features.* got 3"):
        parts.fit(X[:, :3], Y)
    with pytest.raises(ValueError, match="labels of the last fit"):
        parts.fit(X, Y[:, :4])


def test_stages_are_fits_of_fewer_trees():
    ranker = BoostedTreeRanker(n_trees=9, random_state=0, row_share=0.6, **FEW)
    stages = [
        (fitted.n_trees_, fitted.decision_function(X))
        for fitted in ranker.fit_stages(X, Y, stages=[2, 9])
    ]
    for n_trees, scores in stages:
        alone = BoostedTreeRanker(n_trees=n_trees, random_state=0, row_share=0.6, **FEW).fit(X, Y)
        assert_array_equal(alone.decision_function(X), scores)
    staged = list(ranker.staged_decision_function(X, at=[2, 9]))
    assert_allclose(staged, [scores for _, scores in stages], atol=1e-12)
    search = StagedSearchCV(BoostedTreeRanker(**FEW), rounds=[2, 9], cv=2, random_state=0)
    assert search.fit(X, Y).best_ranker_.n_trees_ == search.best_rounds_


def test_early_stopping_keeps_the_trees_of_the_lowest_loss():
    model = SyntheticModel.random(n_labels=6, random_state=0)
    rows, labels = model.sample(600, random_state=1)
    ranker = BoostedTreeRanker(n_trees=400, learning_rate=0.5, early_stopping=10, random_state=0)
    ranker.fit(rows, labels)
    assert 1 <= ranker.n_trees_ < 390
    fresh, theirs = model.sample(5000, random_state=2)
    unstopped = BoostedTreeRanker(n_trees=400, learning_rate=0.5, random_state=0).fit(rows, labels)
    assert ranker.score(fresh, theirs) > unstopped.score(fresh, theirs)
    with pytest.raises(ValueError, match="early_stopping chooses the number of trees"):
        next(ranker.fit_stages(rows, labels, stages=[1, 2]))
    with pytest.raises(ValueError, match="at least 2 rows that count; got 1"):
        ranker.fit([[1.0], [2.0]], [{"a"}, {"b"}], sample_weight=[1, 0])


def test_trees_learn_what_features_do_only_together():
    rows = RNG.normal(size=(2000, 3))
    same_sign = rows[:, 0] * rows[:, 1] > 0
    labels = np.stack([same_sign, ~same_sign], axis=1).astype(int)
    # A first split gains nothing by itself, but by chance: enough trees find it.
    trees = BoostedTreeRanker(n_trees=60, random_state=0).fit(rows[:1500], labels[:1500])
    stumps = AdaBoostRanker(n_stumps=60).fit(rows[:1500], labels[:1500])
    assert trees.score(rows[1500:], labels[1500:]) > 0.9
    assert stumps.score(rows[1500:], labels[1500:]) < 0.7


@pytest.mark.parametrize(
    "extra", [{}, {"positive_cost": 4.0}, {"loss": "exponential"}, {"loss": "squared"}], ids=str
)
def test_scores_estimate_the_chances(extra):
    rows = RNG.normal(size=(6000, 2))
    chances = 1 / (1 + np.exp(-np.sin(2 * rows) @ RNG.normal(size=(2, 5))))
    labels = (RNG.random(chances.shape) < chances).astype(int)
    ranker = BoostedTreeRanker(
        n_trees=80, max_leaves=8, weight=lambda labels: np.ones(len(labels)), **extra
    ).fit(rows, labels)
    errors = np.abs(ranker.marginal_weights(rows) - chances)
    spread = np.abs(chances.mean(axis=0) - chances)
    assert errors.mean() < 0.05 < spread.mean() / 2


def test_shares_are_drawn_anew_for_each_tree():
    wide = RNG.normal(size=(200, 10))
    labels = (wide[:, :5] + RNG.normal(size=(200, 5)) > 0.5).astype(int)
    options = {"n_trees": 30, "feature_share": 0.3, "row_share": 0.5}
    one, same, other = (
        BoostedTreeRanker(**options, random_state=seed).fit(wide, labels) for seed in (0, 0, 1)
    )
    assert_array_equal(one.decision_function(wide), same.decision_function(wide))
    assert (one.decision_function(wide) != other.decision_function(wide)).any()
    nodes = np.split(one.features_, one.roots_[1:][one.roots_[1:] >= 0])
    assert max(len(set(features)) for features in nodes) <= 3
    assert len(set(one.features_)) > 5
    n_drawn = one.leaf_weights_.sum() / one.n_trees_
    assert 0.35 * 200 < n_drawn < 0.65 * 200


def test_trees_stay_within_their_limits():
    ranker = BoostedTreeRanker(n_trees=10, max_depth=2, min_child_weight=1e-3).fit(X, Y)
    assert len(ranker.values_) <= 4 * 10
    ranker = BoostedTreeRanker(n_trees=10, max_leaves=3, min_child_weight=1e-3).fit(X, Y)
    assert len(ranker.values_) == 3 * 10
    heavy = BoostedTreeRanker(n_trees=4, min_child_weight=1e6).fit(X, Y)
    assert (heavy.roots_ < 0).all()
    assert np.ptp(heavy.decision_function(X), axis=0).max() == 0


def test_labels_never_or_always_relevant_have_their_place():
    ends = np.column_stack([np.zeros(N), Y, np.ones(N)])
    ranker = BoostedTreeRanker(n_trees=5).fit(X, ends)
    ranked = ranker.rank(X)
    assert (ranked[:, 0] == M + 1).all()
    assert (ranked[:, -1] == 0).all()


def test_importances_are_shares_of_the_gains():
    rows = RNG.normal(size=(300, 4))
    labels = np.stack([rows[:, 2] > 0, rows[:, 2] < 0.5], axis=1).astype(int)
    importances = BoostedTreeRanker(n_trees=10).fit(rows, labels).feature_importances_
    assert importances.argmax() == 2
    assert importances[2] > 0.9
    assert_allclose(importances.sum(), 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_trees": 0}, "n_trees must be a positive integer; got 0"),
        ({"learning_rate": 1.5}, "learning_rate must be above 0 and at most 1; got 1.5"),
        ({"row_share": "half"}, "row_share must be above 0 and at most 1; got 'half'"),
        ({"feature_share": 0}, "feature_share must be above 0"),
        ({"max_leaves": 1}, "max_leaves must be at least 2; got 1"),
        ({"max_depth": 0}, "max_depth must be a positive integer"),
        ({"bins": 300}, "bins must be from 2 to 256; got 300"),
        ({"sketch_size": 16}, "sketch_size must be from 1 to 15; got 16"),
        ({"l2": 0}, "l2 must be positive"),
        ({"min_child_weight": -1}, "min_child_weight must be positive"),
        ({"loss": "hinge"}, "unknown loss 'hinge'; choose one of exponential, logistic"),
        ({"positive_cost": 0}, "positive_cost must be positive"),
        ({"balance": 2}, "balance must be a number from 0 to 1"),
        ({"linear_scores": "yes"}, "linear_scores must be True or False; got 'yes'"),
        ({"early_stopping": 0}, "early_stopping must be a positive integer"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        BoostedTreeRanker(**options).fit(X, Y)


def test_a_fit_without_room_is_refused_before_it_begins():
    with pytest.raises(MemoryError, match=r"trees of 90 leaves.*use smaller n_trees, max_leaves"):
        BoostedTreeRanker(n_trees=10**10, max_leaves=1000).fit(X, Y)


def test_a_file_gives_the_same_scores_and_no_broken_trees(tmp_path):
    ranker = BoostedTreeRanker(n_trees=6, **FEW).fit(HOLES, Y)
    save(ranker, tmp_path / "trees.delta")
    loaded = load(tmp_path / "trees.delta")
    assert_array_equal(loaded.decision_function(HOLES), ranker.decision_function(HOLES))
    for name, value in (("children_", 10**6), ("roots_", -(10**6)), ("children_", 0)):
        broken = BoostedTreeRanker(n_trees=6, **FEW).fit(HOLES, Y)
        getattr(broken, name).flat[-1] = value
        save(broken, tmp_path / "broken.delta")
        with pytest.raises(ValueError, match="children_ and roots_ are not those of trees"):
            load(tmp_path / "broken.delta")


def expected_value(ranker, node, row, known, label):
    """The mean value below a node, where features that are not known send rows both ways."""
    if node < 0:
        return ranker.values_[~node, label]
    feature, (left, right) = ranker.features_[node], ranker.children_[node]
    if feature in known:
        is_left = ranker.missing_left_[node]
        if not np.isnan(row[feature]):
            is_left = row[feature] <= ranker.thresholds_[node]
        return expected_value(ranker, left if is_left else right, row, known, label)
    weights = [weight_below(ranker, child) for child in (left, right)]
    values = [expected_value(ranker, child, row, known, label) for child in (left, right)]
    return np.average(values, weights=weights)


def weight_below(ranker, node):
    if node < 0:
        return ranker.leaf_weights_[~node]
    return sum(weight_below(ranker, child) for child in ranker.children_[node])


def test_features_add_their_shapley_values():
    options = {"n_trees": 3, "max_leaves": 8, "min_child_weight": 1.0, "linear_scores": False}
    ranker = BoostedTreeRanker(**options).fit(HOLES, Y)
    row, n = HOLES[np.isnan(HOLES).any(axis=1)][0], HOLES.shape[1]
    orders = list(permutations(range(n)))
    wanted = np.zeros((2, n))
    for which, label in enumerate((0, 3)):

        def value(known, label=label):
            return sum(expected_value(ranker, root, row, known, label) for root in ranker.roots_)

        for order in orders:
            for place, feature in enumerate(order):
                before = set(order[:place])
                wanted[which, feature] += value(before | {feature}) - value(before)
    found = explain(ranker, row, 0, 3)
    assert_allclose(found.contributions, (wanted[0] - wanted[1]) / len(orders), atol=1e-12)
    scores = ranker.decision_function(row[None])[0]
    assert_allclose(found.difference, scores[0] - scores[3], atol=1e-12)


def test_the_effect_of_a_feature_is_how_its_splits_differ():
    rows = np.array([[0.0], [1.0]] * 10)
    ranker = BoostedTreeRanker(n_trees=1, learning_rate=1.0, min_child_weight=1.0).fit(
        rows, [{"low"}, {"high"}] * 10
    )
    low, high = ranker.decision_function([[0.0], [1.0]])[:, 0]
    ((feature, effect),) = top_features(ranker, "high")
    assert feature == 0
    assert_allclose(effect, high - low)
