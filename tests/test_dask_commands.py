"""``--dask``: files on the workers of a cluster give the models and figures of one machine."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

from clusters import kill_workers
from deltarank import load
from deltarank.cli import main
from deltarank.core import workers
from deltarank.linear.rows.cluster import ClusterRows
from deltarank.storage.prepared import Model

pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

RNG = np.random.default_rng(3)
WORDS = np.array([f"word{i}" for i in range(60)])
# Of the workers of the slow test, and rows of each of its files.
LIMIT, N_ROWS = 600 * 2**20, 10_000
TAGS = ["sea", "snow", "sun", "wind"]


def make_rows(n_rows):
    """Texts whose first words tell the tags; the first file misses a column, the last a tag."""
    rows = []
    for number in range(n_rows):
        chosen = np.minimum(RNG.zipf(1.3, 12) - 1, 59)
        tags = [tag for tag, word in zip(TAGS, chosen, strict=False) if word % 3 == 0]
        row = {"text": " ".join(WORDS[chosen]), "tags": tags, "colour": ("red", "blue")[number % 2]}
        rows.append(row | ({"size": int(RNG.integers(9))} if number >= 40 else {}))
    return rows


@pytest.fixture(scope="module")
def pattern(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rows = make_rows(160)
    for part, (begin, end) in enumerate([(0, 40), (40, 41), (41, 120), (120, 160)]):
        lines = [json.dumps(row) + "\n" for row in rows[begin:end]]
        (folder / f"part{part}.jsonl").write_text("".join(lines))
    return folder / "part*.jsonl"


@pytest.fixture(scope="module")
def address():
    """A scheduler with two workers, all in this process."""
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(n_workers=2, **options) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command; return its exit status, what it printed and what it noted."""

    def command(*given):
        monkeypatch.setattr("sys.argv", ["deltarank", *map(str, given)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    return command


@pytest.mark.parametrize(
    "options",
    [("--C", "10"), (), ("--metric", "ndcg@3", "--no-tune"), ("--min-count", "50", "--C", "1")],
    ids=["C", "tuned", "metric", "fewer labels"],
)
def test_the_model_is_that_of_one_machine(run, pattern, address, tmp_path, options):
    here, there = tmp_path / "here", tmp_path / "there"
    assert run("fit", pattern, *options, "--model", here)[0] == 0
    code, _, notes = run("fit", pattern, *options, "--dask", address, "--model", there)
    assert code == 0, notes
    assert "column 'text': text, " in notes
    one, other = Model.load(here), Model.load(there)
    assert other.preparation == one.preparation
    assert other.metric == one.metric
    for name in ("C", "balance", "weight", "prune"):
        assert getattr(other.ranker, name, None) == pytest.approx(
            getattr(one.ranker, f"{name}_", getattr(one.ranker, name, None))
        )
    assert_array_equal(other.classes, one.classes)
    # Each is at the minimum to the tolerance of a fit, 1e-4 of what a label may gain.
    assert_allclose(other.ranker.coef_, one.ranker.coef_, atol=2e-2)
    assert_allclose(other.ranker.intercept_, one.ranker.intercept_, atol=2e-2)


@pytest.mark.slow
def test_a_search_of_all_rows_is_made_on_the_cluster(run, pattern, address, tmp_path):
    model = tmp_path / "model"
    assert run("fit", pattern, "--tune", "--dask", address, "--model", model)[0] == 0
    assert len(load(model).cv_results_["param_C"]) > 1


def test_rows_without_text_are_dense(run, address, tmp_path):
    for part in range(3):
        lines = [f"{a},{b},{int(a > 0)},{int(b > a)}\n" for a, b in RNG.normal(size=(40, 2))]
        (tmp_path / f"{part}.csv").write_text("x,y,one,two\n" + "".join(lines))
    data, options = tmp_path / "*.csv", ("--labels", "one,two", "--C", "1")
    for name, more in (("here", ()), ("there", ("--dask", address))):
        assert run("fit", data, *options, *more, "--model", tmp_path / name)[0] == 0
    here, there = load(tmp_path / "here"), load(tmp_path / "there")
    assert_allclose(there.coef_, here.coef_, atol=1e-3)


@pytest.fixture(scope="module")
def model(pattern, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    given = ["fit", pattern, "--metric", "ndcg@3", "--no-tune", "--model", path]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["deltarank", *map(str, given)])
        with pytest.raises(SystemExit):
            main()
    return path


@pytest.mark.parametrize("command", [["rank", "--top", "3"], ["evaluate", "--draws", "50"]])
def test_files_are_ranked_and_measured_as_on_one_machine(run, pattern, address, model, command):
    name, *more = command
    whole = pattern.parent / "part[123].jsonl"  # the first lacks a column of the model
    code, printed, _ = run(name, model, whole, *more)
    assert code == 0
    code, there, notes = run(name, model, whole, *more, "--dask", address)
    assert code == 0, notes
    assert there == printed


def test_pairs_of_rows_are_counted_across_files():
    from deltarank.cli.cluster import ScoredFile, _sorted_by_label

    Y = (RNG.random((50, 6)) < [0.1, 0.3, 0.5, 0.9, 0, 1]).astype(np.int8)
    scores = RNG.integers(0, 8, (50, 6)) / 4  # with ties
    files = [ScoredFile(Y[rows], scores[rows]) for rows in (slice(0, 9), slice(9, 50))]
    rivals = _sorted_by_label([file.relevant() for file in files])
    won = sum(file.pairs_won(rivals) for file in files)
    for label in range(4):
        n_pairs = Y[:, label].sum() * (1 - Y[:, label]).sum()
        assert won[label] / n_pairs == pytest.approx(roc_auc_score(Y[:, label], scores[:, label]))
    assert_array_equal(won[4:], 0)


def peak():
    """Return the most memory that this process has held, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_text_larger_than_the_workers_and_one_of_them_killed(run, tmp_path, monkeypatch):
    """All text is more than the two workers may hold; a third of that would be too much here."""
    words = np.array([f"w{i}" for i in range(30_000)])
    n_bytes, n_files = 0, 32
    for part in range(n_files):
        columns = np.minimum(RNG.zipf(1.2, (N_ROWS, 150)) - 1, 29_999)
        with (tmp_path / f"{part:02}.jsonl").open("w") as file:
            for row in columns:
                tags = [tag for tag, word in zip(TAGS, row, strict=False) if word % 3 == 0]
                text = " ".join(words[row]) + " "
                text *= 7  # long texts say things again
                n_bytes += len(text)
                file.write(json.dumps({"text": text, "tags": tags}) + "\n")
    pattern, options = tmp_path / "*.jsonl", ("--C", "1", "--prune", "0")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from now
    before, n_passes, peaks = peak(), 0, []
    plain = ClusterRows.evaluate

    def killing(self, *args):
        nonlocal n_passes
        n_passes += 1
        if n_passes == 3:
            peaks.extend(client.run(peak).values())
            kill_workers(client, 1)
        return plain(self, *args)

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=LIMIT
        ) as cluster,
        distributed.Client(cluster) as client,
        monkeypatch.context() as patch,
    ):
        patch.setattr(ClusterRows, "evaluate", killing)
        given = ("--dask", cluster.scheduler_address, "--model", tmp_path / "there")
        assert run("fit", pattern, *options, *given)[0] == 0
        grown = peak() - before
        peaks.extend(client.run(peak).values())
        ranked = run("rank", tmp_path / "there", tmp_path / "0*.jsonl", *given[:2])
    assert n_passes > 3
    assert n_bytes > 2 * LIMIT
    assert max(peaks) < LIMIT
    assert grown < n_bytes / 3
    assert run("rank", tmp_path / "there", tmp_path / "0*.jsonl") == ranked
    assert run("fit", pattern, *options, "--model", tmp_path / "here")[0] == 0
    here, there = load(tmp_path / "here"), load(tmp_path / "there")
    assert_allclose(there.coef_, here.coef_, atol=2e-2)


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--ranker", "adaboost"], "--dask fits logistic only, not adaboost"),
            (["--calibrate"], "--calibrate is not for --dask"),
            (["--metric", "macro-f1@3"], "--dask finds no rule for macro-f1@3"),
        ],
    )
    def test_what_takes_all_rows_is_refused_at_once(self, run, pattern, tmp_path, options, message):
        fit = ["fit", pattern, *options, "--model", tmp_path / "m"]
        code, _, told = run(*fit, "--dask", "local")
        assert code == 2
        assert message in told

    @pytest.mark.parametrize("source", ["yeast", "-"])
    def test_what_workers_cannot_open_is_refused(self, run, source, tmp_path):
        code, _, told = run("fit", source, "--dask", "local", "--model", tmp_path / "m")
        assert code == 1
        assert f"all workers can open; got {source!r}: give a file or a pattern" in told

    def test_weights_are_told_on_one_machine(self, run, pattern, model):
        code, _, told = run("evaluate", model, pattern, "--weights", "--dask", "local")
        assert code == 2
        assert "--weights is not for --dask" in told

    def test_a_goal_that_is_a_mean_over_labels_is_measured_on_one_machine(
        self, run, pattern, tmp_path
    ):
        model = tmp_path / "m"
        assert run("fit", pattern, "--metric", "macro-f1@1", "--no-tune", "--model", model)[0] == 0
        code, _, told = run("evaluate", model, pattern, "--dask", "local")
        assert code == 1
        assert "--dask cannot measure macro-f1@1, a mean over labels" in told

    @pytest.mark.parametrize("wrong", ["nonsense", "tcp://127.0.0.1:1", "foo://x:1"])
    def test_a_wrong_address_is_one_line(self, run, pattern, monkeypatch, wrong, tmp_path):
        monkeypatch.setattr(workers, "PATIENCE", 0.3)
        code, _, told = run("fit", pattern, "--dask", wrong, "--model", tmp_path / "m")
        assert code == 1
        assert told.startswith(
            "deltarank: --dask must be 'local' or the address of a running Dask scheduler, such as "
            f"tcp://host:8786; '{wrong}' cannot be reached ("
        )
        assert told.count("\n") == 1

    def test_a_scheduler_without_workers_is_one_line(self, run, pattern, monkeypatch, tmp_path):
        monkeypatch.setattr(workers, "PATIENCE", 0.5)
        options = {"n_workers": 0, "processes": False, "dashboard_address": ":0"}
        with distributed.LocalCluster(**options) as cluster:
            given = ("--dask", cluster.scheduler_address, "--model", tmp_path / "m")
            code, _, told = run("fit", pattern, *given)
        assert code == 1
        assert "the scheduler has no workers; start some by `dask worker" in told

    def test_a_missing_file_is_named(self, run, model):
        code, _, told = run("rank", model, "nowhere.csv", "--dask", "local")
        assert code == 1
        assert "nowhere.csv" in told
        assert "No such file" in told
