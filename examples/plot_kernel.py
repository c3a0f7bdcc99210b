"""
Labels that no line can split
=============================

Where labels depend on distance or angle, a linear score is no use. ``KernelLogisticRanker`` fits
the same loss on a map of the Gaussian kernel, and chooses width, landmarks and C by rank loss.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from deltarank import KernelLogisticRanker, LogisticRanker, rank_loss


def rings(n, random_state):
    """Return points in the plane and label sets: three rings and three sectors."""
    generator = np.random.default_rng(random_state)
    X = generator.normal(size=(n, 2))
    distance, angle = np.hypot(*X.T), np.arctan2(*X.T)
    chances = [np.exp(-4 * (distance - near) ** 2) for near in (0.3, 1.0, 1.8)]
    chances += [(1 + np.cos(3 * angle + turn)) / 2 for turn in (0, 2, 4)]
    Y = generator.random((n, 6)) < 0.1 + 0.8 * np.stack(chances, axis=1)
    return X, Y.astype(int)


X, Y = rings(1500, random_state=0)
X_new, Y_new = rings(3000, random_state=1)
rankers = {
    "LogisticRanker": LogisticRanker(),
    "KernelLogisticRanker": KernelLogisticRanker(n_landmarks=150, cv=3, random_state=0),
}

# %%
# The first label of each point of the plane, under either ranker.

names = ["inner ring", "middle ring", "outer ring", "sector 1", "sector 2", "sector 3"]
colours = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"]
side = np.linspace(-2.5, 2.5, 150)
grid = np.column_stack([axis.ravel() for axis in np.meshgrid(side, side)])
figure, panels = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True)
for panel, (name, ranker) in zip(panels, rankers.items(), strict=True):
    ranker.fit(X, Y)
    loss = rank_loss(Y_new, ranker.decision_function(X_new))
    first = ranker.rank(grid, top=1)[:, 0]
    panel.imshow(
        first.reshape(150, 150), cmap=ListedColormap(colours), vmin=0, vmax=5, origin="lower"
    )
    panel.set(title=f"{name}: rank loss {loss:.3f}", xticks=[], yticks=[])
    panel.spines[:].set_visible(False)
handles = [Patch(color=colour, label=name) for colour, name in zip(colours, names, strict=True)]
figure.legend(handles=handles, loc="outside lower center", ncols=6)
plt.show()

# %%
# A linear ranker cuts the plane into wedges, each of one order, and three-fold sectors and rings
# are none. The kernel finds the inner ring and the sectors, which come three times round, from
# 1,500 points.
