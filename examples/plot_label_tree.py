"""
A tree for very many labels
===========================

One regression per label looks at every label for every row. ``LabelTreeRanker`` puts labels that
occur in like rows together, asks first for groups, and fits a label on the rows of its group alone.
Fitted with the weights of rank loss, such a tree still ranks as the best ranking does, if its
regressions can say what the chances are.
"""

import time

import matplotlib.pyplot as plt

from deltarank import LabelTreeRanker, LogisticRanker
from deltarank.datasets import TextVectorizer, example_rows, long_tailed

# %%
# A small tree first: tags of recipes, by the words of their descriptions.

rows = example_rows(400, seed=0)
X = TextVectorizer(min_df=2).fit_transform([row["description"] for row in rows])
tags = [row["tags"].split(",") for row in rows]
tags = [[tag.strip() for tag in names if tag.strip()] for names in tags]
small = LabelTreeRanker(n_trees=1, arity=2, leaf_size=3, random_state=0).fit(X, tags)


def draw(panel, ranker, node=0, depth=0, line=0):
    """Draw a node and what is below it; return its height and the next free line."""
    children = range(ranker.child_starts_[node], ranker.child_starts_[node + 1])
    if not children:
        panel.text(depth + 0.05, line, ranker.classes_[ranker.node_labels_[node]], va="center")
        return line, line + 1
    heights = []
    for child in children:
        height, line = draw(panel, ranker, child, depth + 1, line)
        heights.append(height)
        panel.plot([depth, depth + 1], [height, height], color="#0072B2")
    panel.plot([depth, depth], [heights[0], heights[-1]], color="#0072B2")
    return (heights[0] + heights[-1]) / 2, line


# %%
# Then made-up data with long tails, as tagged text has, and ever more labels.

sizes = [500, 1000, 2000, 4000]
times = {"one regression per label": [], "a label tree": []}
for n_labels in sizes:
    X, Y = long_tailed(3000, 4000, n_labels, random_state=0)
    for name, ranker in (
        ("one regression per label", LogisticRanker(C=10.0, tol=1e-2, prune=0.05)),
        ("a label tree", LabelTreeRanker(n_trees=1, random_state=0)),
    ):
        ranker.fit(X[:200], Y[:200])  # compiled before it is timed
        began = time.perf_counter()
        ranker.fit(X, Y)
        times[name].append(time.perf_counter() - began)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
draw(left, small)
left.set(title="Tags of recipes in a tree", xlim=(-0.2, 5.2), xticks=[], yticks=[])
left.spines[:].set_visible(False)
for (name, spent), marker in zip(times.items(), "os", strict=True):
    right.loglog(sizes, spent, marker=marker, label=name)
right.set(title="3,000 rows", xlabel="labels", ylabel="seconds of a fit")
right.set_xticks(sizes, [f"{size:,}" for size in sizes])
right.minorticks_off()
right.legend()
plt.show()

# %%
# The tree grows with the number of relevant labels, not with that of all labels times rows. What it
# gives up is told in :doc:`the theory </theory>`: errors at a group reach all its labels, so the
# bound of its regret is larger by a factor that grows with the groups.
