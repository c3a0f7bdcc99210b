"""Pairwise surrogates of the rank loss, evaluated on data."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.choices import choose
from deltarank.core.chunks import is_chunked, map_aligned, total_of_chunks, values_of_rows
from deltarank.core.labels import LabelSets, label_sets
from deltarank.core.losses import LOSSES, Loss
from deltarank.core.threads import row_blocks, run
from deltarank.core.weights import Weight, raw_weights
from deltarank.metrics.kernels.pairwise import PAIRWISE
from deltarank.metrics.placement import check_scores
from deltarank.metrics.streaming import ExactSum

ROWS_PER_BLOCK = 1024
# Losses of rows added up exactly, so that no cut into chunks changes their mean, and how many.
Sum = tuple[ExactSum, int]


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
        NaN in a matrix means unknown: the label is in no pair. Y and scores may be Dask
        collections, cut alike: each chunk is measured where it is, and only sums travel.
    scores : array of shape (n, m)
    loss : str
        phi: "logistic", "exponential", "squared", "squared_hinge", "hinge" or "linear"; or
        "penalized_linear", Eq. (40), or "all_pairs_squared", Eq. (41); also any other loss of
        `deltarank.core.losses.LOSSES` whose expectation has a minimiser.
    weight : str, ("ndcg", k) or callable
        w(y), not normalised: see `deltarank.instance_weights`.
    per_instance : bool
        Return one value per row in place of the mean; a row without pairs has 0.
    classes : sequence, optional
        Names of the labels in column order, when Y is a list of sets of names.

    Examples
    --------
    >>> pairwise_loss([[1, 0, 0]], [[1.0, 0.0, 0.5]], loss="hinge")
    0.25
    """
    pair_kernel(loss)
    rows = partial(_row_losses, loss, weight, classes)
    if not (is_chunked(Y) or is_chunked(scores)):
        return rows(Y, scores) if per_instance else _mean(_summed(rows, Y, scores))
    chunks = (Y, "Y"), (scores, "scores")
    if per_instance:
        return map_aligned(partial(values_of_rows, rows), *chunks)
    return _mean(total_of_chunks(partial(_summed, rows), *chunks, merge=_added))


def pair_kernel(name: Any) -> Any:
    """Return what evaluates a loss on pairs: compiled, or by its values where it is not ours."""
    return choose({**{key: plain_pairs(loss) for key, loss in own_losses().items()}, **PAIRWISE},
                  name, "loss")  # fmt: skip


def own_losses() -> dict[str, Loss]:
    """Return the losses that have been entered in `LOSSES` and can be minimised over pairs."""
    return {name: loss for name, loss in LOSSES.items() if name not in PAIRWISE and loss.link}


def plain_pairs(loss: Loss) -> Callable[..., None]:
    """Return the sum of a loss over the pairs of each row, as a kernel of `PAIRWISE` gives it.

    Value and derivative are taken at the s (m - s) differences of a row, one row at a time.
    """

    def losses_of_rows(
        scores: Any, rows: Any, weights: Any, labels: tuple[Any, Any], losses: Any
    ) -> None:
        starts, members = labels
        for row, i, b in zip(scores, rows, range(len(rows)), strict=True):
            weight, is_relevant = weights[i, 0], np.zeros(len(row), bool)
            is_relevant[members[starts[i] : starts[i + 1]]] = True
            above, below = row[is_relevant].astype(float), row[~is_relevant].astype(float)
            values, slopes = loss.value_and_derivative(above[:, None] - below)
            losses[b] = weight * values.sum()
            row[is_relevant] = weight * slopes.sum(axis=1)
            row[~is_relevant] = -weight * slopes.sum(axis=0)

    return losses_of_rows


def _summed(rows: Callable[..., NDArray[np.float64]], Y: Any, scores: Any) -> Sum:
    losses, total = rows(Y, scores), ExactSum()
    total.add(losses)
    return total, len(losses)


def _added(parts: list[Sum]) -> Sum:
    total = ExactSum()
    for part, _ in parts:
        total.merge(part)
    return total, sum(n_rows for _, n_rows in parts)


def _mean(summed: Sum) -> float:
    total, n_rows = summed
    return float(total) / n_rows


def _row_losses(
    loss: str, weight: Weight, classes: Any, Y: Any, scores: Any
) -> NDArray[np.float64]:
    kernel = pair_kernel(loss)
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
        return losses
    shared = (weights, (labels.starts, labels.members))
    run(
        [
            partial(_block, kernel, scores[block], rows[block], *shared, losses[block])
            for block in row_blocks(labels.n_rows, ROWS_PER_BLOCK)
        ]
    )
    return losses


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
        row_labels = (np.array([0, len(members)]), members)
        row = slice(i, i + 1)
        _block(
            kernel, scores[row, known], np.zeros(1, np.int64), weights[row], row_labels, losses[row]
        )
