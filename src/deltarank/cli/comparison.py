"""Rankers on the same held-out rows: their rank losses, and whether they differ."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.cli.fitting import fit_prepared, prepare, take
from deltarank.cli.inputs import is_catalogued, note, read_raw, read_training
from deltarank.cli.options import Reading
from deltarank.cli.show import require_folder, save_rows, show
from deltarank.cli.training import Recipe, Settings, find_recipe, is_tuned
from deltarank.core.progress import progress
from deltarank.core.splits import LabelStratifiedKFold
from deltarank.core.statistics import paired_bootstrap, wilcoxon_p
from deltarank.datasets import Data
from deltarank.metrics import rank_loss
from deltarank.paper.report.comparison import draw_comparison

Row = dict[str, Any]
DEFAULT_FOLDS = 5


class Part(NamedTuple):
    """Rows to fit, and rows to judge by: features as they are in the file, and label sets."""

    train: Data
    X: Any
    Y: Any
    places: Any


def compare_rankers(
    source: str,
    names: list[str],
    test: str | None,
    folds: int | None,
    reading: Reading,
    settings: Settings,
    out: Path | None,
) -> None:
    """Fit and judge each ranker, print a row each, and save them with a figure."""
    recipes = {name: find_recipe(name, settings) for name in names}
    if out is not None:
        require_folder(out)
    data, _ = read_training(source, reading, seed=settings.seed)
    if test is None and folds is None and is_catalogued(source):
        test = source
    parts = (
        _folds(data, folds or DEFAULT_FOLDS, settings.seed)
        if test is None
        else [_given_test(data, test, reading, settings.seed)]
    )
    n_rows = sum(part.Y.shape[0] for part in parts)
    losses, seconds = _judge(parts, recipes, n_rows, reading, settings)
    tuned = {name: is_tuned(recipe, settings) for name, recipe in recipes.items()}
    rows = _rows(losses, tuned, seconds, settings.seed)
    how = f"{len(parts)} folds of {source}" if test is None else f"test rows of {test}"
    show(rows, f"Rank loss on {n_rows} rows ({how}); difference from {names[0]}")
    if out is not None:
        for path in save_rows("compare", rows, draw_comparison, out):
            note(f"wrote {path}")


def _folds(data: Data, n_folds: int, seed: int) -> list[Part]:
    splits = LabelStratifiedKFold(n_folds, random_state=seed).split(data.X, data.Y)
    return [Part(take(data, train), data.X[test], data.Y[test], test) for train, test in splits]


def _given_test(data: Data, test: str, reading: Reading, seed: int) -> Part:
    preparation = prepare(data, False, reading, 0)
    classes = range(data.Y.shape[1]) if data.label_names is None else data.label_names
    raw = read_raw(test, preparation, classes, reading, labelled=True, seed=seed)
    return Part(data, raw.X, raw.Y, slice(None))


def _judge(
    parts: list[Part],
    recipes: dict[str, Recipe],
    n_rows: int,
    reading: Reading,
    settings: Settings,
) -> tuple[dict[str, NDArray[np.float64]], dict[str, float]]:
    """Return each ranker's rank loss a row, and the seconds its fits took."""
    losses = {name: np.empty(n_rows) for name in recipes}
    seconds = dict.fromkeys(recipes, 0.0)
    jobs = [(part, name) for part in parts for name in recipes]
    with progress("comparing", len(jobs)) as done:
        done.each = 1
        for count, (part, name) in enumerate(jobs, start=1):
            recipe = recipes[name]
            preparation = prepare(part.train, recipe.scale, reading, 0)
            model, spent = fit_prepared(part.train, preparation, name, recipe, settings)
            scores = model.scores(preparation.transform(part.X))
            losses[name][part.places] = rank_loss(part.Y, scores, per_instance=True)
            seconds[name] += spent
            done(count)
    return losses, seconds


def _rows(
    losses: dict[str, NDArray[np.float64]],
    tuned: dict[str, bool],
    seconds: dict[str, float],
    seed: int,
) -> list[Row]:
    first = next(iter(losses.values()))
    rows = []
    for name, mine in losses.items():
        own = paired_bootstrap(mine, np.zeros_like(mine), random_state=seed)
        less = paired_bootstrap(mine, first, random_state=seed)
        rows.append(
            {
                "ranker": name,
                "tuned": tuned[name],
                "rank loss": own.mean,
                "low": own.low,
                "high": own.high,
                "difference": less.mean,
                "difference low": less.low,
                "difference high": less.high,
                "p": wilcoxon_p(mine, first),
                "fit seconds": round(seconds[name], 3),
            }
        )
    return rows
