"""
How many rounds of boosting
===========================

A boosted ranker of 500 rounds contains those of 1 to 499. ``StagedSearchCV`` fits each fold once
and scores it on the way, so that a whole grid of rounds costs one cross-validation.
"""

import matplotlib.pyplot as plt
import numpy as np

from deltarank import AdaBoostMR, AdaBoostRanker, StagedSearchCV, rank_loss
from deltarank.datasets import SyntheticModel

model = SyntheticModel.random(n_labels=6, random_state=3)
X, Y = model.sample(400, random_state=1)
new_X, new_Y = model.sample(5000, random_state=2)
best = rank_loss(new_Y, model.bayes_scores(new_X))

# %%
# Stumps of each label's own (weighted AdaBoost, the paper's reduction), and stumps that all
# labels share (AdaBoost.MR, trained on pairs of labels).

rounds = [1, 2, 5, 10, 20, 50, 100, 200, 500]
figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
for panel, ranker in zip(panels, (AdaBoostRanker(), AdaBoostMR()), strict=True):
    search = StagedSearchCV(ranker, rounds=rounds, random_state=0).fit(X, Y)
    results = search.cv_results_
    n_rounds, held_out = results["param_rounds"], -results["mean_test_score"]
    errors = results["std_test_score"] / np.sqrt(5)
    print(f"{type(ranker).__name__}: {search.best_rounds_} rounds")
    longest = ranker.set_params(n_stumps=rounds[-1]).fit(X, Y)
    stages = longest.staged_decision_function(new_X, at=rounds)
    panel.errorbar(n_rounds, held_out, errors, fmt="o-", capsize=3, label="held-out rows")
    panel.plot(rounds, [rank_loss(new_Y, s) for s in stages], "--", label="new rows")
    panel.axhline(best, color="0.5", linewidth=1)
    panel.axvline(search.best_rounds_, color="0.5", linewidth=1, linestyle=":")
    panel.set(xscale="log", xlabel="rounds", title=type(ranker).__name__)
panels[0].set_ylabel("rank loss")
panels[0].annotate("best ranking possible", (1, best), (0, -13), textcoords="offset points")
panels[0].set_ylim(bottom=0.125)
panels[1].legend()
plt.show()

# %%
# The held-out curve finds the bottom, and boosting overfits slowly after it. Shared stumps need
# more rounds, since a round serves all labels with one threshold, and come closer to the best
# ranking here.
