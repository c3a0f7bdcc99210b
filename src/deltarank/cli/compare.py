"""The command ``compare``: several rankers on the same rows."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args

import typer

from deltarank.cli import options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deltarank.cli.training import Recipe, Settings
    from deltarank.datasets import Data

Row = dict[str, Any]
DEFAULT_FOLDS = 5
DEFAULT = "logistic,pairwise,adaboost"


def compare(
    data: options.TrainingData,
    rankers: Annotated[
        str,
        typer.Option(help="Rankers to compare, joined by commas; each is compared with the first."),
    ] = DEFAULT,
    test: Annotated[
        str | None, typer.Option(help="File of test rows; without it, cross-validation.")
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            min=2,
            show_default=False,
            help="Folds of the cross-validation, 5 by default; a data set of the catalogue is "
            "cross-validated only if this is given, and otherwise judged by its test rows.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the rows (.jsonl) and a figure (.svg).")
    ] = None,
    tune: options.Tune = None,
    weight: options.RowWeight = "rank",
    source_format: options.Format = None,
    labels: options.Labels = None,
    label_list: options.LabelList = None,
    separator: options.Separator = None,
    text: options.Text = None,
    categorical: options.Categorical = None,
    ignore: options.Ignore = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
) -> None:
    """Compare rankers by their rank loss on held-out rows.

    Every ranker is fitted to the same rows and judged row by row. Intervals of 95% come from a
    bootstrap over rows, paired for differences; p is from Wilcoxon's signed-rank test of the
    differences. In cross-validation folds share training rows, so take intervals and p as a guide.
    A fair comparison tunes all rankers: --tune takes longer.

    \b
    Examples:
      deltarank compare recipes.csv
      deltarank compare train.csv --test test.csv --rankers logistic,kernel
      deltarank compare yeast --tune --out results
    """  # fmt: skip
    from deltarank.cli.show import require_folder, show
    from deltarank.cli.training import Settings, find_recipe

    reading = options.Reading(
        source_format, labels, label_list, separator, text, categorical, ignore
    )
    if test is not None and folds is not None:
        raise typer.BadParameter("--test and --folds exclude each other")
    settings = Settings(tune=tune, weight=weight, seed=seed)
    recipes = {name: find_recipe(name, settings) for name in _names(rankers)}
    if out is not None:
        require_folder(out)
    parts, where = _split(data, test, folds, reading, seed)
    rows = _judge(parts, recipes, reading, settings)
    n_rows = sum(part.Y.shape[0] for part in parts)
    show(rows, f"Rank loss on {n_rows} rows ({where}); difference from {rows[0]['ranker']}")
    if out is not None:
        _save(rows, out)


def _names(text: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    known = get_args(options.RankerName)
    for name in names:
        if name not in known:
            raise typer.BadParameter(
                f"unknown ranker {name!r}; choose among {', '.join(known)}",
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
        preparation = prepare(data, False, reading, 0)
        classes = range(data.Y.shape[1]) if data.label_names is None else data.label_names
        raw = read_raw(test, preparation, classes, reading, labelled=True, seed=seed)
        return [Part(data, slice(None), raw.X, raw.Y)], f"test rows of {test}"
    splits = LabelStratifiedKFold(folds or DEFAULT_FOLDS, random_state=seed).split(data.X, data.Y)
    parts = [
        Part(replace(data, X=data.X[train], Y=data.Y[train]), rest, data.X[rest], data.Y[rest])
        for train, rest in splits
    ]
    return parts, f"{len(parts)} folds of {source}"


def _judge(
    parts: list[Part], recipes: "dict[str, Recipe]", reading: options.Reading, settings: "Settings"
) -> list[Row]:
    """Fit each ranker to each part; return one row per ranker: its losses on held-out rows."""
    import numpy as np

    from deltarank.cli.training import fit_prepared, is_tuned, prepare
    from deltarank.core.progress import progress
    from deltarank.metrics import rank_loss

    n_rows = sum(part.Y.shape[0] for part in parts)
    losses = {name: np.empty(n_rows) for name in recipes}
    seconds = dict.fromkeys(recipes, 0.0)
    jobs = [(part, name) for part in parts for name in recipes]
    with progress("comparing", len(jobs)) as done:
        done.each = 1
        for count, (part, name) in enumerate(jobs, start=1):
            preparation = prepare(part.train, recipes[name].scale, reading, 0)
            model, spent = fit_prepared(part.train, preparation, name, recipes[name], settings)
            scores = model.scores(preparation.transform(part.X))
            losses[name][part.numbers] = rank_loss(part.Y, scores, per_instance=True)
            seconds[name] += spent
            done(count)
    first = next(iter(losses.values()))
    return [
        _row(name, is_tuned(recipe, settings), losses[name], first, seconds[name], settings.seed)
        for name, recipe in recipes.items()
    ]


def _row(
    name: str,
    tuned: bool,
    losses: "NDArray[Any]",
    first: "NDArray[Any]",
    seconds: float,
    seed: int,
) -> Row:
    """Summarise the losses of a ranker, and how they differ from those of the first one."""
    from deltarank.core.statistics import paired_bootstrap, wilcoxon_p

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
