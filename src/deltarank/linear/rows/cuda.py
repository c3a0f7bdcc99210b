"""Rows on a torch device: scores, losses and gradients of all problems at once.

Under the logistic loss labels enter only by the sums of their relevant rows: with s the scores,

    sum_i w_i log(1 + exp(-y_i s_i)) = sum_i w_i log(1 + exp(s_i)) - sum_{relevant i} w_i s_i,

and the last sum is a product of coefficients with sums taken once. So a pass is a product of X
with the coefficients, a few elementwise operations, and a product of X' with the residuals. Any
other loss is evaluated on all cells with their signs.
"""

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from deltarank.core.caching import cached_property
from deltarank.core.devices import cells_of, room_on_device
from deltarank.core.labels import LabelSets
from deltarank.core.losses import LOSSES, Loss
from deltarank.core.tensors import on_tensors
from deltarank.linear.coordinates import Moments
from deltarank.linear.rows.cuda_cells import DeviceCells
from deltarank.linear.rows.cuda_layout import Block, Layout, arrays_of, in_type
from deltarank.linear.rows.cuda_place import DevicePlace
from deltarank.linear.rows.cuda_products import Factor, backward, forward, tf32_products
from deltarank.linear.rows.cuda_tables import DeviceTables, are_small
from deltarank.linear.rows.matrices import digest_of
from deltarank.linear.rows.protocol import Sums
from deltarank.linear.rows.tuning import DEVICE
from deltarank.linear.solvers.precision import Precision


