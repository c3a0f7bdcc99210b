"""Rows with unknown labels weigh the mean of w(y) over what these may be: by enumeration."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from deltarank import (
    AdaBoostRanker,
    KernelLogisticRanker,
    LogisticRanker,
    LogisticRankerCV,
    instance_weights,
    rank_loss,
)
from deltarank.core import memory
from deltarank.core.completion import completed, soft_targets
from deltarank.core.labels import label_sets
from deltarank.linear.unknown import _require_room
from deltarank.theory import LabelDistribution
from oracles import all_label_sets, inverse_pairs

WEIGHTS = {
    "rank": inverse_pairs,
    "uniform": lambda y: float(0 < sum(y) < len(y)),
    "recall": lambda y: 1 / sum(y) if 0 < sum(y) < len(y) else 0.0,
    "min": lambda y: 1 / min(sum(y), len(y) - sum(y)) if 0 < sum(y) < len(y) else 0.0,
}


def means_by_enumeration(y, chances, weigh):
    """E[w(Y) | known labels] and E[w(Y) Y | known labels]: all completions, times their chances."""
    unknown = np.flatnonzero(np.isnan(y))
    total, relevant = 0.0, np.zeros(len(y))
    for values in product((0, 1), repeat=len(unknown)):
        filled = np.array(y)
        filled[unknown] = values
        chance = np.prod([p if v else 1 - p for v, p in zip(values, chances[unknown], strict=True)])
        total += chance * weigh(filled.astype(int))
        relevant += chance * weigh(filled.astype(int)) * filled
    if len(unknown) == len(y):
        return 0.0, 0 * relevant  # nothing is known, and no loss is in the row
    return total, relevant


def mean_weight_by_enumeration(y, chances, weigh):
    return means_by_enumeration(y, chances, weigh)[0]


@pytest.mark.parametrize("weight", WEIGHTS)
@given(
    cells=st.lists(
        st.tuples(st.sampled_from([0.0, 1.0, np.nan]), st.floats(0, 1)), min_size=1, max_size=6
    )
)
def test_they_are_means_over_all_completions(weight, cells):
    y, chances = (np.array(column) for column in zip(*cells, strict=True))
    found = instance_weights([y], weight, normalize=False, chances=[chances])
    assert_allclose(found[0], mean_weight_by_enumeration(y, chances, WEIGHTS[weight]), atol=1e-13)


def test_chances_of_known_labels_do_not_matter():
    Y = np.array([[1, 0, np.nan, 0], [0, 1, 1, 0.0]])
    chances = np.full(Y.shape, 0.3)
    others = np.where(np.isnan(Y), 0.3, np.nan)
    one = instance_weights(Y, chances=chances)
    assert_allclose(one, instance_weights(Y, chances=others))
    complete = Y[1:]
    assert_allclose(instance_weights(complete, chances=others[1:]), instance_weights(complete))


def limits(p, known, expected):
    """What each label's weighted fit on its known rows tends to, by enumeration.

    `known` is the chance of every set of known labels, which does not depend on the labels.
    """
    m = len(p)
    relevant, total = np.zeros(m), np.zeros(m)
    for y in all_label_sets(m):
        chance = np.prod(np.where(y, p, 1 - p))
        for pattern, share in known.items():
            judged = np.where(pattern, y, np.nan)
            if expected:
                w = mean_weight_by_enumeration(judged, p, inverse_pairs)
            else:
                w = inverse_pairs(y[np.array(pattern)])
            total += chance * share * w * np.array(pattern)
            relevant += chance * share * w * np.array(pattern) * y
    return relevant / total


@given(seed=st.integers(0, 2**32 - 1), m=st.integers(2, 4))
@settings(max_examples=40)
def test_the_limit_of_every_label_is_its_weighted_chance_whichever_labels_are_hidden(seed, m):
    generator = np.random.default_rng(seed)
    p = generator.uniform(0.02, 0.98, m)
    shares = generator.dirichlet(np.ones(2**m))
    patterns = dict(zip(product((False, True), repeat=m), shares, strict=True))
    eta = LabelDistribution.independent(p).relevances()
    assert_allclose(limits(p, patterns, expected=True), eta, atol=1e-12)


@given(
    rows=st.lists(
        st.lists(
            st.tuples(st.sampled_from([0.0, 1.0, np.nan]), st.floats(0, 1)), min_size=4, max_size=4
        ),
        min_size=1,
        max_size=3,
    )
)
def test_completed_rows_share_weight_and_relevance_as_the_completions_do(rows):
    cells = np.array(rows)
    Y, chances = cells[..., 0], cells[..., 1]
    labels = label_sets(Y)
    if labels.unknown is None:
        return
    means, targets = soft_targets(labels, chances[np.isnan(Y)], "rank")
    found = completed(labels, targets)
    masses = means[found.rows] * found.shares
    matrix = found.labels.to_csr().toarray()
    for i, (y, p) in enumerate(zip(Y, chances, strict=True)):
        own = found.rows == i
        assert own.sum() <= np.isnan(y).sum() + 1
        weight, relevant = means_by_enumeration(y, p, inverse_pairs)
        assert_allclose(masses[own].sum(), weight, atol=1e-12)
        assert_allclose(masses[own] @ matrix[own], relevant, atol=1e-12)


def looked_at(y, pattern):
    """The chance that these labels are looked at: the second mostly where the first is relevant."""
    if not (pattern[0] and pattern[2]):
        return 0.0
    share = 0.9 if y[0] else 0.2
    return share if pattern[1] else 1 - share


def test_completed_rows_are_right_also_where_labels_are_looked_at_because_of_others():
    """The tower property, by enumeration; weights alone are not enough there."""
    p = np.array([0.5, 0.45, 0.4])
    eta = LabelDistribution.independent(p).relevances()
    soft, alone = np.zeros((2, 3)), np.zeros((2, 3))
    for y in all_label_sets(3):
        for pattern in product((False, True), repeat=3):
            chance = np.prod(np.where(y, p, 1 - p)) * looked_at(y, pattern)
            judged = np.where(pattern, y, np.nan)
            weight, relevant = means_by_enumeration(judged, p, inverse_pairs)
            soft += chance * np.stack([relevant, np.full(3, weight)])
            known = np.array(pattern)
            alone += chance * weight * np.stack([y * known, known])
    assert_allclose(soft[0] / soft[1], eta, atol=1e-12)
    assert abs(alone[0] / alone[1] - eta)[1] > 0.05


def test_a_completed_fit_is_right_where_labels_are_looked_at_because_of_others():
    p = np.array([0.5, 0.45, 0.4])
    generator = np.random.default_rng(2)
    Y = (generator.random((100_000, 3)) < p) * 1.0
    Y[generator.random(len(Y)) > np.where(Y[:, 0] == 1, 0.9, 0.2), 1] = np.nan
    X = np.zeros((len(Y), 1))
    eta = LabelDistribution.independent(p).relevances()
    errors = {
        rule: np.abs(LogisticRanker(unknown=rule).fit(X, Y).marginal_weights(X[:1])[0] - eta).max()
        for rule in ("completed", "expected")
    }
    assert errors["completed"] < 0.01
    assert errors["expected"] > 0.05


P = np.array([0.95, 0.20, 0.40])
HIDDEN = {(True, True, True): 0.3, (True, False, True): 0.7}


def test_the_known_part_alone_misorders_the_counterexample_in_the_limit():
    eta = LabelDistribution.independent(P).relevances()
    assert list(np.argsort(-eta)) == [0, 2, 1]
    assert list(np.argsort(-limits(P, HIDDEN, expected=True))) == [0, 2, 1]
    assert list(np.argsort(-limits(P, HIDDEN, expected=False))) == [0, 1, 2]


@pytest.fixture(scope="module")
def hidden():
    """The counterexample as data: the second label known at random in 30 % of 200,000 rows."""
    generator = np.random.default_rng(0)
    Y = (generator.random((200_000, 3)) < P) * 1.0
    judged = Y.copy()
    judged[generator.random(len(Y)) < 0.7, 1] = np.nan
    return np.zeros((len(Y), 1)), Y, judged


def test_a_fit_orders_the_counterexample_rightly_and_by_the_known_part_does_not(hidden):
    X, Y, judged = hidden
    losses = {}
    for rule in ("expected", "completed", "known_part"):
        ranker = LogisticRanker(unknown=rule).fit(X, judged)
        losses[rule] = rank_loss(Y, ranker.decision_function(X))
    complete = rank_loss(Y, LogisticRanker().fit(X, Y).decision_function(X))
    assert_allclose([losses["expected"], losses["completed"]], complete)
    assert losses["known_part"] > complete + 0.09


def test_boosting_may_be_given_the_expected_weights(hidden):
    X, _, judged = (array[:20_000] for array in hidden)
    chances = np.tile(np.nanmean(judged, axis=0), (len(judged), 1))
    means = instance_weights(judged, normalize=False, chances=chances)
    ranker = AdaBoostRanker(n_stumps=2, weight=lambda _: means).fit(X, judged)
    eta = LabelDistribution.independent(P).relevances()
    assert_allclose(ranker.marginal_weights(X[:1])[0], eta, atol=0.03)


N, M = 1500, 5
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 3))
TRUTH = (X @ RNG.normal(size=(3, M)) + RNG.logistic(size=(N, M)) > [-1, 0, 1, 1, 2]) * 1.0
Y = np.where(RNG.random((N, M)) < [0, 0.7, 0.1, 0.5, 0.3], np.nan, TRUTH)


def test_chances_are_those_of_logistic_regressions_on_known_rows():
    """The whole fit, label by label, with scikit-learn and enumeration."""
    chances = np.empty((N, M))
    for label in range(M):
        known = ~np.isnan(Y[:, label])
        model = LogisticRegression(C=2.0, tol=1e-10, max_iter=1000).fit(X[known], Y[known, label])
        chances[:, label] = model.predict_proba(X)[:, 1]
    rows = zip(Y, chances, strict=True)
    weights = np.array([mean_weight_by_enumeration(y, p, inverse_pairs) for y, p in rows])
    weights /= weights[weights > 0].mean()
    ranker = LogisticRanker(C=2.0, tol=1e-9).fit(X, Y)
    for label in range(M):
        known = ~np.isnan(Y[:, label])
        model = LogisticRegression(C=2.0, tol=1e-10, max_iter=1000)
        model.fit(X[known], Y[known, label], sample_weight=weights[known])
        assert_allclose(ranker.coef_[label], model.coef_[0], atol=2e-3)
        assert_allclose(ranker.intercept_[label], model.intercept_[0], atol=2e-3)


def test_rows_with_one_known_label_are_of_use():
    """By the known part they weigh nothing: there is no known pair in any of them."""
    alone = np.full((N, M), np.nan)
    kept = RNG.integers(0, M, N)
    alone[np.arange(N), kept] = TRUTH[np.arange(N), kept]
    ranker = LogisticRanker().fit(X, alone)
    complete = LogisticRanker().fit(X, TRUTH)
    loss, least = (rank_loss(TRUTH, r.decision_function(X)) for r in (ranker, complete))
    assert loss < least + 0.03


def test_a_sample_weight_of_two_is_the_row_given_twice():
    counts = RNG.integers(1, 3, N)
    one = LogisticRanker(tol=1e-9).fit(X, Y, sample_weight=counts)
    two = LogisticRanker(tol=1e-9).fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))
    assert_allclose(one.coef_, two.coef_, atol=1e-4)


def test_searches_and_kernels_have_the_same_rule():
    search = LogisticRankerCV(Cs=[1.0], cv=2, random_state=0, tol=1e-9).fit(X, Y)
    assert_allclose(search.coef_, LogisticRanker(tol=1e-9).fit(X, Y).coef_, atol=1e-4)
    options = {"gamma": 0.1, "C": 1.0, "n_landmarks": 20, "random_state": 0}
    scores = [
        KernelLogisticRanker(unknown=rule, **options).fit(X, Y).decision_function(X)
        for rule in ("expected", "known_part")
    ]
    assert np.abs(scores[0] - scores[1]).max() > 0.01


def test_without_unknown_labels_the_rule_changes_nothing():
    one, two = (LogisticRanker(unknown=rule).fit(X, TRUTH) for rule in ("expected", "known_part"))
    assert (one.coef_ == two.coef_).all()


def test_a_completed_fit_minimises_the_soft_targets_of_all_cells():
    """The whole fit with scikit-learn and enumeration: a relevant and an irrelevant copy a cell."""
    chances = np.empty((N, M))
    for label in range(M):
        known = ~np.isnan(Y[:, label])
        model = LogisticRegression(tol=1e-10, max_iter=1000).fit(X[known], Y[known, label])
        chances[:, label] = model.predict_proba(X)[:, 1]
    found = [means_by_enumeration(y, p, inverse_pairs) for y, p in zip(Y, chances, strict=True)]
    weights, relevant = np.array([w for w, _ in found]), np.array([r for _, r in found])
    scale = weights[weights > 0].mean()
    ranker = LogisticRanker(tol=1e-9, unknown="completed").fit(X, Y)
    for label in range(M):
        masses = np.concatenate([relevant[:, label], weights - relevant[:, label]]) / scale
        model = LogisticRegression(tol=1e-10, max_iter=1000)
        model.fit(np.tile(X, (2, 1)), np.repeat([1, 0], N), sample_weight=np.maximum(masses, 0))
        assert_allclose(ranker.coef_[label], model.coef_[0], atol=2e-3)
        assert_allclose(ranker.intercept_[label], model.intercept_[0], atol=2e-3)


def test_a_single_label_has_no_pair_and_is_fitted_where_it_is_known():
    column = Y[:, [1]]
    one, two = (LogisticRanker(unknown=rule).fit(X, column) for rule in ("completed", "known_part"))
    assert_allclose(one.coef_, two.coef_)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_are_not_completed_beyond_the_memory_there_is(form, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1000)
    labels = label_sets(Y)
    with pytest.raises(MemoryError, match=r"completing 1,500 rows to .* unknown='expected'"):
        _require_room(form(X), labels, np.arange(N))


def test_refusals():
    with pytest.raises(ValueError, match=r"several rows of one, which is not for a cross-valid"):
        LogisticRankerCV(unknown="completed").fit(X, Y)
    with pytest.raises(
        ValueError, match="unknown unknown 'ignored'; choose one of completed, expected"
    ):
        LogisticRanker(unknown="ignored").fit(X, Y)
    for unknown in ("expected", "completed"):
        with pytest.raises(ValueError, match=r"balance=0.5 counts .* unknown='known_part'"):
            LogisticRanker(balance=0.5, unknown=unknown).fit(X, Y)
    with pytest.raises(ValueError, match=r"balance=0.5 counts .* unknown='known_part'"):
        LogisticRankerCV(balances=[0, 0.5]).fit(X, Y)
    with pytest.raises(ValueError, match=r"chances must have shape \(1500, 5\)"):
        instance_weights(Y, chances=[0.5])
    with pytest.raises(ValueError, match="chances of unknown labels must be probabilities; got 2"):
        instance_weights(Y, chances=np.full(Y.shape, 2.0))
