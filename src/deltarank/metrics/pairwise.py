"""Pairwise surrogates of the rank loss, evaluated on data."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.choices import choose
from deltarank.core.labels import LabelSets, label_sets
from deltarank.core.threads import row_blocks, run
from deltarank.core.weights import Weight, raw_weights
from deltarank.metrics.kernels.pairwise import PAIRWISE
from deltarank.metrics.placement import check_scores

ROWS_PER_BLOCK = 1024


def pairwise_loss(
    Y: Any,
    scores: Any,
    loss: str = "logistic",
    weight: Weight = "rank",
    per_instance: bool = False,
    *,
    classes: Any = None,
) -> float | NDArray[np.float64]:
    """Weighted sum of a surrogate over label pairs, Eq. (18), (40) or (41), averaged over rows.

    Parameters
    ----------
    Y : array, sparse matrix or list of label sets
        Zero-one matrix of shape (n, m), or sets of column indices (or of names, with `classes`).
        NaN in a matrix means unknown: the label is in no pair.
    scores : array of shape (n, m)
    loss : str
        phi: "logistic", "exponential", "squared", "squared_hinge", "hinge" or "linear"; or
        "penalized_linear", Eq. (40), or "all_pairs_squared", Eq. (41).
    weight : str, ("ndcg", k) or callable
        w(y), not normalised: see `deltarank.instance_weights`.
    per_instance : bool
        Return a value a row in place of the mean; a row without pairs has 0.
    classes : sequence, optional
        Names of the labels in column order, when Y is a list of sets of names.

    Examples
    --------
    >>> pairwise_loss([[1, 0, 0]], [[1.0, 0.0, 0.5]], loss="hinge")
    0.25
    """
    kernel = choose(PAIRWISE, loss, "loss")
    scores = check_scores(scores)
    labels = label_sets(Y, n_labels=scores.shape[1], classes=classes)
    if labels.n_rows != len(scores):
        raise ValueError(
            f"scores must have a row for each of the {labels.n_rows} rows of Y; "
            f"got shape {scores.shape}"
        )
    if not np.isfinite(scores).all():
        row = int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0])
        raise ValueError(f"scores must be finite; row {row} holds NaN or infinity")
    weights = np.column_stack([raw_weights(labels, Y, weight), np.ones(labels.n_rows)])
    losses, rows = np.empty(labels.n_rows), np.arange(labels.n_rows)
    if labels.unknown is not None:
        _row_by_row(kernel, scores, labels, weights, losses)
        return losses if per_instance else float(losses.mean())
    shared = (weights, (labels.starts, labels.members))
    run(
        [
            partial(_block, kernel, scores[block], rows[block], *shared, losses[block])
            for block in row_blocks(labels.n_rows, ROWS_PER_BLOCK)
        ]
    )
    return losses if per_instance else float(losses.mean())


def _block(kernel: Any, scores: NDArray[Any], *arguments: Any) -> None:
    kernel(scores.astype(np.float64), *arguments)


def _row_by_row(
    kernel: Any,
    scores: NDArray[Any],
    labels: LabelSets,
    weights: NDArray[np.float64],
    losses: NDArray[np.float64],
) -> None:
    """Evaluate each row on its known labels alone."""
    relevant, unknown = labels.to_csr(), (labels.unknown or labels).to_csr()
    for i in range(labels.n_rows):
        known = np.delete(np.arange(labels.n_labels), unknown[[i]].indices)
        members = np.searchsorted(known, relevant[[i]].indices).astype(np.int32)
        mine = (np.array([0, len(members)]), members)
        row = slice(i, i + 1)
        _block(kernel, scores[row, known], np.zeros(1, np.int64), weights[row], mine, losses[row])
