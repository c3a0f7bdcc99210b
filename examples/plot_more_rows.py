"""
More rows and a new label
=========================

Data grow. ``warm_start=True`` goes on from the last fit: labels are matched by name, and new ones
start afresh. The minimum is that of a fresh fit.
"""

import matplotlib.pyplot as plt
import numpy as np

from deltarank import LogisticRanker

# %%
# 20,000 rows come in six deliveries; the last brings a label that was not there before.

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 60))
Y = (X @ rng.normal(size=(60, 12)) + 8 * rng.logistic(size=(20_000, 12)) > 10) * 1
names = np.array([f"label {k}" for k in range(12)])
sets = [set(names[row == 1].tolist()) for row in Y]
deliveries = [15_000, 16_000, 17_000, 18_000, 19_000, 20_000]

going_on = LogisticRanker(C=10.0, warm_start=True)
warm, fresh, gaps = [], [], []
for n_rows in deliveries:
    newest = set() if n_rows == 20_000 else {"label 11"}
    labels = [row - newest for row in sets[:n_rows]]
    going_on.fit(X[:n_rows], labels)
    afresh = LogisticRanker(C=10.0).fit(X[:n_rows], labels)
    warm.append(int(going_on.n_iter_.sum()))
    fresh.append(int(afresh.n_iter_.sum()))
    gaps.append(abs(going_on.objective_ / afresh.objective_ - 1).max())
print(f"labels at the end: {len(going_on.classes_)}")
print(f"largest relative difference of objectives: {max(gaps):.0e}")

# %%
# The work of a fit is its passes over the data, added up over labels.

figure, panel = plt.subplots(figsize=(6.5, 3.4))
panel.plot(deliveries, fresh, "s--", label="fresh fits")
panel.plot(deliveries, warm, "o-", label="going on (the first is fresh)")
panel.set(xlabel="rows", ylabel="passes of a label, summed", ylim=(0, 60))
panel.legend(loc="lower left")
plt.show()

# %%
# Going on saves a quarter of the passes and no more, since a fresh fit takes few to begin with:
# three or four a label.
