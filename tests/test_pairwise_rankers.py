"""PairwiseRanker and LogLinearRanker against independent optimisers, the theory and each other."""

import pickle
import tracemalloc
import warnings
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deltarank import LogLinearRanker, PairwiseRanker, instance_weights, rank_loss
from deltarank.core.losses import LOSSES
from deltarank.metrics import get_scorer
from deltarank.pairs.objective import PAIR_LOSSES
from deltarank.theory import EXAMPLES, SURROGATES, surrogate_minimizer

IN_THEORY = {
    "logistic": "pairwise logistic",
    "exponential": "pairwise exponential",
    "squared": "pairwise squared",
    "squared_hinge": "pairwise squared hinge",
    "hinge": "pairwise hinge",
    "penalized_linear": "pairwise linear, penalised",
    "all_pairs_squared": "all pairs squared",
}


def problem(n=120, d=3, m=5, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    hidden = X @ generator.normal(size=(d, m)) + generator.normal(size=(n, m))
    return X, (hidden > np.linspace(-0.5, 1.5, m)).astype(int)


X, Y = problem()
SMALL_PROBLEMS = [LogLinearRanker(n_iterations=60), PairwiseRanker()]


def objective(loss, coef, intercept, X, Y, weights, C):
    """The objective from its definition: all pairs at once, in float64."""
    scores = np.asarray(X @ coef.T) + intercept
    margins = scores[:, :, None] - scores[:, None, :]
    ranked = (Y.sum(axis=1) % Y.shape[1]) > 0
    if loss == "all_pairs_squared":
        apart = Y[:, :, None] - Y[:, None, :] - margins
        each = (apart**2).sum(axis=(1, 2)) / 2
    else:
        pairs = (Y[:, :, None] > Y[:, None, :]).astype(float)
        phi = LOSSES["linear" if loss == "penalized_linear" else loss].value(margins)
        each = (pairs * phi).sum(axis=(1, 2))
    value = (weights * each).sum() + (coef**2).sum() / (2 * C)
    return value + ((ranked[:, None] * scores**2).sum() / 2 if loss == "penalized_linear" else 0)


def least_objective(loss, X, Y, weights, C):
    m, d = Y.shape[1], X.shape[1]

    def value(theta):
        theta = theta.reshape(m, d + 1)
        return objective(loss, theta[:, :-1], theta[:, -1], X, Y, weights, C)

    return minimize(value, np.zeros(m * (d + 1)), method="BFGS", options={"gtol": 1e-6}).fun


class TestPairwiseRanker:
    @pytest.mark.parametrize("loss", [name for name in PAIR_LOSSES if name != "hinge"])
    @pytest.mark.parametrize("C", [0.1, 10.0])
    def test_every_loss_reaches_the_optimum_of_an_independent_optimiser(self, loss, C):
        weights = instance_weights(Y, normalize=False)
        least = least_objective(loss, X, Y, weights, C)
        for form in (X, X.astype(np.float32), np.asfortranarray(X), sparse.csr_array(X)):
            ranker = PairwiseRanker(loss=loss, C=C).fit(form, Y)
            assert ranker.converged_
            shift = ranker.intercept_.mean()
            if loss == "penalized_linear":
                shift = 0.0  # the one loss that sees a shift; its best one is undone for predict
                ranker.intercept_ -= ranker.intercept_.mean()
                best = [
                    objective(loss, ranker.coef_, ranker.intercept_ + s, X, Y, weights, C)
                    for s in np.linspace(-0.5, 0.5, 1001)
                ]
                found = min(best)
            else:
                found = objective(loss, ranker.coef_, ranker.intercept_ - shift, X, Y, weights, C)
            assert abs(found - least) <= 1e-6 * abs(least)
            assert_allclose(ranker.objective_, least, rtol=1e-6)

    def test_the_rounded_hinge_comes_close_to_the_least_hinge_loss(self):
        weights = instance_weights(Y, normalize=False)
        ranker = PairwiseRanker(loss="hinge", C=1.0, max_iter=2000).fit(X, Y)
        found = objective("hinge", ranker.coef_, ranker.intercept_, X, Y, weights, 1.0)
        # Rounding changes a row's mean loss by at most 0.005, so the minimum by that much a row.
        least = ranker.objective_
        assert least <= found <= least + 0.005 * len(X)

    @pytest.mark.parametrize("example", EXAMPLES)
    @pytest.mark.parametrize("loss", PAIR_LOSSES)
    def test_section_4_can_be_seen_on_data(self, example, loss):
        """Rows that carry no feature: the scores are those that the theory says are best."""
        people = EXAMPLES[example]
        rows, chances = people.labelings.astype(int), people.probabilities
        used = chances > 0
        ranker = PairwiseRanker(loss=loss, tol=1e-9, max_iter=5000).fit(
            np.zeros((used.sum(), 1)), rows[used], sample_weight=chances[used]
        )
        scores = ranker.decision_function(np.zeros((1, 1)))[0]
        expected = surrogate_minimizer(people, IN_THEORY[loss])
        assert_allclose(
            scores - scores.mean(),
            expected - expected.mean(),
            atol=0.02 if loss == "hinge" else 1e-4,
        )
        if loss != "hinge":
            right = people.regret(scores) < 1e-9
            assert right == SURROGATES[IN_THEORY[loss]].consistent

    def test_a_weight_is_scaled_so_that_pairs_count_as_rows_do(self):
        sizes = Y.sum(axis=1)
        n_pairs = sizes * (5 - sizes)
        raw = instance_weights(Y, "recall", normalize=False)
        weights = raw * (n_pairs > 0).sum() / (raw * n_pairs).sum()
        ranker = PairwiseRanker(weight="recall").fit(X, Y)
        assert_allclose(
            ranker.objective_, least_objective("logistic", X, Y, weights, 1.0), rtol=2e-6
        )

    def test_memory_does_not_grow_with_pairs_of_labels(self):
        generator = np.random.default_rng(0)
        wide = sparse.random_array((200, 2000), density=0.02, rng=generator, format="csr")
        wide.data[:] = 1
        features = generator.normal(size=(200, 4))
        PairwiseRanker(loss="exponential", max_iter=2, tol=1.0).fit(features, wide)
        tracemalloc.start()
        PairwiseRanker(loss="exponential", max_iter=5, tol=1.0).fit(features, wide)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 50e6 < 200 * 2000**2

    def test_not_converged_is_one_warning(self):
        with pytest.warns(ConvergenceWarning, match="in max_iter=2 passes; raise max_iter"):
            PairwiseRanker(C=1e3, max_iter=2).fit(X, Y)


def masses_by_edges(theta, x, y, w):
    """W+ and W- of spec's general form, edge by edge and parameter by parameter, and the loss."""
    m = y.shape[1]
    plus, minus, loss = np.zeros_like(theta), np.zeros_like(theta), 0.0
    for i, (p, q) in product(range(len(x)), product(range(m), repeat=2)):
        if y[i, p] > y[i, q]:
            margin = (theta[p] - theta[q]) @ x[i]
            pull = w[i] * expit(-margin)
            loss += w[i] * np.logaddexp(0, -margin)
            difference = np.zeros_like(theta)
            difference[q] += x[i]
            difference[p] -= x[i]
            plus += pull * np.maximum(difference, 0)
            minus += pull * np.maximum(-difference, 0)
    return plus, minus, loss


class TestLogLinearRanker:
    def test_the_update_is_that_of_its_authors_and_keeps_its_promise(self):
        """Eq. (46) and (47), edge by edge."""
        features, labels = X[:30], Y[:30]
        x = np.column_stack([features, np.ones(30)])
        w = instance_weights(labels, normalize=False)
        rho = 2 * np.abs(x[w > 0]).sum(axis=1).max()
        theta, path = np.zeros((5, 4)), []
        for _ in range(40):
            plus, minus, loss = masses_by_edges(theta, x, labels, w)
            promised = ((np.sqrt(plus) - np.sqrt(minus)) ** 2).sum() / rho
            path.append((loss, promised))
            theta = theta + np.log(minus / plus) / (2 * rho)
        for form in (features, sparse.csr_array(features)):
            ranker = LogLinearRanker(n_iterations=40).fit(form, labels)
            assert_allclose(ranker.rho_, rho)
            assert_allclose(ranker.coef_, theta[:, :-1], rtol=1e-7, atol=1e-9)
            centred = ranker.intercept_ - ranker.intercept_.mean()
            assert_allclose(centred, theta[:, -1] - theta[:, -1].mean(), rtol=1e-7, atol=1e-9)
            assert_allclose(ranker.loss_curve_, [loss for loss, _ in path], rtol=1e-10)
        for (loss, promised), (after, _) in pairwise(path):
            assert promised > 0
            assert loss - after >= promised * (1 - 1e-9)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_the_loss_falls_with_every_update(self, dtype):
        ranker = LogLinearRanker(n_iterations=300).fit(X.astype(dtype), Y)
        assert (np.diff(ranker.loss_curve_) < 1e-6 * ranker.loss_curve_[0]).all()
        assert (np.diff(ranker.loss_curve_[:50]) < 0).all()

    def test_the_limit_is_the_minimum_that_lbfgs_finds(self):
        slow = LogLinearRanker(n_iterations=6000).fit(X, Y)
        quick = LogLinearRanker(algorithm="lbfgs", tol=1e-10).fit(X, Y)
        assert_allclose(slow.loss_curve_[-1], quick.objective_, rtol=1e-6)
        apart = slow.decision_function(X) - quick.decision_function(X)
        assert_allclose(apart - apart.mean(axis=1, keepdims=True), 0, atol=5e-3)

    def test_lbfgs_with_a_ridge_is_the_pairwise_ranker(self):
        ridge = LogLinearRanker(algorithm="lbfgs", C=2.0).fit(X, Y)
        assert_allclose(ridge.coef_, PairwiseRanker(C=2.0).fit(X, Y).coef_)

    def test_stages_are_shorter_fits(self):
        ranker = LogLinearRanker(n_iterations=120).fit(X, Y)
        assert_array_equal(ranker.stages_, [1, 2, 5, 10, 20, 50, 100, 120])
        every = list(ranker.staged_decision_function(X))
        assert len(every) == 8
        assert_allclose(every[-1], ranker.decision_function(X))
        some = list(ranker.staged_decision_function(X, at=[10, 100]))
        for n_iterations, scores in zip((10, 100), some, strict=True):
            alone = LogLinearRanker(n_iterations=n_iterations).fit(X, Y).decision_function(X)
            apart = alone - scores
            assert_allclose(apart, np.full_like(apart, apart.mean()), atol=1e-12)
        chosen = LogLinearRanker(n_iterations=120, stages=[7, 33]).fit(X, Y)
        assert_array_equal(chosen.stages_, [7, 33])
        assert len(list(chosen.staged_decision_function(X, at=[33]))) == 1
        two = LogLinearRanker(n_iterations=5).fit(X, X[:, 0] > 0)
        assert [scores.shape for scores in two.staged_decision_function(X)] == [(120,)] * 3

    def test_the_default_stages_hold_the_papers_grid(self):
        paper = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000]
        assert set(paper) <= set(LogLinearRanker(n_iterations=20_000)._kept_stages())

    def test_stages_that_were_not_kept_are_refused_in_words(self):
        ranker = LogLinearRanker(n_iterations=20).fit(X, Y)
        for at in ([3], [10, 5], [40]):
            with pytest.raises(ValueError, match=r"kept, ascending: 1, 2, 5, 10, 20; got .*stages"):
                ranker.staged_decision_function(X, at=at)
        quick = LogLinearRanker(algorithm="lbfgs", C=1.0).fit(X, Y)
        with pytest.raises(ValueError, match="only algorithm='parallel' has stages"):
            quick.staged_decision_function(X)
        refitted = ranker.set_params(algorithm="lbfgs", C=1.0).fit(X, Y)
        with pytest.raises(ValueError, match="only algorithm='parallel' has stages"):
            refitted.staged_decision_function(X)

    def test_hopeless_scaling_is_a_warning(self):
        ranked = np.argmax(Y.sum(axis=1) % 5)
        for harmless in (X, 1e6 * X, X + 2, np.hstack([X, np.ones((120, 1))])):
            LogLinearRanker(n_iterations=2).fit(harmless, Y)
        for bad in (X * [1, 1, 1e6], np.where(np.arange(120)[:, None] == ranked, 1e7, 1) * X):
            for form in (bad, sparse.csr_array(bad)):
                with pytest.warns(ConvergenceWarning, match="standardise the features"):
                    LogLinearRanker(n_iterations=2).fit(form, Y)


