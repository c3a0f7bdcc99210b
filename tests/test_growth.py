"""Going on with rows added: what is known of the old ones is what a pass over them would find."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone

from deltarank import LogisticRanker
from deltarank.core.labels import label_sets
from deltarank.linear import growth
from deltarank.linear.path import solve
from deltarank.linear.rows.local import LocalPass

RNG = np.random.default_rng(1)
N, N_OLD, D, M = 2400, 2200, 15, 10
X = RNG.normal(size=(N, D)) * 10.0 ** RNG.uniform(-2, 2, D) + RNG.normal(size=D)
Z = (X - X.mean(axis=0)) / X.std(axis=0)
Y = (Z @ RNG.normal(size=(D, M)) + 2 * RNG.logistic(size=(N, M)) > RNG.uniform(0, 6, M)) * 1
SPARSE = sparse.random_array((N, 40), density=0.1, format="csr", rng=RNG)
WEIGHTS = RNG.uniform(0.5, 2, N)


@pytest.fixture(autouse=True)
def passes(monkeypatch):
    """Fit by passes, whatever the size of the data; list which refits were recognised as grown."""
    monkeypatch.setattr("deltarank.linear.path.is_small", lambda *sizes: False)
    found = []

    def watched(*given, **options):
        found.append(growth.grown(*given, **options))
        return found[-1]

    monkeypatch.setattr("deltarank.linear.logistic.grown", watched)
    return found


def memory_of(X, Y, weights, **options):
    data = LocalPass.over(X, label_sets(Y), weights, **options)
    data.remembers = True
    solve(data, tol=1e-4, max_iter=100)
    return growth.remembered(data, None)


@pytest.mark.parametrize("options", [{}, {"penalize_intercept": True}, {"positive_cost": 3.0}])
@pytest.mark.parametrize("features", [X, np.asfortranarray(X.astype(np.float32)), SPARSE])
def test_values_and_gradients_are_those_of_a_pass_over_all_rows(features, options):
    """The old rows' weights have all changed alike, as they do when their mean is made one."""
    options = {"C": 2.0, **options}
    memory = memory_of(features[:N_OLD], Y[:N_OLD], WEIGHTS[:N_OLD], **options)
    data, state = growth.grown(memory, features, label_sets(Y), 1.25 * WEIGHTS, **options)
    expected = data.value_and_gradient(state.point, np.arange(M))
    assert_allclose(state.found.value, expected.value, rtol=1e-6)
    assert_allclose(state.found.diagonal, expected.diagonal, rtol=1e-5)
    size = np.abs(expected.gradient).max()
    assert_allclose(state.found.gradient, expected.gradient, atol=1e-4 * size)


@pytest.mark.parametrize("features", [X, SPARSE])
@pytest.mark.parametrize("unknown", [False, True])
def test_the_minimum_is_that_of_all_rows(passes, features, unknown):
    labels = Y.astype(float)
    if unknown:
        labels[RNG.random(Y.shape) < 0.1] = np.nan
    ranker = LogisticRanker(warm_start=True)
    for n in (1900, 2000, 2200, N):
        ranker.fit(features[:n], labels[:n])
    fresh = LogisticRanker(tol=1e-9).fit(features, labels)
    assert len(passes) == 3
    assert [found is None for found in passes] == [False] * 3
    assert ranker.converged_.all()
    assert_allclose(ranker.objective_, fresh.objective_, rtol=1e-6)
    assert ranker.n_iter_.sum() < fresh.n_iter_.sum()


def test_no_rows_added_need_no_pass(passes):
    ranker = LogisticRanker(warm_start=True).fit(X, Y)
    before = ranker.coef_.copy()
    ranker.fit(X, Y)
    assert passes[0] is not None
    assert (ranker.n_iter_ == 0).all()
    assert_allclose(ranker.coef_, before)


def changed(rows):
    labels, features, weights = Y.copy(), X.copy(), WEIGHTS.copy()
    if rows == "a value":
        features[700, 3] = np.nextafter(features[700, 3], np.inf)
    elif rows == "two values swapped":
        features[[10, 11], 2] = features[[11, 10], 2]
    elif rows == "a label":
        labels[1500, 4] = 1 - labels[1500, 4]
    elif rows == "a weight":
        weights[20] *= 1.01
    elif rows == "their order":
        features[:N_OLD], labels[:N_OLD] = features[:N_OLD][::-1], labels[:N_OLD][::-1]
    return features, labels, weights


@pytest.mark.parametrize(
    "what", ["a value", "two values swapped", "a label", "a weight", "their order"]
)
def test_other_rows_are_told_from_the_old_ones(passes, what):
    ranker = LogisticRanker(warm_start=True, weight="uniform")
    ranker.fit(X[:N_OLD], Y[:N_OLD], WEIGHTS[:N_OLD])
    features, labels, weights = changed(what)
    ranker.fit(features, labels, weights)
    assert passes == [None]
    fresh = LogisticRanker(weight="uniform").fit(features, labels, weights)
    assert_allclose(ranker.objective_, fresh.objective_, rtol=2e-6)


@pytest.mark.parametrize(
    "options", [{"C": 2.0}, {"penalize_intercept": True}, {"positive_cost": 2.0}], ids=str
)
def test_other_objectives_are_not_taken_for_the_same(passes, options):
    ranker = LogisticRanker(warm_start=True).fit(X[:N_OLD], Y[:N_OLD])
    ranker.set_params(**options).fit(X, Y)
    assert passes == [None]
    assert_allclose(ranker.objective_, LogisticRanker(**options).fit(X, Y).objective_, rtol=2e-6)


def test_what_the_old_rows_say_nothing_of_is_learnt_afresh(passes):
    """A label first seen in the new rows, a feature first used in them, and twice the rows."""
    labels, features = Y.copy(), X.copy()
    labels[:N_OLD, 0] = 0
    features[:N_OLD, 1] = 3.0
    for x, y, n_old in ((X, labels, N_OLD), (features, Y, N_OLD), (X, Y, N // 2 - 1)):
        ranker = LogisticRanker(warm_start=True).fit(x[:n_old], y[:n_old]).fit(x, y)
        assert passes.pop() is None
        assert_allclose(ranker.objective_, LogisticRanker().fit(x, y).objective_, rtol=2e-6)


def test_only_the_object_itself_remembers(passes):
    ranker = LogisticRanker(warm_start=True).fit(X[:N_OLD], Y[:N_OLD])
    again = pickle.loads(pickle.dumps(ranker))
    assert len(pickle.dumps(ranker)) < 20_000
    again.fit(X, Y)
    assert passes == []
    assert not hasattr(clone(ranker), "_memory")
    assert not hasattr(LogisticRanker().fit(X, Y), "_memory")


def test_a_fit_that_fails_leaves_no_memory_behind(passes, monkeypatch):
    ranker = LogisticRanker(warm_start=True).fit(X[:N_OLD], Y[:N_OLD])
    with monkeypatch.context() as broken:
        broken.setattr("deltarank.linear.logistic.fit_blocks", lambda *a, **k: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ranker.fit(X, Y)
    ranker.fit(X, Y)
    assert len(passes) == 1
    assert_allclose(ranker.objective_, LogisticRanker().fit(X, Y).objective_, rtol=2e-6)
