"""
Choose C by cross-validated rank loss
=====================================

C says how far coefficients may go. Choose it by the loss you care about, on rows that were held
out; ``LogisticRankerCV`` solves all folds of a C together and starts each C from the one before,
so that the whole grid costs a few fits.
"""

import matplotlib.pyplot as plt
import numpy as np

from deltarank import LogisticRanker, LogisticRankerCV, rank_loss

# %%
# 300 rows, 200 features, of which five matter: too few rows to trust every coefficient.

rng = np.random.default_rng(0)
X = rng.normal(size=(5300, 200))
signal = X[:, :5] @ rng.normal(size=(5, 8))
Y = (signal + 2 * rng.logistic(size=signal.shape) > 2).astype(int)
train, test = slice(0, 300), slice(300, None)
Cs = np.logspace(-4, 2, 13)
ranker = LogisticRankerCV(Cs=Cs, random_state=0).fit(X[train], Y[train])
print(f"C = {ranker.C_:.3g}")

# %%
# Beside the held-out loss stand the loss on the training rows, which never warns, and that on
# 5,000 new rows, which one would not have.

results = ranker.cv_results_
held_out, spread = -results["mean_test_score"], results["std_test_score"] / np.sqrt(5)
losses = {"training rows": [], "5,000 new rows": []}
for C in Cs:
    fitted = LogisticRanker(C=C).fit(X[train], Y[train])
    for name, rows in zip(losses, (train, test), strict=True):
        losses[name].append(rank_loss(Y[rows], fitted.decision_function(X[rows])))

figure, panel = plt.subplots()
panel.errorbar(Cs, held_out, spread, fmt="o-", capsize=3, label="held-out rows")
for (name, values), style in zip(losses.items(), (":", "--"), strict=True):
    panel.plot(Cs, values, style, label=name)
panel.axvline(ranker.C_, color="0.4", linewidth=1)
panel.annotate("chosen", (ranker.C_, 0.02), (4, 0), textcoords="offset points")
panel.set(xscale="log", xlabel="C", ylabel="rank loss", ylim=(0, None))
panel.legend(loc="lower left")
plt.show()

# %%
# Training loss falls to nothing and would choose the largest C. Held-out rows (bars are one
# standard error) choose one near the best on new rows:

chosen, least = np.interp(ranker.C_, Cs, losses["5,000 new rows"]), min(losses["5,000 new rows"])
print(f"rank loss on new rows {chosen:.3f}, the least of the grid {least:.3f}")
