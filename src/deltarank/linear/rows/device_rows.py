"""Rows of data on their way to a device."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from deltarank.core.labels import LabelSets


def dense_rows(X: Any, rows: NDArray[Any], device: torch.device) -> Tensor:
    """Return rows of an array, CSR matrix or tensor as they are, in float32 on a device."""
    consecutive = rows[-1] - rows[0] + 1 == len(rows)
    x = X[slice(rows[0], rows[-1] + 1) if consecutive else rows]
    if isinstance(x, Tensor):
        return x.to(device, torch.float32)
    x = x.toarray() if sparse.issparse(x) else np.ascontiguousarray(x)
    return torch.as_tensor(x.astype(np.float32, copy=False)).to(device)


def arrays_of(
    X: Any, labels: LabelSets, weights: NDArray[Any], costs: Any
) -> Iterator[NDArray[Any]]:
    """Yield all arrays that decide the objectives of a pass."""
    X = X.cpu().numpy() if isinstance(X, Tensor) else X
    yield from (X.indptr, X.indices, X.data) if sparse.issparse(X) else (X,)
    cells, is_relevant = labels.with_unknown()
    yield from (cells.starts, cells.members, is_relevant, weights)
    yield np.broadcast_to(costs, len(weights)).astype(np.float64)
