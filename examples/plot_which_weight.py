"""
Which weight for which metric
=============================

A row's weight w(y) says which metric the ranking is best for: ``"rank"`` for rank loss,
``"uniform"`` for precision at k, ``"recall"`` for recall at k, ``"ndcg"`` for nDCG. It matters
where labels depend on each other. Here is what each weight costs under each metric, measured
against the best ranking.
"""

import matplotlib.pyplot as plt
import numpy as np

from deltarank import LogisticRanker, metrics, rank_loss

# %%
# Half of the rows come with one label, the others with many: a reader may tag tersely or at
# length, and which labels are likely depends on it. There are no features to tell the two kinds
# apart, so that one order must serve for all, and the weights decide which.

rng = np.random.default_rng(0)
m = 8
terse_chances = np.array([30, 24, 18, 12, 7, 4, 3, 2]) / 100
wordy_chances = np.array([10, 30, 25, 35, 60, 75, 85, 80]) / 100


def sample(n):
    """Return rows without features, and label sets of both kinds."""
    terse = np.eye(m, dtype=int)[rng.choice(m, size=n // 2, p=terse_chances)]
    wordy = (rng.random((n - n // 2, m)) < wordy_chances).astype(int)
    return np.zeros((n, 1)), np.concatenate([terse, wordy])


X, Y = sample(20_000)
new_X, new_Y = sample(50_000)
weights = ["rank", "uniform", "recall", "ndcg"]
losses = {
    "rank loss": lambda Y, s: rank_loss(Y, s),
    "1 - precision at 3": lambda Y, s: 1 - metrics.precision_at_k(Y, s, k=3),
    "1 - recall at 3": lambda Y, s: 1 - metrics.recall_at_k(Y, s, k=3),
    "1 - nDCG": lambda Y, s: 1 - metrics.ndcg_at_k(Y, s),
}
table = np.empty((len(weights), len(losses)))
for row, weight in enumerate(weights):
    ranker = LogisticRanker(weight=weight).fit(X, Y)
    print(f"{weight:8}", " > ".join(map(str, ranker.rank(new_X[:1])[0])))
    scores = ranker.decision_function(new_X)
    table[row] = [loss(new_Y, scores) for loss in losses.values()]

# %%
# How much more each weight loses than the best of the four, metric by metric.

excess = table - table.min(axis=0)
figure, panel = plt.subplots(figsize=(7, 3.2))
panel.imshow(excess / excess.max(axis=0), cmap="Blues", aspect="auto", vmax=1.4)
for (row, column), value in np.ndenumerate(excess):
    text = f"best: {table[row, column]:.3f}" if value == 0 else f"+{value:.4f}"
    panel.text(column, row, text, ha="center", va="center")
panel.set_xticks(range(len(losses)), losses)
panel.set_yticks(range(len(weights)), [f'weight="{w}"' for w in weights])
panel.tick_params(length=0)
panel.spines[:].set_visible(False)
plt.show()

# %%
# The best of each column is on the diagonal: the weight made for a metric wins under it, or
# shares the first three labels with the one that does. ``"uniform"`` follows the wordy rows,
# which have more labels to count, ``"recall"`` the terse ones, where one label is all there is to
# find; ``"rank"`` and ``"ndcg"`` lie between.
