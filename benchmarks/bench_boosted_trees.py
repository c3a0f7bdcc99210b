"""BoostedTreeRanker beside XGBoost, CatBoost and scikit-learn, two threads for everyone.

Usage: ``python benchmarks/bench_boosted_trees.py [mediamill] [quality] [growth]``, all by default;
the first two need the real data sets in DELTARANK_DATA, and all but the last ``deltarank[bench]``.
Peers get raw features and the weights w(y). Those too slow to run whole are timed on fewer rounds
or labels and scaled, which the table says.
"""

import numpy as np

import real_data
from deltarank import BoostedTreeRanker, instance_weights, rank_loss
from measure import (
    THREADS,
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

ROUNDS, LEAVES = 100, 64
# What a peer is timed on where the whole would take too long, and is scaled from.
FEW_ROUNDS, FEW_LABELS = 3, 4


def counted(data):
    """Return rows that weigh something: features, labels as an array, weights."""
    weights = instance_weights(data.Y)
    kept = weights > 0
    return data.X[kept], data.Y[kept].toarray().astype(np.float32), weights[kept]


def fit_xgboost(X, Y, weights, rounds, strategy):
    xgboost = extra("bench", "xgboost")
    model = xgboost.XGBClassifier(
        n_estimators=rounds, max_depth=6, multi_strategy=strategy, n_jobs=THREADS
    )
    return model.fit(X, Y, sample_weight=weights)


def fit_catboost(X, Y, weights, rounds):
    catboost = extra("bench", "catboost")
    model = catboost.CatBoostClassifier(
        iterations=rounds,
        loss_function="MultiLogloss",
        thread_count=THREADS,
        logging_level="Silent",
        allow_writing_files=False,
    )
    return model.fit(X, Y.astype(int), sample_weight=weights)


def fit_sklearn(X, Y, weights, rounds):
    from sklearn.ensemble import HistGradientBoostingClassifier

    labels = np.argsort(-Y.sum(axis=0))[:: max(1, Y.shape[1] // FEW_LABELS)][:FEW_LABELS]
    return [
        HistGradientBoostingClassifier(max_iter=rounds, early_stopping=False).fit(
            X, Y[:, label], sample_weight=weights
        )
        for label in labels
    ]


def measured(fit, name, *arguments):
    """Return time, what the peak grew by, and the fitted model's scores of test rows if any."""
    data = real_data.load(name)
    rows = counted(data)
    reset_peak()
    before = memory_kb("VmRSS")
    spent, model = timed(lambda: fit(*rows, *arguments))
    peak = memory_kb("VmHWM") - before
    if not hasattr(model, "predict_proba"):
        return spent, peak, None
    return spent, peak, rank_loss(data.Y_test, np.asarray(model.predict_proba(data.X_test)))


def ours(name, **options):
    """Return the same of BoostedTreeRanker, compiled before."""
    data = real_data.load(name)
    BoostedTreeRanker(n_trees=2).fit(data.X, data.Y)
    reset_peak()
    before = memory_kb("VmRSS")
    spent, ranker = timed(lambda: BoostedTreeRanker(random_state=0, **options).fit(data.X, data.Y))
    peak = memory_kb("VmHWM") - before
    return spent, peak, rank_loss(data.Y_test, ranker.decision_function(data.X_test))


def mediamill():
    """Fit trees of about 64 leaves for all labels."""
    rounds, n_labels = scaled(ROUNDS, FEW_ROUNDS), real_data.load("mediamill").Y.shape[1]
    few_labels = f"{FEW_LABELS} of {n_labels} labels, scaled"
    runs = [
        ("XGBoost, trees per label", fit_xgboost, (rounds, "one_output_per_tree"), 1, "whole"),
        ("XGBoost, vector leaves", fit_xgboost, (FEW_ROUNDS, "multi_output_tree"),
         rounds / FEW_ROUNDS, f"{FEW_ROUNDS} rounds, scaled"),
        ("CatBoost, MultiLogloss", fit_catboost, (FEW_ROUNDS,), rounds / FEW_ROUNDS,
         f"{FEW_ROUNDS} rounds, scaled"),
        ("scikit-learn, a loop", fit_sklearn, (rounds,), n_labels / FEW_LABELS, few_labels),
    ]  # fmt: skip
    mine = in_own_process(ours, "mediamill", n_trees=rounds, learning_rate=0.3, max_leaves=LEAVES)
    default = in_own_process(ours, "mediamill")
    head = ["who", "measured", "time", "times ours", "peak above data", "rank loss"]
    table(f"mediamill, {n_labels} labels, {rounds} rounds of trees of about {LEAVES} leaves", head)
    _row(f"DeltaRank, {rounds} trees, learning rate 0.3", "whole", *mine, mine[0])
    _row("DeltaRank, default", "whole", *default, mine[0])
    for who, fit, arguments, factor, how in runs:
        spent, peak, loss = in_own_process(measured, fit, "mediamill", *arguments)
        _row(who, how, factor * spent, peak, loss if factor == 1 else None, mine[0])


def _row(who, how, spent, peak, loss, mine):
    shown = "" if loss is None else f"{loss:.4f}"
    row(who, how, seconds(spent), f"{spent / mine:.1f}", f"{peak / 1024:.0f} MB", shown)


def quality():
    """Fit the default to other real sets, beside trees per label of XGBoost's defaults."""
    head = ["set", "DeltaRank, time", "rank loss", "XGBoost per label, time", "rank loss"]
    table(f"default settings; XGBoost: {ROUNDS} rounds of depth 6", head)
    for name in ("emotions", "image", "scene", "yeast"):
        spent, _, loss = in_own_process(ours, name)
        theirs = in_own_process(
            measured, fit_xgboost, name, scaled(ROUNDS, FEW_ROUNDS), "one_output_per_tree"
        )
        row(name, seconds(spent), f"{loss:.4f}", seconds(theirs[0]), f"{theirs[2]:.4f}")


def made_up(n, d, m):
    """Return features and labels that depend on them."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((n, d), dtype=np.float32)
    theta = generator.standard_normal((d, m), dtype=np.float32)
    return X, (X @ theta > 2 * np.sqrt(d)).astype(np.int8)


def growth():
    """Fit exponents of the time in rows, features, labels and trees."""
    base = {"n": scaled(20_000, 500), "d": 50, "m": 64, "trees": 20}
    table("time against size", ["what grows", "sizes", "times", "exponent"])
    for name in base:
        sizes, times = [], []
        for factor in (1, 2, 4, 8):
            size = {**base, name: base[name] * factor}
            sizes.append(size[name])
            ranker = BoostedTreeRanker(n_trees=size.pop("trees"), random_state=0)
            X, Y = made_up(**size)
            times.append(timed(lambda r=ranker, X=X, Y=Y: r.fit(X, Y), 2)[0])
        slope = exponent(sizes, times)
        row(name, ", ".join(map(str, sizes)), ", ".join(map(seconds, times)), f"{slope:.2f}")


if __name__ == "__main__":
    run_sections(mediamill, quality, growth)
