"""Pairwise training beside NumPy and beside univariate training, two threads for everyone.

Usage: ``python benchmarks/bench_pairwise.py [update] [yeast] [losses]``, all by default. Needs the
real data sets in DELTARANK_DATA. Prints a Markdown table a section.
"""

from functools import partial

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

import real_data
from deltarank import LogisticRanker, LogLinearRanker, PairwiseRanker, instance_weights, rank_loss
from deltarank.core.labels import label_sets
from deltarank.core.threads import row_blocks, run
from deltarank.pairs.objective import PAIR_LOSSES
from deltarank.pairs.parallel_update import ParallelUpdate
from measure import THREADS, row, run_sections, scaled, seconds, table, timed


def pulls_of_all_rows(scores, Y, weights):
    """Return each label's pair weights, a column at a time over all rows."""
    pulls = np.zeros_like(scores)
    for label in range(Y.shape[1]):
        mask = weights[:, None] * Y[:, [label]] * (1 - Y)
        pull = mask * expit(scores - scores[:, [label]])
        pulls[:, label] += pull.sum(axis=1)
        pulls += pull
    return pulls


def pulls_of_rows_with_the_label(scores, Y, weights):
    """Return the same, a column at a time over the rows that have the label."""
    pulls = np.zeros_like(scores)
    for label in range(Y.shape[1]):
        rows = np.flatnonzero(Y[:, label])
        some = scores[rows]
        pull = weights[rows, None] * (1 - Y[rows]) * expit(some - some[:, [label]])
        pulls[rows, label] += pull.sum(axis=1)
        pulls[rows] += pull
    return pulls


def numpy_update(pulls_of, theta, x, Y, weights, rho):
    """Return the step of Eq. (46) in NumPy; x has its constant feature."""
    pulls = pulls_of(x @ theta.T, Y, weights)
    relevant, other = pulls * Y, pulls * (1 - Y)
    positive, negative = np.maximum(x, 0), np.maximum(-x, 0)
    raising = relevant.T @ positive + other.T @ negative
    lowering = relevant.T @ negative + other.T @ positive
    least = 1e-12 * (raising.sum() + lowering.sum()) / raising.size
    return np.log((raising + least) / (lowering + least)) / (2 * rho)


def floor_seconds(n, d, m, n_pairs):
    """Return the time of the products of an update by BLAS, and of one division per pair.

    The products are taken in row blocks by two threads, which is faster than whole.
    """
    generator = np.random.default_rng(0)
    x = generator.normal(size=(n, d + 1)).astype(np.float32)
    theta = generator.normal(size=(d + 1, m)).astype(np.float32)
    wide = np.hstack([x, x])

    def products(rows):
        for block in row_blocks(n // THREADS, 512):
            (x[rows][block] @ theta).T @ wide[rows][block]

    halves = [partial(products, rows) for rows in row_blocks(n, -(-n // THREADS))]
    with threadpool_limits(1):
        spent, _ = timed(lambda: run(halves), 7)
    cached = np.ones(4096)
    division, _ = timed(lambda: [np.divide(cached, cached, out=cached) for _ in range(1000)], 5)
    return spent, division / 4.096e6 * n_pairs / THREADS


def update():
    """One parallel update of LLLR on mediamill."""
    data = real_data.standardized(real_data.load("mediamill"))
    weights = instance_weights(data.Y, normalize=False)
    used = np.flatnonzero(weights)
    X, Y, weights = data.X[used], data.Y[used], weights[used]
    labels, dense = label_sets(Y), Y.toarray().astype(np.float32)
    step = ParallelUpdate(X, labels, np.column_stack([weights, np.ones(len(used))]))
    generator = np.random.default_rng(0)
    n_features, n_labels = X.shape[1], Y.shape[1]
    theta = 0.05 * generator.normal(size=(n_labels, n_features + 1))
    step(theta)  # compile
    ours, (_, found) = timed(lambda: step(theta), 20)
    x = np.column_stack([X, np.ones(len(X), np.float32)])
    arguments = (theta.astype(np.float32), x, dense, weights.astype(np.float32), step.rho)
    n_pairs = int((labels.sizes * (n_labels - labels.sizes)).sum())
    head = ["NumPy, a loop over label columns", "NumPy", "DeltaRank", "ratio", "largest difference"]
    table(f"one parallel update of LLLR, mediamill, float32, {n_pairs:,} pairs", head)
    for pulls_of, words in (
        (pulls_of_all_rows, "over all rows"),
        (pulls_of_rows_with_the_label, "over the rows that have the label"),
    ):
        theirs, wanted = timed(lambda p=pulls_of: numpy_update(p, *arguments), 2)
        apart = np.abs(found - wanted).max() / np.abs(wanted).max()
        row(words, seconds(theirs), seconds(ours), f"{theirs / ours:.0f}", f"{apart:.0e}")
    products, divisions = floor_seconds(len(X), n_features, n_labels, n_pairs)
    print(
        f"\nFloor: the matrix products by BLAS {seconds(products)}, one division per pair "
        f"{seconds(divisions)}; an update takes {ours / (products + divisions):.1f} times "
        "their sum."
    )


def yeast():
    """Time the longest run of the paper's grid."""
    data = real_data.standardized(real_data.load("yeast"))
    LogLinearRanker(n_iterations=2).fit(data.X, data.Y)  # compile
    n_updates = scaled(20_000)
    spent, ranker = timed(lambda: LogLinearRanker(n_iterations=n_updates).fit(data.X, data.Y))
    table(f"{n_updates:,} updates on yeast, float32",
          ["time", "an update", "test rank loss after so many"])  # fmt: skip
    grid = [at for at in (10, 100, 1000, 10_000, 20_000) if at <= n_updates]
    stages = zip(grid, ranker.staged_decision_function(data.X_test, at=grid), strict=True)
    losses = ", ".join(f"{at}: {rank_loss(data.Y_test, scores):.4f}" for at, scores in stages)
    row(seconds(spent), seconds(spent / n_updates), losses)


def losses():
    """Fit by each pairwise loss and by the univariate logistic one, to the same tolerance."""
    for name in ("yeast", "mediamill"):
        data = real_data.standardized(real_data.load(name))
        title = f"{name}, standardised, float32, C = 1, tol = 1e-6"
        table(title, ["loss", "fit", "times the univariate", "passes", "test rank loss"])
        LogisticRanker().fit(data.X, data.Y)  # compile
        univariate, ranker = timed(lambda d=data: LogisticRanker().fit(d.X, d.Y), 3)
        lost = rank_loss(data.Y_test, ranker.decision_function(data.X_test))
        passes = ranker.n_iter_.sum() / len(ranker.n_iter_)
        row("univariate logistic", seconds(univariate), 1, f"{passes:.1f}", f"{lost:.4f}")
        for loss in PAIR_LOSSES:
            PairwiseRanker(loss=loss, tol=0.5).fit(data.X, data.Y)  # compile
            fit = PairwiseRanker(loss=loss, max_iter=2000)
            spent, ranker = timed(lambda f=fit, d=data: f.fit(d.X, d.Y))
            lost = rank_loss(data.Y_test, ranker.decision_function(data.X_test))
            row(f"pairwise {loss}", seconds(spent), f"{spent / univariate:.1f}", ranker.n_iter_,
                f"{lost:.4f}")  # fmt: skip


if __name__ == "__main__":
    run_sections(update, yeast, losses)
