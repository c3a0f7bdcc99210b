"""
Rank tags for text
==================

A table of recipes has a column of text, a number, a category and a column of tags. One reads it,
fits a ranker, and gets the tags of a new recipe in order.
"""

import csv
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from deltarank import LogisticRankerCV, metrics, rank_loss
from deltarank.datasets import Preparation, example_rows, read

# %%
# Two files, as they might come from anywhere. ``read`` finds the column of tags, makes TF-IDF of
# the text and columns of 0 and 1 of the season; ``Preparation`` brings the minutes to one scale,
# and will do all of it again to other rows.

folder = Path(tempfile.mkdtemp())
for name, seed, n_rows in [("train.csv", 0, 400), ("test.csv", 1, 400)]:
    rows = example_rows(n_rows, seed=seed)
    with (folder / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)

train = read(folder / "train.csv")
preparation = Preparation.fit(train, scale=True)
tags = np.array(train.label_names)
print(train)

# %%
# C, the strength of the fit, is chosen by cross-validated rank loss.

ranker = LogisticRankerCV(random_state=0).fit(preparation.transform(train.X), train.Y)
test = preparation.read(folder / "test.csv", labels="tags", label_names=train.label_names)
scores = ranker.decision_function(preparation.transform(test.X))
loss = rank_loss(test.Y, scores)
print(f"C = {ranker.C_:g}; {loss:.1%} of the label pairs of new recipes are in the wrong order")

# %%
# The scores of one new recipe, the best first, and how good the first k tags of all new recipes
# are.

recipe = example_rows(400, seed=1)[1]
order = np.argsort(-scores[1])
relevant = test.Y[[1]].toarray()[0]
colours = np.where(relevant[order] == 1, "#0072B2", "0.75")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), width_ratios=[3, 2])
left.barh(tags[order], scores[1][order], color=colours)
left.invert_yaxis()
left.axvline(0, color="0.4", linewidth=0.8)
left.set_xlabel("score (blue: a tag it has)")
left.set_title(recipe["description"].replace(", ", ",\n", 1), loc="left", fontsize=9)
places = range(1, 6)
values = {
    "precision at k": [metrics.precision_at_k(test.Y, scores, k=k) for k in places],
    "recall at k": [metrics.recall_at_k(test.Y, scores, k=k) for k in places],
}
for name, of_k in values.items():
    right.plot(places, of_k, "o-", label=name)
right.legend(loc="lower right")
right.set(xlabel="k", ylim=(0, 1.08), xticks=places, title="400 new recipes")
plt.show()

# %%
# The first tag is right nine times in ten. Precision falls with k since few recipes have five
# tags, and recall rises: with three tags shown, most of those that a recipe has are among them.
# Tags are sometimes forgotten in these data, as in life: the soup on the left was not tagged as
# one.
