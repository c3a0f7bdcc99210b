"""The command ``fit``: from a file to a model file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from deltarank.cli import options


def fit(
    data: options.TrainingData,
    model: Annotated[Path, typer.Option("--model", "-m", help="Model file to write.")],
    ranker: Annotated[options.RankerName, typer.Option(help="Which ranker.")] = "logistic",
    tune: options.Tune = None,
    penalty: options.Penalty = None,
    rounds: options.Rounds = None,
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
    """Fit a ranker to a file and save it as a model file.

    Text becomes TF-IDF, categories become columns of 0 and 1, and numbers are brought to one scale
    where the ranker needs it; the model file remembers all of this.

    \b
    Examples:
      deltarank fit recipes.csv --model recipes.delta
      deltarank fit films.csv --label-list genres --separator '|' --model films.delta
      deltarank fit genes.arff --labels -14 --ranker adaboost --tune --model genes.delta
      deltarank fit yeast --ranker kernel --model yeast.delta
    """
    from deltarank.cli.inputs import note, read_training
    from deltarank.cli.training import Settings, chosen, find_recipe, fit_prepared, prepare

    reading = options.Reading(
        source_format, labels, label_list, separator, text, categorical, ignore
    )
    settings = Settings(tune, penalty, rounds, weight, seed)
    recipe = find_recipe(ranker, settings)
    _require_writable(model)
    rows, first_number = read_training(data, reading, seed=seed)
    preparation = prepare(rows, recipe.scale, reading, first_number)
    fitted, seconds = fit_prepared(rows, preparation, ranker, recipe, settings)
    fitted.save(model)
    n_rows, n_features = rows.X.shape
    note(
        f"fitted {type(fitted.ranker).__name__} to {n_rows} rows, {n_features} features and "
        f"{rows.Y.shape[1]} labels in {seconds:.1f} s; {describe(chosen(fitted.ranker))}"
    )
    note(f"wrote {model}")


def _require_writable(path: Path) -> None:
    """Fail before the work, not after it, if the model cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(21, "Is a directory")
    except OSError as error:
        raise ValueError(f"--model must name a file to write; {path}: {error.strerror}") from None


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
