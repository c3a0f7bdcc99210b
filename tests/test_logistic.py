"""LogisticRanker against independent optimisers, label by label, and its manners."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deltarank import LogisticRanker, WeightedBinaryRelevance, instance_weights, rank_loss
from deltarank.core.labels import label_sets
from deltarank.linear.rows import tuning
from deltarank.linear.rows.local import LocalRows
from deltarank.metrics import get_scorer


def problem(n=300, d=7, m=9, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    hidden = X @ generator.normal(size=(d, m)) + generator.normal(size=(n, m))
    return X, (hidden > np.linspace(-0.5, 3, m)).astype(int)


X, Y = problem()


@pytest.fixture(params=["Newton on small data", "passes over row blocks"], autouse=True)
def engine(request, monkeypatch):
    """Run every test on both ways of solving: small data would never see the second."""
    if request.param == "passes over row blocks":
        monkeypatch.setattr(tuning.LOCAL, "largest_table", 0)


def objectives(ranker_coef, intercept, X, Y, weights, C, positive_cost=1.0, penalty_b=False):
    """The objective of each label, in float64, straight from its definition."""
    scores = np.asarray(X @ ranker_coef.T.astype(float)) + intercept
    signs = 2.0 * Y - 1
    cost = np.where(Y == 1, positive_cost, 1.0) * weights[:, None]
    value = (cost * np.logaddexp(0, -signs * scores)).sum(axis=0)
    value += (ranker_coef.astype(float) ** 2).sum(axis=1) / (2 * C)
    return value + (intercept**2 / (2 * C) if penalty_b else 0)


def newton(X, y, weights, C, label_cost=1.0):
    """One label by scikit-learn's exact Newton method."""
    used = weights > 0
    cost = np.where(y == 1, label_cost, 1.0) * weights
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=300).fit(
            X[used], y[used], sample_weight=cost[used]
        )
    return fitted.coef_, fitted.intercept_


def relative_gaps(ranker, X, Y, weights, C, labels=None, **options):
    """How far each label's objective is above an exact one."""
    labels = range(Y.shape[1]) if labels is None else labels
    gaps = []
    for label in labels:
        y = Y[:, [label]]
        if len(np.unique(y[weights > 0])) < 2:
            continue
        exact = newton(X, y[:, 0], weights, C, options.get("positive_cost", 1.0))
        least = objectives(*exact, X, y, weights, C, **options)[0]
        ours = ranker.coef_[[label]], ranker.intercept_[[label]]
        gaps.append(objectives(*ours, X, y, weights, C, **options)[0] / least - 1)
    return np.array(gaps)


@pytest.mark.parametrize("C", [1e-3, 0.1, 1.0, 30.0, 1e3])
@pytest.mark.parametrize("weight", ["rank", "uniform"])
@pytest.mark.parametrize("form", [np.float64, np.float32, np.asfortranarray, sparse.csr_array])
def test_every_label_reaches_the_exact_optimum(C, weight, form):
    data = form(X) if callable(form) and form not in (np.float32, np.float64) else X.astype(form)
    ranker = LogisticRanker(C=C, weight=weight).fit(data, Y)
    assert ranker.converged_.all()
    gaps = relative_gaps(ranker, X, Y, instance_weights(Y, weight), C)
    assert len(gaps) == 9
    assert gaps.max() < 1e-6


def test_the_optimum_is_that_of_a_second_independent_optimiser():
    weights = instance_weights(Y)

    def value(theta, y):
        return objectives(theta[None, :-1], theta[-1:], X, y, weights, 2.0)[0]

    ranker = LogisticRanker(C=2.0, tol=1e-10).fit(X, Y)
    for label in (0, 4, 8):
        y = Y[:, [label]]
        found = minimize(value, np.zeros(8), args=(y,), method="BFGS", options={"gtol": 1e-7})
        ours = np.append(ranker.coef_[label], ranker.intercept_[label])
        assert value(ours, y) <= found.fun * (1 + 1e-6)
        assert_allclose(ours, found.x, atol=5e-3)


