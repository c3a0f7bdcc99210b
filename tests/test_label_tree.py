"""Label trees: what they estimate, how they search, and what they are given."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, logit

from deltarank import CalibratedRanker, export_onnx, instance_weights, load, save
from deltarank.datasets import long_tailed
from deltarank.linear.checkpoint import Checkpoint
from deltarank.trees.label_tree import LabelTreeRanker


def data(seed=0, n=400, d=120, m=90):
    X, Y = long_tailed(n, d, m, random_state=seed)
    return X, Y


def path_chances(ranker, X):
    """Return the scores of all labels from their definition, by loops over trees and labels."""
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    X = X.astype(np.float32).astype(np.float64)
    coef = ranker.coef_.toarray().astype(np.float64)
    chances = expit(X @ coef.T + ranker.intercept_)
    starts, labels = ranker.child_starts_, ranker.node_labels_
    total, n_trees = np.zeros((len(X), len(ranker.classes_))), starts[0]

    def descend(node, product):
        product = product * chances[:, node]
        if labels[node] >= 0:
            total[:, labels[node]] += product
        for child in range(starts[node], starts[node + 1]):
            descend(child, product)

    for root in range(n_trees):
        descend(root, np.ones(len(X)))
    return total / n_trees


@pytest.mark.parametrize("n_trees", [1, 3])
def test_marginal_weights_are_mean_products_along_paths(n_trees):
    X, Y = data()
    ranker = LabelTreeRanker(prune=None, arity=3, leaf_size=5, n_trees=n_trees, random_state=0).fit(
        X, Y
    )
    wanted = path_chances(ranker, X)
    seen = np.isnan(ranker.constants_)
    assert_allclose(
        ranker.marginal_weights(X.astype(np.float64))[:, seen], wanted[:, seen], rtol=1e-9
    )
    scores = ranker.decision_function(X.astype(np.float64))
    assert_allclose(scores[:, seen], logit(wanted[:, seen]), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("options", [
    {"arity": 3, "leaf_size": 5}, {"n_trees": 1}, {"tree": "flat"}, {"arity": 2, "leaf_size": 1},
    {"loss": "squared_hinge", "leaf_size": 20},
])  # fmt: skip
def test_a_search_finds_what_sorting_all_scores_finds(options, kind):
    X, Y = data(n=500, d=200, m=300)
    ranker = LabelTreeRanker(**options, random_state=0).fit(X, Y)
    X = sparse.vstack([X, sparse.csr_array((1, 200))], format="csr").astype(kind)
    order = np.argsort(-ranker.decision_function(X), axis=1, kind="stable")
    for top in (1, 5, 30):
        assert_array_equal(ranker.rank(X, top=top), order[:, :top])
    assert_array_equal(ranker.rank(X[:20]), order[:20])


def test_rows_searched_one_by_one_rank_as_together_and_leave_no_trace():
    X, Y = long_tailed(600, 200, 400, random_state=1)
    ranker = LabelTreeRanker(arity=4, leaf_size=4, random_state=0).fit(X, Y)
    fitted = pickle.dumps(ranker)
    together = ranker.rank(X[:50], top=7)
    assert_array_equal(np.vstack([ranker.rank(X[[i]], top=7) for i in range(50)]), together)
    assert pickle.dumps(ranker) == fitted  # no table that a search made for itself
    assert_array_equal(pickle.loads(fitted).rank(X[:50], top=7), together)


def test_coefficients_are_kept_with_narrow_places(tmp_path):
    X, Y = long_tailed(600, 200, 400, random_state=1)
    ranker = LabelTreeRanker(random_state=0).fit(X, Y)
    save(ranker, tmp_path / "tree.delta")
    for coef in (ranker.coef_, load(tmp_path / "tree.delta").coef_):
        assert coef.indices.dtype == coef.indptr.dtype == np.int32


def test_ties_are_ranked_in_column_order():
    X, Y = data(m=200)
    twice = sparse.hstack([Y, Y], format="csr")
    parents = {label: f"group {label % 200 // 10}" for label in range(400)}
    ranker = LabelTreeRanker(tree=parents).fit(X, twice)
    order = np.argsort(-ranker.decision_function(X), axis=1, kind="stable")
    assert_array_equal(ranker.rank(X, top=9), order[:, :9])
    assert_array_equal(ranker.rank(X, top=2), np.c_[order[:, 0], order[:, 0] + 200])


def squared_hinge(margins):
    return np.maximum(1 - margins, 0) ** 2, -2 * np.maximum(1 - margins, 0)


# Value and slope of a loss of margins, and what its scores are multiplied by in a tree.
NODE_LOSSES = {
    "logistic": (lambda margins: (np.logaddexp(0, -margins), -expit(-margins)), 1),
    "squared_hinge": (squared_hinge, 3),
}


def least_objective(X, y, weights, C, penalized, loss):
    """Return the objective of one node and its least value by L-BFGS in float64, from SciPy."""
    signs = np.where(y > 0, 1.0, -1.0)

    def objective(point):
        margins = signs * (X @ point[:-1] + point[-1])
        losses, slopes = loss(margins)
        residuals = weights * signs * slopes
        penalty = point.copy()
        penalty[-1] *= penalized
        value = weights @ losses + penalty @ penalty / (2 * C)
        return value, np.append(X.T @ residuals, residuals.sum()) + penalty / C

    begin = np.zeros(X.shape[1] + 1)
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-8, "maxcor": 40}
    return objective, minimize(objective, begin, jac=True, method="L-BFGS-B", options=options).fun


@pytest.mark.parametrize("loss", NODE_LOSSES)
@pytest.mark.parametrize(
    ("n", "d", "penalized", "scale", "C"),
    [
        (300, 40, True, 1.0, 5.0),  # small data, solved by Newton's method
        pytest.param(300, 40, False, 1.0, 5.0, marks=pytest.mark.slow),
        (800, 60, True, 1.0, 5.0),  # by dual coordinate ascent
        (800, 60, True, 20.0, 5.0 / 400),
        (800, 60, False, 1.0, 5.0),
        (800, 60, True, 1.0, 2e3),  # by passes: dual coordinate ascent would take too long
    ],
)
def test_every_node_is_a_weighted_fit_on_the_rows_of_its_parent(n, d, penalized, scale, C, loss):
    X, Y = data(n=n, d=d, m=30)
    X = X * np.float32(scale)
    counts = np.random.default_rng(0).integers(0, 3, n)
    ranker = LabelTreeRanker(
        C=C, inner_C=2 * C, arity=3, leaf_size=4, n_trees=1, prune=None, tol=1e-4, max_iter=2000,
        penalize_intercept=penalized, random_state=0, loss=loss,
    ).fit(X, Y, sample_weight=counts)  # fmt: skip
    of_margins, sharpness = NODE_LOSSES[loss]
    dense, marks = X.toarray().astype(np.float64), Y.toarray()
    weights = instance_weights(Y) * counts
    ranked = (marks.sum(axis=1) > 0) & (counts > 0)
    weights /= np.average(instance_weights(Y)[ranked], weights=counts[ranked])
    starts, labels = ranker.child_starts_, ranker.node_labels_

    def below(node):
        if labels[node] >= 0:
            return marks[:, labels[node]]
        return np.any([below(c) for c in range(starts[node], starts[node + 1])], axis=0).astype(int)

    checked = 0
    for parent in np.flatnonzero(labels < 0):
        rows = (below(parent) > 0) & (weights > 0)
        for node in range(starts[parent], starts[parent + 1]):
            y = below(node)[rows]
            if y.all():
                continue
            own_C = C if labels[node] >= 0 else 2 * C
            of_node = dense[rows], y, weights[rows], own_C, penalized, of_margins
            objective, least = least_objective(*of_node)
            point = np.append(ranker.coef_[[node]].toarray()[0], ranker.intercept_[node])
            assert objective(point / sharpness)[0] <= least * (1 + 1e-3)
            checked += 1
    assert checked > 30
    assert ranker.converged_.all()


def test_units_of_features_do_not_matter():
    X, Y = data(n=500, d=200, m=100)
    options = {"arity": 4, "leaf_size": 8, "random_state": 0}
    options = {**options, "penalize_intercept": False}
    ranker = LabelTreeRanker(C=10.0, **options).fit(X, Y)
    large = X * np.float32(4096)
    scaled = LabelTreeRanker(C=10.0 / 4096**2, **options).fit(large, Y)
    assert scaled.coef_.nnz == ranker.coef_.nnz > 0
    assert_allclose(scaled.decision_function(large), ranker.decision_function(X), rtol=1e-5)


def test_rows_that_count_nothing_change_nothing():
    X, Y = data(n=300, d=300, m=60)
    others, labels = data(n=200, d=300, m=60, seed=1)
    options = {"arity": 3, "leaf_size": 4, "random_state": 0}
    alone = LabelTreeRanker(**options).fit(X, Y)
    both = LabelTreeRanker(**options).fit(
        sparse.vstack([X, others], format="csr"),
        sparse.vstack([Y, labels], format="csr"),
        sample_weight=np.repeat([1.0, 0.0], [300, 200]),
    )
    assert_array_equal(both.node_labels_, alone.node_labels_)
    assert_allclose(both.decision_function(X), alone.decision_function(X), rtol=1e-6)


def test_dense_rows_are_ranked_as_sparse_ones_are():
    X, Y = data(n=900, d=80, m=60)
    options = {"C": 1.0, "arity": 4, "leaf_size": 8, "random_state": 0}
    ranker = LabelTreeRanker(**options).fit(X, Y)
    dense = LabelTreeRanker(**options).fit(X.toarray(), Y)
    assert_array_equal(dense.rank(X.toarray(), top=3), ranker.rank(X, top=3))


def test_a_killed_fit_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    X, Y = data(n=400, d=300, m=200)
    options = {"arity": 3, "leaf_size": 2, "random_state": 0, "checkpoint": str(tmp_path / "kept")}
    whole = LabelTreeRanker(**{**options, "checkpoint": None}).fit(X, Y)
    save = Checkpoint.save

    def killed(self, number, arrays):
        save(self, number, arrays)
        if number == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            LabelTreeRanker(**options).fit(X, Y)
    n_kept = len(list((tmp_path / "kept").glob("block-*")))
    assert n_kept == 3
    loaded, load = [], Checkpoint.load
    monkeypatch.setattr(
        Checkpoint, "load", lambda self, n: loaded.append(load(self, n)) or loaded[-1]
    )
    resumed = LabelTreeRanker(**options).fit(X, Y)
    assert sum(it is not None for it in loaded) == 3 < len(loaded)
    assert_array_equal(resumed.decision_function(X), whole.decision_function(X))
    with pytest.raises(ValueError, match="belongs to a fit of other data or other parameters"):
        LabelTreeRanker(**{**options, "C": 3.0}).fit(X, Y)


def test_a_tree_is_calibrated_like_any_ranker_and_has_no_onnx_graph(tmp_path):
    X, Y = data(n=1500, d=200, m=60)
    tree = LabelTreeRanker(random_state=0)
    calibrated = CalibratedRanker(tree, random_state=0).fit(X[:1000], Y[:1000])
    chances = calibrated.predict_proba(X[1000:])  # of rows that nobody has seen
    assert abs(chances.mean() - Y[1000:].mean()) < 0.01
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match="LabelTreeRanker cannot be exported to ONNX"):
        export_onnx(LabelTreeRanker(random_state=0).fit(X, Y), tmp_path / "tree.onnx")


def test_the_default_penalty_is_that_of_the_loss():
    X, Y = data(n=800)
    for loss, C in (("logistic", 60.0), ("squared_hinge", 3.0)):
        default, given = (
            LabelTreeRanker(loss=loss, C=C, random_state=0).fit(X, Y) for C in (None, C)
        )
        assert_array_equal(default.coef_.data, given.coef_.data)
    with pytest.raises(ValueError, match=r"unknown loss 'hinge'; choose one of logistic, squared_"):
        LabelTreeRanker(loss="hinge").fit(X, Y)


def test_the_squared_hinge_keeps_fewer_coefficients():
    X, Y = data(n=2000, d=800, m=300)
    sizes = [
        LabelTreeRanker(loss=loss, random_state=0).fit(X, Y).coef_.nnz
        for loss in ("logistic", "squared_hinge")
    ]
    assert sizes[1] < sizes[0]


def test_unknown_labels_are_refused_with_a_way_out():
    X, Y = data()
    Y = Y.toarray().astype(float)
    Y[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"row 3, column 2: LabelTreeRanker takes no unknown"):
        LabelTreeRanker().fit(X, Y)
