"""Metrics of Dask collections: those of all rows in memory to the last bit, and no row travels."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from deltarank import AdaBoostRanker, metrics
from deltarank.metrics import METRICS, RankingScorer, StreamingMetric, label_propensities
from deltarank.metrics.kernels.pairwise import PAIRWISE
from deltarank.metrics.table import LabelMetric

pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pandas = pytest.importorskip("pandas")

from clusters import as_csr, chunked, two_workers, watched_results  # noqa: E402

N, M = 2000, 9
GENERATOR = np.random.default_rng(0)
# Sets of every size, empty and full ones too, and scores with ties.
Y = (GENERATOR.random((N, M)) < GENERATOR.random((N, 1)) ** 2).astype(float)
Y[:3], Y[3:6] = 0, 1
SCORES = np.round(GENERATOR.normal(size=(N, M)), 1)
COUNTS = GENERATOR.random(N)
UNKNOWN = np.where(GENERATOR.random((N, M)) < 0.1, np.nan, Y)
UNKNOWN[:900] = Y[:900]  # the first chunks know all

OPTIONS = {
    "precision_at_k": {"k": 3},
    "recall_at_k": {"k": 3},
    "ndcg_at_k": {"k": 4},
    "propensity_scored_precision_at_k": {"k": 3, "propensities": np.linspace(0.2, 1, M)},
    "propensity_scored_ndcg_at_k": {"k": 3, "propensities": np.linspace(0.2, 1, M)},
    "macro_precision_at_k": {"k": 3},
    "macro_recall_at_k": {"k": 3},
    "macro_f1_at_k": {"k": 3},
    "coverage_at_k": {"k": 3},
}


def as_frame(array):
    names = [f"c{j}" for j in range(array.shape[1])]
    return dd.from_pandas(pandas.DataFrame(array, columns=names), npartitions=3)


FORMS = {"dense": (chunked, chunked), "sparse": (as_csr, chunked), "frames": (as_frame, as_frame)}


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("labels", [Y, UNKNOWN], ids=["known", "unknown"])
@pytest.mark.parametrize("name", METRICS)
def test_a_metric_of_chunks_is_that_of_all_rows_to_the_last_bit(client, name, labels, form):
    metric, options = getattr(metrics, name), OPTIONS.get(name, {})
    there = [cut(array) for cut, array in zip(FORMS[form], (labels, SCORES), strict=True)]
    assert metric(*there, **options) == metric(labels, SCORES, **options)
    if isinstance(METRICS[name], LabelMetric):
        values = metric(*there, **options, per_label=True)
        assert_array_equal(values, metric(labels, SCORES, **options, per_label=True))
    else:
        values = metric(*there, **options, per_instance=True)
        assert isinstance(values, da.Array)
        assert_array_equal(values.compute(), metric(labels, SCORES, **options, per_instance=True))
    if form != "frames":
        weighted = metric(*there, **options, sample_weight=chunked(COUNTS))
        assert weighted == metric(labels, SCORES, **options, sample_weight=COUNTS)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rank_loss", {"weight": lambda marks: np.asarray(marks).sum(axis=1)}),
        ("rank_loss", {"weight": ("ndcg", 2), "ties": "full", "trivial": "skip"}),
        ("one_error", {"trivial": "skip"}),
        ("ndcg_at_k", {}),
    ],
)
def test_options_reach_every_chunk(client, name, options):
    metric = getattr(metrics, name)
    there = metric(chunked(Y), chunked(SCORES), **options)
    assert there == metric(Y, SCORES, **options)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("labels", [Y, UNKNOWN], ids=["known", "unknown"])
@pytest.mark.parametrize("name", PAIRWISE)
def test_pairwise_losses_of_chunks_are_those_of_all_rows_to_the_last_bit(
    client, name, labels, form
):
    there = [cut(array) for cut, array in zip(FORMS[form], (labels, SCORES), strict=True)]
    assert metrics.pairwise_loss(*there, name) == metrics.pairwise_loss(labels, SCORES, name)


def test_pairwise_losses_a_row_are_lazy(client):
    lazy = metrics.pairwise_loss(chunked(Y), chunked(SCORES), per_instance=True)
    assert isinstance(lazy, da.Array)
    assert_array_equal(lazy.compute(), metrics.pairwise_loss(Y, SCORES, per_instance=True))


@pytest.mark.parametrize("cut", [chunked, as_csr, as_frame])
def test_propensities_count_over_all_chunks(client, cut):
    assert_array_equal(label_propensities(cut(Y)), label_propensities(Y))


def test_only_sums_come_to_the_client(client, monkeypatch):
    with watched_results(monkeypatch) as gathered:
        metrics.rank_loss(chunked(Y), chunked(SCORES))
        metrics.pairwise_loss(chunked(Y), chunked(SCORES))
    ((stream,), ((total, n_rows),)) = gathered
    assert isinstance(stream, StreamingMetric)
    assert n_rows == N
    assert len(total._parts) < 100


def test_partitions_without_rows_count_for_nothing(client):
    late = [as_frame(a).map_partitions(lambda part: part.loc[700:]) for a in (Y, SCORES)]
    assert len(late[0].partitions[0]) == 0
    for metric in (metrics.rank_loss, metrics.pairwise_loss):
        assert metric(*late) == metric(Y[700:], SCORES[700:])
        rows = metric(*late, per_instance=True).compute()
        assert_array_equal(rows, metric(Y[700:], SCORES[700:], per_instance=True))
    assert_array_equal(label_propensities(late[0]), label_propensities(Y[700:]))
    none = [pieces.map_partitions(lambda part: part.iloc[:0]) for pieces in late]
    for measure in (metrics.rank_loss, metrics.pairwise_loss):
        with pytest.raises(ValueError, match="Y must have at least one row; got none"):
            measure(*none)


@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        (chunked(Y), SCORES, "scores must be a Dask collection, as Y is"),
        (chunked(Y), chunked(SCORES, 500), "scores must be chunked as Y is"),
        (chunked(2 * Y), chunked(SCORES), "in chunk .: Y must hold only 0 and 1"),
        (chunked(Y), chunked(SCORES)[:, 1:], "in chunk .: Y must have 8 labels; got 9"),
        (chunked(Y), chunked(np.where(SCORES > 2, np.nan, SCORES)), "in chunk .: scores must be"),
    ],
)
@pytest.mark.parametrize("metric", [metrics.rank_loss, metrics.pairwise_loss])
def test_what_does_not_fit_is_named(client, metric, labels, scores, message):
    with pytest.raises(ValueError, match=message):
        metric(labels, scores)


def test_a_scorer_measures_where_the_chunks_are(client):
    features = np.round(SCORES[:, :4] + GENERATOR.normal(size=(N, 4)), 1)
    ranker = AdaBoostRanker(n_stumps=3).fit(features, Y)
    scorer = RankingScorer("precision_at_k", {"k": 2})
    assert scorer(ranker, chunked(features), as_csr(Y)) == scorer(ranker, features, Y)
    assert sparse.issparse(as_csr(Y).blocks[0].compute())


def test_streams_with_arrays_among_their_options_merge():
    options = OPTIONS["propensity_scored_precision_at_k"]
    copied = {**options, "propensities": options["propensities"].copy()}
    name = "propensity_scored_precision_at_k"
    first, second = StreamingMetric(name, **options), StreamingMetric(name, **copied)
    first.update(Y[:500], SCORES[:500])
    second.update(Y[500:], SCORES[500:])
    first.merge(second)
    assert first.result() == metrics.propensity_scored_precision_at_k(Y, SCORES, **options)
    with pytest.raises(ValueError, match="only like metrics merge"):
        first.merge(StreamingMetric(name, k=3, propensities=np.full(M, 0.5)))
