"""More rows and a new label: go on from the last fit.

Run it with ``python examples/more_rows.py``.
"""

import numpy as np

from deltarank import LogisticRanker


def main() -> tuple[int, int]:
    """Fit, add rows and a label, and count the passes over the data of a warm and a fresh fit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 60))
    Y = (X @ rng.normal(size=(60, 12)) + 8 * rng.logistic(size=(20_000, 12)) > 10) * 1
    names = np.array([f"label {k}" for k in range(12)])
    sets = [set(names[row == 1].tolist()) for row in Y]
    before = [row - {"label 11"} for row in sets[:19_000]]
    ranker = LogisticRanker(C=10.0, warm_start=True).fit(X[:19_000], before)
    print(f"first fit: {len(ranker.classes_)} labels, {ranker.n_iter_.sum()} passes of a label")
    ranker.fit(X, sets)
    fresh = LogisticRanker(C=10.0).fit(X, sets)
    print(f"going on: {len(ranker.classes_)} labels, {ranker.n_iter_.sum()} passes of a label")
    print(f"afresh: {fresh.n_iter_.sum()} passes of a label")
    gap = abs(ranker.objective_ / fresh.objective_ - 1).max()
    print(f"largest relative difference of objectives: {gap:.0e}")
    return int(ranker.n_iter_.sum()), int(fresh.n_iter_.sum())


if __name__ == "__main__":
    main()
