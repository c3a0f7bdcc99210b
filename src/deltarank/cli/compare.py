"""The command ``compare``: several rankers on the same rows."""

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from deltarank.cli import options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deltarank.cli.training import Recipe, Settings
    from deltarank.datasets import Data

Row = dict[str, Any]
DEFAULT_FOLDS = 5
DEFAULT = "logistic,pairwise,adaboost"
# By the time that fits take, on most data.
CHEAPEST_FIRST = (
    "logistic",
    "label-tree",
    "lllr",
    "adaboost",
    "pairwise",
    "boosted-trees",
    "adaboost-mh",
    "adaboost-mr",
    "kernel",
)
# On more sparse features boosted stumps take hours, and linear rankers rank text better.
MOST_BOOSTED_FEATURES = 2000


Rankers = Annotated[
    str, typer.Option(help="Rankers to compare, joined by commas; each is compared with the first.")
]
TestFile = Annotated[
    str | None, typer.Option(help="File of test rows; without it, cross-validation.")
]
Folds = Annotated[
    int | None,
    typer.Option(
        min=2,
        show_default=False,
        help="Folds of the cross-validation, 5 by default; a data set of the catalogue is "
        "cross-validated only if this is given, and otherwise judged by its test rows.",
    ),
]
Out = Annotated[Path | None, typer.Option(help="Folder for the rows (.jsonl) and a figure (.svg).")]
Budget = Annotated[
    float | None,
    typer.Option(
        min=0,
        show_default=False,
        help="Minutes after which no further fit is begun; the rankers done by then are shown.",
    ),
]


@options.with_reading
def compare(
    data: options.TrainingData,
    *,
    rankers: Rankers = DEFAULT,
    test: TestFile = None,
    folds: Folds = None,
    out: Out = None,
    budget: Budget = None,
    tune: options.Tune = None,
    weight: options.RowWeight = "rank",
    reading: options.Reading,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    memory: options.Memory = None,
) -> None:
    """Compare rankers by their rank loss on held-out rows.

    Every ranker is fitted to the same rows and judged row by row. Intervals of 95% come from a
    bootstrap over rows, paired for differences; p is from Wilcoxon's signed-rank test of the
    differences. In cross-validation folds share training rows, so take intervals and p as a guide.
    A fair comparison tunes all rankers: --tune takes longer. Each ranker is told as soon as it is
    done, the cheapest first; after an interruption those that are done are shown.

    \b
    Examples:
      deltarank compare recipes.csv
      deltarank compare train.csv --test test.csv --rankers logistic,kernel
      deltarank compare yeast --tune --out results
    """  # fmt: skip
    from deltarank.cli.show import require_folder, show
    from deltarank.cli.training import Settings, find_recipe

    if test is not None and folds is not None:
        raise typer.BadParameter("--test and --folds exclude each other")
    settings = Settings(tune=tune, weight=weight, seed=seed)
    recipes = {name: find_recipe(name, settings) for name in _names(rankers)}
    if out is not None:
        require_folder(out)
    parts, where = _split(data, test, folds, reading, seed)
    if rankers == DEFAULT:
        recipes = {name: recipes[name] for name in _without_boosting(list(recipes), parts)}
    rows = _judge(parts, recipes, settings, budget)
    n_rows = sum(part.Y.shape[0] for part in parts)
    show(rows, f"Rank loss on {n_rows} rows ({where}); difference from {rows[0]['ranker']}")
    if out is not None:
        _save(rows, out)


def _names(text: str) -> list[str]:
    from deltarank.recipes import RECIPES

    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in RECIPES:
            raise typer.BadParameter(
                f"unknown ranker {name!r}; choose among {', '.join(RECIPES)}",
                param_hint="--rankers",
            )
    return names


class Part(NamedTuple):
    """Rows to fit, and rows to judge by: their numbers, features as in the file, and label sets."""

    train: "Data"
    numbers: Any
    X: Any
    Y: Any


def _split(
    source: str, test: str | None, folds: int | None, reading: options.Reading, seed: int
) -> tuple[list[Part], str]:
    """Return rows to fit and to judge by, fold by fold, and what they are in words."""
    from deltarank.cli.inputs import is_catalogued, read_raw, read_training
    from deltarank.cli.training import prepare
    from deltarank.core.splits import LabelStratifiedKFold

    data, _ = read_training(source, reading, seed=seed)
    if test is None and folds is None and is_catalogued(source):
        test = source
    if test is not None:
        preparation = prepare(data, False, 0)
        classes = range(data.Y.shape[1]) if data.label_names is None else data.label_names
        raw = read_raw(test, preparation, classes, reading, labelled=True, seed=seed)
        return [Part(data, slice(None), raw.X, raw.Y)], f"test rows of {test}"
    splits = LabelStratifiedKFold(folds or DEFAULT_FOLDS, random_state=seed).split(data.X, data.Y)
    parts = [
        Part(replace(data, X=data.X[train], Y=data.Y[train]), rest, data.X[rest], data.Y[rest])
        for train, rest in splits
    ]
    return parts, f"{len(parts)} folds of {source}"


