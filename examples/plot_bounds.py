"""
How much a small loss promises
==============================

Theorem 3.2 of the paper bounds the rank regret by the square root of the logistic regret. The
constant can be improved (see :doc:`/theory`), and then no other can be better. Random
distributions show both.
"""

import matplotlib.pyplot as plt
import numpy as np

from deltarank.theory import LabelDistribution, regret_bound, surrogate_regret

# %%
# Label sets of four labels with random chances, scores that are the best ones plus noise of any
# size; and one family that is as bad as can be, equally spaced chances in the reverse order.

rng = np.random.default_rng(0)
m = 4
sets = [f"{number:04b}" for number in range(1, 2**m - 1)]
points = []
for _ in range(1500):
    chances = rng.dirichlet(np.full(len(sets), 0.3))
    people = LabelDistribution(dict(zip(sets, chances, strict=True)))
    right = np.log(people.relevances() / (1 - people.relevances()))
    scores = right + rng.normal(size=m) * 10 ** rng.uniform(-2, 0.7)
    points.append(
        (
            surrogate_regret(people, scores, "univariate logistic"),
            people.regret(scores),
            people.mean_weight(),
        )
    )
surrogate, regret, weight = np.array(points).T

# %%
# Everything is divided by the mean weight W, so that one line holds for all.

figure, panel = plt.subplots(figsize=(7, 4))
panel.scatter(surrogate / weight, regret / weight, s=6, color="0.6", label="random distributions")
x = np.logspace(-5, 1, 50)
for form, style in (("paper", "--"), ("sharp", "-")):
    panel.plot(x, [regret_bound(v, m, 1.0, form=form) for v in x], style, label=f"{form} bound")
spread = np.logspace(-2.4, -0.4, 9)
worst = []
for delta in spread:
    eta = 0.5 + delta * (2 * np.arange(m) - m + 1) / m
    gaps = sum(abs(eta[i] - eta[j]) for i in range(m) for j in range(i))
    cost = -(eta * np.log(0.5) + (1 - eta) * np.log(0.5))
    least = -(eta * np.log(eta) + (1 - eta) * np.log(1 - eta))
    worst.append(((cost - least).sum(), gaps))
panel.plot(*np.array(worst).T, "o", color="#B22222", label="the worst case")
panel.set(xscale="log", yscale="log", xlim=(1e-5, 10), ylim=(1e-4, 20))
panel.set(xlabel="logistic regret / W", ylabel="rank regret / W")
panel.legend(loc="lower right")
plt.show()

# %%
# Points without rank regret, most of those far to the left, do not show on this scale. The worst
# case lies on the sharp bound; the paper's is above it by the factor 1.8 for four labels.
