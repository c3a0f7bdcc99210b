"""
Why losses over label pairs fail
================================

Section 4 of the paper. Three labels and a known distribution of label sets: whatever a loss's own
minimum ranks wrongly, no amount of data can repair.
"""

import matplotlib.pyplot as plt
import numpy as np

from deltarank.theory import EXAMPLES, surrogate_minimizer

people = EXAMPLES["A"]
print("marginal weights", people.marginal_weights().round(3), "- the best order is theirs")

# %%
# The minimiser of each loss, and its regret: what its ranking loses more than the best one.

names = [
    "univariate logistic",
    "univariate exponential",
    "pairwise logistic",
    "pairwise exponential",
    "pairwise hinge",
    "pairwise squared",
]
colours = ["#0072B2", "#E69F00", "#009E73"]
figure, panel = plt.subplots(figsize=(8, 3.4))
for height, name in enumerate(names):
    scores = surrogate_minimizer(people, name)
    regret = people.regret(scores)
    largest = abs(scores).max()
    panel.plot([-1, 1], [height, height], color="0.9", zorder=0)
    for label, score in enumerate(scores):
        tied = np.isclose(scores, score, atol=1e-6).sum() > 1
        place = (score / largest, height + (0.2 * (2 * label - 1) if tied else 0))
        panel.plot(*place, "o", color=colours[label], markersize=11)
        panel.annotate(str(label + 1), place, color="white", ha="center", va="center", fontsize=8)
    verdict = "right" if regret < 1e-9 else f"wrong, regret {regret:.4f}"
    panel.text(1.15, height, verdict, va="center", color="0.3" if verdict == "right" else "#B22222")
panel.set_yticks(range(len(names)), names)
panel.set(ylim=(len(names) - 0.5, -0.5), xlim=(-1.1, 1.75), xticks=[-1, 0, 1])
panel.set_xlabel("score of the minimiser, largest set to 1")
panel.spines.left.set_visible(False)
panel.tick_params(left=False)
plt.show()

# %%
# Label 1 carries more weight than label 2 and belongs above it. The univariate losses see each
# label's weight and put it there; the pairwise ones put label 2 first, or tie the two (hinge).
# All of them are convex.
