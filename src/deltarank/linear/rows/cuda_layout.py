"""How rows lie on a torch device: in blocks, dense ones centred and scaled."""

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from deltarank.core.caching import cached_property
from deltarank.core.labels import LabelSets
from deltarank.core.threads import row_blocks
from deltarank.linear.coordinates import Moments
from deltarank.linear.rows.cuda_products import tf32_products
from deltarank.linear.rows.tuning import DEVICE


class Block(NamedTuple):
    """Rows of one fold: features, dense or CSR with its transpose, weights and positive cells.

    Where there are any, unknown cells too.
    """

    x: Tensor
    transposed: Tensor | None
    weights: Tensor
    starts: NDArray[np.int64]
    rows: Tensor
    members: Tensor
    extra_costs: Tensor
    unknown: LabelSets | None
    fold: int


class Layout:
    """Data on their way to a device.

    Parameters
    ----------
    X : array, CSR matrix or tensor of shape (n, d)
    labels : LabelSets
    weights : ndarray of shape (n,)
        Of the rows; those of weight zero are left behind.
    costs : ndarray
        One per relevant cell, row after row.
    device : torch.device
    in_tables : bool
        Whether rows go into tables: then they stay whole, with those of weight zero, and no
        covariance is wanted.
    """

    def __init__(
        self,
        X: Any,
        labels: LabelSets,
        weights: NDArray[Any],
        costs: NDArray[Any],
        device: torch.device,
        *,
        in_tables: bool,
    ) -> None:
        self._in_tables = in_tables
        self.X, self._labels, self._costs = X, labels, costs
        self.device = device
        self.weights = weights
        self._rows = np.arange(len(weights)) if in_tables else np.flatnonzero(weights > 0)

    @cached_property
    def is_sparse(self) -> bool:
        """Whether rows stay sparse on the device."""
        return sparse.issparse(self.X) and self.X.nnz <= DEVICE.dense_above * np.prod(self.X.shape)

    @cached_property
    def moments(self) -> Moments:
        """Weighted moments of the features; without a covariance where there are too many."""
        return self._sparse_moments() if self.is_sparse else self._dense_moments()

    @property
    def center(self) -> Tensor:
        """Weighted mean of the features."""
        return self.moments.center

    @cached_property
    def scale(self) -> Tensor:
        """Unit of each feature: sparse ones stay as they are."""
        variance = self.moments.variance
        if self.is_sparse:
            return torch.ones_like(variance)
        return torch.where(variance > 0, variance, 1.0).sqrt()

    @cached_property
    def shift(self) -> Tensor:
        """What is to be taken off the blocks' features to centre them."""
        return self.center if self.is_sparse else torch.zeros_like(self.center)

    def _sparse_moments(self) -> Moments:
        weights = self.weights[self._rows]
        X = self.X[self._rows].astype(np.float64)
        center = weights @ X / weights.sum()
        squares = weights @ X.multiply(X).tocsr() / weights.sum()
        variance = self._tensor(np.maximum(squares - center**2, 0.0))
        return Moments(float(weights.sum()), self._tensor(center), variance, None)

    def _dense_moments(self) -> Moments:
        d, total = self.X.shape[1], float(self.weights.sum())
        number: dict[str, Any] = {"dtype": torch.float64, "device": self.device}
        center, square = torch.zeros(2, d, **number)
        gram = torch.zeros(d, d, **number)
        blocks = [self._rows[block] for block in row_blocks(len(self._rows), DEVICE.rows_per_block)]
        for rows in blocks:
            mass = self._tensor(self.weights[rows]).float()
            center += mass @ self._dense(rows)
        center /= total
        rotates = not self._in_tables and d <= DEVICE.most_rotated
        for rows in blocks:
            root = self._tensor(self.weights[rows]).sqrt().float()
            x = (self._dense(rows) - center.float()).mul_(root[:, None])
            if rotates:
                with tf32_products(self.device, True):
                    gram += x.T @ x
            square += (x * x).sum(dim=0)
        return Moments(total, center, square / total, gram / total if rotates else None)

    def blocks(self, folds: NDArray[Any]) -> list[Block]:
        """Return the rows of each fold, in blocks."""
        blocks = []
        for fold in range(int(folds.max()) + 1):
            fold_rows = self._rows[folds[self._rows] == fold]
            blocks += [
                self._block(fold_rows[b], fold)
                for b in row_blocks(len(fold_rows), DEVICE.rows_per_block)
            ]
        return blocks

    def _block(self, rows: NDArray[Any], fold: int) -> Block:
        labels = self._labels
        picked = labels if len(rows) == labels.n_rows else labels.take(rows)
        common = {
            "weights": self._tensor(self.weights[rows]).float(),
            "starts": picked.starts,
            "rows": self._tensor(picked.rows),
            "members": self._tensor(picked.members).long(),
            "extra_costs": self._tensor(self._costs_of(rows) - 1).float(),
            "unknown": picked.unknown,
            "fold": fold,
        }
        if self.is_sparse:
            x = sparse.csr_array(self.X[rows], dtype=np.float32)
            turned = _to_device(sparse.csr_array(x.T), self.device)
            return Block(_to_device(x, self.device), turned, **common)
        return Block(self.standardized(rows), None, **common)

    def _costs_of(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the costs of the relevant cells of some rows."""
        labels = self._labels
        if len(rows) == labels.n_rows:
            return self._costs
        shape = (labels.n_rows, labels.n_labels)
        matrix = sparse.csr_array((self._costs, labels.members, labels.starts), shape=shape)
        return np.asarray(matrix[rows].data)

    def standardized(self, rows: NDArray[Any]) -> Tensor:
        """Return rows in float32, centred and scaled."""
        return (self._dense(rows) - self.center.float()).mul_((1 / self.scale).float())

    def _dense(self, rows: NDArray[Any]) -> Tensor:
        """Return rows as they are, in float32; those of tables travel once."""
        if self._in_tables and len(rows) == len(self._rows):
            return self.whole
        return dense_rows(self.X, rows, self.device)

    @cached_property
    def whole(self) -> Tensor:
        """All rows as they are, in float32."""
        return dense_rows(self.X, self._rows, self.device)

    def _tensor(self, values: Any) -> Tensor:
        return torch.as_tensor(values).to(self.device)


def in_type(matrix: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a CSR matrix with its values as another type."""
    if matrix.dtype == dtype:
        return matrix
    parts = (matrix.crow_indices(), matrix.col_indices(), matrix.values().to(dtype))
    return _csr(parts, matrix.shape)


def _to_device(matrix: Any, device: torch.device) -> Tensor:
    parts = (torch.as_tensor(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    return _csr(parts, matrix.shape).to(device)


def _csr(parts: Iterable[Tensor], shape: tuple[int, ...]) -> Tensor:
    with torch.sparse.check_sparse_tensor_invariants(enable=False), warnings.catch_warnings():
        # Products are all that is asked of it, and those are tested.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(*parts, size=shape)


def dense_rows(X: Any, rows: NDArray[Any], device: torch.device) -> Tensor:
    """Return rows of an array, CSR matrix or tensor as they are, in float32 on a device."""
    consecutive = rows[-1] - rows[0] + 1 == len(rows)
    x = X[slice(rows[0], rows[-1] + 1) if consecutive else rows]
    if isinstance(x, Tensor):
        return x.to(device, torch.float32)
    x = x.toarray() if sparse.issparse(x) else np.ascontiguousarray(x)
    return torch.as_tensor(x.astype(np.float32, copy=False)).to(device)


def arrays_of(
    X: Any, labels: LabelSets, weights: NDArray[Any], costs: NDArray[Any]
) -> Iterator[NDArray[Any]]:
    """Yield all arrays that decide the objectives of a pass."""
    X = X.cpu().numpy() if isinstance(X, Tensor) else X
    yield from (X.indptr, X.indices, X.data) if sparse.issparse(X) else (X,)
    cells, is_relevant = labels.with_unknown()
    yield from (cells.starts, cells.members, is_relevant, weights, costs)
