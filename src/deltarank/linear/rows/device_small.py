"""`SmallPass` on a torch device, where data may be large that are small for it."""

import copy
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn import functional

from deltarank.core.devices import cells_of
from deltarank.core.labels import LabelSets
from deltarank.linear.rows.device_products import MOST_PARTS, by_parts, tf32_products
from deltarank.linear.rows.device_rows import arrays_of, dense_rows
from deltarank.linear.rows.small import LARGEST_LOG_ODDS
from deltarank.linear.solvers.device_newton import newton_steps
from deltarank.linear.solvers.solution import Solution

# Hessians of so many multiplications are worth having at every step, for tables of so many cells.
LARGEST_WORK, LARGEST_TABLE = 2e12, 2**26
# Of a table, with its copies for some folds and what is made of it in a step.
BYTES_PER_CELL = 100
# Columns of x come in such numbers: see `linear.kernels.device_cells`. Rows come in equal parts.
WIDTH = 128


def is_small(X: Any, n_problems: int, device: torch.device) -> bool:
    """Tell whether Newton's method is the quickest on a device, and its tables have room there."""
    if sparse.issparse(X):
        return False
    n_rows, n_variables = X.shape[0], X.shape[1] + 1
    cells = n_rows * max(n_problems, n_variables)
    room = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else np.inf
    work = 2.0 * n_rows * n_problems * n_variables**2
    return work <= LARGEST_WORK and cells <= LARGEST_TABLE and BYTES_PER_CELL * cells <= room


class DeviceDerivatives(NamedTuple):
    """Values (p,), gradients (p, v) and Hessians (p, v, v) of p problems, in float64."""

    value: Tensor
    gradient: Tensor
    hessian: Tensor