@pytest.mark.parametrize("ranker", SMALL_PROBLEMS, ids=repr)
class TestManners:
    def test_labels_never_or_always_relevant(self, ranker):
        labels = np.hstack([np.zeros((120, 1), int), Y, np.ones((120, 1), int)])
        fitted = clone(ranker).fit(X, labels)
        ranked = fitted.rank(1e3 * X)
        assert (ranked[:, 0] == 6).all()
        assert (ranked[:, -1] == 0).all()
        assert_array_equal(fitted.coef_[[0, 6]], 0)

    def test_no_pairs_at_all(self, ranker):
        assert clone(ranker).fit(X[:1], Y[:1]).rank(X[:1]).shape == (1, 5)
        assert clone(ranker).fit(X, Y[:, :1]).rank(X, top=1).shape == (120, 1)
        assert clone(ranker).fit(X, np.zeros((120, 2), int)).rank(X).shape == (120, 2)
        two = np.column_stack([np.ones(120, int), Y[:, 0]])
        assert (clone(ranker).fit(X, two).rank(X)[:, 0] == 0).all()

    def test_every_form_of_input_gives_the_same_ranker(self, ranker):
        reference = clone(ranker).fit(X, Y)
        for form in (np.asfortranarray, sparse.csr_array, sparse.csc_matrix, lambda x: x.tolist()):
            assert_allclose(clone(ranker).fit(form(X), Y).coef_, reference.coef_, atol=1e-6)
        for form in (sparse.csr_array, lambda y: y.astype(bool), lambda y: y.tolist()):
            assert_array_equal(clone(ranker).fit(X, form(Y)).coef_, reference.coef_)
        names = np.array(list("abcde"))
        by_name = clone(ranker).fit(X, [set(names[row == 1]) for row in Y])
        assert_array_equal(by_name.rank(X, top=3), names[reference.rank(X, top=3)])
        order = np.argsort(-reference.decision_function(X), axis=1, kind="stable")
        assert_array_equal(reference.rank(X), order)

    def test_sample_weights_count_rows_that_many_times(self, ranker):
        counts = np.random.default_rng(3).integers(0, 4, len(X))
        weighted = clone(ranker).fit(X, Y, sample_weight=counts)
        repeated = clone(ranker).fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))
        assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)

    @pytest.mark.parametrize("threads", ["1", "3"])
    def test_the_number_of_threads_changes_only_rounding(self, ranker, threads, monkeypatch):
        expected = clone(ranker).fit(X, Y).coef_
        monkeypatch.setenv("DELTARANK_NUM_THREADS", threads)
        assert_allclose(clone(ranker).fit(X, Y).coef_, expected, atol=1e-6)

    def test_predictions_have_as_many_labels_as_training_rows(self, ranker):
        predicted = clone(ranker).fit(X, Y).predict(X)
        ranked = (Y.sum(axis=1) % 5) > 0
        assert abs(predicted[ranked].sum() - Y[ranked].sum()) <= 1

    def test_scores_are_offered_as_no_chances(self, ranker):
        assert not hasattr(clone(ranker).fit(X, Y), "marginal_weights")

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_data_frames_keep_their_names(self, ranker, library):
        module = pytest.importorskip(library)
        frame = module.DataFrame({f"feature {j}": X[:, j] for j in range(3)})
        targets = module.DataFrame({f"label {j}": Y[:, j] for j in range(5)})
        fitted = clone(ranker).fit(frame, targets)
        assert_allclose(fitted.coef_, clone(ranker).fit(X, Y).coef_, atol=1e-6)
        assert fitted.rank(frame[:1], top=1)[0, 0].startswith("label")

    def test_clone_pickle_pipeline_and_search(self, ranker):
        fitted = clone(ranker).fit(X, Y)
        assert_array_equal(pickle.loads(pickle.dumps(fitted)).rank(X), fitted.rank(X))
        pipeline = make_pipeline(StandardScaler(), clone(ranker))
        name = pipeline.steps[-1][0]
        grid = {f"{name}__weight": ["rank", "uniform"]}
        search = GridSearchCV(pipeline, grid, scoring=get_scorer("neg_rank_loss"), cv=3).fit(X, Y)
        assert rank_loss(Y, search.decision_function(X)) < 0.2

    def test_bad_input_is_refused_in_words(self, ranker):
        cases = [
            ({"weight": "rnk"}, X, Y, "unknown weight 'rnk'; choose one of"),
            ({"tol": 0}, X, Y, "tol must be positive"),
            ({"C": -1.0}, X, Y, "C must be positive and finite; got -1.0"),
            ({}, X[:5], Y, "X and Y must have the same number of rows; X has 5 and Y has 120"),
            ({}, X, 2 * Y, "Y must hold only 0 and 1; got 2"),
            ({}, np.where(X > 2, np.nan, X), Y, "NaN"),
        ]
        for options, features, labels, words in cases:
            with pytest.raises(ValueError, match=words):
                clone(ranker).set_params(**options).fit(features, labels)
        with pytest.raises(ValueError, match="sample_weight times weight is zero in every row"):
            clone(ranker).fit(X, Y, sample_weight=np.zeros(120))


