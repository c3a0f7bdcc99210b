"""
Regret as rows are added
========================

Figure 1 of the paper in small: data whose best ranking is known, so that one sees not only the
rank loss but how far it is from the least possible. ``deltarank reproduce --full`` draws the real
one.
"""

import matplotlib.pyplot as plt
import numpy as np

from deltarank import LogisticRanker, PairwiseRanker, rank_loss
from deltarank.datasets import SyntheticModel
from deltarank.theory import EXAMPLES

KINDS = {"univariate, weighted": LogisticRanker, "pairwise": PairwiseRanker}

# %%
# First the example of section 4, as data: label sets drawn from a known distribution, no
# features, 30 samples of each size. The regret of the scores is exact.

people = EXAMPLES["A"]
sets = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]])
chances = [0.25, 0.50, 0.20, 0.05]
sizes = np.array([10, 30, 100, 300, 1000, 3000, 10_000])
rng = np.random.default_rng(0)
exact = {name: np.zeros(len(sizes)) for name in KINDS}
for column, n in enumerate(sizes):
    for _ in range(30):
        counts = rng.multinomial(n, chances)
        for name, kind in KINDS.items():
            fitted = kind(C=1000.0).fit(np.zeros((4, 1)), sets, sample_weight=counts)
            exact[name][column] += people.regret(fitted.intercept_) / 30

# %%
# Then the paper's synthetic models, with ten labels that depend on each other. Both rankers get
# the best of four values of C, chosen on the test rows, so that neither suffers from its penalty.
# Regret is the rank loss less that of the Bayes ranker on the same rows.

steps = np.array([50, 200, 800, 3200])
regrets = {name: np.zeros((5, len(steps))) for name in KINDS}
for seed in range(5):
    model = SyntheticModel.random(n_labels=10, dependent=True, random_state=seed)
    X, Y = model.sample(steps[-1], random_state=100 + seed)
    test_X, test_Y = model.sample(2000, random_state=200 + seed)
    least = rank_loss(test_Y, model.bayes_scores(test_X))
    for name, kind in KINDS.items():
        for column, n in enumerate(steps):
            fits = [kind(C=C, tol=1e-4).fit(X[:n], Y[:n]) for C in (0.1, 1.0, 10.0, 100.0)]
            losses = [rank_loss(test_Y, fitted.decision_function(test_X)) for fitted in fits]
            regrets[name][seed, column] = min(losses) - least

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
for name, style in zip(KINDS, ("o-", "s--"), strict=True):
    left.plot(sizes, exact[name], style, label=name)
    values = regrets[name]
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    right.errorbar(steps, values.mean(axis=0), error, fmt=style, capsize=3, label=name)
left.set(xscale="log", xlabel="training rows", ylabel="regret", title="section 4, example A")
right.set(xscale="log", xlabel="training rows", title="synthetic models, mean of 5")
for panel in (left, right):
    panel.set_ylim(bottom=0)
left.legend(loc="lower left")
plt.show()

# %%
# On the left the univariate ranker comes to the best ranking, and the pairwise one to another:
# more rows only make it surer. On the right, where nobody built a trap, both come close, and the
# difference between them is small beside that between models. Consistency is a promise about
# every distribution.
