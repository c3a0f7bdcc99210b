"""The command ``fit``: from a file to a model file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deltarank.cli import options
from deltarank.core.files import refuse_device

if TYPE_CHECKING:
    from deltarank.datasets import Data
    from deltarank.storage.prepared import Model


@options.with_reading
def fit(
    data: options.TrainingData,
    *,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="Model file to write.", show_default=False)
    ] = None,
    ranker: options.Ranker = None,
    tune: options.Tune = None,
    penalty: options.Penalty = None,
    rounds: options.Rounds = None,
    weight: options.RowWeight = "rank",
    metric: options.Goal = None,
    reading: options.Reading,
    prune: options.Prune = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    memory: options.Memory = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate", help="Learn probabilities too, by cross-validation: five fits more."
        ),
    ] = False,
    dask: options.Dask = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show how each column is read.")
    ] = False,
) -> None:
    """Fit a ranker to a file and save it as a model file.

    Text becomes TF-IDF, categories become columns of 0 and 1 (boosted trees split them into sets),
    and numbers are brought to one scale where the ranker needs it; the model file remembers all of
    this.

    \b
    Examples:
      deltarank fit recipes.csv --model recipes.delta
      deltarank fit recipes.csv --dry-run
      deltarank fit films.csv --label-list genres --separator '|' --model films.delta
      deltarank fit genes.arff --labels -14 --ranker adaboost --tune --model genes.delta
      deltarank fit yeast --ranker kernel --model yeast.delta
      deltarank fit recipes.csv --metric ndcg@3 --model recipes.delta
      deltarank fit recipes.csv --calibrate --model recipes.delta
      deltarank fit 'recipes/*.parquet' --dask tcp://host:8786 --model recipes.delta
    """
    from deltarank.cli.calibrating import calibrated
    from deltarank.cli.columns import column_rows, note_columns
    from deltarank.cli.inputs import read_training
    from deltarank.cli.plan import default_ranker
    from deltarank.cli.show import show
    from deltarank.cli.training import Settings, as_wanted, find_recipe, fit_prepared, prepare

    settings = Settings(tune, penalty, rounds, weight, seed, prune).made_for(metric)
    recipe = find_recipe(ranker or "logistic", settings)
    if dry_run:
        show(column_rows(*read_training(data, reading, seed=seed)), "columns")
        return
    path = _require_writable(model)
    if dask is not None:
        from deltarank.cli.cluster import fit_there

        if calibrate:
            raise typer.BadParameter("--calibrate is not for --dask: leave one of the two out")
        rows, fitted, seconds = fit_there(dask, data, ranker, settings, reading)
        _save(fitted, rows, seconds, path)
        return
    rows, first_number = read_training(data, reading, seed=seed)
    if ranker is None:
        ranker = default_ranker(rows.Y.shape[1])
        recipe = find_recipe(ranker, settings)
    rows = as_wanted(rows, recipe)
    preparation = prepare(rows, recipe.scale, first_number)
    note_columns(column_rows(rows, first_number))
    fitted, seconds = fit_prepared(rows, preparation, ranker, recipe, settings)
    if calibrate:
        fitted = calibrated(fitted, rows, seed)
    _save(fitted, rows, seconds, path)


def _save(fitted: "Model", rows: "Data", seconds: float, path: Path) -> None:
    from deltarank.cli.inputs import note

    fitted.save(path)
    note(_summary(fitted.ranker, rows, seconds))
    note(f"wrote {path}")


def _summary(ranker: Any, data: "Data", seconds: float) -> str:
    """Say what was fitted to what, how long it took, and what was chosen."""
    from deltarank.cli.training import chosen

    n_rows, n_features = data.X.shape
    parameters = describe(chosen(getattr(ranker, "ranker_", ranker)))
    return (
        f"fitted {type(ranker).__name__} to {n_rows} rows, {n_features} features and "
        f"{data.Y.shape[1]} labels in {seconds:.1f} s" + (f"; {parameters}" if parameters else "")
    )


def _require_writable(path: Path | None) -> Path:
    """Fail before the work, not after it, if the model cannot be written."""
    if path is None:
        raise typer.BadParameter("--model must name the model file to write")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(21, "Is a directory")
        refuse_device(path)
    except OSError as error:
        raise ValueError(f"--model must name a file to write; {path}: {error.strerror}") from None
    return path


def describe(values: dict[str, Any]) -> str:
    """Format parameters as one line of text.

    Examples
    --------
    >>> describe({"C": 0.1, "gamma": 0.123456})
    'C = 0.1, gamma = 0.1235'
    """
    return ", ".join(
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in values.items()
    )
