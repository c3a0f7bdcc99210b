"""One pass over rows on the workers of a cluster: coefficients go there, gradients come back.

A worker's chunk is a `LocalPass` over its rows, without rotation: the client turns coefficients and
gradients, so the chunk needs neither the eigenvectors nor the penalty.
"""

import hashlib
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from deltarank.core import threads
from deltarank.core.blas import one_blas_thread
from deltarank.core.labels import LabelSets
from deltarank.core.workers import Chunks, added
from deltarank.linear.rows.curvature import SampledHessian
from deltarank.linear.rows.dense import DenseMatrix
from deltarank.linear.rows.local import LocalPass
from deltarank.linear.rows.matrices import Array, Cells, Frame, Moments, Problem, merged_moments
from deltarank.linear.rows.sparse import SparseMatrix


class Rows:
    """Checked rows of a chunk: features, labels, weights and what their positive cells cost."""

    def __init__(self, X: Any, labels: LabelSets, weights: Array, cost: float | Array) -> None:
        self.X, self.labels, self.weights, self.cost = X, labels, weights, cost

    @property
    def matrix(self) -> type[DenseMatrix] | type[SparseMatrix]:
        """The kind of matrix the features are."""
        return SparseMatrix if sparse.issparse(self.X) else DenseMatrix

    def summary(self) -> "Summary":
        """Return what the client must know of the chunk."""
        counted = np.flatnonzero(self.weights)
        labels = self.labels
        used = (self.weights > 0)[labels.rows]
        return Summary(
            {self.matrix},
            self.matrix.moments(self.X, counted, self.weights),
            np.bincount(labels.members, weights=used, minlength=labels.n_labels),
            len(counted),
            len(self.weights),
            self.X.nnz if sparse.issparse(self.X) else self.X.size,
            bool(np.any(self.cost != 1)),
        )

    def __sizeof__(self) -> int:
        """Tell Dask how large the rows are, so that they go to disk when memory is short."""
        X = self.X
        parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
        return sum(part.nbytes for part in (*parts, *self.labels[:2], self.weights))


class Summary(NamedTuple):
    """What some chunks hold: kinds of matrix, moments, rows a label, and numbers of them."""

    kinds: set[Any]
    moments: Moments
    positives: Array
    n_counted: int
    n_rows: int
    n_stored: int
    costly: bool

    @staticmethod
    def merged(parts: "list[Summary]") -> "Summary":
        """Return the summary of all chunks."""
        return Summary(
            set().union(*(part.kinds for part in parts)),
            merged_moments([part.moments for part in parts]),
            np.sum([part.positives for part in parts], axis=0),
            sum(part.n_counted for part in parts),
            sum(part.n_rows for part in parts),
            sum(part.n_stored for part in parts),
            any(part.costly for part in parts),
        )


class Chunk:
    """A worker's pass over its rows, kept there from one pass to the next."""

    def __init__(self, rows: Rows, moments: Moments) -> None:
        matrix = rows.matrix(rows.X, np.empty(0, np.int64), rows.weights, Frame.of(moments))
        self.data = LocalPass(matrix, rows.labels, rows.weights, C=1.0, positive_cost=rows.cost)
        self._n_bytes = rows.__sizeof__()

    def __sizeof__(self) -> int:
        """Tell Dask how large the chunk is: see `Rows`."""
        return self._n_bytes

    def losses(self, problem: Problem, problems: Array) -> tuple[Array, Array]:
        """Return sums and the kernels' gradient over the rows of this chunk."""
        matrix, (part,) = self.data.matrix, self.data.parts
        cells = self._cells(problem, problems)
        pieces = self.data.chunks(part)
        with one_blas_thread():
            results = threads.run([partial(matrix.chunk, rows, cells) for rows in pieces])
        sums, gradient = added(results)
        return sums, gradient

    def hessians(
        self, problem: Problem, problems: Array, spacing: Array, n_draws: int
    ) -> tuple[Array]:
        """Return Hessians of the losses from rows of this chunk, sampled by their curvature."""
        matrix, (part,) = self.data.matrix, self.data.parts
        cells = self._cells(problem, problems)
        with one_blas_thread():
            found = matrix.sample(part, cells, spacing, min(len(part), 2 * n_draws))
            tasks = [
                partial(matrix.hessian, rows, times * each)
                for (rows, times), each in zip(found, spacing, strict=True)
            ]
            return (np.array(threads.run(tasks)),)

    def _cells(self, problem: Problem, problems: Array) -> Cells:
        data = self.data
        return data.kernel_cells(problem, problems)

    def digest(self) -> tuple[int]:
        """Return a number that other rows would hardly have; those of all chunks add up."""
        digest = hashlib.blake2b(digest_size=16)
        for array in self.data.arrays():
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return (int.from_bytes(digest.digest(), "big"),)

    def label_sums(self, problems: Array, costly: bool) -> tuple[Array, Array, Array]:
        """Return sums of each problem's positives: see `LocalPass.label_sums`."""
        return self.data.label_sums(problems, costly=costly)


