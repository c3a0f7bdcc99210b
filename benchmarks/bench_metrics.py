"""Rank loss beside scikit-learn's, in one run, on the same number of threads.

Usage: ``python benchmarks/bench_metrics.py``. Prints both times (best of several), their ratio, the
difference in value, and the floor: the time to read the scores from memory once.
"""

import numpy as np
from scipy import sparse
from sklearn.metrics import label_ranking_loss

import deltarank
from measure import row, run_sections, scaled, table, timed

# Test set of mediamill, and of EUR-Lex 4K with sparse labels.
SIZES = [
    (scaled(12_914, 500), 101, 4.36, np.asarray),
    (scaled(3_809, 500), 3_993, 5.3, sparse.csr_array),
]


def rank_loss():
    generator = np.random.default_rng(0)
    head = ["rows x labels", "labels as", "scikit-learn", "DeltaRank", "ratio", "difference"]
    table("rank_loss beside label_ranking_loss", [*head, "floor"])
    for n, m, per_row, form in SIZES:
        Y = form((generator.random((n, m)) < per_row / m).astype(np.int64))
        scores = generator.normal(size=(n, m))
        deltarank.rank_loss(Y, scores)  # compile
        theirs = ours = read = np.inf
        for _ in range(scaled(3)):  # interleaved, so that a busy moment hits both
            spent, expected = timed(lambda Y=Y, s=scores: label_ranking_loss(Y, s), 2)
            theirs = min(theirs, spent)
            spent, found = timed(lambda Y=Y, s=scores: deltarank.rank_loss(Y, s), 10)
            ours = min(ours, spent)
            read = min(read, timed(lambda s=scores: s.max(), 5)[0])
        kind = "CSR" if sparse.issparse(Y) else "dense"
        row(f"{n:,} x {m:,}", kind, f"{theirs * 1e3:.0f} ms", f"{ours * 1e3:.2f} ms",
            f"{theirs / ours:.0f}", f"{abs(expected - found):.1e}",
            f"{read * 1e3:.2f} ms")  # fmt: skip


if __name__ == "__main__":
    run_sections(rank_loss)
