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
    """Fit a ranker to a file and keep it in a model file.

    Text becomes TF-IDF, categories columns of 0 and 1, numbers come to one scale where the ranker
    cares; the model file remembers all of it.

    \b
    Examples:
      deltarank fit recipes.csv --model recipes.delta
      deltarank fit films.csv --label-list genres --separator '|' --model films.delta
      deltarank fit genes.arff --labels -14 --ranker adaboost --tune --model genes.delta
      deltarank fit yeast --ranker kernel --model yeast.delta
    """
    from deltarank.cli import fitting
    from deltarank.cli.training import Settings

    reading = options.Reading(
        source_format, labels, label_list, separator, text, categorical, ignore
    )
    settings = Settings(tune, penalty, rounds, weight, seed)
    fitting.fit(data, model, ranker, reading, settings)


def describe(values: dict[str, Any]) -> str:
    """Write parameters in a line.

    Examples
    --------
    >>> describe({"C": 0.1, "gamma": 0.123456})
    'C = 0.1, gamma = 0.1235'
    """
    return ", ".join(
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in values.items()
    )
