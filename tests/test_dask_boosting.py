"""Boosting of Dask collections: stumps of a local fit, no rows at the client, dead workers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from deltarank import AdaBoostMH, AdaBoostMR, AdaBoostRanker
from deltarank.boosting import chunked as placing
from deltarank.boosting import cluster_search
from deltarank.boosting.cluster_search import ClusterLabelStumps
from deltarank.boosting.value_summary import ValueSummary
from deltarank.boosting.values import Values

pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")
pandas = pytest.importorskip("pandas")
da = pytest.importorskip("dask.array")

from clusters import as_csr, chunked, kill_workers, two_workers, watched_results  # noqa: E402

N, D, M = 2000, 6, 11


def problem(seed=0):
    """Features of few and of many values, and labels of which one is never and one always there."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(N, D))
    X[:, :4] = np.round(X[:, :4], 1)
    X[generator.random(X.shape) < 0.3] = 0
    noise = generator.normal(size=(N, M))
    Y = (X @ generator.normal(size=(D, M)) + noise > np.linspace(-1, 2, M)).astype(float)
    Y[:, 3], Y[:, 4] = 0, 1
    Y[:5], Y[5:9] = 0, 1
    return X, Y


X, Y = problem()
COUNTS = np.random.default_rng(1).integers(0, 3, N).astype(float)
RARE = np.random.default_rng(2).random((N, max(D, M))) < 0.1
HOLES, UNKNOWN = np.where(RARE[:, :D], np.nan, X), np.where(RARE[:, :M], np.nan, Y)
ENDLESS = np.where(X > 2, np.inf, X)


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


def assert_same(ranker, local):
    """The same stumps; what is added up in another order agrees to rounding."""
    assert_array_equal(ranker.features_, local.features_)
    assert_array_equal(ranker.thresholds_, local.thresholds_)
    assert_array_equal(ranker.n_stumps_, local.n_stumps_)
    assert_array_equal(ranker.constants_, local.constants_)
    assert_allclose(ranker.votes_, local.votes_, rtol=1e-9, atol=1e-9)
    assert_allclose(ranker.normalizers_, local.normalizers_, rtol=1e-9)
    assert_allclose(ranker.first_votes_, local.first_votes_, rtol=1e-9, atol=1e-9)


