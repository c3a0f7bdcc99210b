"""How large an experiment is."""

from dataclasses import dataclass


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
    n_labels : int
        The paper does not say how many; "around 10" is its phrase for its data sets.
    noise : float
        Standard deviation; the paper's N(0, 0.25) is read as a variance.
    most_rounds : int
        Where the grids of rounds and iterations end; the paper's end at 20,000.
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
    n_labels: int = 10
    noise: float = 0.5
    most_rounds: int = 20_000
    folds: int = 3
    data_sets: tuple[str, ...] = ("image", "emotions", "scene", "yeast", "mediamill")
    n_splits: int = 10
    seed: int = 2012


FULL = Preset()
QUICK = Preset(
    n_models=3,
    n_training_sets=2,
    sizes=(100, 400, 1600),
    n_test=10_000,
    most_rounds=500,
    data_sets=("image", "emotions", "scene", "yeast"),
    n_splits=1,
)
