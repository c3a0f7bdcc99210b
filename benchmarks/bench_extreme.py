"""Very many labels: how time and memory grow, and EUR-Lex 4K beside the peers.

Usage: ``python benchmarks/bench_extreme.py [growth] [goal] [eurlex]``, all by default. The last
needs the extra ``bench`` and the real data in DELTARANK_DATA. Each fit runs in its own process, so
that its peak of memory is its own.
"""

import tempfile
import time
from pathlib import Path

import numpy as np

import real_data
from deltarank import LogisticRanker, instance_weights, metrics, rank_loss, save
from deltarank.core.labels import label_sets
from deltarank.datasets import long_tailed
from deltarank.linear.coefficients import pruned
from deltarank.linear.fit import Options, blocks_of, solve
from deltarank.linear.objective import Objective
from deltarank.linear.rows.place import place
from measure import (
    exponent,
    extra,
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

# The features grow with the labels, as words do with tags.
FEATURES_PER_LABEL = 1
OPTIONS = {"C": 10.0, "tol": 1e-2, "penalize_intercept": True, "prune": 0.05}
BASE = {"n": scaled(10_000, 400), "m": scaled(4_000, 200)}
GOAL = {"n": scaled(100_000, 1000), "m": scaled(100_000, 500)}


def growth():
    """Fit exponents of time and memory in n and m, and say what they promise for the goal."""
    head = ["rows", "labels = features", "time", "peak above data", "kept coefficients", "model"]
    table(f"Made-up data, {OPTIONS}", [*head, "prune_effect_: median, largest"])
    sizes = {
        axis: [{**BASE, axis: size} for size in (BASE[axis] // 2, BASE[axis], 2 * BASE[axis])]
        for axis in BASE
    }
    found = {}
    for size in (*sizes["n"], *sizes["m"]):
        key = tuple(size.values())
        if key not in found:
            found[key] = in_own_process(_grown, **size)
            spent = found[key]
            row(size["n"], size["m"], seconds(spent["time"]), f"{spent['peak'] / 1e6:.0f} MB",
                f"{spent['kept']:.2%}", f"{spent['model'] / 1e6:.1f} MB",
                f"{spent['effect'][0]:.2f}, {spent['effect'][1]:.2f}")  # fmt: skip
    base = found[tuple(BASE.values())]
    for what in ("time", "model"):
        powers = {
            axis: exponent([s[axis] for s in sizes[axis]],
                           [found[tuple(s.values())][what] for s in sizes[axis]])
            for axis in ("n", "m")
        }  # fmt: skip
        factor = np.prod([(GOAL[axis] / BASE[axis]) ** powers[axis] for axis in powers])
        scaled = base[what] * factor
        shown = f"{scaled / 3600:.0f} hours" if what == "time" else f"{scaled / 1e9:.1f} GB"
        print(f"\n{what}: exponents {powers['n']:.2f} in n, {powers['m']:.2f} in m = d; "
              f"{GOAL['n']:,} rows and {GOAL['m']:,} labels would take about {shown}.")  # fmt: skip


def _grown(n, m):
    X, Y = long_tailed(n, m * FEATURES_PER_LABEL, m, random_state=0)
    LogisticRanker(max_iter=2, tol=1.0, prune=0.1).fit(X[:500], Y[:500, :50])  # compile
    reset_peak()
    before = memory_kb("VmRSS")
    spent, ranker = timed(lambda: LogisticRanker(**OPTIONS).fit(X, Y))
    peak = 1024 * (memory_kb("VmHWM") - before)
    with tempfile.TemporaryDirectory() as folder:
        save(ranker, Path(folder, "model"))
        size = Path(folder, "model").stat().st_size
    effect = float(np.median(ranker.prune_effect_)), float(ranker.prune_effect_.max())
    kept = ranker.coef_.nnz / np.prod(ranker.coef_.shape)
    return {"time": spent, "peak": peak, "model": size, "effect": effect, "kept": float(kept)}


def goal():
    """Fit a few blocks of labels, evenly spaced by frequency, of the whole goal, and scale."""
    found = in_own_process(_sampled, **GOAL, n_blocks=12)
    table(f"{GOAL['n']:,} rows, {GOAL['m']:,} features and labels: {found['sampled']} of "
          f"{found['blocks']:,} blocks of {found['width']} labels, {OPTIONS}",
          ["time a block: least, mean, most", "all blocks", "peak of the process",
           "kept coefficients a label", "model of all labels"])  # fmt: skip
    row(", ".join(map(seconds, found["times"])), f"{found['total'] / 3600:.1f} hours",
        f"{found['peak'] / 1e9:.2f} GB", f"{found['kept']:.0f}",
        f"{found['kept'] * GOAL['m'] * 8 / 1e9:.1f} GB")  # fmt: skip


def _sampled(n, m, n_blocks):
    X, Y = long_tailed(n, m * FEATURES_PER_LABEL, m, random_state=0)
    LogisticRanker(max_iter=2, tol=1.0, prune=0.1).fit(X[:500], Y[:500, :50])  # compile
    reset_peak()
    options = {"C": OPTIONS["C"], "penalize_intercept": OPTIONS["penalize_intercept"]}
    data = Objective(place(X, label_sets(Y), instance_weights(Y)), **options)
    blocks = blocks_of(data)
    times, kept = [], []
    for i in ((np.arange(n_blocks) + 0.5) * len(blocks) / n_blocks).astype(int):
        start = time.perf_counter()
        solution = solve(data, blocks[i], Options(OPTIONS["tol"], 500))
        coef, _ = pruned(data.to_features(solution.point)[0], OPTIONS["prune"])
        times.append(time.perf_counter() - start)
        kept.append(coef.nnz / len(blocks[i]))
    return {
        "sampled": n_blocks,
        "blocks": len(blocks),
        "width": len(blocks[0]),
        "times": [min(times), float(np.mean(times)), max(times)],
        "total": float(np.mean(times)) * len(blocks),
        "kept": float(np.mean(kept)),
        "peak": 1024 * memory_kb("VmHWM"),
    }


def eurlex():
    """EUR-Lex 4K from files in memory to a ranking: time, memory, disk and quality."""
    head = ["who", "fit", "peak of the process", "model on disk", "P@1 P@3 P@5", "nDCG@5"]
    table("EUR-Lex 4K, unit rows, 3,993 labels", [*head, "rank loss"])
    ours = {
        "DeltaRank, C = 10": {},
        "DeltaRank, C = 10, prune = 0.01": {"prune": 0.01},
        "DeltaRank, C = 10, prune = 0.1": {"prune": 0.1},
    }
    for name, more in ours.items():
        _show(name, in_own_process(_ours, **more))
    _show("napkinXC BR", in_own_process(_napkinxc))
    _show("LibMultiLabel -s 0 -c 1 -B 1 (41 labels, time scaled)", in_own_process(_liblinear))


def _show(name, found):
    row(name, seconds(found["time"]), f"{found['peak'] / 1e9:.2f} GB",
        f"{found['model'] / 1e6:.0f} MB" if found["model"] else "", *found["quality"])  # fmt: skip


def _quality(Y, scores):
    at_k = " ".join(f"{metrics.precision_at_k(Y, scores, k):.4f}" for k in (1, 3, 5))
    gain = metrics.ndcg_at_k(Y, scores, 5)
    return [at_k, f"{gain:.4f}", f"{rank_loss(Y, scores):.4f}"]


def _ours(**more):
    data = real_data.unit_rows(real_data.load("eurlex-4k"))
    LogisticRanker(max_iter=30, tol=0.1, **more).fit(data.X[:4000], data.Y[:4000, :300])  # compile
    options = {"C": 10.0, "tol": 3e-3, "penalize_intercept": True, **more}
    reset_peak()
    spent, ranker = timed(lambda: LogisticRanker(**options).fit(data.X, data.Y))
    peak = 1024 * memory_kb("VmHWM")
    with tempfile.TemporaryDirectory() as folder:
        save(ranker, Path(folder, "model"))
        size = Path(folder, "model").stat().st_size
    quality = _quality(data.Y_test, ranker.decision_function(data.X_test))
    return {"time": spent, "peak": peak, "model": size, "quality": quality}


def _napkinxc():
    import bench_logistic

    data = real_data.unit_rows(real_data.load("eurlex-4k"))
    reset_peak()
    spent, scores, size = bench_logistic.napkinxc(data)
    peak = 1024 * memory_kb("VmHWM")
    return {"time": spent, "peak": peak, "model": size, "quality": _quality(data.Y_test, scores)}


def _liblinear():
    import bench_logistic

    data = real_data.unit_rows(real_data.load("eurlex-4k"))
    seen = np.flatnonzero(data.Y.sum(axis=0))
    sample = np.random.default_rng(0).choice(seen, 41, replace=False)
    extra("bench", "libmultilabel.linear")  # before the clock starts
    reset_peak()
    spent, _ = timed(lambda: bench_logistic.liblinear(data.X, data.Y[:, sample], 1.0))
    peak = 1024 * memory_kb("VmHWM")
    return {"time": spent * data.Y.shape[1] / 41, "peak": peak, "model": 0, "quality": ["", "", ""]}


if __name__ == "__main__":
    run_sections(growth, goal, eurlex)