OPTIONS = {
    "Weka's": {},
    "real votes": {"votes": "real", "criterion": "z", "shrinkage": 0.5, "weight": "uniform"},
    "few bins": {"criterion": "error", "bins": 7, "weight": ("ndcg", 2)},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("features", [chunked, as_csr])
@pytest.mark.parametrize(("x", "y"), [(X, Y), (HOLES, UNKNOWN)], ids=["whole", "with holes"])
def test_stumps_are_those_of_a_local_fit(client, features, options, x, y):
    ranker = AdaBoostRanker(n_stumps=6, **options).fit(features(x), chunked(y), chunked(COUNTS))
    here = sparse.csr_array(x) if features is as_csr else x
    assert_same(ranker, AdaBoostRanker(n_stumps=6, **options).fit(here, y, COUNTS))
    assert ranker.n_features_in_ == D
    assert_array_equal(ranker.classes_, np.arange(M))


def test_scores_of_chunks_are_those_of_a_local_fit(client):
    there, here = AdaBoostRanker(n_stumps=6), AdaBoostRanker(n_stumps=6).fit(X, Y)
    scores = there.fit(chunked(X), as_csr(Y)).decision_function(chunked(HOLES))
    assert_allclose(scores.compute(), here.decision_function(HOLES), rtol=1e-9, atol=1e-9)
    assert sparse.issparse(there.predict(chunked(X)).blocks[0].compute())
    assert there.score(chunked(X), chunked(Y)) == here.score(X, Y)


def test_dense_and_sparse_chunks_mix(client):
    mixed = da.concatenate([as_csr(X[:1000], (1000,)), chunked(X[1000:], (1000,))])
    ranker = AdaBoostRanker(n_stumps=3).fit(mixed, chunked(Y, (1000, 1000)))
    assert_same(ranker, AdaBoostRanker(n_stumps=3).fit(X, Y))


def test_data_frames_may_have_empty_partitions(client):
    names = [f"x{j}" for j in range(D)]
    frame = dd.from_pandas(pandas.DataFrame(X, columns=names), npartitions=3)
    marks = dd.from_pandas(pandas.DataFrame(Y, columns=list("abcdefghijk")), npartitions=3)
    late = [pieces.map_partitions(lambda part: part.loc[700:]) for pieces in (frame, marks)]
    assert len(late[0].partitions[0]) == 0
    ranker = AdaBoostRanker(n_stumps=3).fit(*late)
    assert_same(ranker, AdaBoostRanker(n_stumps=3).fit(X[700:], Y[700:]))
    assert ranker.feature_names_in_.tolist() == names
    assert ranker.classes_.tolist() == list("abcdefghijk")


def test_single_precision_stays_close(client, monkeypatch):
    monkeypatch.setattr("deltarank.boosting.places.FLOAT64_CELLS", 0)
    narrow = X.astype(np.float32)
    ranker = AdaBoostRanker(n_stumps=4).fit(chunked(narrow), chunked(Y))
    local = AdaBoostRanker(n_stumps=4).fit(narrow, Y)
    assert_array_equal(ranker.features_, local.features_)
    assert_array_equal(ranker.thresholds_, local.thresholds_)
    scores = ranker.decision_function(X), local.decision_function(X)
    assert_allclose(*scores, rtol=1e-4, atol=1e-4)


def test_features_without_two_values_leave_the_shares_of_the_labels(client):
    flat = np.ones((N, 2))
    ranker = AdaBoostRanker(n_stumps=3).fit(chunked(flat), chunked(Y))
    assert_same(ranker, AdaBoostRanker(n_stumps=3).fit(flat, Y))


def test_stages_go_on_where_the_last_one_stopped(client):
    there = AdaBoostRanker(n_stumps=5).fit_stages(chunked(X), chunked(Y), stages=[1, 3, 5])
    here = AdaBoostRanker(n_stumps=5).fit_stages(X, Y, stages=[1, 3, 5])
    for ranker, local in zip(there, here, strict=True):
        assert_same(ranker, local)


def test_without_a_client_the_fit_runs_in_this_process():
    ranker = AdaBoostRanker(n_stumps=2).fit(chunked(X), chunked(Y))
    assert_same(ranker, AdaBoostRanker(n_stumps=2).fit(X, Y))


def test_small_messages_and_short_chains_change_nothing(client, monkeypatch):
    monkeypatch.setattr(cluster_search, "MESSAGE_BYTES", 1)
    monkeypatch.setattr(cluster_search, "LONGEST_CHAIN", 2)
    monkeypatch.setattr(placing, "FEATURES_PER_MESSAGE", 1)
    ranker = AdaBoostRanker(n_stumps=7).fit(chunked(X), chunked(Y))
    assert_same(ranker, AdaBoostRanker(n_stumps=7).fit(X, Y))


def test_no_rows_come_to_the_client(client, monkeypatch):
    few_values = np.round(X)
    with watched_results(monkeypatch) as gathered:
        AdaBoostRanker(n_stumps=4).fit(chunked(few_values), chunked(Y))
    shapes = [array.shape for array in arrays_in(gathered)]
    assert len(shapes) > 10
    assert max(length for shape in shapes for length in shape) < 150


def arrays_in(value):
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, list | tuple | set):
        return [array for item in value for array in arrays_in(item)]
    return []


@pytest.mark.parametrize("n_killed", [1, 2])
def test_a_fit_outlives_workers_killed_in_the_middle(client, monkeypatch, n_killed):
    n_rounds = 0
    plain = ClusterLabelStumps._best

    def killing(self, *args):
        nonlocal n_rounds
        n_rounds += 1
        if n_rounds == 4:
            kill_workers(client, n_killed)
        return plain(self, *args)

    monkeypatch.setattr(ClusterLabelStumps, "_best", killing)
    ranker = AdaBoostRanker(n_stumps=7).fit(chunked(X), chunked(Y))
    assert n_rounds == 7
    assert_same(ranker, AdaBoostRanker(n_stumps=7).fit(X, Y))