class Judged(NamedTuple):
    """Losses of a ranker on all held-out rows, and the seconds its fits took."""

    losses: "NDArray[Any]"
    seconds: float


def _judge(
    parts: list[Part],
    recipes: "dict[str, Recipe]",
    settings: "Settings",
    budget: float | None,
) -> list[Row]:
    """Fit one ranker after the other, the cheapest first; return one row for each that was done.

    Each is reported as soon as it is done. When time is up, or the command is interrupted, those
    that are done are kept.
    """
    from deltarank.cli.inputs import note, saying_once
    from deltarank.cli.training import is_tuned
    from deltarank.core.progress import progress

    judged: dict[str, Judged] = {}
    until = None if budget is None else time.monotonic() + 60 * budget
    # Rankers of plugins come last: nothing is known of them.
    by_cost = sorted(recipes, key=[*CHEAPEST_FIRST, *recipes].index)
    with progress("comparing", len(by_cost)) as done, suppress(_Enough):
        done.each = 1
        for count, name in enumerate(by_cost, start=1):
            try:
                with saying_once():
                    judged[name] = _judge_one(name, recipes[name], parts, settings, until)
            except (KeyboardInterrupt, _Enough):
                if not judged:
                    raise
                left = ", ".join(by_cost[count - 1 :])
                note(f"stopped before these were done: {left}")
                raise _Enough from None
            mean, spent = judged[name].losses.mean(), judged[name].seconds
            note(f"{name}: rank loss {mean:.4f}, fitted in {spent:.1f} s")
            done(count)
    if not judged:
        raise ValueError(
            f"--budget of {budget:g} minutes was not enough for {by_cost[0]}, the cheapest; "
            "allow more, or compare on fewer rows or folds"
        )
    # In the order they were named; compared with the first of those that were done.
    names = [name for name in recipes if name in judged]
    first = judged[names[0]].losses
    return [
        _row(name, is_tuned(recipes[name], settings), judged[name], first, settings.seed)
        for name in names
    ]


class _Enough(Exception):  # noqa: N818  not an error
    """Time is up, or the user has seen enough."""


def _judge_one(
    name: str,
    recipe: "Recipe",
    parts: list[Part],
    settings: "Settings",
    until: float | None,
) -> Judged:
    """Fit a ranker to each part, unless it is too late."""
    import numpy as np

    from deltarank.cli.training import as_wanted, fit_prepared, prepare
    from deltarank.core.progress import progress
    from deltarank.metrics import rank_loss

    losses, seconds = np.empty(sum(part.Y.shape[0] for part in parts)), 0.0
    with progress(f"comparing {name}", len(parts)) as done:
        done.each = 1
        for count, part in enumerate(parts, start=1):
            if until is not None and time.monotonic() > until:
                raise _Enough
            train, X = as_wanted(part.train, recipe), part.X
            if part.train.encoder is not None and train.encoder is not None:
                X = part.train.encoder.recoded(X, train.encoder)
            preparation = prepare(train, recipe.scale, 0)
            model, spent = fit_prepared(train, preparation, name, recipe, settings)
            scores = model.scores(preparation.transform(X))
            losses[part.numbers] = rank_loss(part.Y, scores, per_instance=True)
            seconds += spent
            done(count)
    return Judged(losses, seconds)


def _without_boosting(rankers: list[str], parts: list[Part]) -> list[str]:
    """Leave boosting out of the default where text would make it take hours, and say so."""
    from scipy import sparse

    from deltarank.cli.inputs import note

    X = parts[0].train.X
    if not sparse.issparse(X) or X.shape[1] <= MOST_BOOSTED_FEATURES:
        return rankers
    kept = [name for name in rankers if not name.startswith("adaboost")]
    note(
        f"boosted stumps are left out of the default comparison on {X.shape[1]} sparse features; "
        f"--rankers {DEFAULT} takes them in"
    )
    return kept


def _row(name: str, tuned: bool, judged: Judged, first: "NDArray[Any]", seed: int) -> Row:
    """Summarise the losses of a ranker, and how they differ from those of the first one."""
    from deltarank.core.statistics import paired_bootstrap, wilcoxon_p

    losses, seconds = judged
    loss = paired_bootstrap(losses, 0.0, random_state=seed)
    difference = paired_bootstrap(losses, first, random_state=seed)
    return {
        "ranker": name,
        "tuned": tuned,
        "rank loss": loss.mean,
        "low": loss.low,
        "high": loss.high,
        "difference": difference.mean,
        "difference low": difference.low,
        "difference high": difference.high,
        "p": wilcoxon_p(losses, first),
        "fit seconds": round(seconds, 3),
    }


def _save(rows: list[Row], out: Path) -> None:
    from deltarank.cli.inputs import note
    from deltarank.cli.show import save_rows
    from deltarank.paper.report.comparison import draw_comparison

    for path in save_rows("compare", rows, draw_comparison, out):
        note(f"wrote {path}")
