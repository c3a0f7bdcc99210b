"""Dask collections: the same coefficients as here, no data at the client, and lost workers."""

import os
import signal
import sys

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from deltarank import LogisticRanker, PairwiseRanker, instance_weights, metrics, rank_loss
from deltarank.linear.rows import tuning
from deltarank.linear.rows.cluster import ClusterRows
from deltarank.metrics import StreamingMetric

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pandas = pytest.importorskip("pandas")

# To the last digits that float32 cells give: else the two stop at different points.
EXACT = {"tol": 1e-12}
ROWS = (700, 1, 900, 399)


def problem(n=2000, d=6, m=7, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d)) * np.logspace(0, 2, d) + 5
    hidden = (X - 5) / np.logspace(0, 2, d) @ generator.normal(size=(d, m))
    return X, (hidden + generator.normal(size=(n, m)) > np.linspace(-0.5, 3, m)).astype(int)


X, Y = problem()
COUNTS = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)


def chunked(array, rows=ROWS):
    return da.from_array(array, chunks=(rows, *((-1,) * (array.ndim - 1))))


def as_csr(array, rows=ROWS):
    return chunked(array, rows).map_blocks(sparse.csr_array)


@pytest.fixture(scope="module")
def client():
    """Two real worker processes, small so that a dead one is soon replaced."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(processes=True, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def passes_over_row_blocks(monkeypatch):
    """Small data would be solved by another method here."""
    monkeypatch.setattr(tuning.LOCAL, "largest_table", 0)


def assert_same(ranker, reference, atol=1e-5):
    deviations = X.std(axis=0)
    of_units = ranker.coef_ * deviations, reference.coef_ * deviations
    assert_allclose(*of_units, atol=atol, rtol=atol)
    assert_allclose(ranker.intercept_, reference.intercept_, atol=atol, rtol=atol)


FORMS = {
    "dense": (chunked, chunked),
    "sparse features": (as_csr, chunked),
    "sparse labels": (chunked, as_csr),
    "both sparse": (as_csr, as_csr),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight": "uniform", "positive_cost": 3.0, "C": 0.1},
        {"weight": ("ndcg", 2), "balance": 0.5, "penalize_intercept": True},
    ],
)
def test_coefficients_are_those_of_a_local_fit(client, form, options):
    features, labels = FORMS[form]
    ranker = LogisticRanker(**options, **EXACT).fit(features(X), labels(Y), chunked(COUNTS))
    assert_same(ranker, LogisticRanker(**options, **EXACT).fit(X, Y, COUNTS))
    assert ranker.n_features_in_ == 6
    assert_array_equal(ranker.classes_, np.arange(7))


def test_unknown_labels_have_no_loss_on_workers_either(client):
    labels = Y.astype(float)
    labels[np.random.default_rng(5).random(Y.shape) < 0.2] = np.nan
    ranker = LogisticRanker(**EXACT).fit(chunked(X), chunked(labels))
    assert_same(ranker, LogisticRanker(**EXACT).fit(X, labels))


@pytest.mark.parametrize("loss", ["exponential", "squared", "squared_hinge"])
def test_every_loss_is_minimised_on_workers(client, loss):
    ranker = LogisticRanker(loss=loss, **EXACT).fit(as_csr(X), chunked(Y))
    assert_same(ranker, LogisticRanker(loss=loss, **EXACT).fit(X, Y), atol=1e-4)


def test_float32_stays_float32(client):
    narrow = X.astype(np.float32)
    ranker = LogisticRanker(**EXACT).fit(chunked(narrow), chunked(Y), COUNTS)
    assert ranker.coef_.dtype == np.float32
    assert_same(ranker, LogisticRanker(**EXACT).fit(narrow, Y, COUNTS), atol=5e-5)


def test_data_frames_give_their_names(client):
    names = [f"x{j}" for j in range(6)]
    frame = pandas.DataFrame(X, columns=names)
    marks = pandas.DataFrame(Y, columns=list("abcdefg"))
    pieces = dd.from_pandas(frame, npartitions=3), dd.from_pandas(marks, npartitions=3)
    ranker = LogisticRanker(**EXACT).fit(*pieces)
    assert_same(ranker, LogisticRanker(**EXACT).fit(X, Y))
    assert ranker.feature_names_in_.tolist() == names
    ranked = ranker.rank(pieces[0], top=2)
    assert_array_equal(ranked.compute(), ranker.rank(frame, top=2))
    expected = rank_loss(Y, ranker.decision_function(frame))
    assert rank_loss(pieces[1], ranker.decision_function(pieces[0])) == expected


def test_a_callable_weight_sees_rows_of_one_chunk(client):
    def few_labels(marks):
        return 1.0 / (1 + np.asarray(marks).sum(axis=1))

    ranker = LogisticRanker(weight=few_labels, **EXACT).fit(chunked(X), chunked(Y))
    assert_same(ranker, LogisticRanker(weight=few_labels, **EXACT).fit(X, Y))


def test_a_warm_start_begins_where_the_last_fit_ended(client):
    ranker = LogisticRanker(warm_start=True, **EXACT).fit(chunked(X), chunked(Y))
    again = ranker.n_iter_.max()
    assert ranker.fit(chunked(X), chunked(Y)).n_iter_.max() < again


def test_without_a_client_the_fit_runs_in_this_process():
    ranker = LogisticRanker(**EXACT).fit(chunked(X), chunked(Y))
    assert_same(ranker, LogisticRanker(**EXACT).fit(X, Y))


def test_neither_features_nor_labels_come_to_the_client(client, monkeypatch):
    gathered = []
    plain = distributed.Client._gather

    async def watched(self, futures, *args, **options):
        found = await plain(self, futures, *args, **options)
        gathered.extend(found if isinstance(found, list) else [found])
        return found

    monkeypatch.setattr(distributed.Client, "_gather", watched)
    future_result = distributed.Future._result

    async def watched_result(self, *args, **options):
        found = await future_result(self, *args, **options)
        gathered.append(found)
        return found

    monkeypatch.setattr(distributed.Future, "_result", watched_result)
    LogisticRanker().fit(chunked(X), chunked(Y))
    sizes = [array.shape for array in arrays_in(gathered)]
    assert len(sizes) > 10
    assert all(length <= 7 for shape in sizes for length in shape), "no array has one row per row"


def arrays_in(value):
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, list | tuple | set):
        return [array for item in value for array in arrays_in(item)]
    return []


class TestScores:
    @pytest.fixture
    def ranker(self):
        return LogisticRanker().fit(X, Y)

    def test_scores_and_rankings_are_lazy_and_the_same(self, client, ranker):
        rows = chunked(X)
        for method in ("decision_function", "marginal_weights", "predict", "rank"):
            lazy = getattr(ranker, method)(rows)
            assert isinstance(lazy, da.Array)
            assert lazy.chunks == (ROWS, (7,))
            expected = getattr(ranker, method)(X)
            assert lazy.dtype == expected.dtype
            # A chunk of one row may be multiplied by another routine, and differ in the last bit.
            assert_allclose(lazy.compute(), expected, rtol=1e-12)

    def test_sparse_predictions_stay_sparse(self, client):
        ranker = LogisticRanker().fit(X, sparse.csr_array(Y))
        block = ranker.predict(chunked(X)).blocks[0].compute()
        assert sparse.issparse(block)
        assert (block != ranker.predict(X[:700])).nnz == 0

    def test_a_vector_of_classes_gives_vectors(self, client):
        names = np.array(["no", "yes"])[Y[:, 1]]
        ranker = LogisticRanker().fit(X, names)
        assert_array_equal(ranker.predict(chunked(X)).compute(), ranker.predict(X))
        scores = ranker.decision_function(chunked(X))
        assert_allclose(scores.compute(), ranker.decision_function(X), rtol=1e-12)

    def test_the_score_is_that_of_all_rows(self, client, ranker):
        assert ranker.score(chunked(X), chunked(Y)) == ranker.score(X, Y)

    def test_label_sets_cannot_be_predicted(self, ranker):
        named = LogisticRanker().fit(X[:9], [{"a"}, {"b"}, {"a", "b"}] * 3)
        with pytest.raises(ValueError, match="fitted on label sets; use rank"):
            named.predict(chunked(X))


class TestMetrics:
    scores = np.round(np.random.default_rng(2).normal(size=Y.shape), 1)

    @pytest.mark.parametrize("labels", [chunked, as_csr])
    def test_a_metric_of_chunks_is_that_of_all_rows_to_the_last_bit(self, client, labels):
        there = labels(Y), chunked(self.scores)
        assert rank_loss(*there) == rank_loss(Y, self.scores)
        assert metrics.ndcg_at_k(*there, k=3) == metrics.ndcg_at_k(Y, self.scores, k=3)
        weighted = rank_loss(*there, sample_weight=chunked(COUNTS))
        assert weighted == rank_loss(Y, self.scores, sample_weight=COUNTS)

    def test_values_a_row_are_lazy(self, client):
        lazy = rank_loss(chunked(Y), chunked(self.scores), per_instance=True)
        assert isinstance(lazy, da.Array)
        assert_array_equal(lazy.compute(), rank_loss(Y, self.scores, per_instance=True))

    def test_batches_may_be_here_or_there(self, client):
        stream = StreamingMetric("rank_loss")
        stream.update(chunked(Y), chunked(self.scores))
        stream.update(Y[:10], self.scores[:10])
        both = np.vstack([Y, Y[:10]]), np.vstack([self.scores, self.scores[:10]])
        assert stream.result() == rank_loss(*both)


class TestLoss:
    """Workers that die, and clusters."""

    @staticmethod
    def kill(client, n_workers):
        for process in list(client.run(os.getpid).values())[:n_workers]:
            os.kill(process, signal.SIGKILL)

    @pytest.mark.parametrize("n_killed", [1, 2])
    def test_a_fit_outlives_workers_killed_in_the_middle(self, client, monkeypatch, n_killed):
        n_passes = 0
        plain = ClusterRows.evaluate

        def killing(self, *args):
            nonlocal n_passes
            n_passes += 1
            if n_passes == 3:
                TestLoss.kill(client, n_killed)
            return plain(self, *args)

        monkeypatch.setattr(ClusterRows, "evaluate", killing)
        ranker = LogisticRanker(**EXACT).fit(chunked(X), chunked(Y))
        assert n_passes > 3
        assert_same(ranker, LogisticRanker(**EXACT).fit(X, Y))

    def test_a_cluster_that_goes_away_is_named(self, monkeypatch):
        options = {"n_workers": 1, "processes": False, "dashboard_address": ":0"}
        plain = ClusterRows.evaluate

        def closing(self, *args):
            cluster.close()
            return plain(self, *args)

        monkeypatch.setattr(ClusterRows, "evaluate", closing)
        with (
            distributed.LocalCluster(**options) as cluster,
            distributed.Client(cluster),
            pytest.raises(ConnectionError, match=r"Dask cluster at .* went away"),
        ):
            LogisticRanker().fit(chunked(X), chunked(Y))


class TestRefusals:
    @pytest.mark.parametrize(
        ("features", "labels", "message"),
        [
            (chunked(X), chunked(Y, 500), "Y must be chunked as X is.*700, 1, 900, 399 rows and"),
            (chunked(X).rechunk({1: 2}), chunked(Y), r"X must be chunked by rows.*3 chunks: use"),
            (chunked(X), chunked(Y).rechunk({1: 2}), r"Y must be chunked by rows only"),
            (
                chunked(X)[chunked(X)[:, 0] > 5],
                chunked(Y),
                "X has chunks of unknown size",
            ),
            (chunked(X), Y, r"Y must be a Dask collection, as X is; got ndarray: use dask"),
            (X, chunked(Y), r"X must be a Dask collection, as Y is; got ndarray"),
            (chunked(X), chunked(Y)[:, 0], r"Y must have shape \(n, columns\).*use Y.reshape"),
            (chunked(X), chunked(2 * Y), "in chunk .: Y must hold only 0 and 1; got 2"),
            (chunked(np.where(X > 100, np.nan, X)), chunked(Y), "in chunk .: Input X contains NaN"),
        ],
    )
    def test_chunks_that_do_not_fit(self, client, features, labels, message):
        with pytest.raises(ValueError, match=message):
            LogisticRanker().fit(features, labels)

    def test_partitions_that_do_not_fit(self, client):
        frame = dd.from_pandas(pandas.DataFrame(X), npartitions=2)
        marks = dd.from_pandas(pandas.DataFrame(Y), npartitions=3)
        with pytest.raises(ValueError, match="X has 2 chunks and Y has 3"):
            LogisticRanker().fit(frame, marks)
        with pytest.raises(ValueError, match=r"in chunk .: X and Y must have the same number"):
            LogisticRanker().fit(frame, chunked(Y, (999, 1001)))
        with pytest.raises(ValueError, match="sample_weight must be chunked as X is"):
            LogisticRanker().fit(frame, chunked(Y, (1000, 1000)), COUNTS)

    def test_weights_that_count_nothing(self, client):
        with pytest.raises(ValueError, match="sample_weight times weight is zero in every row"):
            LogisticRanker().fit(chunked(X), chunked(Y), np.zeros(len(X)))
        with pytest.raises(ValueError, match="weight gives 0 to every row"):
            LogisticRanker(weight=lambda Y: np.zeros(len(Y))).fit(chunked(X), chunked(Y))

    def test_dense_and_sparse_chunks_do_not_mix(self, client):
        mixed = da.concatenate([as_csr(X[:1000], (1000,)), chunked(X[1000:], (1000,))])
        with pytest.raises(ValueError, match="all dense or all sparse"):
            LogisticRanker().fit(mixed, chunked(Y, (1000, 1000)))

    def test_rankers_that_need_all_rows_here_do_not_collect_them(self):
        with pytest.raises(ValueError, match="which PairwiseRanker does not take here"):
            PairwiseRanker().fit(chunked(X), chunked(Y))

    def test_a_library_that_is_missing_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "distributed", None)
        with pytest.raises(ImportError, match=r"pip install 'deltarank\[dask\]'"):
            LogisticRanker().fit(chunked(X), chunked(Y))


def test_no_row_with_a_pair_still_gives_a_fit(client):
    full = np.ones((40, 2), int)
    ranker = LogisticRanker().fit(chunked(X[:40], (20, 20)), chunked(full, (20, 20)))
    assert_array_equal(ranker.intercept_, LogisticRanker().fit(X[:40], full).intercept_)


# A share of the memory that chunks may take before they go to disk.
SMALL_SHARE = {"distributed.worker.memory.target": 0.03}


@pytest.mark.parametrize(
    ("n_chunks", "limit", "config"),
    [
        pytest.param(6, 1e9, SMALL_SHARE, id="beyond the share for data"),
        pytest.param(24, 7e8, {}, id="beyond all memory", marks=pytest.mark.slow),
    ],
)
def test_data_larger_than_memory(tmp_path, monkeypatch, n_chunks, limit, config):
    """Chunks that do not fit are written to disk and read again in every pass."""
    rows, on_disk = 50_000, []
    plain = ClusterRows.evaluate

    def watched(self, *args):
        found = plain(self, *args)
        files = (path for path in tmp_path.rglob("*") if path.is_file())
        on_disk.append(sum(path.stat().st_size for path in files))
        return found

    monkeypatch.setattr(ClusterRows, "evaluate", watched)

    def features(number):
        generator = np.random.default_rng(number)
        return generator.standard_normal((rows, 160), dtype=np.float32)

    def labels(x):
        return (x[:, :4] + 0.5 * x[:, 4:8] > 1).astype(np.int8)

    settings = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        dask.config.set({"temporary-directory": str(tmp_path), **config}),
        distributed.LocalCluster(memory_limit=limit, **settings) as cluster,
        distributed.Client(cluster),
    ):
        parts = [dask.delayed(features)(number) for number in range(n_chunks)]
        X = da.concatenate([da.from_delayed(p, (rows, 160), np.float32) for p in parts])
        Y = X.map_blocks(labels, dtype=np.int8, chunks=(X.chunks[0], (4,)))
        room = limit * config.get("distributed.worker.memory.target", 1.0)
        assert X.nbytes > room
        ranker = LogisticRanker(tol=1e-2, C=1e-4).fit(X, Y)
    assert min(on_disk) > X.nbytes - room
    few = np.vstack([features(number) for number in range(2)])
    reference = LogisticRanker(C=1e-4 * n_chunks / 2).fit(few, labels(few))
    cosines = np.sum(ranker.coef_ * reference.coef_, axis=1)
    cosines /= np.linalg.norm(ranker.coef_, axis=1) * np.linalg.norm(reference.coef_, axis=1)
    assert cosines.min() > 0.99


# Until release 1.6 joblib warned of a method of its own backend for Dask.
@pytest.mark.filterwarnings("ignore:.apply_async. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("backend", ["loky", "threading", "dask"])
def test_label_shards_give_the_same_coefficients(client, backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        ranker = LogisticRanker(**EXACT).fit(X, Y, COUNTS)
    assert_same(ranker, LogisticRanker(**EXACT).fit(X, Y, COUNTS))
    assert ranker.n_iter_.shape == (7,)


def test_weights_of_shards_are_those_of_whole_label_sets():
    ranker = LogisticRanker(n_jobs=3, **EXACT).fit(X, Y)
    # One label has no pairs, so that its rows count what they are given.
    by_hand = LogisticRanker(**EXACT).fit(X, Y[:, :1], instance_weights(Y))
    assert_allclose(ranker.coef_[:1], by_hand.coef_, atol=1e-5)


def test_blocks_on_a_cluster_are_kept_and_pruned(client, tmp_path):
    options = {"prune": 0.01, "checkpoint": str(tmp_path / "blocks"), **EXACT}
    ranker = LogisticRanker(**options).fit(as_csr(X), chunked(Y))
    again = LogisticRanker(**options).fit(as_csr(X), chunked(Y))
    assert (ranker.coef_ != again.coef_).nnz == 0
    reference = LogisticRanker(prune=0.01, **EXACT).fit(sparse.csr_array(X), Y)
    assert_allclose(ranker.coef_.toarray(), reference.coef_.toarray(), atol=1e-4)
    with pytest.raises(ValueError, match="other data or other parameters"):
        LogisticRanker(**options).fit(as_csr(X + 1), chunked(Y))
