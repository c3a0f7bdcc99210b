"""Rows on the workers of a cluster: coefficients go there, sums come back.

A worker's chunk is `LocalRows` of its own in the units of all rows; the client turns coefficients
and gradients, so a chunk needs neither the eigenvectors nor the penalty.
"""

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core.blas import one_blas_thread
from deltarank.core.labels import LabelSets
from deltarank.core.losses import LOSSES, Loss
from deltarank.core.splits import LabelStratifiedKFold
from deltarank.core.workers import Chunks, added
from deltarank.linear.coefficients import linear_scores
from deltarank.linear.coordinates import Moments
from deltarank.linear.rows.local import LocalRows, matrix_kind
from deltarank.linear.rows.numpy_place import MatrixPlace
from deltarank.linear.rows.protocol import Sums
from deltarank.linear.solvers.precision import Precision
from deltarank.metrics import StreamingMetric

Array = NDArray[Any]


class Folds(NamedTuple):
    """How every chunk spreads its own rows over folds, evenly by label."""

    n_folds: int
    seed: int


class RowChunk:
    """Checked rows of a chunk: features, labels, weights and what their relevant cells cost."""

    def __init__(
        self,
        X: Any,
        labels: LabelSets,
        weights: Array,
        cost: float | Array,
        counts: Array,
        label_cost: float | Array = 1.0,
    ) -> None:
        self.X, self.labels, self.weights = X, labels, weights
        self.cost, self.label_cost = cost, label_cost
        # How often each row counts, before w(y): what metrics weigh rows by.
        self.counts = counts

    def summary(self) -> "Summary":
        """Return what the client must know of the chunk."""
        counted, labels = np.flatnonzero(self.weights), self.labels
        listed = [labels] if labels.unknown is None else [labels, labels.unknown]
        rows = [
            np.bincount(cells.members, (self.weights > 0)[cells.rows], minlength=labels.n_labels)
            for cells in listed
        ]
        kind = matrix_kind(self.X)
        return Summary(
            {kind},
            kind.moments(self.X, counted, self.weights),
            rows[0],
            rows[1] if len(rows) > 1 else np.zeros_like(rows[0]),
            len(counted),
            len(self.weights),
            self.X.nnz if sparse.issparse(self.X) else self.X.size,
            bool(np.any(self.cost != 1) or np.any(self.label_cost != 1)),
            labels.unknown is not None,
        )

    def __sizeof__(self) -> int:
        """Tell Dask how large the rows are, so that they go to disk when memory is short."""
        X = self.X
        parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
        return sum(part.nbytes for part in (*parts, *self.labels[:2], self.weights))

    def placed(self, moments: Moments, loss: Loss) -> "Chunk":
        """Return the chunk in the units of all rows."""
        return Chunk(self, moments, loss)


class Summary(NamedTuple):
    """What some chunks hold: kinds of matrix, moments, rows of each label, and numbers of them."""

    kinds: set[Any]
    moments: Moments
    relevant: Array
    unknown: Array
    n_counted: int
    n_rows: int
    n_stored: int
    has_costs: bool
    has_unknown: bool

    @staticmethod
    def merged(parts: "list[Summary]") -> "Summary":
        """Return the summary of all chunks."""
        kinds, moments, *others = zip(*parts, strict=True)
        numbers = [sum(values[1:], start=values[0]) for values in others[:5]]
        flags = [any(values) for values in others[5:]]
        return Summary(set().union(*kinds), Moments.merged(list(moments)), *numbers, *flags)


class Chunk:
    """A worker's rows, kept there from one pass to the next."""

    def __init__(self, rows: RowChunk, moments: Moments, loss: Loss) -> None:
        self.rows = LocalRows(
            rows.X,
            rows.labels,
            rows.weights,
            positive_cost=rows.cost,
            label_cost=rows.label_cost,
            loss=loss,
            moments=moments,
        )
        self._counts, self._n_bytes = rows.counts, rows.__sizeof__()
        self._folds = np.zeros(len(rows.weights), np.int64)

    def __sizeof__(self) -> int:
        """Tell Dask how large the chunk is: see `RowChunk`."""
        return self._n_bytes

    def with_folds(self, folds: Folds) -> "Chunk":
        """Return the chunk with folds held out."""
        other = copy.copy(self)
        n_rows = len(self._folds)
        if n_rows >= folds.n_folds:
            other._folds = np.empty_like(self._folds)
            splitter = LabelStratifiedKFold(folds.n_folds, random_state=folds.seed)
            rows = splitter.split(np.empty((n_rows, 0)), self.rows.labels.to_csr())
            for fold, (_, held_out) in enumerate(rows):
                other._folds[held_out] = fold
        other.rows = self.rows.with_folds(other._folds, folds.n_folds)
        return other

    def counted(self) -> tuple[Array]:
        """Return the numbers of rows of each problem's cells."""
        return (self.rows.counts(),)

    def measured(
        self, metric: StreamingMetric, coef: Array, intercept: Array
    ) -> list[StreamingMetric]:
        """Return a metric of the rows of each fold, by coefficients fitted without them."""
        n_folds, labels, metrics = self.rows.n_folds, self.rows.labels, []
        for fold in range(n_folds):
            rows, without_fold = np.flatnonzero(self._folds == fold), slice(fold, None, n_folds)
            measured = copy.deepcopy(metric)
            if len(rows):
                scores = linear_scores(
                    self.rows.X[rows], coef[without_fold], intercept[without_fold]
                )
                measured.update(labels.take(rows).to_matrix(), scores, self._counts[rows])
            metrics.append(measured)
        return metrics

    def masses(self, problems: Array) -> tuple[Array]:
        """Return the weights of each problem's cells."""
        return (self.rows.masses(problems),)

    def label_sums(self, problems: Array, cells: str) -> tuple[Array]:
        """Return the sums of the rows of each problem's cells."""
        return (self.rows.label_sums(problems, cells),)

    def evaluate(self, coef: Array, offset: Array, problems: Array) -> Sums:
        """Return the sums of problems over the rows of this chunk."""
        return self.rows.evaluate(coef, offset, problems)

    def hessians(self, *given: Any) -> tuple[Array]:
        """Return Hessians of the losses from rows of this chunk, sampled by their curvature."""
        with one_blas_thread():
            return (np.array(self.rows.sampled_hessians(*given)),)

    def digest(self) -> tuple[int]:
        """Return a number that other rows would hardly have; those of all chunks add up."""
        return (int.from_bytes(self.rows.digest(), "big"),)


