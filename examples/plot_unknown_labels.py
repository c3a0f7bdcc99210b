"""
Labels that nobody has judged
=============================

Annotators often see some labels only, and a cell left open is not a no. Put NaN there: it carries
no loss and stands in no pair, and the row weighs the mean of w(y) over what it may be.
"""

import matplotlib.pyplot as plt
import numpy as np

from deltarank import LogisticRanker, rank_loss
from deltarank.datasets import SyntheticModel

# %%
# Eight labels; more and more of their cells are hidden, the last label's most. Three fits: with
# NaN, with zeros in place of what is hidden, and with all labels known.

model = SyntheticModel.random(n_labels=8, random_state=0)
X, truth = model.sample(3000, random_state=1)
new_X, new_Y = model.sample(20_000, random_state=2)
shares = [0.0, 0.2, 0.4, 0.6, 0.8, 0.9]
chance = np.random.default_rng(3).uniform(size=truth.shape)


def loss_of(Y):
    """Return the rank loss on new rows of a ranker fitted to Y."""
    return rank_loss(new_Y, LogisticRanker().fit(X, Y).decision_function(new_X))


losses = {"unknown (NaN)": [], "taken as irrelevant (0)": []}
for share in shares:
    judged = np.where(chance < np.linspace(0, share, 8), np.nan, truth)
    losses["unknown (NaN)"].append(loss_of(judged))
    losses["taken as irrelevant (0)"].append(loss_of(np.nan_to_num(judged)))
known = loss_of(truth)

# %%
# Metrics take NaN, too: a label is then left out of its row's ranking.

scores = LogisticRanker().fit(X, judged).decision_function(X)
print(f"rank loss over the known pairs of the training rows: {rank_loss(judged, scores):.4f}")

# %%

figure, panel = plt.subplots(figsize=(6.5, 3.6))
for (name, values), style in zip(losses.items(), ("o-", "s--"), strict=True):
    panel.plot(shares, values, style, label=name)
panel.axhline(known, color="0.5", linewidth=1, label="all labels known")
panel.set(xlabel="share of the last label's cells that is hidden", ylabel="rank loss on new rows")
panel.set_ylim(bottom=0)
panel.legend()
plt.show()

# %%
# NaN loses next to nothing, although nearly half of all cells are gone at the right end. Zeros
# teach the ranker that a label which is seldom judged is seldom relevant, and put it too low.

# %%
# What a row weighs matters. Three independent labels with chances .95, .20 and .40, of which the
# second is hidden at random in more and more rows. By the known labels alone
# (``unknown="known_part"``) a row with both others weighs nothing once the second is hidden, so the
# third seems rarer than it is, and drops below the second.

chances = [0.95, 0.20, 0.40]
generator = np.random.default_rng(4)
complete = (generator.random((20_000, 3)) < chances) * 1.0
hide, no_features = generator.random(20_000), np.zeros((20_000, 1))


def weighted_chances(share, rule):
    """Return what a fit finds the labels' weighted chances to be."""
    judged = complete.copy()
    judged[hide < share, 1] = np.nan
    ranker = LogisticRanker(unknown=rule).fit(no_features, judged)
    return ranker.marginal_weights(no_features[:1])[0]


found = {
    rule: np.array([weighted_chances(share, rule) for share in shares])
    for rule in ("known_part", "expected")
}

# %%

figure, panels = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True)
for panel, (rule, values) in zip(panels, found.items(), strict=True):
    for label in (1, 2):
        panel.plot(shares, values[:, label], "o-", label=f"label {label + 1}")
    panel.set(xlabel="share of label 2 that is hidden", title=f"unknown={rule!r}")
panels[0].set_ylabel("weighted chance found")
panels[1].legend()
plt.show()

# %%
# With the mean over what is hidden (``unknown="expected"``, the default) nothing moves but for
# chance.
