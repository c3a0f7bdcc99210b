"""The command ``evaluate``: how well a model ranks rows whose labels are known."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deltarank.cli import options

if TYPE_CHECKING:
    from numpy.typing import NDArray

Row = dict[str, Any]
AT = (1, 3, 5)
PLAIN = ("rank_loss", "coverage", "one_error", "average_precision")
AT_K = (
    "precision_at_k",
    "recall_at_k",
    "ndcg_at_k",
    "macro_precision_at_k",
    "macro_recall_at_k",
    "macro_f1_at_k",
    "coverage_at_k",
)
LABELS_PER_BLOCK = 64


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
    weights: Annotated[
        bool,
        typer.Option(
            "--weights",
            help="Also tell whether weights of rows matter here: five folds of these rows are "
            "fitted with and without them.",
        ),
    ] = False,
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
    from deltarank.storage.prepared import Model

    ranker = Model.load(model)
    reading = options.Reading(source_format, labels, label_list, separator)
    rows = read_rows(data, ranker.preparation, ranker.classes, reading, labelled=True, seed=seed)
    n_without = int((~has_pairs(rows.Y)).sum())
    if n_without:
        note(
            f"note: {n_without} of {rows.Y.shape[0]} rows have no label, or all of them, and so "
            "nothing to put in order; rank_loss counts them as 0"
        )
    scores = ranker.all_scores(rows.X)
    overall = measure(rows.Y, scores, n_draws=draws, seed=seed)
    if ranker.metric is not None:
        goal = read_goal(ranker.metric)
        overall.insert(0, measure_goal(goal, rows.Y, scores, n_draws=draws, seed=seed))
    if weights:
        overall += measure_weights(ranker.ranker, rows.X, rows.Y, seed)
    show_measures(overall, measure_labels(rows.Y, scores, ranker.classes), f"{model} on {data}")


def measure(Y: Any, scores: "NDArray[Any]", *, n_draws: int, seed: int) -> list[Row]:
    """Return all metrics; the rank loss with a bootstrap interval of 95% over rows."""
    import numpy as np

    from deltarank.metrics import StreamingMetric, rank_loss
    from deltarank.metrics.placement import place

    placement = place(Y, scores)
    wanted: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in PLAIN]
    wanted += [(name, {"k": k}) for name in AT_K for k in AT if k <= scores.shape[1]]
    wanted += [("ndcg_at_k", {})]
    rows = []
    for name, parameters in wanted:
        stream = StreamingMetric(name, **parameters)
        stream.update_placed(placement)
        if name.endswith("_k"):
            name = f"{name.removesuffix('_k')}_{parameters['k']}" if parameters else "ndcg"
        rows.append({"measure": name, "value": stream.result(), "low": "", "high": ""})
    losses = np.asarray(rank_loss(Y, scores, per_instance=True))
    rows[0] |= _interval(losses, n_draws, seed)
    with_pairs = has_pairs(Y)
    if not with_pairs.all() and with_pairs.any():
        # Rows without pairs count as perfect above; many of them flatter a model.
        alone = losses[with_pairs]
        others = {"measure": "rank_loss_of_rows_with_pairs", "value": alone.mean()}
        rows.insert(1, others | _interval(alone, n_draws, seed))
    return rows


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


def _interval(losses: "NDArray[Any]", n_draws: int, seed: int) -> Row:
    from deltarank.core.statistics import paired_bootstrap

    interval = paired_bootstrap(losses, 0.0, n_draws=n_draws, random_state=seed)
    return {"low": interval.low, "high": interval.high}


def has_pairs(Y: Any) -> "NDArray[Any]":
    """Tell which rows have a relevant label and another that is not."""
    from deltarank.core.labels import label_sets

    labels = label_sets(Y)
    return (labels.sizes > 0) & (labels.sizes < labels.n_labels)


def measure_labels(Y: Any, scores: "NDArray[Any]", classes: Any) -> list[Row]:
    """Return, per label, the number of rows that have it, its AUC and its mean rank in them."""
    import numpy as np
    from scipy import sparse
    from scipy.stats import rankdata

    columns = sparse.csc_array(Y)
    counts = np.diff(columns.indptr)
    mean_ranks, aucs = _mean_ranks(Y, scores), {}
    held = np.flatnonzero(counts)
    for block in np.split(held, range(LABELS_PER_BLOCK, len(held), LABELS_PER_BLOCK)):
        ranks = rankdata(scores[:, block], axis=0)
        for label, label_ranks in zip(block, ranks.T, strict=True):
            having = columns.indices[columns.indptr[label] : columns.indptr[label + 1]]
            aucs[label] = _auc(label_ranks, having)
    return [
        {
            "label": str(name),
            "rows": int(counts[label]),
            "auc": aucs.get(label, ""),
            "mean place": float(mean_ranks[label]) if counts[label] else "",
        }
        for label, name in enumerate(classes)
    ]


def _auc(ranks: "NDArray[Any]", having: "NDArray[Any]") -> float | str:
    """Return how often a row with the label scores above one without it; a tie counts half."""
    n_with, n_without = len(having), len(ranks) - len(having)
    if not n_without:
        return ""
    above = ranks[having].sum() - n_with * (n_with + 1) / 2
    return float(above / (n_with * n_without))


def _mean_ranks(Y: Any, scores: "NDArray[Any]") -> "NDArray[Any]":
    """Return the mean rank of each label, from 1, in the rows that have it; ties at their mean."""
    import numpy as np

    from deltarank.metrics.placement import place

    placement = place(Y, scores)
    positions = placement.above + (placement.tied + 1) / 2
    labels = placement.labels
    totals = np.bincount(labels.members, weights=positions, minlength=labels.n_labels)
    return totals / np.maximum(1, np.bincount(labels.members, minlength=labels.n_labels))


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
