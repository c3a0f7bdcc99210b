"""A full disk is an error that names the file; what was there before is whole, and work goes on.

A small file system in memory is filled up where one may be mounted; where not, the system's limit
on the size of files stands in for it.
"""

import contextlib
import resource
import shutil
import subprocess

import numpy as np
import pytest
from commands import SMALL, finish, start, told, write_recipes

from deltarank import LogisticRanker, save
from deltarank.datasets import read, write_libsvm
from deltarank.paper.experiments.runner import run_jobs
from test_experiments import JOBS, slow_square, without_times
from test_extreme import X as WIDE
from test_extreme import Y as TAGS
from test_storage import MARKS, X, fitted

pytestmark = pytest.mark.slow
ERRORS = ("No space left on device", "File too large")


class Disk:
    """A folder in which there is room for so many bytes more, until it is relieved."""

    def __init__(self, folder, kind):
        self.folder, self.kind = folder, kind
        self._ballast = folder / "ballast"

    @contextlib.contextmanager
    def room(self, n_bytes):
        if self.kind == "limited":
            old = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, old[1]))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, old)
            return
        free = shutil.disk_usage(self.folder).free
        self._ballast.write_bytes(bytes(max(0, free - n_bytes)))
        try:
            yield
        finally:
            self._ballast.unlink()

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture(params=["full", "limited"])
def disk(request, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    if request.param == "limited":
        yield Disk(folder, "limited")
        return
    mounting = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mounting, capture_output=True).returncode:
        pytest.skip("a file system of 4 MB cannot be mounted here (root may); see the other case")
    yield Disk(folder, "full")
    subprocess.run(["umount", str(folder)], check=True)


def refused(counts, disk, path, work):
    """Do something that needs more room than there is; hold the error to its promises."""
    before = disk.names()
    try:
        work()
    except OSError as error:
        named = error.filename is not None and str(path) in str(error)
        fine = named and any(words in str(error) for words in ERRORS) and disk.names() == before
        counts.refused() if fine else counts.lost(f"{error!r}, {before} then {disk.names()}")
    except Exception as error:
        counts.lost(repr(error))
    else:
        counts.lost("it found room")


ROOM = [0, 1, 4096, 20_000, 100_000]


def test_save(tally, disk):
    counts = tally("disk full", f"save, {disk.kind}")
    path = disk.folder / "model"
    save(fitted("LogisticRanker"), path)
    old = path.read_bytes()
    large = LogisticRanker().fit(X[:, :2], MARKS)
    large.coef_, large.n_features_in_ = np.zeros((3, 50_000)), 50_000
    for n_bytes in ROOM:
        with disk.room(n_bytes):
            refused(counts, disk, path, lambda: save(large, path))
        counts.judge(path.read_bytes() == old, "the old model is not what it was")
    save(large, path)


def test_text_and_cache(tally, disk):
    counts = tally("disk full", f"data files, {disk.kind}")
    path = disk.folder / "data.svm"
    write_libsvm(path, np.eye(3), np.eye(3, dtype=int))
    old = path.read_bytes()
    large = np.random.default_rng(0).random((9000, 10))
    for name in ("data.svm", "data.svm.gz"):
        for n_bytes in ROOM[:4]:
            with disk.room(n_bytes):
                target = disk.folder / name
                refused(counts, disk, target, lambda t=target: write_libsvm(t, large, large > 0.9))
            counts.judge(path.read_bytes() == old, "the old file is not what it was")
    source = disk.folder.parent / "source.svm"
    write_libsvm(source, large, (large > 0.9).astype(int))
    cache = disk.folder / "cache"
    cache.mkdir()
    for n_bytes in ROOM[:4]:
        with disk.room(n_bytes):
            refused(counts, disk, cache, lambda: read(source, cache=cache))
        counts.judge(not list(cache.iterdir()), "half a copy was kept")
    assert np.array_equal(read(source, cache=cache).X.toarray(), large)


def test_checkpoint(tally, disk):
    counts = tally("disk full", f"checkpoint, {disk.kind}")
    expected = LogisticRanker(tol=1e-3).fit(WIDE, TAGS).coef_
    for i, n_bytes in enumerate([0, 1, 20_000]):
        folder = disk.folder / f"blocks-{i}"
        folder.mkdir()
        ranker = LogisticRanker(tol=1e-3, checkpoint=str(folder))
        with disk.room(n_bytes):
            refused(counts, disk, folder, lambda r=ranker: r.fit(WIDE, TAGS))
        counts.judge(np.array_equal(ranker.fit(WIDE, TAGS).coef_, expected), "other coefficients")


def test_experiment_rows(tally, disk, monkeypatch):
    counts = tally("disk full", f"rows of an experiment, {disk.kind}")
    monkeypatch.setenv("DELTARANK_NUM_THREADS", "1")
    expected = run_jobs(slow_square, JOBS, disk.folder.parent / "whole.jsonl")
    for n_bytes in (0, 100, 500, 1000):
        path = disk.folder / f"rows-{n_bytes}.jsonl"
        path.touch()
        with disk.room(n_bytes):
            refused(counts, disk, path, lambda p=path: run_jobs(slow_square, JOBS, p))
        rows = run_jobs(slow_square, JOBS, path)
        counts.judge(without_times(rows) == without_times(expected), "other rows in the end")


def test_commands(tally, disk):
    counts = tally("disk full", f"commands, {disk.kind}")
    folder = disk.folder.parent
    write_recipes(folder / "train.jsonl", 300)
    write_recipes(folder / "new.jsonl", 4000, seed=1)
    model = folder / "m.delta"
    finish("fit", folder / "train.jsonl", "--model", model)
    kept = disk.folder / "old.delta"
    shutil.copy(model, kept)

    def told_in_a_line(*arguments, **streams):
        with disk.room(2000):
            process = start(*arguments, **streams)
            _, err = process.communicate(timeout=120)
        said = told(err) and any(words in err for words in ERRORS)
        fine = process.returncode == 1 and said
        counts.refused() if fine else counts.lost(f"{arguments[0]}: {process.returncode} {err}")

    told_in_a_line("fit", folder / "train.jsonl", "--model", kept)
    counts.judge(kept.read_bytes() == model.read_bytes(), "the old model is not what it was")
    for kind in ("jsonl", "csv", "table"):
        with (disk.folder / kind).open("w") as out:
            told_in_a_line("rank", model, folder / "new.jsonl", "--format", kind, stdout=out)
        (disk.folder / kind).unlink()
    told_in_a_line("reproduce", "section4", *SMALL, "--out", disk.folder / "results")
    finish("reproduce", "section4", *SMALL, "--out", disk.folder / "results")
    counts.survived()
    litter = [name for name in disk.names() if name.startswith(".")]
    counts.judge(not litter, f"left behind: {litter}")