def test_a_penalised_intercept_is_mallets_objective_at_half_the_variance():
    variance = 0.7
    weights = instance_weights(Y)

    def mallet(theta, y):
        """One vector a class over features and a constant, Gaussian prior on all of them."""
        per_class = theta.reshape(2, 8)
        logits = np.column_stack([X, np.ones(len(X))]) @ per_class.T
        picked = logits[np.arange(len(X)), y]
        fit = (weights * (np.logaddexp(logits[:, 0], logits[:, 1]) - picked)).sum()
        return fit + (theta**2).sum() / (2 * variance)

    ranker = LogisticRanker(C=2 * variance, penalize_intercept=True, tol=1e-10).fit(X, Y)
    for label in (0, 5):
        found = minimize(mallet, np.zeros(16), args=(Y[:, label],), method="BFGS").x.reshape(2, 8)
        combined = found[1] - found[0]
        assert_allclose(ranker.coef_[label], combined[:-1], atol=2e-3)
        assert_allclose(ranker.intercept_[label], combined[-1], atol=2e-3)


def test_positive_cost_weighs_relevant_cells_and_leaves_the_estimate_of_chances_alone():
    ranker = LogisticRanker(C=1e3, positive_cost=5.0).fit(X, Y)
    gaps = relative_gaps(ranker, X, Y, instance_weights(Y), 1e3, positive_cost=5.0)
    assert gaps.max() < 1e-6
    plain = LogisticRanker(C=1e3).fit(X, Y)
    apart = np.abs(ranker.marginal_weights(X) - plain.marginal_weights(X))
    assert apart.mean() < 0.03
    raised = np.abs(expit(ranker.decision_function(X)) - plain.marginal_weights(X))
    assert raised.mean() > 2 * apart.mean()
    scores = ranker.decision_function(X)
    assert_allclose(ranker.marginal_weights(X), expit(scores - np.log(5.0)), atol=1e-12)


def test_sample_weights_count_rows_that_many_times():
    counts = np.random.default_rng(3).integers(0, 4, len(X))

    weighted = LogisticRanker(tol=1e-10).fit(X, Y, sample_weight=counts)
    repeated = LogisticRanker(tol=1e-10).fit(
        np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0)
    )
    assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)
    assert_allclose(weighted.intercept_, repeated.intercept_, atol=1e-4)


def test_the_reduction_round_logistic_regression_gives_the_same_ranker():
    slow = WeightedBinaryRelevance(LogisticRegression(C=3.0, tol=1e-8, max_iter=1000)).fit(X, Y)
    fast = LogisticRanker(C=3.0, tol=1e-9).fit(X, Y)
    assert_allclose(fast.decision_function(X), slow.decision_function(X), atol=1e-3)


def test_every_form_of_input_gives_the_same_ranker():
    reference = LogisticRanker(tol=1e-9).fit(X, Y)
    for form in (np.asfortranarray, sparse.csr_array, sparse.csc_matrix, lambda x: x.tolist()):
        assert_allclose(LogisticRanker(tol=1e-9).fit(form(X), Y).coef_, reference.coef_, atol=1e-4)
    for form in (sparse.csr_array, lambda y: y.astype(bool), lambda y: y.tolist()):
        assert_array_equal(LogisticRanker(tol=1e-9).fit(X, form(Y)).coef_, reference.coef_)
    names = np.array(list("abcdefghi"))
    sets = [set(names[row == 1]) for row in Y]
    by_name = LogisticRanker(tol=1e-9).fit(X, sets)
    assert_array_equal(by_name.coef_, reference.coef_)
    assert_array_equal(by_name.classes_, names)
    assert_array_equal(by_name.rank(X, top=3), names[reference.rank(X, top=3)])
    assert by_name.predict(X)[:20] == [set(names[row == 1]) for row in reference.predict(X)[:20]]
    assert (
        by_name.score(X, sets)
        == reference.score(X, Y)
        == 1 - rank_loss(Y, reference.decision_function(X))
    )


