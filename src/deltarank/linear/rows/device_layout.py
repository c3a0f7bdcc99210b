"""How data lie on a torch device: rows in blocks, features centred, scaled and rotated."""

import warnings
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from deltarank.core.labels import LabelSets
from deltarank.core.threads import row_blocks
from deltarank.linear.rows.device_products import tf32_products
from deltarank.linear.rows.device_rows import dense_rows

ROWS_PER_BLOCK = 2**18
# Above this share of stored values a dense product is the quicker one.
DENSE_ABOVE = 0.01
# Beyond this eigenvectors cost more than the passes they save.
MAX_ROTATED_FEATURES = 2048


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


class Places(NamedTuple):
    """Map between the solver's variables and the features: see `linear.rows.matrices.Coordinates`.

    The blocks hold features less `shift`, over `scale`.
    """

    center: Tensor
    shift: Tensor
    scale: Tensor
    basis: Tensor | None
    spectrum: Tensor

    def to_coef(self, variables: Tensor) -> Tensor:
        """Return coefficients of the features, shape (p, d)."""
        return variables if self.basis is None else variables @ self.basis.T

    def to_variables(self, coef: Tensor) -> Tensor:
        """Return the variables of coefficients; also turns gradients."""
        return coef if self.basis is None else coef @ self.basis

    def linear(self, points: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return coefficients of the features (p, d), those of the blocks' columns, and offsets."""
        coef = self.to_coef(points[:, :-1])
        return coef, coef * self.scale, points[:, -1] - coef @ (self.center - self.shift)

    def from_blocks(self, x: Tensor) -> Tensor:
        """Return rows of a block as the solver's variables see them (r, d + 1), in float64."""
        z = self.to_variables(x.double() * self.scale - (self.center - self.shift))
        return torch.column_stack([z, torch.ones_like(z[:, 0])])


class Layout:
    """Data on their way to a device.

    Parameters
    ----------
    X : array, CSR matrix or tensor of shape (n, d)
    labels : LabelSets
    weights, costs : ndarrays of shape (n,)
        Of the rows, and of their relevant cells; rows of weight zero are left behind.
    device : torch.device
    """

    def __init__(
        self,
        X: Any,
        labels: LabelSets,
        weights: NDArray[Any],
        costs: NDArray[Any],
        device: torch.device,
    ) -> None:
        self.X, self._labels, self._weights, self._costs = X, labels, weights, costs
        self._device, self._rows = device, np.flatnonzero(weights > 0)

    @cached_property
    def _is_sparse(self) -> bool:
        return sparse.issparse(self.X) and self.X.nnz <= DENSE_ABOVE * np.prod(self.X.shape)

    @cached_property
    def places(self) -> Places:
        """Centre, scale and eigenvectors of the weighted features."""
        return self._sparse_places() if self._is_sparse else self._dense_places()

    def _sparse_places(self) -> Places:
        weights = self._weights[self._rows]
        X = self.X[self._rows].astype(np.float64)
        center = weights @ X / weights.sum()
        squares = weights @ X.multiply(X).tocsr() / weights.sum()
        variance = self._tensor(np.maximum(squares - center**2, 0.0))
        center = self._tensor(center)
        return Places(center, torch.zeros_like(center), torch.ones_like(center), None, variance)

    def _dense_places(self) -> Places:
        d, total = self.X.shape[1], float(self._weights.sum())
        number: dict[str, Any] = {"dtype": torch.float64, "device": self._device}
        center, square = torch.zeros(2, d, **number)
        gram = torch.zeros(d, d, **number)
        blocks = [self._rows[block] for block in row_blocks(len(self._rows), ROWS_PER_BLOCK)]
        for rows in blocks:
            mass = self._tensor(self._weights[rows]).float()
            center += mass @ dense_rows(self.X, rows, self._device)
        center /= total
        rotates = d <= MAX_ROTATED_FEATURES
        for rows in blocks:
            root = self._tensor(self._weights[rows]).sqrt().float()
            x = (dense_rows(self.X, rows, self._device) - center.float()).mul_(root[:, None])
            if rotates:
                with tf32_products(self._device, True):
                    gram += x.T @ x
            square += (x * x).sum(dim=0)
        variance = square / total
        scale = torch.where(variance > 0, variance, 1.0).sqrt()
        if not rotates:
            return Places(center, center, scale, None, variance)
        spectrum, basis = torch.linalg.eigh(gram / total)
        return Places(center, center, scale, basis, spectrum.clamp(min=0))

    def blocks(self, folds: NDArray[Any]) -> list[Block]:
        """Return the rows of each fold, in blocks."""
        found = []
        for fold in range(int(folds.max()) + 1):
            mine = self._rows[folds[self._rows] == fold]
            found += [self._block(mine[b], fold) for b in row_blocks(len(mine), ROWS_PER_BLOCK)]
        return found

    def _block(self, rows: NDArray[Any], fold: int) -> Block:
        labels = self._labels
        picked = labels if len(rows) == labels.n_rows else labels.take(rows)
        common = {
            "weights": self._tensor(self._weights[rows]).float(),
            "starts": picked.starts,
            "rows": self._tensor(picked.rows),
            "members": self._tensor(picked.members).long(),
            "extra_costs": self._tensor((self._costs[rows] - 1)[picked.rows]).float(),
            "unknown": picked.unknown,
            "fold": fold,
        }
        if self._is_sparse:
            x = sparse.csr_array(self.X[rows], dtype=np.float32)
            turned = _to_device(sparse.csr_array(x.T), self._device)
            return Block(_to_device(x, self._device), turned, **common)
        x = dense_rows(self.X, rows, self._device) - self.places.shift.float()
        return Block(x.mul_((1 / self.places.scale).float()), None, **common)

    def _tensor(self, values: Any) -> Tensor:
        return torch.as_tensor(values).to(self._device)


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
