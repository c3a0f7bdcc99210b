"""The command ``evaluate``: how well a model ranks rows whose labels are known."""

from typing import Annotated

import typer

from deltarank.cli import options


def evaluate(
    model: options.ModelFile,
    data: options.NewData,
    draws: Annotated[
        int, typer.Option(min=1, help="Bootstrap samples for the interval of the rank loss.")
    ] = 2000,
    source_format: options.Format = None,
    labels: options.Labels = None,
    label_list: options.LabelList = None,
    separator: options.Separator = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
) -> None:
    """Measure a model on rows whose labels are known.

    Labels are taken from where they were in training, unless options say otherwise. A terminal gets
    a table of metrics and one of labels; a pipe gets both as lines of label, measure, value and
    the ends of the interval, with the label empty for measures of all rows.

    \b
    Examples:
      deltarank evaluate recipes.delta test.csv
      deltarank evaluate yeast.delta yeast
      deltarank evaluate films.delta test.jsonl --label-list genres | grep rank_loss
    """
    from deltarank.cli.evaluation import measure, measure_labels, show_measures
    from deltarank.cli.inputs import read_rows
    from deltarank.storage.prepared import Model

    ranker = Model.load(model)
    reading = options.Reading(source_format, labels, label_list, separator)
    rows = read_rows(data, ranker.preparation, ranker.classes, reading, labelled=True, seed=seed)
    scores = ranker.all_scores(rows.X)
    overall = measure(rows.Y, scores, n_draws=draws, seed=seed)
    show_measures(overall, measure_labels(rows.Y, scores, ranker.classes), f"{model} on {data}")
