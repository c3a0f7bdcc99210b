"""
Why one label stands above another
==================================

Scores of a linear ranker are sums over features, so the difference of two labels' scores is one
too, and each feature's part in it can be named. Nothing is approximated.
"""

import csv
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from deltarank import LogisticRanker, explain, top_features
from deltarank.datasets import Preparation, example_rows, read

rows = example_rows(400, seed=0)
path = Path(tempfile.mkdtemp(), "recipes.csv")
with path.open("w", newline="") as file:
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)
data = read(path)
preparation = Preparation.fit(data, scale=True)
X = preparation.transform(data.X)
sets = [{data.label_names[label] for label in row.indices} for row in data.Y]
ranker = LogisticRanker(C=10).fit(X, sets)

# %%
# Why is the first recipe *spicy* rather than *sweet*?

print(rows[0]["description"])
found = explain(ranker, X[[0]], "spicy", "sweet", feature_names=preparation.feature_names())
for feature, part in found.largest(3):
    print(f"{feature:24} {part:+.2f}")
print(f"{'all, and the intercept':24} {found.difference:+.2f}")

# %%
# The words that speak for a tag and against it, over all recipes, are its largest coefficients.
# On the left the parts add up to the difference; on the right are the words that move *vegan*
# most.

parts = found.largest(7)
rest = found.difference - sum(part for _, part in parts)
parts.append(("all others, intercept", rest))
words = top_features(ranker, "vegan", 8, feature_names=preparation.feature_names())

figure, panels = plt.subplots(1, 2, figsize=(9, 3.6))
for panel, pairs, title in zip(
    panels,
    (parts, words),
    (f"spicy - sweet = {found.difference:.1f}", "coefficients of vegan"),
    strict=True,
):
    names = [str(name).removeprefix("description:") for name, _ in pairs]
    values = np.array([value for _, value in pairs])
    panel.barh(names, values, color=np.where(values > 0, "#0072B2", "#D55E00"))
    panel.invert_yaxis()
    panel.axvline(0, color="0.4", linewidth=0.8)
    panel.set_title(title, loc="left")
plt.show()

# %%
# The chili decides it. *Vegan* has mostly words against it, eggs, cheese and their like: what
# makes a recipe vegan is what it does without.
