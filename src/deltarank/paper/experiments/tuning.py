"""The paper's algorithms, each tuned by cross-validation inside the training set alone."""

from collections.abc import Callable
from typing import Any, NamedTuple

from deltarank.rankers import (
    AdaBoostMH,
    AdaBoostMR,
    AdaBoostRanker,
    KernelLogisticRanker,
    LogisticRankerCV,
    LogLinearRanker,
    StagedSearchCV,
)

# A grid of rounds is walked until a further decade brings nothing.
PATIENCE = 10.0


class Algorithm(NamedTuple):
    """A tuned algorithm: `make(tuning)` gives an estimator, `chosen` what it chose."""

    make: Callable[["Tuning"], Any]
    chosen: Callable[[Any], dict[str, Any]]
    surrogate: str
    description: str


class Tuning(NamedTuple):
    """How to tune: folds, their seed, and the grids."""

    folds: int
    seed: int
    rounds: list[int]
    stumps: list[int]
    Cs: list[float]


def _staged(ranker: Any, grid: str) -> Callable[[Tuning], Any]:
    return lambda tuning: StagedSearchCV(
        ranker,
        rounds=getattr(tuning, grid),
        cv=tuning.folds,
        patience=PATIENCE,
        random_state=tuning.seed,
    )


def _rounds(search: Any) -> dict[str, Any]:
    tried = search.cv_results_["param_rounds"]
    return {"chosen": int(search.best_rounds_), "tried to": int(tried[-1])}


def _penalty(ranker: Any) -> dict[str, Any]:
    return {"chosen": float(ranker.C_)}


def _kernel(ranker: Any) -> dict[str, Any]:
    return {
        "chosen": float(ranker.C_),
        "gamma": float(ranker.gamma_),
        "landmarks": int(ranker.n_landmarks_),
    }


ALGORITHMS = {
    "AB.MR": Algorithm(
        _staged(AdaBoostMR(), "rounds"), _rounds, "exponential",
        "AdaBoost.MR: pairwise, discrete votes, stumps shared by labels",
    ),
    "WBR-AB": Algorithm(
        _staged(AdaBoostRanker(), "stumps"), _rounds, "exponential",
        "weighted AdaBoost.M1 a label, entropy stumps as in Weka",
    ),
    "AB.MH": Algorithm(
        _staged(AdaBoostMH(), "rounds"), _rounds, "exponential",
        "weighted AdaBoost.MH: the univariate loss with the stumps of AB.MR",
    ),
    "LLLR": Algorithm(
        _staged(LogLinearRanker(), "rounds"), _rounds, "logistic",
        "log-linear label ranking: pairwise, parallel updates from zero",
    ),
    "WBR-LR": Algorithm(
        lambda t: LogisticRankerCV(Cs=t.Cs, cv=t.folds, random_state=t.seed), _penalty,
        "logistic", "weighted logistic regression a label",
    ),
    "BR": Algorithm(
        lambda t: LogisticRankerCV(
            weight="uniform", Cs=t.Cs, cv=t.folds, random_state=t.seed
        ),
        _penalty, "logistic", "logistic regression a label, all rows weighing the same",
    ),
    "WBR-KLR": Algorithm(
        lambda t: KernelLogisticRanker(cv=t.folds, random_state=t.seed), _kernel, "logistic",
        "weighted logistic regression on a Nystrom map of the Gaussian kernel",
    ),
}  # fmt: skip
# The rivals, pairwise against univariate, with the same surrogate.
RIVALS = {"exponential": ("AB.MR", "WBR-AB"), "logistic": ("LLLR", "WBR-LR")}
