"""
The best labels for a metric
============================

Which labels are best to show depends on how one is judged. ``MetricRanker`` turns the same chances
into the best decision for each metric. Here labels are few in most rows and some are rare, as in
tagging.
"""

import matplotlib.pyplot as plt
import numpy as np

from deltarank import LogisticRanker, MetricRanker, metrics
from deltarank.datasets import SyntheticModel

# %%
# Twelve labels, the last ones twenty times as rare as the first, and two labels a row to choose.

model = SyntheticModel.random(n_labels=12, random_state=0)
X, Y = model.sample(24_000, random_state=1)
Y = Y & (np.random.default_rng(2).random(Y.shape) < np.geomspace(1, 0.05, 12))
train, new = slice(0, 4000), slice(4000, None)
measures = {
    "precision": metrics.precision_at_k,
    "macro-recall": metrics.macro_recall_at_k,
    "macro-f1": metrics.macro_f1_at_k,
}

# %%
# One rule for each metric, from chances of the same kind; and each rule under each metric.

scores = {}
for metric in measures:
    ranker = MetricRanker(LogisticRanker(weight="uniform"), metric=metric, k=2, random_state=0)
    scores[metric] = ranker.fit(X[train], Y[train]).decision_function(X[new])
values = {
    metric: [function(Y[new], scores[rule], 2) for rule in measures]
    for metric, function in measures.items()
}

# %%
# Left: each metric, as a share of what its own rule reaches. Right: how often a rule shows a label.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
places = np.arange(len(measures))
for number, rule in enumerate(measures):
    shares = [values[metric][number] / max(values[metric]) for metric in measures]
    left.bar(places + 0.26 * (number - 1), shares, 0.24, label=rule)
    first = np.argsort(-scores[rule], axis=1)[:, :2]
    shown = np.bincount(first.ravel(), minlength=12) / len(first)
    right.plot(np.arange(1, 13), shown, "o-", markersize=4)
left.set(xticks=places, xticklabels=list(measures), ylabel="share of the best value", ylim=(0, 1.3))
left.legend(loc="upper center", ncols=3, title="rule for", columnspacing=1, handlelength=1)
right.plot(np.arange(1, 13), Y[new].mean(axis=0), color="0.6", label="rows that have the label")
right.set(xlabel="label, the rarest last", ylabel="share of rows", ylim=(0, None))
right.legend()
plt.show()

# %%
# Every rule is the best under its own metric, and none under two. By chance, which is best for
# precision, the rare half of the labels is hardly ever shown; the rule for macro recall shows them
# in far more rows than have them; that for macro F1 shows every label about as often as it occurs.
