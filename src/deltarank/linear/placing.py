"""From what users give to rows that can be fitted, wherever they lie."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.base.chunked import dtype_of
from deltarank.base.placing import CheckedRows, Totals, place_chunks
from deltarank.base.ranker import constant_scores, constants_of
from deltarank.core.balance import split_weights
from deltarank.core.chunks import is_chunked
from deltarank.core.labels import LabelSets
from deltarank.core.workers import workers
from deltarank.linear.rows.cluster import ClusterRows, RowChunk
from deltarank.linear.rows.place import place
from deltarank.linear.rows.protocol import Rows
from deltarank.linear.unknown import average_chunks, rows_to_fit


class Placed(NamedTuple):
    """Rows on their way to a fit, the constant scores of labels, and the kind of numbers of X."""

    rows: Any
    constants: NDArray[np.float64]
    dtype: Any


@contextmanager
def placed(ranker: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[Placed]:
    """Check and weigh X and Y, and give the rows where the ranker is to be fitted."""
    if is_chunked(X) or is_chunked(y):
        with workers() as client:
            yield placed_chunks(client, ranker, X, y, sample_weight, ranker.balance)
        return
    X = ranker._check_rows(X, fitting=True)
    targets = ranker._check_labels(y, X.shape[0])
    X, labels, weights = rows_to_fit(ranker, X, targets, y, sample_weight)
    rows = rows_of(ranker, X, labels, weights, ranker.balance)
    yield Placed(rows, constant_scores(labels, weights), X.dtype)


def placed_chunks(
    client: Any, ranker: Any, X: Any, Y: Any, sample_weight: Any, balance: float
) -> Placed:
    """Return rows on a cluster: chunks that stay in its memory, or on disk, until let go."""
    inputs = (client, ranker, X, Y, sample_weight)
    dtype = dtype_of(X)
    pieces = place_chunks(*inputs, without_unknown=None)
    checked, totals = average_chunks(ranker, *pieces, dtype, balance)
    chunks = checked.map(_weighed, totals, ranker._label_costs(), balance)
    del pieces, checked  # the weighed rows hold all of it
    rows = ClusterRows(chunks, len(ranker.classes_), dtype=dtype, loss=ranker._loss())
    summary = rows.summary
    constants = constants_of(summary.relevant, summary.n_counted - summary.unknown)
    return Placed(rows, constants, dtype)


def _weighed(
    rows: CheckedRows, totals: Totals, label_cost: NDArray[np.float64], balance: float
) -> RowChunk:
    """Return the rows of a chunk with weights of mean 1 over all rows with a pair."""
    weights, costs = split_weights(rows.labels, rows.weights(totals), balance)
    return RowChunk(rows.X, rows.labels, weights, costs, rows.counts, label_cost)


def rows_of(
    ranker: Any, X: Any, labels: LabelSets, weights: NDArray[np.float64], balance: float
) -> Rows:
    """Return checked rows where a ranker is to be fitted."""
    weights, costs = split_weights(labels, weights, balance)
    label_cost = ranker._label_costs()
    options = {"positive_cost": costs, "label_cost": label_cost, "loss": ranker._loss()}
    return place(X, labels, weights, device=ranker.device, **options)
