"""Threads and processes at once: every answer is the one that a single caller gets."""

import json
import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest

import deltarank
from deltarank import LogisticRanker, load, save
from deltarank.datasets import read
from deltarank.storage.registry import STORED
from test_storage import FORMS, MARKS, SETTINGS, X, fitted, same

pytestmark = pytest.mark.slow
N_CALLS = 100_000
N_THREADS = 8
N_FORKS = 40


def fit_and_rank(name):
    """Fit and rank, with a seed where there is one: what a worker does."""
    ranker = getattr(deltarank, name)(**SETTINGS.get(name, {}))
    if "random_state" in ranker.get_params():
        ranker.set_params(random_state=0)
    return ranker.fit(X, FORMS["sets"]).rank(X)


def rank_loaded(path):
    return load(path).rank(X)


def test_one_model_ranks_in_many_threads(tally):
    counts = tally("concurrency", "rank, 8 threads")
    ranker = fitted("LogisticRanker", "sets")
    expected = ranker.rank(X)

    def ask(first):
        wrong = 0
        for i in range(first, N_CALLS, N_THREADS):
            row = i % len(X)
            wrong += not np.array_equal(ranker.rank(X[row : row + 1])[0], expected[row])
        return wrong

    with ThreadPoolExecutor(N_THREADS) as pool:
        wrong = sum(pool.map(ask, range(N_THREADS)))
    counts.survived(N_CALLS - wrong)
    for _ in range(wrong):
        counts.lost("another ranking")


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib(tally, backend):
    counts = tally("concurrency", f"fit and rank, joblib {backend}")
    expected = {name: fit_and_rank(name) for name in STORED}
    names = [name for name in STORED for _ in range(4)]
    with joblib.parallel_config(backend, n_jobs=4):
        found = joblib.Parallel()(joblib.delayed(fit_and_rank)(name) for name in names)
    for name, ranking in zip(names, found, strict=True):
        counts.judge(np.array_equal(ranking, expected[name]), name)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes(tally, tmp_path, method):
    counts = tally("concurrency", f"load and rank, {method}")
    ranker = fitted("LogisticRanker", "sets")
    save(ranker, tmp_path / "model")
    expected = ranker.rank(X)
    with multiprocessing.get_context(method).Pool(2) as pool:
        for ranking in pool.map(rank_loaded, [tmp_path / "model"] * 20):
            counts.judge(np.array_equal(ranking, expected), "another ranking")


def test_forks_while_threads_rank_and_fit(tally):
    counts = tally("concurrency", "fork beside busy threads")
    ranker = fitted("LogisticRanker", "sets")
    many = np.tile(X, (200, 1))
    expected, fresh = ranker.rank(many), LogisticRanker().fit(X, MARKS).coef_
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            ranker.rank(many)
            LogisticRanker().fit(X, MARKS)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(N_FORKS):
        child = os.fork()
        if child == 0:
            right = np.array_equal(ranker.rank(many), expected)
            right = right and np.array_equal(LogisticRanker().fit(X, MARKS).coef_, fresh)
            os._exit(0 if right else 1)
        counts.judge(ended_well(child), "a forked child hangs, dies or ranks otherwise")
    stop.set()
    for thread in threads:
        thread.join()


def ended_well(child, seconds=30.0):
    """Wait for a child; one that hangs is killed."""
    killer = threading.Timer(seconds, os.kill, (child, 9))
    killer.start()
    status = os.waitpid(child, 0)[1]
    killer.cancel()
    return status == 0


def test_saving_and_loading_one_file_at_once(tally, tmp_path):
    counts = tally("concurrency", "save and load one file")
    path = tmp_path / "model"
    rankers = [fitted("LogisticRanker", "sets") for _ in range(2)]
    rankers[1].coef_ = rankers[1].coef_ * 2
    save(rankers[0], path)
    stop = threading.Event()

    def keep_saving(ranker):
        while not stop.is_set():
            save(ranker, path)

    threads = [threading.Thread(target=keep_saving, args=(r,)) for r in rankers * 2]
    for thread in threads:
        thread.start()
    for _ in range(2000):
        try:
            found = load(path)
        except Exception as error:
            counts.lost(repr(error))
            continue
        counts.judge(any(same(found.coef_, r.coef_) for r in rankers), "a mixture")
    stop.set()
    for thread in threads:
        thread.join()
    assert os.listdir(tmp_path) == ["model"]


def test_readers_in_threads(tally, tmp_path):
    counts = tally("concurrency", "read, 8 threads")
    long = "word " * 40_000  # longer than the limit that the csv module has by default
    tables = [[{"id": i, "body": long if i == 3 else "a b", "tags": f"t{i % 3}"} for i in range(9)]
              for _ in range(2)]  # fmt: skip
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in tables[0]))
    text = "".join(f"{row['id']},{row['body']},{row['tags']}\n" for row in tables[1])
    (tmp_path / "a.csv").write_text("id,body,tags\n" + text)
    paths = [tmp_path / "a.csv", tmp_path / "a.csv", tmp_path / "a.jsonl"] * 40
    expected = read(tmp_path / "a.jsonl").X.toarray()

    def attempt(path):
        try:
            return np.array_equal(read(path).X.toarray(), expected), "other rows"
        except Exception as error:
            return False, repr(error)

    with ThreadPoolExecutor(N_THREADS) as pool:
        for fine, why in pool.map(attempt, paths):
            counts.judge(fine, why)
