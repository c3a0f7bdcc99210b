"""Where data may live: which engine a device name stands for, and scores on that device."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core.extras import install
from deltarank.core.labels import LabelSets
from deltarank.core.scores import check_finite

MISSING_TORCH = f"device= needs PyTorch: {install('gpu')}"
# Products of this many multiplications are not worth the way to a device and back.
SMALL_PRODUCT = 2**26
# Multiplications of a pass over the data (rows x features x labels) below which launching kernels
# takes longer than they do: at 4e8, mediamill is fitted, cross-validated and boosted several times
# faster by an H200 than by 16 cores.
WORTH_A_DEVICE = 1e8
# Cells of scores on the device at a time.
CELLS_PER_CHUNK = 2**27


def find_device(name: str) -> Any:
    """Return the torch device of "cuda", "cuda:1", ... or "auto"; None stands for our own kernels.

    "auto" is CUDA where there is PyTorch and a CUDA device, else None.
    """
    if name == "cpu":
        return None
    if name != "auto" and not str(name).startswith("cuda"):
        raise ValueError(f'device must be "cpu", "cuda", "cuda:<number>" or "auto"; got {name!r}')
    try:
        import torch
    except ImportError as error:
        if name == "auto":
            return None
        raise ImportError(MISSING_TORCH) from error
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        return torch.device("cuda") if n_devices else None
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f'device must be "cuda" or "cuda:<number>"; got {name!r}') from None
    if (device.index or 0) >= n_devices:
        raise RuntimeError(
            f"device={name!r} is not there: PyTorch sees {n_devices} CUDA devices; "
            'use device="auto" to take one where there is one, or device="cpu"'
        )
    return device


@contextmanager
def room_on_device(device: Any, what: str) -> Iterator[None]:
    """Say what a device had no room for, in place of torch's own words."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError:
        raise MemoryError(
            f'{device} has too little memory for {what}; free some, or use device="cpu"'
        ) from None


def fitting_device(name: str, n_rows: int, n_features: int, n_labels: int) -> Any:
    """Return the device to fit on; None, our own kernels, where "auto" would not pay."""
    pays = 1.0 * n_rows * n_features * n_labels >= WORTH_A_DEVICE
    return find_device(name) if pays or name != "auto" else None


def scoring_device(name: str, X: Any, coef: Any) -> Any:
    """Return the device to score rows on; None for little work, or for sparse coefficients."""
    small = X.shape[0] * X.shape[1] * coef.shape[0] < SMALL_PRODUCT
    if name == "cpu" or small or sparse.issparse(coef):
        return None
    return find_device(name)


def device_scores(X: Any, coef: NDArray[Any], intercept: NDArray[Any], device: Any) -> NDArray[Any]:
    """Return the scores (n, m), computed on a device."""
    return np.concatenate([scores.cpu().numpy() for scores in _chunks(X, coef, intercept, device)])


def device_ranking(
    X: Any, coef: NDArray[Any], intercept: NDArray[Any], top: int, device: Any
) -> NDArray[np.intp]:
    """Return the columns of the best scores (n, top), ties in column order; only these travel."""
    best: list[NDArray[Any]] = []
    for scores in _chunks(X, coef, intercept, device):
        if not bool(scores.isfinite().all()):
            check_finite(scores.cpu().numpy(), sum(len(rows) for rows in best))
        best.append(scores.sort(dim=1, descending=True, stable=True).indices[:, :top].cpu().numpy())
    return np.concatenate(best).astype(np.intp, copy=False)


def _chunks(X: Any, coef: NDArray[Any], intercept: NDArray[Any], device: Any) -> Any:
    import torch

    theta = torch.as_tensor(np.ascontiguousarray(coef.T, X.dtype)).to(device)
    offset = torch.as_tensor(intercept.astype(X.dtype)).to(device)
    size = max(1, CELLS_PER_CHUNK // len(coef))
    for begin in range(0, X.shape[0], size):
        rows = X[begin : begin + size]
        rows = rows.toarray() if sparse.issparse(rows) else np.ascontiguousarray(rows)
        with room_on_device(device, f"the scores of {len(rows)} rows and {len(coef)} labels"):
            scores = torch.addmm(offset, torch.as_tensor(rows).to(device), theta)
        yield scores


def cells_of(labels: LabelSets, device: Any) -> tuple[Any, Any]:
    """Return the row and the label of every listed cell: an index into a table (n, m)."""
    import torch

    starts, members = (torch.as_tensor(part).to(device) for part in (labels.starts, labels.members))
    return torch.repeat_interleave(starts.diff(), output_size=len(members)), members.long()
