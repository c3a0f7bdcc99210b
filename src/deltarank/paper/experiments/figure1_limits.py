"""Where the curves of Figure 1 go: the rankers that no more rows would change."""

from typing import Any

import numpy as np
from sklearn.base import clone

from deltarank.datasets import SyntheticModel
from deltarank.paper.experiments import Row
from deltarank.rankers import LogisticRanker, PairwiseRanker

# A penalty that a million rows do not feel.
NO_PENALTY = 1e3
# Draws behind the best order that regrets are held to; it has a regret of about 1e-7.
N_DRAWS = 65_536
SUFFIX = " limit"
# The minimiser of the pairwise logistic loss is what the updates of LLLR converge to.
MINIMISERS: dict[str, Any] = {
    "LLLR" + SUFFIX: PairwiseRanker(C=NO_PENALTY),
    "WBR-LR" + SUFFIX: LogisticRanker(C=NO_PENALTY),
    "BR" + SUFFIX: LogisticRanker(C=NO_PENALTY, weight="uniform"),
}


def limit(model: SyntheticModel, name: str, n_rows: int, generator: np.random.Generator) -> Row:
    """Return the regret of a loss's minimiser, fitted to so many rows that they stand for all.

    The regret is an integral over the disk, not a mean over test rows.
    """
    ranker = clone(MINIMISERS[name]).fit(*model.sample(n_rows, random_state=generator))
    return {"regret": model.regret(ranker.decision_function, n_draws=N_DRAWS)}


def floor(model: SyntheticModel) -> float:
    """Return the regret of the Bayes ranker as it is computed, from a finite number of draws."""
    return model.regret(model.bayes_scores, n_draws=N_DRAWS)
