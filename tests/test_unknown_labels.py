"""NaN in Y means unknown: such cells carry no loss and no pair, in fits and in metrics."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from deltarank import (
    AdaBoostMH,
    AdaBoostMR,
    AdaBoostRanker,
    KernelLogisticRanker,
    LabelStratifiedKFold,
    LogisticRanker,
    LogisticRankerCV,
    LogLinearRanker,
    PairwiseRanker,
    StagedSearchCV,
    WeightedBinaryRelevance,
    instance_weights,
    metrics,
    rank_loss,
)
from deltarank.core import devices
from deltarank.core.labels import label_sets
from deltarank.datasets import write_libsvm
from deltarank.linear.rows import tuning
from deltarank.metrics import StreamingMetric
from deltarank.theory import LabelDistribution
from oracles import mean_over_tie_orders, rank_loss_by_pairs

N, D, M = 600, 4, 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) + 3
TRUTH = (X @ RNG.normal(size=(D, M)) + RNG.logistic(size=(N, M)) > RNG.uniform(-3, 3, M)) * 1.0
# Frequent labels are hidden more often, and more so where the first feature is large.
HIDDEN = RNG.uniform(size=(N, M)) < np.linspace(0, 0.6, M) * (0.5 + (X[:, :1] > 3))
Y = np.where(HIDDEN, np.nan, TRUTH)


def weights_by_hand(Y, weigh):
    """w of the known labels of each row, of mean 1 over rows with a known pair, Eq. (44)."""
    weights = []
    for row in Y:
        s, r = (row == 1).sum(), (row == 0).sum()
        weights.append(weigh(s, r) if s and r else 0.0)
    weights = np.array(weights)
    return weights / weights[weights > 0].mean()


def as_csr(Y):
    """The matrix with zeros left out and NaN stored."""
    return sparse.csr_array(Y)


def objective(ranker, label, X, Y, weights, costs=1.0):
    known = ~np.isnan(Y[:, label])
    scores = X[known] @ ranker.coef_[label] + ranker.intercept_[label]
    relevant = Y[known, label] == 1
    losses = np.where(relevant, costs * np.logaddexp(0, -scores), np.logaddexp(0, scores))
    return weights[known] @ losses + (ranker.coef_[label] ** 2).sum() / (2 * ranker.C)


class TestWeights:
    @pytest.mark.parametrize(
        ("weight", "weigh"),
        [
            ("rank", lambda s, r: 1 / (s * r)),
            ("uniform", lambda s, r: 1.0),
            ("recall", lambda s, r: 1 / s),
            ("min", lambda s, r: 1 / min(s, r)),
            ("ndcg", lambda s, r: 1 / sum(1 / np.log2(1 + k) for k in range(1, s + 1))),
            (
                ("ndcg", 2),
                lambda s, r: 1 / sum(1 / np.log2(1 + k) for k in range(1, min(s, 2) + 1)),
            ),
        ],
    )
    def test_they_count_the_known_labels(self, weight, weigh):
        assert_allclose(instance_weights(Y, weight), weights_by_hand(Y, weigh))

    def test_forms_of_y_agree(self):
        plain = instance_weights(Y)
        for form in (as_csr(Y), pd.DataFrame(Y), pl.DataFrame(Y), Y.astype(np.float32)):
            assert_array_equal(instance_weights(form), plain)
        nullable = pd.DataFrame(Y).astype("Int64")
        assert nullable.isna().to_numpy().any()
        assert_array_equal(instance_weights(nullable), plain)
        with_none = np.where(np.isnan(Y), None, Y)
        assert_array_equal(instance_weights(with_none), plain)

    def test_a_matrix_comes_back_as_it_was(self):
        assert_array_equal(label_sets(Y).to_matrix().toarray(), Y)
        assert_array_equal(label_sets(Y).take(np.arange(3)).to_matrix().toarray(), Y[:3])


ROW = st.lists(st.sampled_from([0.0, 1.0, np.nan]), min_size=1, max_size=5)


class TestMetrics:
    @given(st.data())
    def test_they_are_those_of_the_known_labels(self, data):
        y = np.array(data.draw(ROW))
        h = np.array(
            data.draw(st.lists(st.integers(0, 2), min_size=len(y), max_size=len(y))), float
        )
        known = ~np.isnan(y)
        labels, scores = y[known].astype(int), h[known]
        s, r = int(labels.sum()), int((1 - labels).sum())
        w = 1 / (s * r) if s and r else 0.0
        assert_allclose(rank_loss([y], [h]), rank_loss_by_pairs(labels, scores, w))
        assert_allclose(
            rank_loss([y], [h], weight="uniform"),
            rank_loss_by_pairs(labels, scores, float(w > 0)),
        )
        if s:
            first = mean_over_tie_orders(lambda ranked: ranked[0] == 0, labels, scores)
            assert_allclose(metrics.one_error([y], [h]), first)
            depth = mean_over_tie_orders(lambda ranked: np.flatnonzero(ranked)[-1], labels, scores)
            assert_allclose(metrics.coverage([y], [h]), depth)
            hits = mean_over_tie_orders(lambda ranked: sum(ranked[:1]), labels, scores)
            assert_allclose(metrics.precision_at_k([y], [h], k=1), hits)
            precision = mean_over_tie_orders(
                lambda ranked: np.mean([np.mean(ranked[: i + 1]) for i in np.flatnonzero(ranked)]),
                labels,
                scores,
            )
            assert_allclose(metrics.average_precision([y], [h]), precision)

    @pytest.mark.parametrize("metric", ["rank_loss", "ndcg_at_k", "average_precision"])
    def test_a_stream_gives_the_same(self, metric):
        scores = RNG.normal(size=Y.shape)
        stream = StreamingMetric(metric)
        for rows in np.array_split(np.arange(N), 7):
            stream.update(as_csr(Y[rows]), scores[rows])
        by_rows = getattr(metrics, metric)(Y, scores, per_instance=True)
        assert_allclose(stream.result(), by_rows.mean())
        alone = [
            getattr(metrics, metric)(Y[[i]][:, ~HIDDEN[i]], scores[[i]][:, ~HIDDEN[i]])
            for i in range(N)
            if not HIDDEN[i].all()
        ]
        assert_allclose(by_rows[~HIDDEN.all(axis=1)], alone)

    @pytest.mark.parametrize("loss", ["logistic", "all_pairs_squared", "penalized_linear"])
    def test_pairwise_losses_see_known_pairs_only(self, loss):
        scores = RNG.normal(size=(40, M))
        alone = [
            metrics.pairwise_loss(Y[[i]][:, ~HIDDEN[i]], scores[[i]][:, ~HIDDEN[i]], loss)
            for i in range(40)
        ]
        assert_allclose(metrics.pairwise_loss(Y[:40], scores, loss, per_instance=True), alone)


@pytest.fixture
def engine(request, monkeypatch):
    """Make a ranker use one engine, whatever the size of the data."""
    options = {}
    if request.param != "small":
        monkeypatch.setattr(tuning.LOCAL, "largest_table", 0)
    if request.param.startswith("device"):
        torch = pytest.importorskip("torch", reason="needs PyTorch")
        torch.set_num_threads(1)
        if request.param == "device lbfgs":
            monkeypatch.setattr(tuning.DEVICE, "largest_work", 0)
        to_cpu = lambda name: None if name == "cpu" else torch.device("cpu")  # noqa: E731
        monkeypatch.setattr(devices, "find_device", to_cpu)
        options["device"] = "cuda"
    return options


ENGINES = pytest.mark.parametrize(
    "engine", ["small", "local", "device newton", "device lbfgs"], indirect=True
)


@ENGINES
@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("labels", ["array", "stored NaN"])
def test_each_label_is_a_logistic_regression_on_its_known_rows(engine, features, labels):
    data = sparse.csr_array(X) if features == "sparse" else X
    ranker = LogisticRanker(C=2.0, tol=1e-9, unknown="known_part", **engine)
    ranker.fit(data, as_csr(Y) if labels == "stored NaN" else Y)
    weights = weights_by_hand(Y, lambda s, r: 1 / (s * r))
    for label in range(M):
        rows = ~np.isnan(Y[:, label]) & (weights > 0)
        model = LogisticRegression(C=2.0, tol=1e-12, max_iter=10_000)
        model.fit(X[rows], Y[rows, label], sample_weight=weights[rows])
        assert_allclose(ranker.coef_[label], model.coef_[0], rtol=5e-3, atol=5e-4)
        assert_allclose(ranker.intercept_[label], model.intercept_[0], rtol=5e-3, atol=5e-3)
        least = objective(ranker, label, X, Y, weights)
        assert_allclose(ranker.objective_[label], least, rtol=2e-6)


@ENGINES
def test_balanced_costs_are_those_of_known_labels(engine):
    options = {"unknown": "known_part", "tol": 1e-8, **engine}
    ranker = LogisticRanker(balance=1.0, **options)
    ranker.fit(X, Y)
    s, r = (Y == 1).sum(axis=1), (Y == 0).sum(axis=1)
    ranked = (s > 0) & (r > 0)
    weights, costs = np.zeros(N), np.ones(N)
    weights[ranked] = 1 / r[ranked] / np.mean(2 / (s + r)[ranked])
    costs[ranked] = r[ranked] / s[ranked]
    for label in range(M):
        known = ~np.isnan(Y[:, label])
        least = objective(ranker, label, X, Y, weights, costs[known])
        assert_allclose(ranker.objective_[label], least, rtol=5e-6)
        rows = known & ranked
        model = LogisticRegression(tol=1e-12, max_iter=10_000)
        relevant = Y[rows, label] == 1
        model.fit(
            X[rows], relevant, sample_weight=weights[rows] * np.where(relevant, costs[rows], 1)
        )
        assert_allclose(ranker.coef_[label], model.coef_[0], rtol=5e-3, atol=5e-4)


@ENGINES
def test_folds_leave_unknown_cells_out_too(engine):
    """Every fold of the search is a fit of its own, by hand."""
    options = {"cv": 3, "random_state": 0, "unknown": "known_part", **engine}
    search = LogisticRankerCV(Cs=[0.1, 10.0], **options).fit(X, Y)
    weights = weights_by_hand(Y, lambda s, r: 1 / (s * r))
    splits = LabelStratifiedKFold(3, random_state=0).split(X, Y)
    for fold, (train, test) in enumerate(splits):
        for column, C in enumerate([0.1, 10.0]):
            scores = np.empty((len(test), M))
            for label in range(M):
                rows = train[~np.isnan(Y[train, label]) & (weights[train] > 0)]
                model = LogisticRegression(C=C, tol=1e-8, max_iter=1000)
                model.fit(X[rows], Y[rows, label], sample_weight=weights[rows])
                scores[:, label] = model.decision_function(X[test])
            found = search.cv_results_[f"split{fold}_test_score"][column]
            # Folds are solved to a relative gap of 2 %.
            assert abs(found + rank_loss(Y[test], scores)) < 5e-3


@ENGINES
def test_labels_known_in_no_row_or_of_one_kind_get_their_place(engine):
    odd = Y.copy()
    odd[:, 0] = np.nan
    odd[np.isnan(odd[:, 1]) | (odd[:, 1] == 0), 1] = np.nan
    odd[:50, 1] = 1
    odd[odd[:, 2] == 1, 2] = np.nan
    ranker = LogisticRanker(**engine).fit(X, odd)
    assert ranker.converged_.all()
    assert (ranker.rank(X)[:, 0] == 1).all()
    assert set(ranker.rank(X)[:, -2:].ravel()) == {0, 2}


def test_nothing_unknown_changes_nothing():
    one = LogisticRanker().fit(X, TRUTH)
    two = LogisticRanker().fit(X, TRUTH.astype(int))
    assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize("votes", ["discrete", "real"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_boosting_a_label_is_boosting_its_known_rows(votes, kind):
    levels = np.clip(X.round(), 0, 6)
    data = sparse.csr_array(levels) if kind == "sparse" else levels
    options = {"n_stumps": 12, "votes": votes}
    ranker = AdaBoostRanker(**options).fit(data, Y)
    weights = weights_by_hand(Y, lambda s, r: 1 / (s * r))
    for label in range(M):
        rows = np.flatnonzero(~np.isnan(Y[:, label]) & (weights > 0))
        assert {tuple(np.unique(c)) for c in levels.T} == {
            tuple(np.unique(c)) for c in levels[rows].T
        }
        alone = AdaBoostRanker(**options, weight="uniform")
        alone.fit(data[rows], Y[rows][:, [label]], sample_weight=weights[rows])
        assert_allclose(
            ranker.decision_function(data)[:, label],
            alone.decision_function(data)[:, 0],
            atol=1e-8,
        )


def test_the_reduction_fits_each_label_on_its_known_rows():
    ranker = WeightedBinaryRelevance(LogisticRegression()).fit(X, Y)
    weights = weights_by_hand(Y, lambda s, r: 1 / (s * r))
    for label in range(M):
        rows = ~np.isnan(Y[:, label]) & (weights > 0)
        model = LogisticRegression().fit(X[rows], Y[rows, label], sample_weight=weights[rows])
        assert_allclose(ranker.estimators_[label].coef_, model.coef_, rtol=1e-10)


def test_searches_and_kernels_take_unknown_labels():
    search = StagedSearchCV(AdaBoostRanker(), rounds=[2, 6], cv=2, random_state=0).fit(X, Y)
    again = AdaBoostRanker(n_stumps=search.best_rounds_).fit(X, Y)
    assert_array_equal(search.decision_function(X), again.decision_function(X))
    kernel = KernelLogisticRanker(gamma=0.05, C=1.0, n_landmarks=20, random_state=0).fit(X, Y)
    assert kernel.score(X, Y) > 0.7


def test_a_single_label_may_be_unknown():
    column = Y[:, [3]]
    known = ~np.isnan(column[:, 0])
    ranker = LogisticRanker(C=1.0).fit(X, column)
    model = LogisticRegression(tol=1e-10).fit(X[known], column[known, 0])
    assert_allclose(ranker.coef_, model.coef_, rtol=1e-3)
    assert ranker.predict(X).shape == (N, 1)


@pytest.mark.parametrize(
    "ranker", [AdaBoostMR(), AdaBoostMH(), LogLinearRanker(), PairwiseRanker()], ids=repr
)
@pytest.mark.parametrize("form", [np.asarray, as_csr])
def test_rankers_of_pairs_refuse_and_name_the_way_out(ranker, form):
    row, column = np.argwhere(np.isnan(Y))[0]
    message = (
        f"got nan in row {row}, column {column}: {type(ranker).__name__} takes no unknown labels; "
        "use LogisticRanker"
    )
    with pytest.raises(ValueError, match=message):
        ranker.fit(X, form(Y))


def test_other_refusals(tmp_path):
    with pytest.raises(ValueError, match=r"got nan in row .*label_propensities"):
        metrics.label_propensities(Y)
    with pytest.raises(ValueError, match="no mark for unknown labels"):
        write_libsvm(tmp_path / "rows.txt", X, Y)
    with pytest.raises(ValueError, match="got inf in row 0, column 1"):
        rank_loss(np.array([[np.nan, np.inf]]), [[0.0, 1.0]])
    with pytest.raises(ValueError, match=r"got 2\.0 in row 0, column 1"):
        rank_loss(sparse.csr_array([[np.nan, 2.0]]), [[0.0, 1.0]])


def test_the_example_loses_little_by_what_is_hidden(run_example):
    example = run_example("plot_unknown_labels")
    nan, zero = (values[-1] for values in example["losses"].values())
    assert nan < example["known"] + 0.005 < zero
    best = LabelDistribution.independent([0.95, 0.20, 0.40]).relevances()
    assert_allclose(example["found"]["expected"], np.tile(best, (6, 1)), atol=0.03)
    assert example["found"]["known_part"][-1, 2] < best[1] < best[2] - 0.1
