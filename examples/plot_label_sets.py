"""
Probabilities and label sets
============================

Scores are for ranking: under ``weight="rank"`` they stand for weighted chances, not for
probabilities. Whoever needs probabilities, or must decide which labels an item *has*, wraps the
ranker in ``CalibratedRanker``, which also chooses thresholds for a metric of sets.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.metrics import f1_score

from deltarank import CalibratedRanker, LogisticRanker
from deltarank.datasets import SyntheticModel

# %%
# Six labels, from common to rare.

model = SyntheticModel.random(n_labels=6, random_state=0)
X, Y = model.sample(12_000, random_state=1)
Y &= np.random.default_rng(2).uniform(size=Y.shape) < np.linspace(0.4, 0.1, 6)
train, test = slice(0, 4000), slice(4000, None)
ranker = CalibratedRanker(LogisticRanker(), set_metric="macro_f1", random_state=0)
ranker.fit(X[train], Y[train])
print("share of rows with each label ", Y[test].mean(axis=0).round(2))
print("mean probability              ", ranker.predict_proba(X[test]).mean(axis=0).round(2))
print("mean weighted chance, Eq. (23)", ranker.marginal_weights(X[test]).mean(axis=0).round(2))

# %%
# Left: of the cells given a chance of 30 %, how many are relevant? Right: the sets of the plain
# ranker, which takes what is more likely than not, beside those of the thresholds.

sets = {"ranker": ranker.ranker_.predict(X[test]), "thresholds": ranker.predict(X[test])}
by_label = {
    name: f1_score(Y[test], found, average=None, zero_division=0) for name, found in sets.items()
}
f1 = {name: values.mean() for name, values in by_label.items()}

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
left.plot([0, 1], [0, 1], color="0.6", linewidth=1)
for name, chances in [
    ("calibrated probabilities", ranker.predict_proba(X[test])),
    ("weighted chances", ranker.marginal_weights(X[test])),
]:
    share, mean = calibration_curve(
        Y[test].ravel(), chances.ravel(), n_bins=20, strategy="quantile"
    )
    left.plot(mean, share, "o-", markersize=4, label=name)
left.set(
    xlabel="chance given to a cell", ylabel="share of them relevant", xlim=(0, 0.8), ylim=(0, 0.8)
)
left.legend()
places = np.arange(6)
for shift, (name, values) in zip((-0.2, 0.2), by_label.items(), strict=True):
    right.bar(places + shift, values, 0.4, label=f"{name}: macro F1 {f1[name]:.2f}")
right.set(xlabel="label, from common to rare", ylabel="F1", ylim=(0, 0.6))
right.legend()
plt.show()

# %%
# Probabilities lie near the diagonal; weighted chances are larger, since rows with few labels count
# more and rows with none not at all. Rare labels are never more likely than not, so that plain
# sets leave them out; thresholds made for macro F1 do not.
