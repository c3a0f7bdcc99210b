"""Do one kind of work in forked processes with less and less memory; print what became of each.

python starving.py WORK FOLDER
"""

import faulthandler
import json
import os
import resource
import sys
from pathlib import Path

import numpy as np
from scipy import sparse

from deltarank import AdaBoostMH, LogisticRanker, datasets, load, save
from deltarank.datasets import read, write_libsvm

# Megabytes. With none at all Python 3.11 itself may wait for ever for a thread that cannot start.
ROOMS = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 2048]
HANG_S = 30
rng = np.random.default_rng(0)


def dense_rows(n_rows=60_000, n_features=40, n_labels=12):
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    return X, (X[:, :n_labels] + rng.normal(size=(n_rows, n_labels)) > 1).astype(np.int8)


def fit(ranker, X, Y):
    return lambda: ranker.fit(X, Y).decision_function(X[:50])


def make(work, folder):
    """Return the work as a function without arguments that gives an array."""
    X, Y = dense_rows()
    if work == "fit, dense":
        return fit(LogisticRanker(tol=1e-2), X, Y)
    if work == "fit, sparse":
        return fit(LogisticRanker(tol=1e-2), sparse.csr_array(np.where(X > 1, X, 0)), Y)
    if work == "fit, boosted":
        return fit(AdaBoostMH(n_stumps=5), X, Y)
    if work == "read, text":
        write_libsvm(folder / "a.svm", X[:30_000].round(3), Y[:30_000])
        return lambda: read(folder / "a.svm").X[:50].toarray()
    if work == "read, table":
        rows = datasets.example_rows(20_000, seed=0)
        (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return lambda: read(folder / "a.jsonl").X[:50].toarray()
    ranker = LogisticRanker(tol=1e-2).fit(X[:500], Y[:500])
    if work == "rank":
        return lambda: ranker.rank(X)
    ranker.coef_, ranker.n_features_in_ = np.ones((12, 500_000)), 500_000
    save(ranker, folder / "model")
    return lambda: load(folder / "model").coef_[:, ::1000].copy()


def used():
    """Return the bytes of address space that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def attempt(work, expected, room, report):
    """Work with so many bytes more; tell what came out. Runs in the child."""
    faulthandler.dump_traceback_later(HANG_S, exit=True)
    limit = used() + room
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        outcome = b"survived" if np.array_equal(work(), expected) else b"another answer"
    except MemoryError:
        outcome = b"refused"
    except BaseException as error:
        outcome = f"{type(error).__name__}: {error}".encode()
    os.write(report, outcome)
    os._exit(0)


def starve(work):
    expected = work()
    found = []
    for room in ROOMS:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            attempt(work, expected, room << 20, writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            outcome = pipe.read().decode()
        _, status = os.waitpid(child, 0)
        found.append((room, outcome or f"the process ended with status {status}"))
    return found


if __name__ == "__main__":
    print(json.dumps(starve(make(sys.argv[1], Path(sys.argv[2])))))
