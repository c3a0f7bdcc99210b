"""Dask collections on their way to a fit: checked and weighed where the rows are."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import _check_feature_names

from deltarank.base.chunked import dtype_of
from deltarank.base.features import canonical, check_size
from deltarank.base.ranker import NO_ROW_COUNTS
from deltarank.core.arguments import refuse_hidden
from deltarank.core.chunks import aligned_chunks, is_chunked, is_frame
from deltarank.core.labels import LabelSets, label_sets, row_numbers
from deltarank.core.weights import NO_PAIR_COUNTS, Weight, raw_weights, with_pair
from deltarank.core.workers import Chunks


class CheckedRows:
    """Checked rows of a chunk; w(y) times what the rows count is still to be normalised.

    Parameters
    ----------
    X : array or CSR matrix
    labels : LabelSets
    counts : array of shape (n,)
        What each row counts: its sample weight.
    raw : array of shape (n,)
        w(y).
    form : {"dense", "sparse"}
        In which Y came.
    """

    def __init__(
        self,
        X: Any,
        labels: LabelSets,
        counts: NDArray[np.float64],
        raw: NDArray[np.float64],
        form: str,
    ) -> None:
        self.X, self.labels, self.counts, self.raw, self.form = X, labels, counts, raw, form

    def __sizeof__(self) -> int:
        """Tell Dask how large the rows are, so that they go to disk when memory is short."""
        X = self.X
        parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
        return sum(part.nbytes for part in (*parts, *self.labels[:2], self.counts, self.raw))

    def totals(self) -> "Totals":
        """Return what the mean of the weights is made of."""
        ranked = with_pair(self.labels, self.raw) & (self.counts > 0)
        raw, counts = self.raw[ranked], self.counts[ranked]
        largest = float(raw.max(initial=0.0))
        total = float((counts * raw / largest).sum()) if largest else 0.0
        flags = (bool(self.counts.any()), self.labels.unknown is not None)
        return Totals({self.form}, largest, total, float(counts.sum()), *flags)

    def weights(self, totals: "Totals") -> NDArray[np.float64]:
        """Return weights of mean 1 over all rows with a pair: see `training_weights`."""
        if not totals.counts:
            return self.counts
        mean = totals.total / totals.counts
        return self.counts * (self.raw / totals.largest / mean)


class Totals(NamedTuple):
    """Sums over rows with a pair: of w(y), in units of its largest, and of what rows count."""

    forms: set[str]
    largest: float
    total: float
    counts: float
    any_counts: bool
    any_unknown: bool

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
            any(part.any_unknown for part in parts),
        )


def place_chunks(
    client: Any, ranker: Any, X: Any, Y: Any, sample_weight: Any, *, without_unknown: str | None
) -> tuple[Chunks, Totals]:
    """Check X and Y on the cluster; the ranker remembers the names of features and labels.

    Neither ever comes here: only sums do. The chunks stay in the workers' memory, or on their
    disks, until they are let go.

    Parameters
    ----------
    client : distributed.Client
    ranker : Ranker
        Whose `weight` counts, and `accepts_missing_values`.
    X, Y, sample_weight
        As in `fit`, Dask collections cut alike; sample_weight may be an array.
    without_unknown : str or None
        See `label_sets`.

    Returns
    -------
    rows : Chunks of CheckedRows
    totals : Totals
        What `CheckedRows.weights` needs.
    """
    rows = Chunks(
        client, client.compute(_delayed_rows(ranker, X, Y, sample_weight, without_unknown))
    )
    totals = rows.total(CheckedRows.totals, merge=Totals.merged)
    if totals.counts and not totals.largest:
        raise ValueError(NO_PAIR_COUNTS)
    if not totals.any_counts:
        raise ValueError(NO_ROW_COUNTS)
    ranker._form = "sparse" if totals.forms == {"sparse"} else "dense"
    return rows, totals


def _delayed_rows(
    ranker: Any, X: Any, Y: Any, sample_weight: Any, without_unknown: str | None
) -> list[Any]:
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
        n_labels=n_labels,
        weight=ranker.weight,
        finite="allow-nan" if ranker.accepts_missing_values else True,
        without_unknown=without_unknown,
        largest=ranker._largest_feature(dtype_of(X)),
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
    n_labels: int,
    weight: Weight,
    finite: Any,
    without_unknown: str | None,
    largest: float,
) -> CheckedRows:
    options = {"ensure_min_samples": 0, "ensure_all_finite": finite, "input_name": "X"}
    try:
        refuse_hidden(x, "X")
        X = canonical(check_array(x, accept_sparse="csr", dtype=dtype, **options))
        check_size(X, largest, "the ranker")
        labels = _labels(y, n_labels, without_unknown)
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
    return CheckedRows(X, labels, counted, raw, "sparse" if sparse.issparse(y) else "dense")


def _labels(y: Any, n_labels: int, without_unknown: str | None) -> LabelSets:
    if y.shape[0] == 0:  # as partitions of data frames may be
        return LabelSets(np.zeros(1, np.int64), np.empty(0, np.int32), n_labels)
    return label_sets(y, n_labels=n_labels, without_unknown=without_unknown)


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