class DeviceSmallPass:
    """Values, gradients and Hessians of all problems; cells are float32, sums float64.

    Parameters as in `DevicePass`; the variables are the coefficients of standardised
    features, then the intercept, then zeros up to a width that devices like.
    """

    engine = "device_small"

    def __init__(
        self,
        X: Any,
        labels: LabelSets,
        weights: NDArray[Any],
        *,
        C: float,
        positive_cost: float | NDArray[Any] = 1.0,
        penalize_intercept: bool = False,
        device: Any,
    ) -> None:
        self.device, self.C, self.penalize_intercept = torch.device(device), C, penalize_intercept
        self.dtype = np.float32 if isinstance(X, Tensor) else X.dtype
        self.n_folds = 1
        self.shape = (labels.n_labels, -(-(X.shape[1] + 1) // WIDTH) * WIDTH)
        self._given = (X, labels, weights, positive_cost)
        mass = self._tensor(weights)
        x = dense_rows(X, np.arange(len(weights)), self.device)
        total = mass.sum()
        slim = mass.float()
        self.center = (slim @ x).double() / total
        x = x - self.center.float()
        spread = ((slim @ (x * x)).double() / total).sqrt()
        # Spread that is only rounding of a constant feature must not be blown up to one.
        real = spread > 1e-6 * self.center.abs()
        self.scale = torch.where(real, spread, 1.0)
        n, d = x.shape
        self._more_rows = -n % MOST_PARTS
        self._x = torch.zeros(n + self._more_rows, self.shape[1], device=self.device)
        torch.mul(x, (real / self.scale).float(), out=self._x[:n, :d])
        self._x[:n, d] = 1.0
        self._costs, self._targets = self._cells(labels, slim, positive_cost)

    def _cells(self, labels: LabelSets, mass: Tensor, positive_cost: Any) -> tuple[Tensor, Tensor]:
        """Return what each cell counts, and what it counts if its label is relevant (n, m)."""
        costs = functional.pad(mass, (0, self._more_rows))[:, None].repeat(1, labels.n_labels)
        relevant = cells_of(labels, self.device)
        if np.any(np.asarray(positive_cost) != 1):
            dear = np.broadcast_to(positive_cost, labels.n_rows).astype(np.float32)
            costs[relevant] *= self._tensor(dear)[relevant[0]]
        if labels.unknown is not None:
            costs[cells_of(labels.unknown, self.device)] = 0.0
        targets = torch.zeros_like(costs)
        targets[relevant] = costs[relevant]
        return costs, targets

    def _tensor(self, values: Any) -> Tensor:
        return torch.as_tensor(values).to(self.device)

    def at(self, C: float) -> "DeviceSmallPass":
        """Return the same pass with another penalty; the data are shared."""
        other = copy.copy(self)
        other.C = C
        other.__dict__.pop("_penalty", None)
        return other

    def with_folds(self, folds: NDArray[Any]) -> "DeviceSmallPass":
        """Return the pass over the same data with folds held out."""
        other = copy.copy(self)
        other.n_folds = int(folds.max()) + 1
        fold = functional.pad(self._tensor(folds), (0, self._more_rows))[:, None]
        outside = (fold != torch.arange(other.n_folds, device=self.device)).float()
        # Problem l * n_folds + f is label l without fold f.
        outside = outside.repeat(1, self.shape[0])
        other._costs = self._costs.repeat_interleave(other.n_folds, dim=1).mul_(outside)
        other._targets = self._targets.repeat_interleave(other.n_folds, dim=1).mul_(outside)
        other.shape = (self.shape[0] * other.n_folds, self.shape[1])
        return other

    def start(self) -> Tensor:
        """Return a part of Newton's step from constant scores, the log-odds of each problem.

        The whole step goes too far for rare labels: it would set the scores of positive rows off
        from the others by `gain`, where the loss has long ceased to be the parabola it sees.
        """
        positive = self._targets.sum(dim=0, dtype=torch.float64)
        negative = (self._costs.sum(dim=0, dtype=torch.float64) - positive).clamp(min=0)
        odds = (positive.log() - negative.log()).nan_to_num()
        point = torch.zeros(self.shape, dtype=torch.float64, device=self.device)
        point[:, len(self.scale)] = odds.clamp(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
        _, gradient, hessian = self.derivatives(point)
        step = newton_steps(hessian, gradient).nan_to_num()
        slope = torch.linalg.vecdot(step, gradient)
        gain = -slope * (1 / positive + 1 / negative).nan_to_num(posinf=0.0)
        return point + step / gain.clamp(min=1).sqrt()[:, None]

    def start_at(self, coef: NDArray[Any], intercept: NDArray[Any]) -> Tensor:
        """Return a start at the coefficients of an earlier fit: see `LocalPass.start_at`."""
        old = self._tensor(coef).double()
        offset = self._tensor(intercept).double() + old @ self.center
        point = torch.column_stack([old * self.scale, offset])
        point = functional.pad(point, (0, self.shape[1] - point.shape[1]))
        return torch.where(offset.isnan()[:, None], self.start(), point)

    def median_of_folds(self, solution: Solution, n_folds: int) -> Tensor:
        """Return a start over all rows at the median of the solutions with a fold held out."""
        points = self._tensor(solution.point).reshape(self.shape[0], n_folds, -1)
        return points.median(dim=1).values

    def continued(self, solution: Solution, C: float) -> Tensor:
        """Return a start from a solution at another C."""
        return self._tensor(solution.point)

    def derivatives(self, points: Tensor, careful: bool = False) -> DeviceDerivatives:
        """Evaluate all problems, each at its own point.

        Unless `careful`, Hessians are right to two or three digits.
        """
        with tf32_products(self.device, False):
            cells = self._x @ points.float().T
            value, curvatures = self._turn(cells)
            # The longest work first: a device is at it while it is told of the rest.
            hessian = self._hessians(curvatures, careful) + self._penalty
            gradient = by_parts(cells, self._x)
        pull = points @ self._penalty
        value.add_(torch.linalg.vecdot(points, pull), alpha=0.5)
        return DeviceDerivatives(value, pull + gradient, hessian)

    def _turn(self, cells: Tensor) -> tuple[Tensor, Tensor]:
        """Turn scores into residuals, in place; return losses (p,) and curvatures (n, p)."""
        if cells.is_cuda:
            from deltarank.linear.kernels.device_cells import turn_weighted

            found: tuple[Tensor, Tensor] = turn_weighted(cells, self._costs, self._targets)
            return found
        losses = self._costs * functional.softplus(cells) - self._targets * cells
        chances = cells.sigmoid()
        torch.sub(self._costs * chances, self._targets, out=cells)
        curvatures = self._costs * chances * (1 - chances)
        return losses.sum(dim=0, dtype=torch.float64), curvatures

    def _hessians(self, curvatures: Tensor, careful: bool) -> Tensor:
        """Return ``sum_i c_ip x_i x_i'`` for every problem p, in float32."""
        if curvatures.is_cuda:
            from deltarank.linear.kernels.device_cells import weighted_products

            found: Tensor = weighted_products(
                curvatures, *(self._six_digits if careful else self._two_digits)
            )
            return found
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

    @cached_property
    def _penalty(self) -> Tensor:
        """The penalty's Hessian; variables that only fill the width up are held by ones."""
        d = len(self.scale)
        penalty = torch.eye(self.shape[1], dtype=torch.float64, device=self.device)
        penalty.diagonal()[:d] = 1 / (self.C * self.scale**2)
        penalty[d, d] = 0.0
        if self.penalize_intercept:
            direction = torch.cat([-self.center / self.scale, torch.ones_like(self.center[:1])])
            penalty[: d + 1, : d + 1] += torch.outer(direction, direction) / self.C
        return penalty

    def to_features(self, points: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return coefficients (p, d) and intercepts (p,) of the features as they were given."""
        points, d = self._tensor(points), len(self.scale)
        coef = points[:, :d] / self.scale
        offset = points[:, d] - coef @ self.center
        return coef.cpu().numpy(), offset.cpu().numpy()

    def arrays(self) -> Iterator[NDArray[Any]]:
        """Yield all arrays that decide the objectives."""
        return arrays_of(*self._given)
