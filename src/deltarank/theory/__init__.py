"""The paper's definitions and theorems (sections 2 to 4) as functions of a label distribution."""

from deltarank.theory.bipartite import BipartiteProblem, bipartite_reduction
from deltarank.theory.bounds import (
    bipartite_regret_bound,
    low_noise_regret_bound,
    regret_bound,
    strong_properness,
    tree_regret_bound,
)
from deltarank.theory.distribution import LabelDistribution
from deltarank.theory.examples import EXAMPLES
from deltarank.theory.surrogates import (
    SURROGATES,
    surrogate_minimizer,
    surrogate_regret,
    surrogate_risk,
)

__all__ = [
    "EXAMPLES",
    "SURROGATES",
    "BipartiteProblem",
    "LabelDistribution",
    "bipartite_reduction",
    "bipartite_regret_bound",
    "low_noise_regret_bound",
    "regret_bound",
    "strong_properness",
    "surrogate_minimizer",
    "surrogate_regret",
    "surrogate_risk",
    "tree_regret_bound",
]
