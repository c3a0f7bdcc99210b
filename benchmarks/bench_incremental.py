"""Does a refit after 5 % more rows cost less than a fresh fit? Both to the same tolerance.

Usage: ``python benchmarks/bench_incremental.py [made_up] [mediamill] [delicious]``, all by default.
The last two need the real data sets in DELTARANK_DATA.
"""

import numpy as np

import real_data
from deltarank import LogisticRanker
from measure import row, run_sections, scaled, seconds, table, timed

GROWTH = 1.05
REPEATS = 3
CS = (0.01, 1.0, 100.0)
HEAD = ["C", "fresh", "refit", "ratio", "passes a label", "objectives differ by"]


def compare(name, X, Y, Cs):
    """Time a fresh fit of all rows, and a refit that knows all but the last of them."""
    n_rows, n_features = X.shape
    n_old = int(n_rows / GROWTH)
    table(f"{name}, {n_rows:,} x {n_features}, {Y.shape[1]} labels", HEAD)
    LogisticRanker(warm_start=True).fit(X[:5000], Y[:5000])  # compile
    for C in Cs:
        fresh, refit = [], []
        for _ in range(scaled(REPEATS)):
            ranker = LogisticRanker(C=C)
            fresh.append(timed(lambda ranker=ranker: ranker.fit(X, Y))[0])
            grown = LogisticRanker(C=C, warm_start=True).fit(X[:n_old], Y[:n_old])
            refit.append(timed(lambda grown=grown: grown.fit(X, Y))[0])
        gap = np.abs(grown.objective_ / ranker.objective_ - 1).max()
        row(f"{C:g}", seconds(min(fresh)), seconds(min(refit)), f"{min(refit) / min(fresh):.2f}",
            f"{ranker.n_iter_.mean():.1f}, {grown.n_iter_.mean():.1f}", f"{gap:.0e}")  # fmt: skip


def made_up():
    """Correlated features of unlike scales, labels of unlike frequency."""
    for n_rows, Cs in ((60_000, CS), (400_000, (1.0,))):
        compare("made up", *_made_up(scaled(n_rows, 1000), 100, 80), Cs)


def _made_up(n_rows, n_features, n_labels):
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(n_features, n_features)) * 0.85 ** np.arange(n_features)[:, None]
    X = (rng.normal(size=(n_rows, n_features)) @ mixing).astype(np.float32)
    scores = X @ rng.normal(size=(n_features, n_labels)).astype(np.float32)
    scores = scores / scores.std(axis=0) + rng.logistic(size=scores.shape)
    return X, (scores > rng.uniform(1, 5, n_labels)) * 1


def mediamill():
    """30,993 rows of 120 dense features."""
    data = real_data.load("mediamill")
    compare("mediamill", data.X.astype(np.float32), data.Y, CS)


def delicious():
    """983 labels; at C = 100 a third of them have not converged after 500 passes."""
    data = real_data.load("delicious")
    compare("delicious", data.X, data.Y, CS[:2])


if __name__ == "__main__":
    run_sections(made_up, mediamill, delicious)