class DistributedPass(LocalPass):
    """The objectives of `LocalPass` over rows on a cluster.

    Here stands a matrix of no rows, which knows the coordinates.

    Parameters
    ----------
    rows : Chunks
        Of `Rows`.
    n_labels : int
    dtype : dtype
        Of the features.
    C, penalize_intercept
        As in `LocalPass`.
    """

    engine = "distributed"

    def __init__(
        self,
        rows: Chunks,
        n_labels: int,
        *,
        dtype: Any,
        C: float,
        penalize_intercept: bool = False,
    ) -> None:
        self.summary = rows.total(Rows.summary, merge=Summary.merged)
        matrix = _without_rows(self.summary, dtype)
        labels = LabelSets(np.zeros(1, np.int64), np.empty(0, np.int32), n_labels)
        options: dict[str, Any] = {"C": C, "penalize_intercept": penalize_intercept}
        super().__init__(matrix, labels, np.empty(0), **options)
        # Rotation stays here.
        self._chunks = rows.map(Chunk, self.summary.moments._replace(covariance=None))

    @property
    def n_rows(self) -> int:
        """Number of rows that count."""
        return self.summary.n_counted

    @property
    def positives_cost_more(self) -> bool:
        """Whether any positive cell costs other than one."""
        return self.summary.costly

    def arrays(self) -> Iterator[Array]:
        """Return something short that other data would hardly have."""
        (digest,) = self._chunks.total(Chunk.digest, merge=added)
        yield np.frombuffer(str(digest).encode(), np.uint8)

    def frequencies(self) -> Array:
        """Return how many rows are positive for each label."""
        return self.summary.positives

    def label_sums(self, problems: Array, *, costly: bool) -> tuple[Array, Array, Array]:
        """Return each problem's total weight, positive weight and sum of positives."""
        total, positive, sums = self._chunks.total(Chunk.label_sums, problems, costly, merge=added)
        return total, positive, sums

    def _losses(self, coef: Array, offset: Array, problems: Array) -> tuple[Array, Array]:
        problem = self.matrix.problem(coef, offset)
        sums, gradient = self._chunks.total(Chunk.losses, problem, problems, merge=added)
        return sums, self.matrix.total([gradient])

    def hessians(self, points: Array, problems: Array, spacing: Array, n_draws: int) -> Array:
        """Return the losses' Hessians, shape (p, v, v), from rows sampled on every worker."""
        places = self.matrix.coordinates
        problem = self.matrix.problem(places.to_coef(points[:, :-1]), points[:, -1])
        shared = (problem, problems, spacing, n_draws)
        (found,) = self._chunks.total(Chunk.hessians, *shared, merge=added)
        return np.array([places.turned(hessian) for hessian in found])


class DistributedHessian(SampledHessian):
    """Hessians of a pass over a cluster; of samples only their sums travel."""

    _data: DistributedPass

    def _losses(self, points: Array, problems: Array, spacing: Array, left_out: Array) -> Array:
        return self._data.hessians(points, problems, spacing, self._n_draws)


def _without_rows(summary: Summary, dtype: Any) -> DenseMatrix | SparseMatrix:
    """Return a matrix that knows the coordinates of all rows and holds none."""
    if len(summary.kinds) > 1:
        raise ValueError("X must have chunks that are all dense or all sparse; got both")
    (kind,) = summary.kinds
    empty: Any = np.empty((0, len(summary.moments.center)), dtype)
    if kind is SparseMatrix:
        empty = sparse.csr_array(empty)
    matrix = kind(empty, np.empty(0, np.int64), np.empty(0), Frame.of(summary.moments))
    matrix.flops_per_score = kind.flops(summary.n_stored / summary.n_rows)
    return matrix