def test_a_memory_mapped_matrix_is_fitted_as_it_is(tmp_path):
    stored = np.lib.format.open_memmap(
        tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=X.shape
    )
    stored[:] = X
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    expected = LogisticRanker().fit(X.astype(np.float32), Y)
    assert_array_equal(LogisticRanker().fit(mapped, Y).coef_, expected.coef_)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_the_number_of_threads_changes_only_rounding(threads, monkeypatch):
    expected = LogisticRanker(tol=1e-9).fit(X, Y).coef_
    monkeypatch.setenv("DELTARANK_NUM_THREADS", threads)
    assert_allclose(LogisticRanker(tol=1e-9).fit(X, Y).coef_, expected, atol=1e-4)


class TestHardProblems:
    """Fits that stop other tools: each converges, or says so in one warning."""

    def fit(self, X, Y, C=1.0, **options):
        ranker = LogisticRanker(C=C, **options).fit(X, Y)
        assert np.isfinite(ranker.coef_).all()
        assert np.isfinite(ranker.decision_function(X)).all()
        return ranker

    def test_labels_never_or_always_relevant(self):
        labels = np.hstack([np.zeros((300, 1), int), Y, np.ones((300, 1), int)])
        ranker = self.fit(X, labels)
        ranked = ranker.rank(1e3 * X)
        assert (ranked[:, 0] == 10).all()
        assert (ranked[:, -1] == 0).all()
        assert_array_equal(ranker.coef_[[0, 10]], 0)
        assert (ranker.marginal_weights(X)[:, [0, 10]] == [0, 1]).all()

    def test_constant_and_duplicated_columns(self):
        wide = np.hstack([X, X[:, :2], np.full((300, 1), 7.0), np.zeros((300, 1))])
        ranker = self.fit(wide, Y)
        assert ranker.converged_.all()
        assert relative_gaps(ranker, wide, Y, instance_weights(Y), 1.0).max() < 1e-6
        assert_allclose(ranker.coef_[:, :2], ranker.coef_[:, 7:9], atol=1e-4)

    @pytest.mark.parametrize("C", [1.0, 1e3])
    def test_separable_labels(self, C):
        labels = (X[:, :3] > 0).astype(int)
        ranker = self.fit(X, labels, C)
        assert ranker.converged_.all()
        gaps = relative_gaps(ranker, X, labels, instance_weights(labels), C)
        assert gaps.max() < 1e-5

    def test_one_positive_among_thousands(self):
        generator = np.random.default_rng(1)
        big = generator.normal(size=(31_000, 5))
        labels = np.zeros((31_000, 3), int)
        labels[:, 0] = big[:, 0] > 0
        labels[7, 1] = labels[9, 2] = 1
        ranker = self.fit(big, labels)
        assert ranker.converged_.all()
        gaps = relative_gaps(ranker, big, labels, instance_weights(labels), 1.0)
        assert gaps.max() < 1e-6

    @pytest.mark.parametrize("scale", [1e-6, 1e6, 1e12])
    def test_features_of_any_scale(self, scale):
        scales = np.array([scale, 1, 1, 1 / scale, 1, 1, 1])
        C = np.inf if scale == 1e12 else 1.0
        if np.inf == C:
            C = 1e6
        ranker = self.fit(X * scales, Y, C=C, max_iter=500)
        weights = instance_weights(Y)
        gaps = relative_gaps(ranker, X * scales, Y, weights, C)
        assert gaps.max() < 1e-5

    def test_features_far_from_zero(self):
        moved = X + 1e5
        ranker = self.fit(moved, Y)
        centred = LogisticRanker().fit(X, Y)
        assert_allclose(ranker.coef_, centred.coef_, atol=1e-3)
        assert_allclose(ranker.decision_function(moved), centred.decision_function(X), atol=1e-2)

    def test_weights_spread_over_six_decades(self):
        extra = np.geomspace(1e-3, 1e3, 300)
        ranker = LogisticRanker().fit(X, Y, sample_weight=extra)
        weights = instance_weights(Y) * extra
        weights *= extra[weights > 0].sum() / weights.sum()
        assert relative_gaps(ranker, X, Y, weights, 1.0).max() < 1e-6

    def test_one_row_one_label_and_no_pairs(self):
        assert self.fit(X[:1], Y[:1]).rank(X[:1]).shape == (1, 9)
        assert self.fit(X, Y[:, :1]).rank(X, top=1).shape == (300, 1)
        assert self.fit(X, np.zeros((300, 2), int)).rank(X).shape == (300, 2)

    def test_not_converged_is_one_warning_that_counts_labels(self):
        with pytest.warns(ConvergenceWarning, match=r"\d+ of 9 labels .* max_iter=2") as caught:
            ranker = LogisticRanker(C=1e3, max_iter=2).fit(X, Y)
        assert len(caught) == 1
        assert not ranker.converged_.all()
        assert ranker.n_iter_.shape == (9,)


