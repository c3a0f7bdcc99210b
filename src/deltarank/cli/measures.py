"""Measures of a model, from parts of the rows: of all rows here, or of files on other machines."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import rankdata

from deltarank.cli.goals import Goal, mean_of_goal
from deltarank.core.labels import label_sets
from deltarank.core.statistics import paired_bootstrap
from deltarank.metrics import StreamingMetric, rank_loss
from deltarank.metrics.placement import Placement, place

Array = NDArray[Any]
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


class Measured(NamedTuple):
    """What some rows add to the measures of a model.

    Attributes
    ----------
    streams : dict of str to StreamingMetric
        By the names that are shown.
    losses, of_goal : array of shape (n,)
        The rank loss of each row, and the metric that the model is made for, if any.
    with_pairs : array of shape (n,), bool
        Which rows have labels to put in order.
    held, places : array of shape (m,)
        How many rows hold each label, and the sum of its places in them.
    """

    streams: dict[str, StreamingMetric]
    losses: Array
    of_goal: Array | None
    with_pairs: Array
    held: Array
    places: Array


def measured(Y: Any, scores: Array, goal: Goal | None = None) -> Measured:
    """Measure rows; a goal must be one of rows."""
    placement = place(Y, scores)
    streams = {}
    for name, options in _wanted(scores.shape[1]):
        stream = StreamingMetric(name, **options)
        stream.update_placed(placement)
        shown = name.removesuffix("_at_k")
        shown = name if shown == name else f"{shown}_at_{options['k']}" if options else "ndcg"
        streams[shown] = stream
    losses = np.asarray(rank_loss(Y, scores, per_instance=True))
    of_goal = None if goal is None else np.asarray(goal.of_rows(Y, scores))
    return Measured(streams, losses, of_goal, has_pairs(Y), *_held_and_places(placement))


def _wanted(n_labels: int) -> list[tuple[str, dict[str, Any]]]:
    at_k = [(name, {"k": k}) for name in AT_K for k in AT if k <= n_labels]
    return [*((name, {}) for name in PLAIN), *at_k, ("ndcg_at_k", {})]


def _held_and_places(placement: Placement) -> tuple[Array, Array]:
    """Return how many rows hold each label, and the sum of its places, ties at their mean."""
    labels, positions = placement.labels, placement.above + (placement.tied + 1) / 2
    held = np.bincount(labels.members, minlength=labels.n_labels)
    return held, np.bincount(labels.members, weights=positions, minlength=labels.n_labels)


def joined(parts: Iterable[Measured]) -> Measured:
    """Return what the rows of all parts add, in their order."""
    first, *others = parts
    for part in others:
        for name, stream in first.streams.items():
            stream.merge(part.streams[name])
    every = [first, *others]
    return Measured(
        first.streams,
        np.concatenate([part.losses for part in every]),
        None if first.of_goal is None else np.concatenate([part.of_goal for part in every]),
        np.concatenate([part.with_pairs for part in every]),
        np.sum([part.held for part in every], axis=0),
        np.sum([part.places for part in every], axis=0),
    )


def overall(whole: Measured, goal: Goal | None = None, *, n_draws: int, seed: int) -> list[Row]:
    """Return all metrics; the rank loss with a bootstrap interval of 95% over rows."""
    rows = [
        {"measure": name, "value": stream.result(), "low": "", "high": ""}
        for name, stream in whole.streams.items()
    ]
    rows[0] |= _interval(whole.losses, n_draws, seed)
    if not whole.with_pairs.all() and whole.with_pairs.any():
        # Rows without pairs count as perfect above; many of them flatter a model.
        alone = whole.losses[whole.with_pairs]
        others = {"measure": "rank_loss_of_rows_with_pairs", "value": alone.mean()}
        rows.insert(1, others | _interval(alone, n_draws, seed))
    if goal is not None and whole.of_goal is not None:
        rows.insert(0, mean_of_goal(goal, whole.of_goal, n_draws=n_draws, seed=seed))
    return rows


def _interval(losses: Array, n_draws: int, seed: int) -> Row:
    interval = paired_bootstrap(losses, 0.0, n_draws=n_draws, random_state=seed)
    return {"low": interval.low, "high": interval.high}


def has_pairs(Y: Any) -> Array:
    """Tell which rows have a relevant label and another that is not."""
    labels = label_sets(Y)
    return (labels.sizes > 0) & (labels.sizes < labels.n_labels)


def label_rows(whole: Measured, pairs_won: Array, classes: Any) -> list[Row]:
    """Return, per label, the number of rows that have it, its AUC and its mean place in them."""
    return [
        {
            "label": str(name),
            "rows": int(n_with),
            "auc": _auc(float(won), int(n_with), len(whole.losses)),
            "mean place": float(total / n_with) if n_with else "",
        }
        for name, n_with, won, total in zip(
            classes, whole.held, pairs_won, whole.places, strict=True
        )
    ]


def _auc(won: float, n_with: int, n_rows: int) -> float | str:
    """Return how often a row with the label scores above one without it."""
    n_pairs = n_with * (n_rows - n_with)
    return won / n_pairs if n_pairs else ""


def pairs_won(Y: Any, scores: Array) -> Array:
    """Return in how many pairs a row with the label scores above one without; a tie counts half."""
    columns = sparse.csc_array(Y)
    counts, won = np.diff(columns.indptr), np.zeros(scores.shape[1])
    held = np.flatnonzero(counts)
    for block in np.split(held, range(LABELS_PER_BLOCK, len(held), LABELS_PER_BLOCK)):
        ranks = rankdata(scores[:, block], axis=0)
        for label, own in zip(block, ranks.T, strict=True):
            having = columns.indices[columns.indptr[label] : columns.indptr[label + 1]]
            won[label] = own[having].sum() - len(having) * (len(having) + 1) / 2
    return won
