"""Rank loss beside scikit-learn's, in one run, on the same number of threads.

Usage: ``python benchmarks/bench_metrics.py``. Prints both times (best of several), their ratio, the
difference in value, and the floor: the time to read the scores from memory once.
"""

import time

import numpy as np
from scipy import sparse
from sklearn.metrics import label_ranking_loss

from deltarank import rank_loss
from deltarank.core.threads import n_threads

# Test set of mediamill, and of EUR-Lex 4K with sparse labels.
SIZES = [(12_914, 101, 4.36, np.asarray), (3_809, 3_993, 5.3, sparse.csr_array)]


def best_of(function, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        value = function()
        times.append(time.perf_counter() - start)
    return min(times), value


def main():
    generator = np.random.default_rng(0)
    print(f"threads: {n_threads()}")
    print("| rows x labels | labels as | scikit-learn | DeltaRank | ratio | difference | floor |")
    print("|---|---|---|---|---|---|---|")
    for n, m, per_row, form in SIZES:
        Y = form((generator.random((n, m)) < per_row / m).astype(np.int64))
        scores = generator.normal(size=(n, m))
        rank_loss(Y, scores)  # compile
        theirs = ours = read = np.inf
        for _ in range(3):  # interleaved, so that a busy moment hits both
            seconds, expected = best_of(lambda Y=Y, s=scores: label_ranking_loss(Y, s), 2)
            theirs = min(theirs, seconds)
            seconds, found = best_of(lambda Y=Y, s=scores: rank_loss(Y, s), 10)
            ours = min(ours, seconds)
            read = min(read, best_of(lambda s=scores: s.max(), 5)[0])
        kind = "CSR" if sparse.issparse(Y) else "dense"
        print(
            f"| {n:,} x {m:,} | {kind} | {theirs * 1e3:.0f} ms | {ours * 1e3:.2f} ms "
            f"| {theirs / ours:.0f} | {abs(expected - found):.1e} | {read * 1e3:.2f} ms |"
        )


if __name__ == "__main__":
    main()