class TestThresholds:
    """Of values summarised chunk by chunk, and merged."""

    generator = np.random.default_rng(3)

    def merged(self, columns, room):
        summary = ValueSummary.of(columns[0], room)
        for chunk in columns[1:]:
            summary = ValueSummary.merged([summary, ValueSummary.of(chunk, room)], room)
        return summary

    @pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array])
    @pytest.mark.parametrize("bins", [4, 50, 256])
    def test_are_exact_while_there_is_room_for_all_values(self, kind, bins):
        whole = np.round(self.generator.normal(size=(900, 3)), 1)
        whole[:, 1] = 0
        whole[self.generator.random(900) < 0.1, 2] = np.nan
        chunks = [kind(part) for part in np.split(whole, [100, 100, 500])]
        found = self.merged(chunks, 100).features()
        for column, feature in zip(whole.T, found, strict=True):
            assert_array_equal(feature.thresholds(bins), Values.of(column).thresholds(bins))

    def test_are_quantiles_to_a_row_in_room_for_every_merge(self):
        n_chunks, room, bins, n = 5, 256, 8, 30_000
        whole = self.generator.lognormal(size=(n, 1))
        (feature,) = self.merged(np.array_split(whole, n_chunks), room).features()
        assert len(feature.distinct) <= room
        assert feature.counts.sum() == n
        shares = (whole <= feature.thresholds(bins)).mean(axis=0)
        # One loss of at most 1 / room for a chunk, one for each merge, one for the midpoint.
        assert_allclose(shares, np.arange(1, bins) / bins, atol=(n_chunks + 1) / room, rtol=0)

    def test_a_heavy_value_keeps_its_rows(self):
        whole = np.append(np.zeros(5000), self.generator.normal(size=5000))[:, None]
        self.generator.shuffle(whole)
        (feature,) = self.merged(np.array_split(whole, 4), 32).features()
        place = np.flatnonzero(feature.distinct == 0)
        assert feature.counts[place] >= 5000


class TestRefusals:
    @pytest.mark.parametrize(
        ("ranker", "features", "labels", "message"),
        [
            (AdaBoostRanker(bins=None), chunked(X), chunked(Y), "bins=None searches every"),
            (AdaBoostRanker(device="cuda"), chunked(X), chunked(Y), 'device must be "cpu" or'),
            (AdaBoostRanker(), chunked(X), Y, "Y must be a Dask collection, as X is"),
            (AdaBoostRanker(), X, chunked(Y), "X must be a Dask collection, as Y is"),
            (AdaBoostRanker(), chunked(X), chunked(Y, 500), "Y must be chunked as X is"),
            (AdaBoostRanker(), chunked(X), chunked(Y)[:, 0], "use Y.reshape"),
            (AdaBoostRanker(), chunked(X), chunked(2 * Y), "in chunk .: Y must hold only 0 and 1"),
            (AdaBoostRanker(), chunked(ENDLESS), chunked(Y), "in chunk .: Input X contains inf"),
            (AdaBoostMH(), chunked(X), chunked(Y), "which AdaBoostMH does not take here"),
            (AdaBoostMR(), chunked(X), chunked(Y), "LogisticRanker.fit and AdaBoostRanker.fit do"),
        ],
    )
    def test_what_does_not_fit_is_named(self, client, ranker, features, labels, message):
        with pytest.raises(ValueError, match=message):
            ranker.fit(features, labels)

    def test_weights_that_count_nothing(self, client):
        with pytest.raises(ValueError, match="sample_weight times weight is zero in every row"):
            AdaBoostRanker().fit(chunked(X), chunked(Y), np.zeros(N))
        with pytest.raises(ValueError, match="weight gives 0 to every row"):
            AdaBoostRanker(weight=lambda Y: np.zeros(len(Y))).fit(chunked(X), chunked(Y))
