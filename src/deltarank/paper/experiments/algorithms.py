"""The paper's algorithms: its names for recipes, each tuned inside the training set alone."""

from typing import Any, NamedTuple

from deltarank.recipes import RECIPES, Recipe, Tuning


class Algorithm(NamedTuple):
    """A recipe, and how rows are weighted by their labels."""

    recipe: Recipe
    description: str
    weight: str = "rank"

    def make(self, tuning: Tuning) -> Any:
        """Return the estimator to fit."""
        return self.recipe.tuned(self.weight, tuning)

    def chosen(self, fitted: Any) -> dict[str, Any]:
        """Return what was chosen, and for rounds how far the grid was walked."""
        if self.recipe.parameter == "rounds":
            tried = fitted.cv_results_["param_rounds"]
            return {"chosen": int(fitted.best_rounds_), "tried to": int(tried[-1])}
        if not hasattr(fitted, "gamma_"):
            return {"chosen": float(fitted.C_)}
        return {
            "chosen": float(fitted.C_),
            "gamma": float(fitted.gamma_),
            "landmarks": int(fitted.n_landmarks_),
        }


ALGORITHMS = {
    "AB.MR": Algorithm(
        RECIPES["adaboost-mr"], "AdaBoost.MR: pairwise, discrete votes, stumps shared by labels"
    ),
    "WBR-AB": Algorithm(
        RECIPES["adaboost"], "weighted AdaBoost.M1 per label, entropy stumps as in Weka"
    ),
    "AB.MH": Algorithm(
        RECIPES["adaboost-mh"], "weighted AdaBoost.MH: the univariate loss with the stumps of AB.MR"
    ),
    "LLLR": Algorithm(
        RECIPES["lllr"], "log-linear label ranking: pairwise, parallel updates from zero"
    ),
    "WBR-LR": Algorithm(RECIPES["logistic"], "weighted logistic regression per label"),
    "BR": Algorithm(
        RECIPES["logistic"], "logistic regression per label, all rows weighing the same", "uniform"
    ),
    "WBR-KLR": Algorithm(
        RECIPES["kernel"], "weighted logistic regression on a Nystrom map of the Gaussian kernel"
    ),
}
# The rivals, pairwise against univariate, with the same surrogate.
RIVALS = {"exponential": ("AB.MR", "WBR-AB"), "logistic": ("LLLR", "WBR-LR")}