class DeviceRows(DevicePlace, DeviceCells):
    """Rows on a torch device; see `linear.rows.protocol.Rows`.

    Parameters
    ----------
    X : array, CSR matrix or tensor of shape (n, d)
    labels, weights, positive_cost, label_cost, loss
        As in `LocalRows`.
    device : torch.device
    """

    def __init__(
        self,
        X: Any,
        labels: LabelSets,
        weights: NDArray[Any],
        *,
        positive_cost: float | NDArray[Any] = 1.0,
        label_cost: float | NDArray[Any] = 1.0,
        loss: Loss = LOSSES["logistic"],
        device: Any,
    ) -> None:
        self.device, self.labels, self.weights, self.loss = device, labels, weights, loss
        by_row = np.broadcast_to(positive_cost, len(weights)).astype(np.float64)
        by_label = np.broadcast_to(label_cost, labels.n_labels).astype(np.float64)
        # One per relevant cell.
        self.costs = by_row[labels.rows] * by_label[labels.members]
        self.dtype = np.float32 if isinstance(X, Tensor) else X.dtype
        self.has_costs = bool((self.costs != 1).any())
        self.has_unknown = labels.unknown is not None
        self.n_labels, self.n_features, self.n_folds = labels.n_labels, X.shape[1], 1
        self.n_rows = int((weights > 0).sum())
        self._folds = np.zeros(len(weights), np.int64)
        self._cells = DEVICE.cells_per_block
        with room_on_device(device, f"{X.shape[0]} rows of {X.shape[1]} features"):
            # Rough Hessians do not see the kinks of losses made of pieces.
            self.takes_newton = loss.fused is not None and are_small(X, labels.n_labels, device)
            in_tables = self.takes_newton
            self._layout = Layout(X, labels, weights, self.costs, device, in_tables=in_tables)
            self.center, self.scale = self._layout.center, self._layout.scale
            self.is_scaled = not self._layout.is_sparse
            if not self.takes_newton:
                self.blocks = self._layout.blocks(self._folds)

    # Rows

    def moments(self) -> Moments:
        """Return the moments of the features as they were given."""
        return self._layout.moments

    @cached_property
    def frequencies(self) -> NDArray[Any]:
        """How many rows hold each label."""
        return np.bincount(self.labels.members, minlength=self.n_labels)

    def with_folds(self, folds: NDArray[Any]) -> "DeviceRows":
        """Return the same rows with folds held out."""
        other = copy.copy(self)
        other.n_folds, other._folds = int(folds.max()) + 1, folds
        if not self.takes_newton:
            other.blocks = self._layout.blocks(folds)
        for name in ("_sums", "tables"):
            other.__dict__.pop(name, None)
        return other

    def digest(self) -> bytes:
        """Return something short that other rows would hardly have."""
        return digest_of(arrays_of(self._layout.X, self.labels, self.weights, self.costs))

    @cached_property
    def tables(self) -> DeviceTables:
        """The same rows as tables, for Newton's method."""
        folds = (self._folds, self.n_folds)
        return DeviceTables(self._layout, self.labels, self.costs, folds, self.loss)

    def derivatives(
        self, points: Tensor, problems: Tensor, careful: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return losses (p,), gradients (p, d + 1) and Hessians (p, d + 1, d + 1) of everyone."""
        with room_on_device(self.device, f"{self.n_labels} labels"):
            return self.tables.derivatives(points, careful)

    # Sums of labels

    def masses(self, problems: Tensor) -> NDArray[Any]:
        """Return the weights (3, p) of relevant cells, of their costs, and of the other cells."""
        if self.takes_newton:
            return self.to_host(self.tables.masses()[:, problems])
        weights = np.bincount(self._folds, self.weights, minlength=self.n_folds)
        known = self.asarray(weights.sum() - weights if self.n_folds > 1 else weights)[:, None]
        relevant, costly = self._sums_of("relevant")[0], self._sums_of(self._cost_cells)[0]
        if self.has_unknown:
            known = known - self._sums_of("unknown")[0]
        masses = torch.stack([relevant, costly, (known - relevant).clamp(min=0)])
        label, fold = problems // self.n_folds, problems % self.n_folds
        return self.to_host(masses[:, fold, label])

    def label_sums(self, problems: Tensor, cells: str) -> Tensor:
        """Return the sums (p, d) of the rows of "relevant", "costly" or "unknown" cells."""
        mass, sums = self._sums_of(cells)
        label, fold = problems // self.n_folds, problems % self.n_folds
        return self._centred(sums[fold, label], mass[fold, label])

    @cached_property
    def _sums(self) -> dict[str, tuple[Tensor, Tensor]]:
        return {}

    def _sums_of(self, cells: str) -> tuple[Tensor, Tensor]:
        """Return weights (f, m) and sums (f, m, d) of cells, by fold held out and label.

        The sums are of features as the blocks hold them.
        """
        if cells not in self._sums:
            shape = (self.n_folds, self.n_labels)
            mass = torch.zeros(shape, dtype=torch.float64, device=self.device)
            sums = torch.zeros((*shape, self.n_features), dtype=torch.float64, device=self.device)
            for block in self.blocks:
                self._add_cells(block, cells, mass[block.fold], sums[block.fold])
            parts = (mass, sums)
            if self.n_folds > 1:
                parts = tuple(part.sum(dim=0) - part for part in parts)
            self._sums[cells] = parts
        return self._sums[cells]

    def _add_cells(self, block: Block, cells: str, mass: Tensor, sums: Tensor) -> None:
        """Add the weights (m,) and rows (m, d) of a block's cells, a few features at a time."""
        rows, members = block.rows, block.members
        if cells == "unknown" and block.unknown is not None:
            rows, members = cells_of(block.unknown, self.device)
        values = block.weights.double()[rows]
        if cells == "costly":
            values = values * (1 + block.extra_costs)
        mass.index_add_(0, members, values)
        with torch.sparse.check_sparse_tensor_invariants(enable=False):
            shape = (self.n_labels, len(block.weights))
            picked = torch.sparse_coo_tensor(torch.stack([members, rows]), values, shape).coalesce()
        x = block.x.to_dense() if block.transposed is not None else block.x
        for begin in range(0, self.n_features, 128):
            part = slice(begin, begin + 128)
            sums[:, part] += picked @ x[:, part].double()

    # Passes

    def evaluate(
        self, coef: Tensor, offset: Tensor, problems: Tensor, precision: Precision
    ) -> Sums:
        """Return the sums of the given problems, each at its own coefficients.

        Where the device has not enough memory for the scores of a block, smaller ones are tried.
        """
        what = f"{len(problems)} labels and {self.n_features} features, even in small blocks"
        with room_on_device(self.device, what):
            while True:
                try:
                    return self._evaluate(coef, offset, problems, precision)
                except torch.OutOfMemoryError:
                    if self._cells <= 2**20:
                        raise
                    self._cells //= 4
                    torch.cuda.empty_cache()

    def _evaluate(
        self, coef: Tensor, offset: Tensor, problems: Tensor, precision: Precision
    ) -> Sums:
        number: dict[str, Any] = {"dtype": torch.float64, "device": self.device}
        losses, curvatures, residuals = torch.zeros(3, len(coef), **number)
        gradient = torch.zeros_like(coef)
        kind = torch.float64 if precision == Precision.DOUBLE else torch.float32
        slim = coef.to(kind)
        slim_offset = (offset - coef @ self._layout.shift).to(kind)
        for block in self.blocks:
            columns: Any = slice(None)
            if self.n_folds > 1:
                columns = (problems % self.n_folds != block.fold).nonzero().ravel()
                if not len(columns):
                    continue
            of_columns = slim[columns], slim_offset[columns], problems[columns]
            sums, slope = self._block(block, *of_columns, precision)
            for target, part in zip((losses, curvatures, residuals), sums, strict=True):
                target[columns] += part
            gradient[columns] += slope
        if self.loss.fused == "logistic":
            label, fold = problems // self.n_folds, problems % self.n_folds
            mass, positive = (part[fold, label] for part in self._sums_of(self._cost_cells))
            # With the coefficients as they were rounded: theirs are the other part's scores.
            losses -= (slim.double() * positive).sum(dim=1) + slim_offset.double() * mass
            residuals -= mass
        return Sums(losses, curvatures, residuals, self._centred(gradient, residuals))

    @property
    def _cost_cells(self) -> str:
        return "costly" if self.has_costs else "relevant"

    def _centred(self, sums: Tensor, masses: Tensor) -> Tensor:
        """Turn sums of rows of the blocks, of total weight `masses`, into centred features."""
        return sums - masses[..., None] * self._layout.shift

    def _block(
        self, block: Block, coef: Tensor, offset: Tensor, problems: Tensor, precision: Precision
    ) -> tuple[Tensor, Tensor]:
        """Return sums (3, p) over a block's rows, and the gradient (p, d).

        Under the logistic loss the sums are of losses and chances without their relevant part.
        """
        n_rows, n_problems, transposed = len(block.weights), len(coef), block.transposed
        size = n_rows if transposed is not None else max(1, self._cells // len(coef))
        more = -n_problems % DEVICE.column_parts
        coef, offset = functional.pad(coef, (0, 0, 0, more)), functional.pad(offset, (0, more))
        sums: Any = 0.0
        gradient: Any = 0.0
        for begin in range(0, n_rows, size):
            rows = slice(begin, min(begin + size, n_rows))
            if transposed is None:
                x = Factor.of(block.x[rows], precision, len(coef))
                cells = forward(x, coef, offset, precision)
            else:
                cells = torch.addmm(offset, in_type(block.x, coef.dtype), coef.T)
            sums = sums + self.turn(cells, block, rows, problems)
            if transposed is None:
                slope = backward(x, cells, precision)
            else:
                slope = (in_type(transposed, cells.dtype) @ cells).T
            gradient = gradient + slope.double()
        return sums[:, :n_problems], gradient[:n_problems]

    # Hessians

    def hessians(
        self,
        coef: Tensor,
        offset: Tensor,
        problems: Tensor,
        curvatures: Tensor,
        left_out: NDArray[Any],
    ) -> list[Tensor]:
        """Return Hessians of few problems from rows sampled by their curvature.

        For a rare label a few rows hold nearly all of it: see `LocalRows.hessians`.
        """
        linear = coef.float(), (offset - coef @ self._layout.shift).float()
        at_points = torch.cat(
            [self._curvatures(b, *linear, problems, left_out) for b in self.blocks]
        )
        drawn = [
            _draw(each, DEVICE.rows_per_variable * (self.n_features + 1)) for each in at_points.T
        ]
        size = self.n_features + 1
        number: dict[str, Any] = {"dtype": torch.float64, "device": self.device}
        hessians, begin = torch.zeros(len(coef), size, size, **number), 0
        for block in self.blocks:
            x = block.x.to_dense() if block.transposed is not None else block.x
            for hessian, (rows, masses) in zip(hessians, drawn, strict=True):
                here = (rows >= begin) & (rows < begin + len(x))
                self._add_rows(hessian, x, rows[here] - begin, masses[here])
            begin += len(x)
        return list(hessians)

    def _curvatures(
        self,
        block: Block,
        coef: Tensor,
        offset: Tensor,
        problems: Tensor,
        left_out: NDArray[Any],
    ) -> Tensor:
        """Return the curvatures (r, p) of a block's cells."""
        with tf32_products(self.device, False):
            scores = torch.addmm(offset, block.x, coef.T)
        rows = slice(0, len(scores))
        signs = self.signs(scores, block, rows, problems)
        curvatures = on_tensors(self.loss.curvature, (signs * scores).double()).float()
        weights = self.cell_weights(block, rows, problems, len(problems))
        share = np.where(left_out < 0, 1 - 1 / self.n_folds, left_out != block.fold)
        return curvatures * weights * self.asarray(share if self.n_folds > 1 else 1.0).float()

    def _add_rows(self, hessian: Tensor, x: Tensor, rows: Tensor, masses: Tensor) -> None:
        """Add the outer products of rows of a block, times their masses."""
        size = max(1, DEVICE.cells_at_a_time // len(hessian))
        for part, mass in zip(rows.split(size), masses.split(size), strict=True):
            z = x[part].double() - self._layout.shift
            z = torch.column_stack([z, torch.ones_like(z[:, 0])])
            hessian.addmm_(z.T, z * mass[:, None])


def _draw(curvatures: Tensor, n_draws: int) -> tuple[Tensor, Tensor]:
    """Return rows drawn in proportion to their curvatures (n,), and what each stands for.

    All rows, once each, where there are few.
    """
    if 2 * n_draws >= len(curvatures):
        return torch.arange(len(curvatures), device=curvatures.device), curvatures.double()
    sums = curvatures.cumsum(0, dtype=torch.float64)
    mass = sums[-1] / n_draws
    middles = (torch.arange(n_draws, device=curvatures.device) + 0.5) * mass
    rows = torch.searchsorted(sums, middles).clamp_(max=len(curvatures) - 1)
    return rows, mass.expand(n_draws)
