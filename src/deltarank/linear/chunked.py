"""Dask collections on their way to a fit: checked and weighed where the rows are."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import _check_feature_names

from deltarank.base.chunked import dtype_of
from deltarank.base.ranker import NO_ROW_COUNTS, balanced, canonical, constants_of
from deltarank.core.chunks import aligned_chunks, is_chunked, is_frame
from deltarank.core.labels import LabelSets, label_sets, row_numbers
from deltarank.core.weights import NO_PAIR_COUNTS, Weight, raw_weights
from deltarank.core.workers import Chunks, workers
from deltarank.linear.rows.cluster import ClusterRows, RowChunk


class Placed(NamedTuple):
    """Rows on their way to a fit, the constant scores of labels, and the kind of numbers of X."""

    rows: Any
    constants: NDArray[np.float64]
    dtype: Any


class Checked:
    """Checked rows of a chunk; w(y) times what the rows count is still to be normalised."""

    def __init__(
        self, rows: RowChunk, counts: NDArray[np.float64], raw: NDArray[np.float64], form: str
    ) -> None:
        self.rows, self.counts, self.raw, self.form = rows, counts, raw, form

    def __sizeof__(self) -> int:
        """Tell Dask how large the chunk is: see `RowChunk`."""
        return self.rows.__sizeof__()

    def totals(self) -> "Totals":
        """Return what the mean of the weights is made of."""
        ranked = ~self.rows.labels.trivial & (self.counts > 0)
        raw, counts = self.raw[ranked], self.counts[ranked]
        largest = float(raw.max(initial=0.0))
        total = float((counts * raw / largest).sum()) if largest else 0.0
        return Totals({self.form}, largest, total, float(counts.sum()), bool(self.counts.any()))

    def weighed(self, totals: "Totals", balance: bool) -> RowChunk:
        """Return the rows with weights of mean 1 over all rows with a pair: `training_weights`."""
        rows, weights = self.rows, self.counts
        if totals.counts:
            mean = totals.total / totals.counts
            weights = weights * (self.raw / totals.largest / mean)
        cost = rows.cost
        if balance:
            weights, cost = balanced(rows.labels, weights)
        return RowChunk(rows.X, rows.labels, weights, cost, rows.counts)


class Totals(NamedTuple):
    """Sums over rows with a pair: of w(y), in units of its largest, and of what rows count."""

    forms: set[str]
    largest: float
    total: float
    counts: float
    any_counts: bool

    @staticmethod
    def merged(parts: "list[Totals]") -> "Totals":
        """Return those of all chunks."""
        largest = max(part.largest for part in parts)
        return Totals(
            set().union(*(part.forms for part in parts)),
            largest,
            sum(part.total * (part.largest / largest if largest else 0.0) for part in parts),
            sum(part.counts for part in parts),
            any(part.any_counts for part in parts),
        )


@contextmanager
def placed_chunks(ranker: Any, X: Any, Y: Any, sample_weight: Any) -> Iterator[Placed]:
    """Check and weigh X and Y on the cluster, and give the rows there.

    Neither ever comes here: only sums do. The chunks stay in the workers' memory, or on their
    disks, until the rows are let go.
    """
    delayed = _delayed_chunks(ranker, X, Y, sample_weight)
    balance = isinstance(ranker.positive_cost, str)
    with workers() as client:
        checked = Chunks(client, client.compute(delayed))
        totals = checked.total(Checked.totals, merge=Totals.merged)
        if totals.counts and not totals.largest:
            raise ValueError(NO_PAIR_COUNTS)
        if not totals.any_counts:
            raise ValueError(NO_ROW_COUNTS)
        ranker._form = "sparse" if totals.forms == {"sparse"} else "dense"
        rows = checked.map(Checked.weighed, totals, balance)
        del checked  # the weighed rows hold all of it
        data = ClusterRows(rows, len(ranker.classes_), dtype=dtype_of(X), loss=ranker._loss())
        del rows
        summary = data.summary
        constants = constants_of(summary.relevant, summary.n_counted - summary.unknown)
        yield Placed(data, constants, dtype_of(X))


def _delayed_chunks(ranker: Any, X: Any, Y: Any, sample_weight: Any) -> list[Any]:
    """Return the chunks, checked when computed, and remember the names of features and labels."""
    import dask

    counts, pieces = sample_weight, None
    if counts is not None and not is_chunked(counts):
        counts, pieces = None, _split(X, counts)
    if not is_chunked(X):
        aligned_chunks((Y, "Y"), (X, "X"))
    triples = aligned_chunks((X, "X"), (Y, "Y"), (counts, "sample_weight"))
    ranker.n_features_in_ = _width(X, "X")
    _check_feature_names(ranker, X._meta if is_frame(X) else np.empty((0, 1)), reset=True)
    n_labels = _width(Y, "Y")
    ranker.classes_ = np.asarray(Y.columns) if is_frame(Y) else np.arange(n_labels)
    check = partial(
        _checked,
        dtype=dtype_of(X),
        shape=(ranker.n_features_in_, n_labels),
        weight=ranker.weight,
        cost=1.0 if isinstance(ranker.positive_cost, str) else float(ranker.positive_cost),
    )
    if pieces is not None:
        triples = [(x, y, piece) for (x, y, _), piece in zip(triples, pieces, strict=True)]
    return [dask.delayed(check)(*triple, number=i) for i, triple in enumerate(triples)]


def _checked(
    x: Any,
    y: Any,
    counts: Any,
    *,
    number: int,
    dtype: Any,
    shape: tuple[int, int],
    weight: Weight,
    cost: float,
) -> Checked:
    try:
        X = check_array(x, accept_sparse="csr", dtype=dtype, ensure_min_samples=0, input_name="X")
        X = canonical(X)
        labels = _labels(y, shape[1])
        if labels.n_rows != X.shape[0]:
            raise ValueError(
                f"X and Y must have the same number of rows; X has {X.shape[0]} and Y has "
                f"{labels.n_rows}"
            )
        counted = np.ones(labels.n_rows)
        if counts is not None:
            counted = row_numbers(counts, labels.n_rows, "sample_weight")
        raw = raw_weights(labels, y, weight)
    except ValueError as error:
        raise ValueError(f"in chunk {number}: {error}") from None
    form = "sparse" if sparse.issparse(y) else "dense"
    rows = RowChunk(X, labels, counted * raw, cost, counted)
    return Checked(rows, counted, raw, form)


def _labels(y: Any, n_labels: int) -> LabelSets:
    if y.shape[0] == 0:  # as partitions of data frames may be
        return LabelSets(np.zeros(1, np.int64), np.empty(0, np.int32), n_labels)
    return label_sets(y, n_labels=n_labels)


def _split(X: Any, sample_weight: Any) -> list[NDArray[np.float64]]:
    if not is_chunked(X) or is_frame(X):
        raise ValueError(
            "sample_weight must be chunked as X is, which does not know how many rows its "
            "partitions have; give a Dask array or series"
        )
    counts = row_numbers(sample_weight, X.shape[0], "sample_weight")
    return np.split(counts, np.cumsum(X.chunks[0])[:-1])


def _width(collection: Any, argument: str) -> int:
    if collection.ndim != 2:
        raise ValueError(
            f"{argument} must have shape (n, columns) when it is a Dask collection; got "
            f"{collection.ndim} dimensions" + (": use Y.reshape(-1, 1)" if argument == "Y" else "")
        )
    return len(collection.columns) if is_frame(collection) else int(collection.shape[1])
