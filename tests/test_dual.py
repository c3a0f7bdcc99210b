"""Dual coordinate ascent on wide sparse rows, held to slow solvers written by others."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from deltarank import LogisticRanker, instance_weights
from deltarank.linear.kernels import dual as kernels
from deltarank.linear.kernels.lanes import LANES
from deltarank.linear.rows.local import LocalRows

N, D, M = 150, 2000, 5


def made_up(seed):
    """Rows of few words, some frequent and most rare, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    words = np.minimum(rng.zipf(1.3, size=(N, 30)), D) - 1
    X = np.zeros((N, D))
    np.add.at(X, (np.arange(N)[:, None], words), rng.random((N, 30)))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ rng.normal(size=(D, M)) * 3 + rng.logistic(size=(N, M))
    Y = (scores > np.quantile(scores, [0.5, 0.7, 0.9, 0.97, 0.99], axis=0).diagonal()).astype(int)
    return X, Y


def least_objective(X, y, limits, C, penalized):
    """Return the least objective of one label by BFGS in float64, from SciPy."""
    signs = np.where(y > 0, 1.0, -1.0)

    def objective(point):
        margins = signs * (X @ point[:-1] + point[-1])
        residuals = -limits * signs * expit(-margins)
        penalty = point.copy()
        penalty[-1] *= penalized
        value = limits @ np.logaddexp(0, -margins) + penalty @ penalty / (2 * C)
        return value, np.append(X.T @ residuals, residuals.sum()) + penalty / C

    settings = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 40}
    found = minimize(objective, np.zeros(D + 1), jac=True, method="L-BFGS-B", options=settings)
    return found.fun


def weights_of(Y):
    weights = instance_weights(Y)
    return weights / weights[weights > 0].mean()


def takes_dual(X, Y, C):
    from deltarank.core.labels import label_sets

    return LocalRows(sparse.csr_array(X), label_sets(Y), np.ones(len(Y))).takes_dual(C)


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("penalized", [False, True])
def test_it_finds_the_least_objective(C, penalized):
    X, Y = made_up(0)
    assert takes_dual(X, Y, C)
    ranker = LogisticRanker(C=C, penalize_intercept=penalized).fit(sparse.csr_array(X), Y)
    weights = weights_of(Y)
    least = [least_objective(X, y, weights, C, penalized) for y in Y.T]
    assert ranker.converged_.all()
    # SciPy's own minimum has an error, so ours may be a little lower.
    assert (ranker.objective_ <= np.array(least) * (1 + 1e-6)).all()
    assert (ranker.objective_ >= np.array(least) * (1 - 1e-5)).all()
    # What is said of the objective is true of the coefficients that are kept.
    margins = np.where(Y > 0, 1, -1) * ranker.decision_function(X)
    squares = (ranker.coef_.astype(float) ** 2).sum(axis=1) + penalized * ranker.intercept_**2
    assert_allclose(
        weights @ np.logaddexp(0, -margins) + squares / (2 * C), ranker.objective_, rtol=1e-5
    )


@pytest.mark.parametrize("C", [1.0, 300.0])
def test_costs_and_unknown_cells_count_as_they_should(C):
    X, Y = made_up(1)
    unknown = np.random.default_rng(2).random(Y.shape) < 0.2
    known = np.where(unknown, np.nan, Y)
    options = {"positive_cost": 2.5, "unknown": "known_part"}
    ranker = LogisticRanker(C=C, **options).fit(sparse.csr_array(X), known)
    weights = weights_of(known)
    limits = weights[:, None] * np.where(Y > 0, 2.5, 1.0) * ~unknown
    least = [least_objective(X, y, own, C, False) for y, own in zip(Y.T, limits.T, strict=True)]
    assert_allclose(ranker.objective_, least, rtol=1e-5)


def test_it_agrees_with_liblinear():
    X, Y = made_up(3)
    weights = weights_of(Y)
    ours = LogisticRanker(C=50.0, penalize_intercept=True, tol=1e-8).fit(sparse.csr_array(X), Y)
    for label in range(M):
        theirs = LogisticRegression(C=50.0, solver="liblinear", tol=1e-8, max_iter=10_000)
        theirs.fit(X, Y[:, label], sample_weight=weights)
        assert_allclose(ours.coef_[label], theirs.coef_[0], atol=2e-3 * abs(theirs.coef_).max())


def test_a_warm_start_begins_where_the_last_fit_ended():
    X, Y = made_up(4)
    ranker = LogisticRanker(C=100.0, warm_start=True).fit(sparse.csr_array(X), Y)
    cold, objective = ranker.n_iter_, ranker.objective_
    ranker.fit(sparse.csr_array(X), Y)
    assert ranker.n_iter_.mean() < 0.6 * cold.mean()
    assert_allclose(ranker.objective_, objective, rtol=2e-6)


def test_labels_that_no_row_or_every_row_holds_stop_nothing():
    X, Y = made_up(5)
    Y[:, 0], Y[:, 1] = 0, 1
    ranker = LogisticRanker(C=10.0).fit(sparse.csr_array(X), Y)
    ranked = ranker.rank(sparse.csr_array(X[:5]))
    assert_array_equal(ranked[:, 0], 1)
    assert_array_equal(ranked[:, -1], 0)


def test_too_few_epochs_are_told():
    X, Y = made_up(6)
    with pytest.warns(UserWarning, match="did not reach tol"):
        ranker = LogisticRanker(C=1000.0, max_iter=2).fit(sparse.csr_array(X), Y)
    assert not ranker.converged_.any()


@pytest.mark.parametrize("curvature", [1e-3, 1.0, 1e3, 1e6])
def test_the_best_dual_variable_of_a_cell_is_found_from_anywhere(curvature):
    from scipy.optimize import brentq

    for margin in (-1e4, -30.0, -2.0, 0.0, 3.0, 40.0):

        def rising(t, margin=margin):
            return t + margin + curvature * 0.7 * expit(t)

        root = brentq(rising, -2e6, 2e6, xtol=1e-12)
        lanes = np.zeros((8, LANES), np.float32)
        lanes[kernels.REST], lanes[kernels.SLOPE] = margin, curvature * 0.7
        lanes[kernels.LOGIT] = np.resize([-80.0, -5.0, 0.0, 5.0, 80.0], LANES)
        kernels._find_logits(lanes)
        # What counts is the dual variable, and only as far as float32 tells.
        found = expit(lanes[kernels.LOGIT].astype(float))
        assert_allclose(found, np.full(LANES, expit(root)), rtol=0.02, atol=1e-6)


def test_labels_solved_side_by_side_do_not_mix():
    X, Y = made_up(7)
    many = np.hstack([Y, 1 - Y[:, [0] * 40], Y])
    X = sparse.csr_array(X)
    # Rows without a label of their own count too, so that both fits have the same weights.
    alone, beside = (
        LogisticRanker(C=30.0, weight=lambda Y: np.ones(Y.shape[0]), tol=1e-7) for _ in range(2)
    )
    alone.fit(X, Y)
    beside.fit(X, many)
    for own in (slice(M), slice(-M, None)):
        assert_allclose(beside.objective_[own], alone.objective_, rtol=3e-7)
        assert_allclose(beside.coef_[own], alone.coef_, atol=2e-3 * abs(alone.coef_).max())
