"""
Label sets with a guarantee
===========================

``ConformalRanker`` cuts the rankings of any ranker off so that, of a new row, at most a chosen
share of the relevant labels is missed. That holds for a good ranker and for a bad one; what a good
one buys is smaller sets.
"""

import matplotlib.pyplot as plt
import numpy as np

from deltarank import AdaBoostRanker, ConformalRanker, LogisticRanker
from deltarank.datasets import SyntheticModel

# %%
# A good ranker and one that has a single stump a label, at five levels, each on thirty draws of 400
# rows. A quarter of these rows is kept away from the ranker to calibrate on.

model = SyntheticModel.random(n_labels=8, random_state=0)
X_new, Y_new = model.sample(4000, random_state=1)
sizes_new = Y_new.sum(axis=1)
levels = [0.05, 0.1, 0.15, 0.2, 0.3]
rankers = {"logistic": LogisticRanker(), "one stump a label": AdaBoostRanker(n_stumps=1)}
missed = {name: np.empty((len(levels), 30)) for name in rankers}
sizes = {name: np.empty((len(levels), 30)) for name in rankers}
for name, ranker in rankers.items():
    for i, level in enumerate(levels):
        for draw in range(30):
            X, Y = model.sample(400, random_state=10 + draw)
            fitted = ConformalRanker(ranker, level=level, random_state=draw).fit(X, Y)
            chosen = fitted.predict(X_new)
            shares = (Y_new > chosen).sum(axis=1) / np.maximum(sizes_new, 1)
            missed[name][i, draw] = shares.mean()
            sizes[name][i, draw] = chosen.sum(axis=1).mean()

# %%
# Left: the share missed on new rows, each dot a draw. Right: what it takes in labels.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
left.plot([0, 0.35], [0, 0.35], color="0.6", linewidth=1)
for shift, name in zip((-0.003, 0.003), rankers, strict=True):
    places = np.repeat(levels, 30) + shift
    (line,) = left.plot(levels, missed[name].mean(axis=1), "o-", label=name)
    left.plot(places, missed[name].ravel(), ".", color=line.get_color(), alpha=0.25, markersize=4)
    right.plot(levels, sizes[name].mean(axis=1), "o-", label=name)
left.set(xlabel="level", ylabel="share of relevant labels missed", xlim=(0, 0.35), ylim=(0, 0.4))
right.set(xlabel="level", ylabel="labels in a set", ylim=(0, 8))
left.legend()
right.legend()
plt.show()

# %%
# The means lie below the line for both rankers: that is the guarantee. They are close to it where
# scores are many, and further below where they are few, as a single stump's, because whole groups
# of equal scores go in or out. Single draws lie around the means, since a hundred rows to calibrate
# on leave some chance. The bad ranker needs larger sets for the same level.
