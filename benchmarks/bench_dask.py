"""Rows on a cluster of this machine's processes: time by workers, and bytes moved a pass.

Usage: ``python benchmarks/bench_dask.py [workers] [traffic]``, both by default. Needs the extra
``dask``. Each worker has one thread, and the local fit beside them as many as there are workers.
Bytes are those that went over the loop-back device while a fit ran, so everything that is sent
counts, the scheduler's chatter too.
"""

import os
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from deltarank import LogisticRanker
from deltarank.linear.rows.cluster import ClusterRows
from measure import extra, row, run_sections, scaled, seconds, table, timed

da, distributed = extra("dask", "dask.array"), extra("dask", "distributed")
N, D, M, CHUNKS = scaled(300_000, 4000), 100, 400, 8
OPTIONS = {"tol": 1e-4}


def problem():
    generator = np.random.default_rng(0)
    X = generator.standard_normal((N, D), dtype=np.float32)
    theta = generator.standard_normal((D, M), dtype=np.float32) / np.sqrt(D)
    noise = generator.standard_normal((N, M), dtype=np.float32)
    return X, (X @ theta + noise > 2).astype(np.int8)


@contextmanager
def cluster(n_workers):
    os.environ.pop("DELTARANK_NUM_THREADS", None)  # or each worker would take so many
    settings = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(processes=True, **settings) as made, distributed.Client(made):
        yield


def chunked(X, Y):
    rows = -(-len(X) // CHUNKS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # data from here, once, for the comparison
        there = [da.from_array(a, chunks=(rows, -1)).persist() for a in (X, Y)]
    LogisticRanker(max_iter=3, tol=0.5).fit(there[0][:rows], there[1][:rows])  # compile
    return there


def workers():
    """Time a fit here and on 1 and 2 workers."""
    X, Y = problem()
    LogisticRanker(max_iter=3, tol=0.5).fit(X[:5000], Y[:5000])  # compile
    table(f"{N:,} x {D} float32, {M} labels, {CHUNKS} chunks, tol = {OPTIONS['tol']:g}",
          ["workers", "local fit, as many threads", "cluster", "local / cluster",
           "speed-up over 1 worker", "largest difference of coefficients"])  # fmt: skip
    alone = None
    for n_workers in (1, 2):
        os.environ["DELTARANK_NUM_THREADS"] = str(n_workers)
        local, here = timed(lambda: LogisticRanker(**OPTIONS).fit(X, Y), 3)
        with cluster(n_workers):
            there = chunked(X, Y)
            spent, ranker = timed(lambda there=there: LogisticRanker(**OPTIONS).fit(*there), 3)
        alone = alone or spent
        row(n_workers, seconds(local), seconds(spent), f"{local / spent:.2f}",
            f"{alone / spent:.2f}", f"{np.abs(ranker.coef_ - here.coef_).max():.1e}")  # fmt: skip


def traffic():
    """Count bytes a pass, beside what the coefficients and gradients take."""
    X, Y = problem()
    table("Bytes a pass over the network", ["labels", "passes", "measured", "computed"])
    with cluster(2):
        for m in (100, 400):
            there = chunked(X, np.ascontiguousarray(Y[:, :m]))
            moved = measured_passes(there)
            # Float32 coefficients to each worker by way of the scheduler and a first worker;
            # float64 gradients from one worker to the other and on to the client.
            computed = m * D * (3 * 4 + 2 * 8)
            row(m, len(moved), f"{np.median(moved) / 1e3:.0f} kB", f"{computed / 1e3:.0f} kB")
    print(f"\nX and Y take {(X.nbytes + Y.nbytes) / 1e6:.0f} MB.")


def measured_passes(there):
    """Return the bytes that each pass over all labels moved."""
    moved = []
    plain = ClusterRows.evaluate

    def watched(self, coef, offset, problems, precision):
        before = loopback_bytes()
        found = plain(self, coef, offset, problems, precision)
        if len(problems) == self.n_labels:
            moved.append(loopback_bytes() - before)
        return found

    ClusterRows.evaluate = watched
    try:
        LogisticRanker(**OPTIONS).fit(*there)
    finally:
        ClusterRows.evaluate = plain
    return moved


def loopback_bytes():
    lines = Path("/proc/net/dev").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.strip().startswith("lo:")))


if __name__ == "__main__":
    run_sections(workers, traffic)