class TestManners:
    def test_a_warm_start_needs_hardly_a_step(self):
        ranker = LogisticRanker(C=1.0, warm_start=True).fit(X, Y)
        first = ranker.n_iter_.sum()
        assert ranker.fit(X, Y).n_iter_.sum() < 0.5 * first
        ranker.set_params(C=1.5).fit(X, Y)
        cold = LogisticRanker(C=1.5).fit(X, Y)
        assert_allclose(ranker.coef_, cold.coef_, atol=5e-3)

    def test_clone_pickle_and_parameters(self):
        ranker = LogisticRanker(C=2.0, weight=("ndcg", 3)).fit(X, Y)
        again = pickle.loads(pickle.dumps(ranker))
        assert_array_equal(again.rank(X), ranker.rank(X))
        assert clone(ranker).get_params() == ranker.get_params()
        assert not hasattr(clone(ranker), "coef_")

    def test_pipeline_and_search_by_rank_loss(self):
        pipeline = make_pipeline(StandardScaler(), LogisticRanker())
        grid = {"logisticranker__C": [1e-4, 1.0], "logisticranker__weight": ["rank", "uniform"]}
        search = GridSearchCV(pipeline, grid, scoring=get_scorer("neg_rank_loss"), cv=3)
        search.fit(X, Y)
        assert search.best_params_["logisticranker__C"] == 1.0
        assert rank_loss(Y, search.decision_function(X)) < 0.2
        assert search.best_estimator_[-1].rank(X[:2], top=2).shape == (2, 2)

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    def test_data_frames_keep_their_names(self, library):
        columns = [f"feature {j}" for j in range(7)]
        labels = [f"label {j}" for j in range(9)]
        module = pytest.importorskip(library)
        if library == "pyarrow":
            frame = module.table({c: X[:, j] for j, c in enumerate(columns)})
            targets = Y
        else:
            frame = module.DataFrame(dict(zip(columns, X.T, strict=True)))
            targets = module.DataFrame(dict(zip(labels, Y.T, strict=True)))
        ranker = LogisticRanker().fit(frame, targets)
        assert_allclose(ranker.coef_, LogisticRanker().fit(X, Y).coef_, atol=1e-6)
        if library != "pyarrow":
            assert_array_equal(ranker.feature_names_in_, columns)
            assert_array_equal(ranker.classes_, labels)
            assert ranker.rank(frame[:1], top=1)[0, 0] in labels

    def test_ranking_is_the_order_of_the_scores(self):
        ranker = LogisticRanker().fit(X, Y)
        order = np.argsort(-ranker.decision_function(X), axis=1, kind="stable")
        assert_array_equal(ranker.rank(X), order)
        for top in (1, 4, 9):
            assert_array_equal(ranker.rank(X, top=top), order[:, :top])
        for row in (0, 17):
            assert_array_equal(ranker.rank(X[[row]], top=4), order[[row], :4])
            assert_array_equal(ranker.rank(sparse.csr_array(X[[row]]), top=4), order[[row], :4])

    def test_a_vector_of_classes_is_one_label_a_row(self):
        classes = np.array(["red", "green", "blue"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.3)]
        ranker = LogisticRanker(C=100).fit(X, classes)
        assert (ranker.predict(X) == classes).mean() > 0.7
        assert_array_equal(ranker.rank(X, top=1)[:, 0], ranker.predict(X))
        two = LogisticRanker().fit(X, X[:, 0] > 0)
        assert two.decision_function(X).shape == (300,)
        assert two.score(X, X[:, 0] > 0) > 0.95
        assert_array_equal(two.rank(X)[:, 0], two.predict(X))


