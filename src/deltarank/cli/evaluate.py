"""The command ``evaluate``: how well a model ranks rows whose labels are known."""

import sys
from typing import Annotated, Any

import typer

from deltarank.cli import options

Row = dict[str, Any]


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
    vectors: options.Vectors = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    weights: Annotated[
        bool,
        typer.Option(
            "--weights",
            help="Also tell whether weights of rows matter here: five folds of these rows are "
            "fitted with and without them.",
        ),
    ] = False,
    dask: options.Dask = None,
) -> None:
    """Measure a model on rows whose labels are known.

    Labels are read from where they were in training, unless options say otherwise. A terminal gets
    a table of metrics and one of labels; a pipe gets both as lines of label, measure, value and
    the ends of the interval, with an empty label for measures of all rows.

    \b
    Examples:
      deltarank evaluate recipes.delta test.csv
      deltarank evaluate yeast.delta yeast --weights
      deltarank evaluate films.delta test.jsonl --label-list genres | grep rank_loss
    """
    from deltarank.cli.goals import measure_goal, read_goal
    from deltarank.cli.inputs import note, read_rows
    from deltarank.cli.measures import label_rows, measured, overall, pairs_won
    from deltarank.storage.prepared import Model

    reading = options.Reading(source_format, labels, label_list, separator, vectors=vectors)
    ranker = Model.load(model, mmap=dask is None)
    goal = None if ranker.metric is None else read_goal(ranker.metric)
    if dask is not None:
        from deltarank.cli.cluster import measure_there

        if weights:
            raise typer.BadParameter("--weights is not for --dask: leave one of the two out")
        whole, won = measure_there(dask, data, ranker, goal, reading)
        measures = overall(whole, goal, n_draws=draws, seed=seed)
    else:
        rows = read_rows(
            data, ranker.preparation, ranker.classes, reading, labelled=True, seed=seed
        )
        scores = ranker.all_scores(rows.X)
        whole, won = measured(rows.Y, scores), pairs_won(rows.Y, scores)
        measures = overall(whole, n_draws=draws, seed=seed)
        if goal is not None:
            measures.insert(0, measure_goal(goal, rows.Y, scores, n_draws=draws, seed=seed))
        if weights:
            measures += measure_weights(ranker.ranker, rows.X, rows.Y, seed)
    n_without = int((~whole.with_pairs).sum())
    if n_without:
        note(
            f"note: {n_without} of {len(whole.with_pairs)} rows have no label, or all of them, and "
            "so nothing to put in order; rank_loss counts them as 0"
        )
    show_measures(measures, label_rows(whole, won, ranker.classes), f"{model} on {data}")


def measure_weights(ranker: Any, X: Any, Y: Any, seed: int) -> list[Row]:
    """Return what the weights of the ranker, or else of the rank loss, change on these rows."""
    from deltarank import weight_diagnostics

    trained_with = ranker.get_params(deep=False).get("weight", "rank")
    weight = "rank" if trained_with == "uniform" else trained_with
    effect = weight_diagnostics(Y, weight, X=X, ranker=ranker, random_state=seed).effect
    assert effect is not None, "features were given"
    gain, no_interval = effect.gain, {"low": "", "high": ""}
    return [
        {"measure": "pairs_changed_by_weights", "value": effect.changed, **no_interval},
        {"measure": "gain_by_weights", "value": gain.mean, "low": gain.low, "high": gain.high},
        {"measure": "dependence_through_weights", "value": effect.correlation, **no_interval},
        {"measure": "p_of_dependence", "value": effect.p_value, **no_interval},
    ]


def show_measures(overall: list[Row], by_label: list[Row], title: str) -> None:
    """Print two tables on a terminal; in a pipe, lines that all have the same columns."""
    from deltarank.cli.show import terminal
    from deltarank.paper.report.tables import to_table, to_tsv

    if not sys.stdout.isatty():
        sys.stdout.write(to_tsv([*({"label": "", **row} for row in overall), *_lines(by_label)]))
        return
    console = terminal()
    console.print(to_table(overall, title))
    console.print(to_table(by_label, "Labels"))


def _lines(by_label: list[Row]) -> list[Row]:
    return [
        {"label": row["label"], "measure": name, "value": row[name], "low": "", "high": ""}
        for row in by_label
        for name in ("rows", "auc", "mean place")
    ]
