"""From the options of a command to a fitted ranker."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import typer
from scipy import sparse

from deltarank.base.probabilities import problem_with_chances
from deltarank.cli.goals import Goal, read_goal
from deltarank.cli.inputs import note
from deltarank.core.choices import choose
from deltarank.core.labels import label_array
from deltarank.core.progress import progress
from deltarank.core.weights import weight_of_size
from deltarank.datasets import Data, Preparation
from deltarank.rankers import MetricRanker
from deltarank.recipes import BALANCES, RECIPES, Recipe, Tuning
from deltarank.storage.prepared import Model

# What rankers call their number of rounds.
ROUNDS = ("n_stumps", "n_trees", "n_iterations")


@dataclass(frozen=True)
class Settings:
    """What the options say about a ranker, None where they say nothing; and what its rows do.

    Of those, `categorical` features are numbers of categories, and rows may be sparse.
    """

    tune: bool | None = None
    C: float | None = None
    rounds: int | None = None
    weight: Any = "rank"
    seed: int = 0
    prune: float | None = None
    goal: Goal | None = None
    categorical: tuple[int, ...] = ()
    is_sparse: bool = False

    def made_for(self, metric: str | None) -> "Settings":
        """Return the settings that serve a metric."""
        if metric is None:
            return self
        goal = read_goal(metric)
        if self.weight not in ("rank", goal.weight):
            raise typer.BadParameter(
                f"--metric {metric} picks the weight {goal.weight!r}: leave --weight out"
            )
        return replace(self, weight=goal.weight, goal=goal)

    def suited_to(self, preparation: Preparation, is_sparse: bool) -> "Settings":
        """Return the settings for such rows."""
        encoder = preparation.encoder
        codes = () if encoder is None else encoder.code_features()
        return replace(self, categorical=codes, is_sparse=is_sparse)

    def tuning(self, **values: Any) -> Tuning:
        """Return how parameters are chosen, among these values."""
        return Tuning(
            seed=self.seed,
            categorical=self.categorical,
            penalize_intercept=self.is_sparse,
            **values,
        )


def find_recipe(name: str, settings: Settings) -> Recipe:
    """Return a recipe, or refuse options that do not go with it, before any work is done."""
    recipe = choose(RECIPES, name, "ranker")
    weight_of_size(settings.weight)
    other = {"C": "rounds", "rounds": "C"}[recipe.parameter]
    if getattr(settings, other) is not None:
        raise typer.BadParameter(f"--{other} is not for {name}, which has --{recipe.parameter}")
    if settings.tune and getattr(settings, recipe.parameter) is not None:
        raise typer.BadParameter(f"--tune chooses --{recipe.parameter}: give only one of the two")
    if settings.prune is not None and name != "logistic":
        raise typer.BadParameter(f"--prune is for logistic, not for {name}")
    if settings.goal is not None and settings.goal.rule is not None:
        problem = problem_with_chances(recipe.plain(settings.weight, None, Tuning()))
        if problem is not None:
            raise typer.BadParameter(
                f"--metric {settings.goal.name} needs plain chances of labels, and of --ranker "
                f"{name} {problem[0]}: use --ranker logistic"
            )
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
    # A balance serves the order by a metric that is known; plain chances would be lost by it.
    ordered = settings.weight == "rank" or (settings.goal and settings.weight != "uniform")
    balances = BALANCES if ordered else (0.0,)
    scoring = settings.goal.scoring if settings.goal else "neg_rank_loss"
    tuning = settings.tuning(balances=balances, scoring=scoring)
    if is_tuned(recipe, settings):
        return recipe.tuned(settings.weight, tuning)
    return recipe.plain(settings.weight, getattr(settings, recipe.parameter), tuning)


def final_ranker(fitted: Any) -> Any:
    """Return the ranker that a search chose; a ranker that is no search is returned as it is."""
    for name in ("best_ranker_", "best_estimator_"):
        fitted = getattr(fitted, name, fitted)
    return fitted


def chosen(ranker: Any) -> dict[str, Any]:
    """Return the values of the main parameters, as chosen or as set."""
    ranker = getattr(ranker, "ranker_", ranker)
    names = ("gamma_", "n_landmarks_", "C", "C_", "balance_", *ROUNDS)
    values = {n.removesuffix("_"): getattr(ranker, n) for n in names if hasattr(ranker, n)}
    return {name: value for name, value in values.items() if value is not None}


def as_wanted(data: Data, recipe: Recipe) -> Data:
    """Return rows with numbers of categories, if the ranker splits these into sets.

    On held-out training rows such sets ranked better than columns of 0 and 1: docs/choosing.md.
    """
    if data.encoder is None or not recipe.takes_categories:
        return data
    encoder = data.encoder.with_codes(data.X)
    X = data.encoder.recoded(data.X, encoder)
    names = None if data.feature_names is None else tuple(encoder.feature_names())
    return replace(data, X=X, encoder=encoder, feature_names=names)


def prepare(data: Data, scale: bool, first_number: int) -> Preparation:
    """Learn how rows become features."""
    if not data.Y.nnz:
        raise ValueError("no row has a label, so there is nothing to learn from")
    return Preparation.fit(data, scale=scale, first_number=first_number)


class Fitted(NamedTuple):
    """A model, and the seconds its fit took."""

    model: Model
    seconds: float


def fit_prepared(
    data: Data, preparation: Preparation, name: str, recipe: Recipe, settings: Settings
) -> Fitted:
    """Fit a ranker to rows that are here."""
    from deltarank.cli.plan import note_end_of_grid, planned

    X = preparation.transform(data.X)
    settings = settings.suited_to(preparation, sparse.issparse(X))

    def fitted() -> Any:
        ranker = final_ranker(planned(name, recipe, settings, X, data.Y).fit(X, data.Y))
        note_end_of_grid(ranker)
        if settings.goal is not None and settings.goal.rule is not None:
            ranker = _decided(recipe, settings, ranker).fit(X, data.Y)
        return ranker

    return fit_as(name, fitted, data, preparation, settings)


def fit_as(
    name: str, fit: Callable[[], Any], data: Data, preparation: Preparation, settings: Settings
) -> Fitted:
    """Call what fits a ranker, timed and watched; its labels get the names of the file."""
    began = time.perf_counter()
    fitting = progress(f"fitting {name}", 1.0)
    with warnings.catch_warnings(record=True) as caught, fitting as done:
        warnings.simplefilter("always")
        done.each = 1.0
        ranker = fit()
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        note(f"note: {name}: {message}")
    if data.label_names is not None:
        ranker.classes_ = label_array(data.label_names)
    goal = None if settings.goal is None else settings.goal.name
    return Fitted(Model(ranker, preparation, goal), time.perf_counter() - began)


def _decided(recipe: Recipe, settings: Settings, ranker: Any) -> MetricRanker:
    """Return what finds the rule of the metric for the chances of rankers such as this one."""
    goal, choices = settings.goal, chosen(ranker)
    assert goal is not None, "only a metric has a rule"
    assert goal.rule is not None, "others need none"
    names = ("C",) if recipe.parameter == "C" else ROUNDS
    value = next((choices[name] for name in names if name in choices), None)
    again = recipe.plain(settings.weight, value, settings.tuning())
    return MetricRanker(again, metric=goal.rule, k=goal.k, random_state=settings.seed)
