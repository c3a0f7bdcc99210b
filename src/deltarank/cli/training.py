"""The rankers that commands know by name: how each is made, tuned and fitted to data."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import typer

from deltarank.cli.inputs import note
from deltarank.cli.options import Reading
from deltarank.core.choices import choose
from deltarank.core.progress import progress
from deltarank.core.splits import LabelStratifiedKFold
from deltarank.core.weights import WEIGHTS
from deltarank.datasets import Data, Preparation
from deltarank.linear.logistic_cv import DEFAULT_CS
from deltarank.metrics import get_scorer
from deltarank.paper.experiments.presets import ROUNDS, STUMPS_A_LABEL
from deltarank.paper.experiments.tuning import PATIENCE
from deltarank.rankers import (
    AdaBoostMH,
    AdaBoostMR,
    AdaBoostRanker,
    KernelLogisticRanker,
    LogisticRanker,
    LogisticRankerCV,
    LogLinearRanker,
    PairwiseRanker,
    StagedSearchCV,
)
from deltarank.storage.prepared import Model

FOLDS = 5


@dataclass(frozen=True)
class Settings:
    """What the options say about a ranker; None where they say nothing."""

    tune: bool | None = None
    C: float | None = None
    rounds: int | None = None
    weight: str = "rank"
    seed: int = 0


class Recipe(NamedTuple):
    """How to make a ranker: as it is set, and tuned.

    `parameter` is the option that `tuned` chooses a value for; `scale` tells whether features must
    be on one scale.
    """

    plain: Callable[[Settings], Any]
    tuned: Callable[[Settings], Any]
    parameter: str
    scale: bool
    tuned_by_default: bool = False


def _given(**parameters: Any) -> dict[str, Any]:
    """Return the parameters that are not None: for others the ranker knows a default."""
    return {name: value for name, value in parameters.items() if value is not None}


def _boosted(family: Any, rounds: tuple[int, ...]) -> Recipe:
    return Recipe(
        lambda s: family(weight=s.weight, **_given(n_stumps=s.rounds)),
        lambda s: _staged(family(weight=s.weight), rounds, s),
        "rounds",
        scale=False,
    )


def _staged(ranker: Any, rounds: tuple[int, ...], settings: Settings) -> Any:
    return StagedSearchCV(
        ranker, rounds=rounds, cv=FOLDS, patience=PATIENCE, random_state=settings.seed
    )


def _search_penalty(settings: Settings) -> Any:
    from sklearn.model_selection import GridSearchCV

    class Search(GridSearchCV):
        """A search that tells how many of its fits are done."""

        def fit(self, X: Any, y: Any) -> Any:
            with progress("choosing C", FOLDS * len(DEFAULT_CS) + 1) as done:
                done.each = 1
                return super().fit(X, y)

    return Search(
        PairwiseRanker(weight=settings.weight),
        {"C": list(DEFAULT_CS)},
        scoring=get_scorer("neg_rank_loss"),
        cv=LabelStratifiedKFold(FOLDS, random_state=settings.seed),
    )


def _kernel(settings: Settings) -> Any:
    # Its width is always chosen: no one value would do.
    return KernelLogisticRanker(
        C=settings.C, weight=settings.weight, cv=FOLDS, random_state=settings.seed
    )


def _updates(settings: Settings) -> Any:
    # Only the last stage is kept: a model file needs no other.
    rounds = settings.rounds or LogLinearRanker().n_iterations
    return LogLinearRanker(n_iterations=rounds, stages=[rounds], weight=settings.weight)


RECIPES = {
    "logistic": Recipe(
        lambda s: LogisticRanker(weight=s.weight, **_given(C=s.C)),
        lambda s: LogisticRankerCV(weight=s.weight, cv=FOLDS, random_state=s.seed),
        "C", scale=True, tuned_by_default=True,
    ),
    "kernel": Recipe(_kernel, _kernel, "C", scale=True, tuned_by_default=True),
    "adaboost": _boosted(AdaBoostRanker, STUMPS_A_LABEL),
    "adaboost-mr": _boosted(AdaBoostMR, ROUNDS),
    "adaboost-mh": _boosted(AdaBoostMH, ROUNDS),
    "lllr": Recipe(
        _updates,
        lambda s: _staged(LogLinearRanker(weight=s.weight), ROUNDS, s),
        "rounds", scale=True,
    ),
    "pairwise": Recipe(
        lambda s: PairwiseRanker(weight=s.weight, **_given(C=s.C)),
        _search_penalty,
        "C", scale=True,
    ),
}  # fmt: skip


def find_recipe(name: str, settings: Settings) -> Recipe:
    """Return a recipe, or refuse options that do not go with it, before any work is done."""
    recipe = choose(RECIPES, name, "ranker")
    choose(WEIGHTS, settings.weight, "weight")
    other = {"C": "rounds", "rounds": "C"}[recipe.parameter]
    if getattr(settings, other) is not None:
        raise typer.BadParameter(f"--{other} is not for {name}, which has --{recipe.parameter}")
    if settings.tune and getattr(settings, recipe.parameter) is not None:
        raise typer.BadParameter(f"--tune chooses --{recipe.parameter}: give only one of the two")
    if settings.tune is False and name == "kernel":
        raise typer.BadParameter(
            "--no-tune is not for kernel, whose width is chosen by cross-validation in any case"
        )
    return recipe


def is_tuned(recipe: Recipe, settings: Settings) -> bool:
    """Tell whether parameters are to be chosen by cross-validation."""
    if settings.tune is not None:
        return settings.tune
    return recipe.tuned_by_default and getattr(settings, recipe.parameter) is None


def make(recipe: Recipe, settings: Settings) -> Any:
    """Return the ranker to fit."""
    return (recipe.tuned if is_tuned(recipe, settings) else recipe.plain)(settings)


def final_ranker(fitted: Any) -> Any:
    """Return the ranker itself where a search has found it."""
    for name in ("best_ranker_", "best_estimator_"):
        fitted = getattr(fitted, name, fitted)
    return fitted


def chosen(ranker: Any) -> dict[str, Any]:
    """Return the parameters that matter, as chosen or as set."""
    names = ("gamma_", "n_landmarks_", "C", "C_", "n_stumps", "n_iterations")
    found = {n.removesuffix("_"): getattr(ranker, n) for n in names if hasattr(ranker, n)}
    return {name: value for name, value in found.items() if value is not None}


def prepare(data: Data, scale: bool, reading: Reading, first_number: int) -> Preparation:
    """Learn how rows become features."""
    if not data.Y.nnz:
        raise ValueError("no row has a label, so there is nothing to learn from")
    separator = reading.separator or ","
    return Preparation.fit(data, scale=scale, separator=separator, first_number=first_number)


class Fitted(NamedTuple):
    """A model, and the seconds its fit took."""

    model: Model
    seconds: float


def fit_prepared(
    data: Data, preparation: Preparation, name: str, recipe: Recipe, settings: Settings
) -> Fitted:
    """Fit a ranker; its labels get the names they have in the file."""
    X = preparation.transform(data.X)
    began = time.perf_counter()
    fitting = progress(f"fitting {name}", 1.0)
    with warnings.catch_warnings(record=True) as caught, fitting as done:
        warnings.simplefilter("always")
        done.each = 1.0
        ranker = final_ranker(make(recipe, settings).fit(X, data.Y))
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        note(f"note: {name}: {message}")
    if data.label_names is not None:
        ranker.classes_ = np.array(data.label_names)
    return Fitted(Model(ranker, preparation), time.perf_counter() - began)
