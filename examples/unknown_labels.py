"""Unknown labels: NaN in Y, in a fit and in a metric.

Run it with ``python examples/unknown_labels.py``.
"""

import numpy as np

from deltarank import LogisticRanker, rank_loss
from deltarank.datasets import SyntheticModel


def main() -> dict[str, float]:
    """Hide most labels of most rows, and compare fits with NaN, with zeros, and with the truth."""
    model = SyntheticModel.random(n_labels=8, random_state=0)
    X, truth = model.sample(3000, random_state=1)
    new_X, new_Y = model.sample(20_000, random_state=2)
    hidden = np.random.default_rng(3).uniform(size=truth.shape) < np.linspace(0, 0.9, 8)
    judged = np.where(hidden, np.nan, truth)
    forms = {"unknown": judged, "taken as irrelevant": np.nan_to_num(judged), "known": truth}
    losses = {}
    for name, Y in forms.items():
        losses[name] = rank_loss(new_Y, LogisticRanker().fit(X, Y).decision_function(new_X))
        print(f"rank loss with hidden labels {name}: {losses[name]:.4f}")
    scores = LogisticRanker().fit(X, judged).decision_function(X)
    print(f"rank loss over the known pairs of the training rows: {rank_loss(judged, scores):.4f}")
    return losses


if __name__ == "__main__":
    main()
