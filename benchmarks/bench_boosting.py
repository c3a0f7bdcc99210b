"""Boosted rankers beside a loop of scikit-learn's AdaBoostClassifier, two threads for everyone.

Usage: ``python benchmarks/bench_boosting.py [mediamill] [yeast] [growth] [memory]``, all by
default. The first two need the real data sets in DELTARANK_DATA. The loop over labels is too slow
to run whole: it is timed on a sample of labels and rounds and scaled, which the table says.
"""

import gc

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

import real_data
from deltarank import AdaBoostMH, AdaBoostMR, AdaBoostRanker, instance_weights, rank_loss
from deltarank.boosting.kernels.histograms import fill_dense
from deltarank.core.kernels.lanes import LANES
from measure import (
    THREADS,
    exponent,
    in_own_process,
    memory_kb,
    reset_peak,
    row,
    run_sections,
    scaled,
    seconds,
    table,
    timed,
)

PEER_ROUNDS, PEER_LABELS = 3, 8


def fit_peer(X, y, weights):
    """Boost one label by scikit-learn."""
    stump = DecisionTreeClassifier(max_depth=1, criterion="entropy")
    return AdaBoostClassifier(stump, n_estimators=PEER_ROUNDS).fit(X, y, sample_weight=weights)


def peer_round(X, Y):
    """Return the time of one round for all labels, from a sample of labels and rounds."""
    weights = instance_weights(Y)
    X, Y, weights = X[weights > 0], Y[weights > 0], weights[weights > 0]
    labels = np.argsort(np.asarray(Y.sum(axis=0)))[:: -Y.shape[1] // PEER_LABELS][:PEER_LABELS]
    columns = [Y[:, [label]].toarray().ravel() for label in labels]
    with Parallel(THREADS, max_nbytes=None) as pool:
        pool(delayed(fit_peer)(X[:500], columns[0][:500], weights[:500]) for _ in range(4))
        spent, _ = timed(lambda: pool(delayed(fit_peer)(X, y, weights) for y in columns))
    return spent / (PEER_ROUNDS * len(labels)) * Y.shape[1]


def round_time(ranker, X, Y, rounds):
    """Return the time of one round: that of many less that of one, so without the binning."""
    one, _ = timed(lambda: ranker.set_params(n_stumps=1).fit(X, Y), 2)
    many, _ = timed(lambda: ranker.set_params(n_stumps=rounds + 1).fit(X, Y), 2)
    return (many - one) / rounds


def floor_of_additions(n, d, m):
    """Return the time of a round's additions where all cells are in the first-level cache."""
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 32, (16, 256), dtype=np.uint8)
    cells, histograms = np.zeros((256, LANES), np.float32), np.zeros((16 * 32, LANES), np.float32)

    def fill(codes):
        for _ in range(2000):
            fill_dense(codes, 32, cells, histograms)

    fill(codes)
    call, _ = timed(lambda: fill(codes[:, :0].copy()), 5)
    spent = timed(lambda: fill(codes), 5)[0] - call
    return spent / (2000 * codes.size) * n * d * -(-m // LANES) / THREADS


def mediamill():
    """Time a round for all labels, and 200 rounds whole."""
    data = real_data.load("mediamill")
    X, Y = data.X.astype(np.float32), data.Y
    n, d = X.shape
    theirs = peer_round(X, Y)
    table(
        f"mediamill, {Y.shape[1]} labels: a round for all (scikit-learn: {PEER_LABELS} labels, "
        f"{PEER_ROUNDS} rounds, {THREADS} processes, scaled)",
        ["ranker", "scikit-learn", "DeltaRank", "ratio", "additions in cache alone"],
    )
    floor = floor_of_additions(n, d, Y.shape[1])
    for ranker in (
        AdaBoostRanker(),
        AdaBoostRanker(criterion="z", votes="real"),
        AdaBoostMH(),
        AdaBoostMR(),
    ):
        ours = round_time(ranker, X, Y, 20)
        name = str(ranker.set_params(n_stumps=100))
        row(name, seconds(theirs), seconds(ours), f"{theirs / ours:.0f}", seconds(floor))
    whole, ranker = timed(lambda: AdaBoostRanker(n_stumps=200).fit(X, Y))
    spent, scores = timed(lambda: ranker.decision_function(data.X_test))
    head = ["scikit-learn, scaled", "DeltaRank", f"scores of {len(data.X_test):,} rows"]
    table("mediamill: 200 rounds for all labels, whole", [*head, "rank loss of those"])
    loss = rank_loss(data.Y_test, scores)
    row(seconds(200 * theirs), seconds(whole), seconds(spent), f"{loss:.4f}")


def yeast():
    """Time 20,000 rounds with shared stumps."""
    data = real_data.load("yeast")
    rounds = scaled(20_000)
    table(f"yeast: {rounds:,} rounds", ["ranker", "time", "a round", "rank loss, best of the grid"])
    grid = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000]
    grid = [at for at in grid if at <= rounds]
    for ranker in (AdaBoostMR(n_stumps=rounds), AdaBoostMH(n_stumps=rounds)):
        spent, _ = timed(lambda ranker=ranker: ranker.fit(data.X, data.Y))
        losses = [
            rank_loss(data.Y_test, scores)
            for scores in ranker.staged_decision_function(data.X_test, at=grid)
        ]
        best = int(np.argmin(losses))
        row(type(ranker).__name__, seconds(spent), seconds(spent / rounds),
            f"{losses[best]:.4f} at {grid[best]}")  # fmt: skip


def made_up(n, d, m):
    """Return features of more than 256 values and labels that depend on them."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((n, d), dtype=np.float32)
    theta = generator.standard_normal((d, m), dtype=np.float32)
    return X, (X @ theta > 2 * np.sqrt(d)).astype(np.int8)


def growth():
    """Fit exponents of the time of AdaBoostRanker in n, d, m and rounds."""
    base = {"n": scaled(20_000, 200), "d": 50, "m": 64, "rounds": 10}
    table("AdaBoostRanker: time against size", ["what grows", "sizes", "times", "exponent"])
    for name in base:
        sizes, times = [], []
        for factor in (1, 2, 4, 8):
            size = {**base, name: base[name] * factor}
            sizes.append(size[name])
            rounds = size.pop("rounds")
            X, Y = made_up(**size)
            ranker = AdaBoostRanker(n_stumps=rounds)
            times.append(timed(lambda r=ranker, X=X, Y=Y: r.fit(X, Y), 2)[0])
        slope = exponent(sizes, times)
        row(name, ", ".join(map(str, sizes)), ", ".join(map(seconds, times)), f"{slope:.2f}")


def memory():
    """Measure what a fit adds to the peak, a cell (row and label)."""
    n, d, m = scaled(200_000, 1000), 100, 100
    added = in_own_process(_added_bytes, n, d, m)
    table(f"{n:,} x {d} float32, {m} labels: memory a fit adds",
          ["bytes a cell", "of them bin codes (one byte per feature)"])  # fmt: skip
    row(f"{added / (n * m):.1f}", f"{d / m:.1f}")


def _added_bytes(n, d, m):
    X, Y = made_up(n, d, m)
    AdaBoostRanker(n_stumps=1).fit(X[:20_000], Y[:20_000])  # compile
    gc.collect()
    reset_peak()
    before = memory_kb("VmRSS")
    AdaBoostRanker(n_stumps=3).fit(X, Y)
    return 1024 * (memory_kb("VmHWM") - before)


if __name__ == "__main__":
    run_sections(mediamill, yeast, growth, memory)
