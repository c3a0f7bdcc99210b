"""Matrix products on a device, as exact as is asked for: see `Precision`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from deltarank.linear.rows.tuning import DEVICE
from deltarank.linear.solvers.precision import Precision

# Clears the bits of a float32 that TF32 does not hold.
TF32_BITS = -(2**13)


class Factor(NamedTuple):
    """A matrix as the sum of numbers that TF32 holds exactly and a rest, where that is needed."""

    whole: Tensor
    high: Tensor
    low: Tensor | None

    @classmethod
    def of(cls, x: Tensor, precision: Precision, n_columns: int) -> "Factor":
        """Split a matrix if products of this precision, with this many columns, ask for it."""
        if precision == Precision.DOUBLE:
            wide = x.double()
            return cls(wide, wide, None)
        if precision == Precision.COARSE or n_columns <= DEVICE.narrow or not x.is_cuda:
            return cls(x, x, None)
        high = (x.view(torch.int32) & TF32_BITS).view(torch.float32)
        return cls(x, high, x - high)


def forward(x: Factor, coef: Tensor, offset: Tensor, precision: Precision) -> Tensor:
    """Return the scores x @ coef.T + offset (r, p).

    Terms of a score may nearly cancel, so fine ones may be off by more than their last digits:
    values to be trusted must be exact.
    """
    exact = precision >= Precision.EXACT or len(coef) <= DEVICE.narrow
    with tf32_products(x.whole.device, not exact):
        if exact or x.low is None:
            return torch.addmm(offset, x.whole, coef.T)
        theta = Factor.of(coef, precision, len(coef))
        product = torch.addmm(offset, x.low, theta.high.T)
        product.addmm_(x.high, theta.low.T)  # type: ignore[union-attr]
        return product.addmm_(x.high, theta.high.T)


def backward(x: Factor, cells: Tensor, precision: Precision) -> Tensor:
    """Return the gradient cells.T @ x (p, d).

    Exact ones of many columns are fine ones: residuals do not cancel within a product, and three
    products in TF32 take less than half the time of one in float32.
    """
    n_columns = cells.shape[1]
    with tf32_products(cells.device, n_columns > DEVICE.narrow):
        mass = Factor.of(cells, precision, n_columns)
        products = by_parts(mass.high, x.high)
        if x.low is None or mass.low is None:
            return products
        return products + by_parts(mass.low, x.high) + by_parts(mass.high, x.low)


def by_parts(left: Tensor, right: Tensor) -> Tensor:
    """Return left.T @ right, parts of the rows at the same time."""
    cells = left.shape[1] * right.shape[1]
    n_parts = max(1, min(DEVICE.most_parts, DEVICE.cells_of_parts // cells))
    n_rows = len(left) // n_parts * n_parts
    shape = (n_parts, n_rows // n_parts, -1)
    parts = torch.bmm(left[:n_rows].reshape(shape).transpose(1, 2), right[:n_rows].reshape(shape))
    total = parts.sum(dim=0)
    return total if n_rows == len(left) else total.addmm_(left[n_rows:].T, right[n_rows:])


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
