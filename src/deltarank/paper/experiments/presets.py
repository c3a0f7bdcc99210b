"""How large an experiment is."""

from dataclasses import dataclass
from typing import Any

from deltarank.linear.logistic_cv import DEFAULT_CS
from deltarank.recipes import ROUNDS, STUMPS_PER_LABEL, TREES

# Where a round takes long, the grids of rounds end earlier: 20,000 rounds of AdaBoost.MR or updates
# of LLLR, three folds and the final fit, would take mediamill more than an hour each.
MOST_ROUNDS = {"mediamill": 5000}


@dataclass(frozen=True)
class Preset:
    """Sizes and seeds of all experiments.

    Attributes
    ----------
    n_models, n_training_sets : int
        Random models of Figure 1, and training sets of each size for each of them.
    sizes : tuple of int
        Rows of a training set.
    n_test : int
        Rows of a model's test set.
    n_limit : int
        Rows that stand for infinitely many, in the fits that no more rows would change.
    n_labels : int
        The paper does not say how many; "around 10" is its phrase for its data sets.
    noise : float
        Standard deviation; the paper's N(0, 0.25) is read as a variance.
    rounds, stumps, trees, Cs : tuples of numbers
        Grids: rounds or iterations of what all labels share, stumps of each label, boosted trees,
        penalties.
    folds : int
        Of the cross-validation inside every training set.
    data_sets : tuple of str
    n_splits : int
        Random splits of a data set that has no original one.
    seed : int
    """

    n_models: int = 10
    n_training_sets: int = 10
    sizes: tuple[int, ...] = (100, 250, 500, 1000, 2000, 4000, 8000, 16_000)
    n_test: int = 50_000
    n_limit: int = 1_000_000
    n_labels: int = 10
    noise: float = 0.5
    rounds: tuple[int, ...] = ROUNDS
    stumps: tuple[int, ...] = STUMPS_PER_LABEL
    trees: tuple[int, ...] = TREES
    Cs: tuple[float, ...] = DEFAULT_CS
    folds: int = 3
    data_sets: tuple[str, ...] = ("image", "emotions", "scene", "yeast", "mediamill")
    n_splits: int = 10
    seed: int = 2012

    def tuning(self, data_set: str | None = None, algorithm: str | None = None) -> dict[str, Any]:
        """Return what a job must know to tune a ranker: see `deltarank.recipes.Tuning`."""
        most = MOST_ROUNDS.get(data_set or "", self.rounds[-1])
        rounds = [number for number in self.rounds if number <= most] or self.rounds[:1]
        grids = {"rounds": rounds, "stumps": self.stumps, "Cs": self.Cs}
        if algorithm == "WBR-GT":  # rows of others do not tell of trees
            grids["trees"] = self.trees
        return {"folds": self.folds, "seed": self.seed, **{k: list(v) for k, v in grids.items()}}


FULL = Preset()
QUICK = Preset(
    n_models=3,
    n_training_sets=2,
    sizes=(100, 400, 1600),
    n_test=10_000,
    n_limit=100_000,
    rounds=ROUNDS[:6],
    trees=TREES[:4],
    data_sets=("image", "emotions", "scene", "yeast"),
    n_splits=1,
)
