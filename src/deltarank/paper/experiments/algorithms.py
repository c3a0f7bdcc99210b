"""The paper's algorithms: its names for recipes, each tuned inside the training set alone."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from deltarank.recipes import BALANCES, RECIPES, Recipe, Tuning


class Algorithm(NamedTuple):
    """A recipe, how rows are weighted by their labels, and further options of its estimator."""

    recipe: Recipe
    description: str
    weight: str = "rank"
    options: Mapping[str, Any] = MappingProxyType({})

    def make(self, tuning: Tuning) -> Any:
        """Return the estimator to fit."""
        return self.recipe.tuned(self.weight, tuning).set_params(**self.options)

    def chosen(self, fitted: Any) -> dict[str, Any]:
        """Return what was chosen, and for rounds how far the grid was walked."""
        if self.recipe.parameter == "rounds":
            tried = fitted.cv_results_["param_rounds"]
            return {"chosen": int(fitted.best_rounds_), "tried to": int(tried[-1])}
        if not hasattr(fitted, "gamma_"):
            choices = {"chosen": float(getattr(fitted, "C_", None) or fitted.best_params_["C"])}
            if len(self.options.get("balances", ())) > 1:
                choices["balance"] = float(fitted.balance_)
            return choices
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
        RECIPES["adaboost"],
        "weighted AdaBoost.M1 per label, entropy stumps; Weka's if exact",
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
    "u3": Algorithm(
        RECIPES["logistic"],
        "logistic regression per label, both sides of a row weighing alike (Wu et al. 2021)",
        options={"balances": (1.0,)},
    ),
    "u4": Algorithm(
        RECIPES["logistic"], "the same, rows weighing one over the smaller side", "min"
    ),
    "balance": Algorithm(
        RECIPES["logistic"],
        "between WBR-LR (0) and u3 (1), chosen with C",
        options={"balances": BALANCES},
    ),
    "pairwise": Algorithm(RECIPES["pairwise"], "the pairwise logistic loss with a penalty"),
    "WBR-KLR": Algorithm(
        RECIPES["kernel"], "weighted logistic regression on a Nystrom map of the Gaussian kernel"
    ),
    "WBR-GT": Algorithm(
        RECIPES["boosted-trees"], "gradient-boosted trees with a value for every label in each leaf"
    ),
}
# Whose rounds are not of stumps that all labels share, and the grids that these come from.
GRIDS = {"WBR-AB": "stumps", "WBR-GT": "trees"}
# The rivals, pairwise against univariate, with the same surrogate.
RIVALS = {"exponential": ("AB.MR", "WBR-AB"), "logistic": ("LLLR", "WBR-LR")}


def grid_of(row: Mapping[str, Any]) -> list[float]:
    """Return the values that the parameter of a row was chosen from."""
    if ALGORITHMS[row["algorithm"]].recipe.parameter == "C":
        return list(row["Cs"])
    return list(row[GRIDS.get(row["algorithm"], "rounds")])