BAD_FITS = [
    ({"C": 0}, X, Y, "C must be positive and finite; got 0"),
    ({"C": -1.0}, X, Y, "C must be"),
    ({"C": np.nan}, X, Y, "C must be"),
    ({"C": "1"}, X, Y, "C must be"),
    ({"tol": 0}, X, Y, "tol must be"),
    ({"max_iter": 0}, X, Y, "max_iter must be a positive integer; got 0"),
    ({"max_iter": 1.5}, X, Y, "max_iter must be a positive integer"),
    ({"positive_cost": 0}, X, Y, "positive_cost must be"),
    ({"weight": "rnk"}, X, Y, "unknown weight 'rnk'; choose one of"),
    ({}, X[:5], Y, "X and Y must have the same number of rows; X has 5 and Y has 300"),
    ({}, np.where(X > 2, np.nan, X), Y, "NaN"),
    ({}, X, 2 * Y, "Y must hold only 0 and 1; got 2"),
    ({}, X[:, 0], Y, "Expected 2D array"),
    ({}, X, None, "requires y"),
    ({}, X, [set()] * 300, "every label set is empty"),
    ({}, X, [{"a"}, {1}] * 150, "all strings or all numbers"),
]


@pytest.mark.parametrize(("options", "features", "labels", "words"), BAD_FITS)
def test_a_bad_fit_is_refused_in_words(options, features, labels, words):
    with pytest.raises(ValueError, match=words):
        LogisticRanker(**options).fit(features, labels)


def test_all_zero_sample_weights_are_refused():
    with pytest.raises(ValueError, match="sample_weight times weight is zero in every row"):
        LogisticRanker().fit(X, Y, sample_weight=np.zeros(300))


def test_bad_rows_at_ranking_are_refused_in_words():
    ranker = LogisticRanker().fit(X, Y)
    with pytest.raises(ValueError, match="X has 6 features, but LogisticRanker is expecting 7"):
        ranker.rank(X[:, :6])
    with pytest.raises(ValueError, match="contains NaN"):
        ranker.rank(np.full((1, 7), np.nan))
    for top in (0, 10, 1.5):
        with pytest.raises(ValueError, match="top must be an integer from 1 to"):
            ranker.rank(X, top=top)
    named = LogisticRanker().fit(X, [{"a"}, {"b"}, {"c"}] * 100)
    with pytest.raises(ValueError, match="unknown label 'z' in row 0"):
        named.score(X[:1], [{"z"}])
    with pytest.raises(ValueError, match="not fitted"):
        LogisticRanker().rank(X)


@pytest.mark.parametrize("n_labels", [10, 250, 1100])
def test_sparse_passes_of_any_width_are_the_sums_they_stand_for(n_labels):
    """Wide ones go by feature, and very wide ones some columns at a time."""
    rng = np.random.default_rng(3)
    x = sparse.random_array((700, 60), density=0.15, format="csr", rng=rng)
    y = sparse.random_array((700, n_labels), density=0.02, format="csr", rng=rng) > 0
    weights = rng.uniform(0, 2, 700) * (rng.random(700) > 0.1)
    data = LocalRows(x, label_sets(y), weights)
    coef, offset = rng.normal(size=(n_labels, 60)), rng.normal(size=n_labels)
    chosen = np.flatnonzero(rng.random(n_labels) < 0.9)
    *sums, gradient = data.evaluate(coef[chosen], offset[chosen], chosen)
    centred = x.toarray() - np.average(x.toarray(), axis=0, weights=weights)
    scores = centred @ coef[chosen].T + offset[chosen]
    chances = 1 / (1 + np.exp(-scores))
    relevant = y.toarray()[:, chosen]
    residuals = weights[:, None] * (chances - relevant)
    losses = weights @ np.logaddexp(0, np.where(relevant, -scores, scores))
    expected = [losses, weights @ (chances * (1 - chances)), residuals.sum(axis=0)]
    assert_allclose(sums, expected, rtol=1e-4, atol=1e-4)
    assert_allclose(gradient, residuals.T @ centred, rtol=1e-4, atol=1e-4)