@pytest.mark.parametrize(
    ("ranker", "words"),
    [
        (PairwiseRanker(loss="zero-one"), "unknown loss 'zero-one'; choose one of all_pairs_sq"),
        (PairwiseRanker(loss="linear"), "unknown loss 'linear'"),
        (PairwiseRanker(max_iter=0), "max_iter must be a positive integer; got 0"),
        (LogLinearRanker(n_iterations=0), "n_iterations must be a positive integer; got 0"),
        (LogLinearRanker(algorithm="sgd"), "unknown algorithm 'sgd'; choose one of lbfgs"),
        (LogLinearRanker(stages=[0]), "each of stages must be a positive integer; got 0"),
        (LogLinearRanker(stages=[2000]), "from 1 to n_iterations=1000; got .2000."),
        (LogLinearRanker(stages=[]), "from 1 to n_iterations=1000; got .."),
    ],
)
def test_bad_parameters_are_refused_in_words(ranker, words):
    with pytest.raises(ValueError, match=words):
        ranker.fit(X, Y)


def test_separable_labels_end_in_a_warning_at_most():
    labels = (X[:, :3] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for ranker in (
            LogLinearRanker(n_iterations=200),
            LogLinearRanker(algorithm="lbfgs", n_iterations=100),
            PairwiseRanker(loss="exponential", C=1e6),
        ):
            scores = ranker.fit(X, labels).decision_function(X)
            assert np.isfinite(scores).all()
            assert rank_loss(labels, scores) < 0.02
