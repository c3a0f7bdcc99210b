"""Matrix products on a device: coarse ones in TF32, and exact ones that take little longer."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

# Clears the bits of a float32 that TF32 does not hold.
TF32_BITS = -(2**13)
# Parts of the rows that are multiplied side by side.
ROW_PARTS = 8


def split(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return numbers that TF32 holds exactly, and the rest."""
    high = (x.view(torch.int32) & TF32_BITS).view(torch.float32)
    return high, x - high


def forward(x: Tensor, coef: Tensor, offset: Tensor, coarse: bool) -> Tensor:
    """Return the scores x @ coef.T + offset (r, p), coarsely in TF32 or in float32.

    Terms of a score may nearly cancel, and tensor cores cut sums off: values need float32.
    """
    with tf32_products(x.device, coarse):
        return torch.addmm(offset, x, coef.T)


def backward(x: Tensor, cells: Tensor, coarse: bool) -> Tensor:
    """Return the gradient cells.T @ x (p, d), coarsely or about as exact as in float32.

    Three products in TF32 take less than half the time of one in float32.
    """
    with tf32_products(x.device, True):
        if coarse:
            return by_parts(cells, x)
        (high, low), (first, second) = split(x), split(cells)
        return by_parts(first, high) + by_parts(second, high) + by_parts(first, low)


def by_parts(left: Tensor, right: Tensor) -> Tensor:
    """Return left.T @ right, parts of the rows at the same time: one product has too few tiles."""
    n_rows = len(left) // ROW_PARTS * ROW_PARTS
    shape = (ROW_PARTS, n_rows // ROW_PARTS, -1)
    parts = torch.bmm(left[:n_rows].reshape(shape).transpose(1, 2), right[:n_rows].reshape(shape))
    found = parts.sum(dim=0)
    return found if n_rows == len(left) else found.addmm_(left[n_rows:].T, right[n_rows:])


@contextmanager
def tf32_products(device: torch.device, allowed: bool) -> Iterator[None]:
    """Let matrix products of float32 cut their factors to TF32, or not; sums stay float32."""
    if device.type != "cuda":
        yield
        return
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