class ClusterRows(MatrixPlace):
    """Rows on the workers of a cluster; see `linear.rows.protocol.Rows`.

    Parameters
    ----------
    rows : Chunks
        Of `RowChunk`.
    n_labels : int
    dtype : dtype
        Of the features.
    loss : Loss
    """

    # Every single block of labels keeps all workers busy.
    in_jobs = takes_newton = False
    n_folds = 1

    def __init__(
        self, rows: Chunks, n_labels: int, *, dtype: Any, loss: Loss = LOSSES["logistic"]
    ) -> None:
        self.summary = rows.total(RowChunk.summary, merge=Summary.merged)
        if len(self.summary.kinds) > 1:
            raise ValueError("X must have chunks that are all dense or all sparse; got both")
        (kind,) = self.summary.kinds
        moments = self.summary.moments
        self.n_labels, self.n_features, self.dtype = n_labels, len(moments.center), dtype
        self.loss, self.n_rows = loss, self.summary.n_counted
        self.has_costs, self.has_unknown = self.summary.has_costs, self.summary.has_unknown
        # A matrix of no rows knows the units, and what a pass would cost.
        empty: Any = np.empty((0, self.n_features), dtype)
        self.matrix = kind(kind.empty_like(empty), moments)
        self.matrix.flops_per_score = kind.flops(self.summary.n_stored / self.summary.n_rows)
        self.center, self.scale = self.matrix.center, self.matrix.scale
        # Rotation stays here.
        self._chunks = rows.map(RowChunk.placed, moments._replace(covariance=None), loss)

    @property
    def frequencies(self) -> Array:
        """How many rows hold each label."""
        return self.summary.relevant

    def moments(self) -> Moments:
        """Return the moments of the features as they were given."""
        return self.summary.moments

    def with_folds(self, folds: Folds) -> "ClusterRows":
        """Return the same rows with folds held out; every chunk spreads its own rows."""
        other = copy.copy(self)
        other.n_folds = folds.n_folds
        other._chunks = self._chunks.map(Chunk.with_folds, folds)
        return other

    def masses(self, problems: Array) -> Array:
        """Return the weights (3, p) of relevant cells, of their costs, and of the other cells."""
        return self._chunks.total(Chunk.masses, problems, merge=added)[0]

    def label_sums(self, problems: Array, cells: str) -> Array:
        """Return the sums (p, d) of the rows of "relevant", "costly" or "unknown" cells."""
        return self._chunks.total(Chunk.label_sums, problems, cells, merge=added)[0]

    def evaluate(
        self, coef: Array, offset: Array, problems: Array, precision: Precision = Precision.EXACT
    ) -> Sums:
        """Return the sums of the given problems; coefficients travel as float32."""
        shared = (coef.astype(np.float32), offset, problems)
        return Sums(*self._chunks.total(Chunk.evaluate, *shared, merge=added))

    def hessians(
        self, coef: Array, offset: Array, problems: Array, curvatures: Array, left_out: Array
    ) -> list[Array]:
        """Return Hessians of the losses; of the rows sampled on workers only their sums travel."""
        shared = (coef, offset, problems, curvatures / self.n_draws, self.n_draws, left_out)
        return list(self._chunks.total(Chunk.hessians, *shared, merge=added)[0])

    def counts(self) -> Array:
        """Return the numbers (3, p) of rows that count: relevant, the same again, and others."""
        return self._chunks.total(Chunk.counted, merge=added)[0]

    def measured(self, metric: StreamingMetric, coef: Array, intercept: Array) -> list[float]:
        """Return a metric of each fold's rows, by coefficients (p, d) fitted without them."""
        shared = (metric, coef, intercept)
        metrics = self._chunks.total(Chunk.measured, *shared, merge=_merged_metrics)
        return [metric.result() for metric in metrics]

    def digest(self) -> bytes:
        """Return something short that other rows would hardly have."""
        return str(self._chunks.total(Chunk.digest, merge=added)[0]).encode()


def _merged_metrics(parts: list[list[StreamingMetric]]) -> list[StreamingMetric]:
    first, *others = parts
    for other in others:
        for metric, more in zip(first, other, strict=True):
            metric.merge(more)
    return first
