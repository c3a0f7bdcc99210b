"""Probabilities and label sets: calibrate a ranker, and choose thresholds for a metric of sets.

Run it with ``python examples/label_sets.py``.
"""

import numpy as np
from sklearn.metrics import f1_score

from deltarank import CalibratedRanker, LogisticRanker
from deltarank.datasets import SyntheticModel


def main() -> list[float]:
    """Compare the sets of a ranker with those chosen for macro F1, where labels are rare."""
    model = SyntheticModel.random(n_labels=6, random_state=0)
    X, Y = model.sample(6000, random_state=1)
    Y &= np.random.default_rng(2).uniform(size=Y.shape) < np.linspace(0.4, 0.1, 6)
    train, test = slice(0, 4000), slice(4000, 6000)
    ranker = CalibratedRanker(LogisticRanker(), set_metric="macro_f1", random_state=0)
    ranker.fit(X[train], Y[train])
    print("share of rows with each label ", Y[test].mean(axis=0).round(2))
    print("mean probability              ", ranker.predict_proba(X[test]).mean(axis=0).round(2))
    print("mean weighted chance, Eq. (23)", ranker.marginal_weights(X[test]).mean(axis=0).round(2))
    values = []
    for name, sets in [("ranker", ranker.ranker_.predict), ("thresholds", ranker.predict)]:
        values.append(f1_score(Y[test], sets(X[test]), average="macro", zero_division=0))
        print(f"macro F1 of the sets of the {name}: {values[-1]:.3f}")
    return values


if __name__ == "__main__":
    main()
