"""Rows as tables on a device, for problems of few variables: all Hessians at every step."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn import functional

from deltarank.core.caching import cached_property
from deltarank.core.devices import cells_of
from deltarank.core.labels import LabelSets
from deltarank.core.losses import Loss
from deltarank.core.tensors import on_tensors
from deltarank.linear.rows.cuda_layout import Layout
from deltarank.linear.rows.cuda_products import by_parts, tf32_products
from deltarank.linear.rows.tuning import DEVICE

# Columns of x come in multiples of this: see `linear.kernels.device_cells`. Rows come in equal
# parts.
WIDTH = 128


def are_small(X: Any, n_problems: int, device: torch.device) -> bool:
    """Tell whether Newton's method is the quickest on a device, and its tables have room there."""
    if sparse.issparse(X):
        return False
    n_rows, n_variables = X.shape[0], X.shape[1] + 1
    cells = n_rows * max(n_problems, n_variables)
    room = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else np.inf
    work = 2.0 * n_rows * n_problems * n_variables**2
    return (
        work <= DEVICE.largest_work
        and cells <= DEVICE.largest_table
        and DEVICE.bytes_per_cell * cells <= room
    )


class DeviceTables:
    """Values, gradients and Hessians of all problems; cells are float32, sums float64.

    Parameters
    ----------
    layout : Layout
    labels : LabelSets
    costs : ndarray
        One per relevant cell, row after row.
    folds : tuple (ndarray of int, shape (n,); int)
        In which fold each row is held out, and how many there are.
    loss : Loss
    """

    def __init__(
        self,
        layout: Layout,
        labels: LabelSets,
        costs: NDArray[Any],
        folds: tuple[NDArray[Any], int],
        loss: Loss,
    ) -> None:
        self._device, self._loss = layout.device, loss
        n, d = layout.X.shape
        self._more_rows = -n % DEVICE.most_parts
        self._width = d + 1
        # Variables that only fill the width up have zeros.
        self._x = torch.zeros(
            n + self._more_rows, -(-(d + 1) // WIDTH) * WIDTH, device=self._device
        )
        # Spread that is only rounding of a constant feature is none.
        real = layout.scale > 1e-6 * layout.center.abs()
        centred = layout.whole - layout.center.float()
        torch.mul(centred, (real / layout.scale).float(), out=self._x[:n, :d])
        self._x[:n, d] = 1.0
        self._costs, self._targets = self._cells(labels, layout.weights, costs)
        if folds[1] > 1:
            self._hold_out(*folds)

    def _tensor(self, values: Any) -> Tensor:
        return torch.as_tensor(values).to(self._device)

    def _cells(
        self, labels: LabelSets, weights: NDArray[Any], positive_cost: NDArray[Any]
    ) -> tuple[Tensor, Tensor]:
        """Return what each cell counts, and what it counts if its label is relevant (n, m)."""
        mass = functional.pad(self._tensor(weights).float(), (0, self._more_rows))
        costs = mass[:, None].repeat(1, labels.n_labels)
        relevant = cells_of(labels, self._device)
        if np.any(positive_cost != 1):
            costs[relevant] *= self._tensor(positive_cost.astype(np.float32))
        if labels.unknown is not None:
            costs[cells_of(labels.unknown, self._device)] = 0.0
        targets = torch.zeros_like(costs)
        targets[relevant] = costs[relevant]
        return costs, targets

    def _hold_out(self, folds: NDArray[Any], n_folds: int) -> None:
        """Let problem l * n_folds + f be label l without fold f."""
        fold = functional.pad(self._tensor(folds), (0, self._more_rows))[:, None]
        outside = (fold != torch.arange(n_folds, device=self._device)).float()
        outside = outside.repeat(1, self._costs.shape[1])
        self._costs = self._costs.repeat_interleave(n_folds, dim=1).mul_(outside)
        self._targets = self._targets.repeat_interleave(n_folds, dim=1).mul_(outside)

    def masses(self) -> Tensor:
        """Return the weights (3, p) of relevant cells, of their costs, and of the other cells.

        Costs stand for weights of relevant cells too, which only tell how far a first step goes.
        """
        relevant = self._targets.sum(dim=0, dtype=torch.float64)
        other = (self._costs.sum(dim=0, dtype=torch.float64) - relevant).clamp(min=0)
        return torch.stack([relevant, relevant, other])

    def derivatives(self, points: Tensor, careful: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Evaluate all problems, each at its own coefficients and offset (p, d + 1).

        Unless `careful`, Hessians are right to two or three digits.
        """
        width = self._width
        wide = functional.pad(points.float(), (0, self._x.shape[1] - width))
        with tf32_products(self._device, False):
            cells = self._x @ wide.T
            value, curvatures = self._turn(cells)
            # The longest work first: the device works on it while the rest is sent.
            hessian = self._hessians(curvatures, careful)
            gradient = by_parts(cells, self._x)
        return value, gradient[:, :width], hessian[:, :width, :width]

    def _turn(self, cells: Tensor) -> tuple[Tensor, Tensor]:
        """Turn scores into residuals, in place; return losses (p,) and curvatures (n, p)."""
        if self._loss.fused != "logistic":
            signs = (self._targets > 0).double() * 2 - 1
            margins = signs * cells
            value, slope = on_tensors(self._loss.value_and_derivative, margins)
            curvatures = self._costs * on_tensors(self._loss.curvature, margins)
            cells.copy_(self._costs * signs * slope)
            return (self._costs * value).sum(dim=0), curvatures.float()
        if cells.is_cuda:
            from deltarank.linear.kernels.device_cells import turn_weighted

            turned: tuple[Tensor, Tensor] = turn_weighted(cells, self._costs, self._targets)
            return turned
        losses = self._costs * functional.softplus(cells) - self._targets * cells
        chances = cells.sigmoid()
        torch.sub(self._costs * chances, self._targets, out=cells)
        curvatures = self._costs * chances * (1 - chances)
        return losses.sum(dim=0, dtype=torch.float64), curvatures

    def _hessians(self, curvatures: Tensor, careful: bool) -> Tensor:
        """Return ``sum_i c_ip x_i x_i'`` for every problem p, in float32."""
        if curvatures.is_cuda:
            from deltarank.linear.kernels.device_cells import weighted_products

            products: Tensor = weighted_products(
                curvatures, *(self._six_digits if careful else self._two_digits)
            )
            return products
        return torch.stack([(self._x.T * c) @ self._x for c in curvatures.T])

    @cached_property
    def _two_digits(self) -> tuple[Tensor]:
        """The features as quick Hessians take them."""
        return (self._x.bfloat16(),)

    @cached_property
    def _six_digits(self) -> tuple[Tensor, Tensor]:
        """The features as careful Hessians take them: most fits never ask for it."""
        high = self._x.half()
        return high, (self._x - high.float()).half()
