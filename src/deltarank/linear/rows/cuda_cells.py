"""What a pass does with the cells (row and problem) of a block of rows on a torch device."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from deltarank.core.devices import cells_of
from deltarank.core.losses import Loss
from deltarank.core.tensors import on_tensors
from deltarank.linear.rows.cuda_layout import Block


class DeviceCells:
    """Scores become losses, curvatures and residuals, by their labels, weights and costs."""

    device: torch.device
    loss: Loss
    n_labels: int
    n_folds: int
    has_costs: bool
    has_unknown: bool

    def turn(self, cells: Tensor, block: Block, rows: slice, problems: Tensor) -> Tensor:
        """Turn scores into residuals, in place; return the sums (3, p) over rows.

        Sums of values and of residuals decide when to stop, so they are float64.
        """
        if self.loss.fused != "logistic":
            return self._turn_any(cells, block, rows, problems)
        if cells.is_cuda and cells.dtype == torch.float32 and not self._weighs_cells:
            from deltarank.linear.kernels.device_cells import turn_scores

            sums: Tensor = turn_scores(cells, block.weights[rows])
        else:
            weights = self.cell_weights(block, rows, problems, cells.shape[1])
            losses = functional.softplus(cells).mul_(weights).sum(dim=0, dtype=torch.float64)
            cells.sigmoid_()
            curvatures = torch.addcmul(cells, cells, cells, value=-1).mul_(weights).sum(dim=0)
            cells.mul_(weights)
            chances = cells.sum(dim=0, dtype=torch.float64)
            sums = torch.stack([losses, curvatures.double(), chances])
        self._subtract_relevant(cells, block, rows, problems)
        return sums

    def _turn_any(self, cells: Tensor, block: Block, rows: slice, problems: Tensor) -> Tensor:
        """Do the same under any loss, which is written for NumPy."""
        weights = self.cell_weights(block, rows, problems, cells.shape[1])
        signs = self.signs(cells, block, rows, problems)
        margins = signs.double() * cells.double()
        value, slope = on_tensors(self.loss.value_and_derivative, margins)
        curvature = weights * on_tensors(self.loss.curvature, margins)
        residuals = weights * signs * slope
        cells.copy_(residuals)
        parts = (weights * value, curvature, residuals)
        return torch.stack([part.sum(dim=0, dtype=torch.float64) for part in parts])

    def _relevant_cells(
        self, block: Block, rows: slice, problems: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return row, column and weight of the relevant cells of some rows.

        The column is -1 where the cell's problem is not one of the given; asking how many are
        would make the device wait.
        """
        listed = slice(int(block.starts[rows.start]), int(block.starts[rows.stop]))
        row, members = block.rows[listed] - rows.start, block.members[listed]
        weights = block.weights[block.rows[listed]] * (1 + block.extra_costs[listed])
        if len(problems) == self.n_labels and self.n_folds == 1:
            return row, members, weights
        column = torch.full((self.n_labels * self.n_folds,), -1, device=self.device)
        column[problems] = torch.arange(len(problems), device=self.device)
        folds = torch.arange(self.n_folds, device=self.device)
        columns = column[members[:, None] * self.n_folds + folds].ravel()
        return row.repeat_interleave(self.n_folds), columns, weights.repeat_interleave(self.n_folds)

    def _subtract_relevant(
        self, cells: Tensor, block: Block, rows: slice, problems: Tensor
    ) -> None:
        """Take the weights of relevant cells off, so that residuals are left.

        Residuals nearly cancel in the gradient. Chances alone would add up to what the relevant
        cells would then be taken off, and the sums of TF32 products are cut off, not rounded.
        """
        row, column, weights = self._relevant_cells(block, rows, problems)
        masses = torch.where(column < 0, 0.0, weights).to(cells.dtype)
        flat = row * cells.shape[1] + column.clamp(min=0)
        cells.view(-1).index_add_(0, flat, masses, alpha=-1)

    def signs(self, scores: Tensor, block: Block, rows: slice, problems: Tensor) -> Tensor:
        """Return 1 for relevant cells and -1 for all others."""
        row, column, _ = self._relevant_cells(block, rows, problems)
        signs = torch.full_like(scores, -1.0)
        signs[row[column >= 0], column[column >= 0]] = 1.0
        return signs

    @property
    def _weighs_cells(self) -> bool:
        """Whether cells of a row do not all count the same."""
        return self.has_costs or self.has_unknown

    def cell_weights(self, block: Block, rows: slice, problems: Tensor, width: int) -> Tensor:
        """Return the weights of a block's cells, or of its rows (r, 1) where cells cost alike."""
        if not self._weighs_cells:
            return block.weights[rows, None]
        costs = torch.ones(rows.stop - rows.start, self.n_labels, device=self.device)
        listed = slice(int(block.starts[rows.start]), int(block.starts[rows.stop]))
        costs[block.rows[listed] - rows.start, block.members[listed]] += block.extra_costs[listed]
        if block.unknown is not None:
            hidden = block.unknown.take(np.arange(rows.start, rows.stop))
            costs[cells_of(hidden, self.device)] = 0.0
        costs = costs[:, problems // self.n_folds] * block.weights[rows, None]
        return functional.pad(costs, (0, width - len(problems)))
