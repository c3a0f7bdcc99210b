"""One pass over data on a torch device: scores, losses and gradients of all problems at once.

Labels enter the loss only by the sums of their positive rows: with s the scores of a label,

    sum_i w_i log(1 + exp(-y_i s_i)) = sum_i w_i log(1 + exp(s_i)) - sum_{positive i} w_i s_i,

and the last sum is a product of coefficients with sums taken once. So a pass is a product of X
with the coefficients, a few elementwise operations, and a product of X' with the residuals.
"""

import copy
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from deltarank.core.devices import cells_of, room_on_device
from deltarank.core.labels import LabelSets
from deltarank.linear.rows.device_layout import Block, Layout, in_type
from deltarank.linear.rows.device_products import Factor, backward, forward
from deltarank.linear.rows.device_rows import arrays_of
from deltarank.linear.rows.small import LARGEST_LOG_ODDS
from deltarank.linear.solvers.precision import Precision
from deltarank.linear.solvers.solution import Solution
from deltarank.linear.solvers.states import Evaluation, Start

# Tensor cores want columns in such numbers.
COLUMN_PARTS = 8
# Scores held at a time: each block adds to all gradients, so few large ones are best.
CELLS_PER_BLOCK = 2**28


class DevicePass:
    """The objectives of `LocalPass`, evaluated on a torch device.

    Parameters
    ----------
    X : array, CSR matrix or tensor of shape (n, d)
    labels : LabelSets
    weights : ndarray of shape (n,)
    C, positive_cost, penalize_intercept
        See `deltarank.linear.rows.local.LocalPass`.
    device : torch.device
    """

    engine = "device"

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
        self.device, self.labels, self.C = torch.device(device), labels, C
        self.penalize_intercept, self.n_folds = penalize_intercept, 1
        self.weights = weights
        self.costs = np.broadcast_to(positive_cost, len(weights)).astype(np.float64)
        self.shape = (labels.n_labels, X.shape[1] + 1)
        self.dtype = np.float32 if isinstance(X, Tensor) else X.dtype
        self._layout = Layout(X, labels, weights, self.costs, self.device)
        self.places = self._layout.places
        self.blocks = self._layout.blocks(np.zeros(len(weights), np.int64))
        self._has_costs = bool((self.costs != 1).any()) or labels.unknown is not None
        self._cells = CELLS_PER_BLOCK

    def _tensor(self, values: Any) -> Tensor:
        return torch.as_tensor(values).to(self.device)

    def with_folds(self, folds: NDArray[Any]) -> "DevicePass":
        """Return the pass over the same data with folds held out."""
        other = copy.copy(self)
        other.n_folds = int(folds.max()) + 1
        other.shape = (self.labels.n_labels * other.n_folds, self.shape[1])
        other.blocks = self._layout.blocks(folds)
        other.__dict__.pop("_positive", None)
        return other

    def at(self, C: float) -> "DevicePass":
        """Return the same pass with another penalty; the data are shared."""
        other = copy.copy(self)
        other.C = C
        return other

    def _totals(self, problems: Tensor) -> tuple[Tensor, ...]:
        """Return each problem's weight, that of its positives, their cost and their sum.

        The first counts rows in which the label is known.
        """
        label, fold = problems // self.n_folds, problems % self.n_folds
        return tuple(part[fold, label] for part in self._positive)

    @cached_property
    def _positive(self) -> tuple[Tensor, ...]:
        """By fold held out and label: known weight, positive weight, cost (f, m), sums (f, m, d).

        The sums are of weights times costs times features as the blocks hold them.
        """
        m, d = self.labels.n_labels, self.shape[1] - 1
        number: dict[str, Any] = {"dtype": torch.float64, "device": self.device}
        total, masses, costly = torch.zeros(3, self.n_folds, m, **number)
        sums = torch.zeros(self.n_folds, m, d, **number)
        for block in self.blocks:
            weights = block.weights.double()
            cells = weights[block.rows]
            dear = cells * (1 + block.extra_costs)
            total[block.fold] += weights.sum()
            if block.unknown is not None:
                hidden = weights[self._tensor(block.unknown.rows)]
                total[block.fold].index_add_(0, self._tensor(block.unknown.members), -hidden)
            masses[block.fold].index_add_(0, block.members, cells)
            costly[block.fold].index_add_(0, block.members, dear)
            places = torch.stack([block.members, block.rows])
            with torch.sparse.check_sparse_tensor_invariants(enable=False):
                picked = torch.sparse_coo_tensor(places, dear, (m, len(weights))).coalesce()
            x = block.x.to_dense() if block.transposed is not None else block.x
            for columns in range(0, d, 128):
                part = slice(columns, columns + 128)
                sums[block.fold, :, part] += picked @ x[:, part].double()
        parts = total, masses, costly, sums
        return tuple(part.sum(dim=0) - part for part in parts) if self.n_folds > 1 else parts

    def start(self, problems: Tensor) -> Start:
        """Return linear discriminants and gradients at constant scores: see `LocalPass.start`."""
        total, positive, costly, raw = self._totals(problems)
        places = self.places
        sums = places.to_variables(self._centred(raw, costly))
        negative = (total - positive).clamp(min=0)
        mass = costly + negative
        odds = (costly.log() - negative.log()).nan_to_num()
        odds = odds.clamp(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
        tiny = torch.finfo(torch.float64).tiny
        share = costly / mass.clamp(min=tiny)
        constant, gradient = torch.zeros(2, len(problems), self.shape[1], dtype=torch.float64,
                                         device=self.device)  # fmt: skip
        constant[:, -1] = odds
        # Features are centred, so the negatives' sums are about minus those of the positives.
        plain = positive / costly.clamp(min=tiny)
        gradient[:, :-1] = ((share - 1) - share * plain)[:, None] * sums
        point = constant.clone()
        point[:, :-1] = -gradient[:, :-1]
        point[:, :-1] /= torch.outer(share * (1 - share) * mass, places.spectrum) + 1 / self.C
        gain = (point[:, :-1] * sums).sum(dim=1) * total
        gain /= (costly * negative).clamp(min=tiny)
        point[:, :-1] /= gain.clamp(min=1).sqrt()[:, None]
        point[:, -1] -= (0.5 - share) * gain.clamp(max=1)
        if self.labels.unknown is not None:
            # Sums over the known rows only would be needed; the first step goes without.
            return Start(point, point, torch.zeros_like(point))
        return Start(point, constant, gradient)

    def start_at(self, coef: NDArray[Any], intercept: NDArray[Any]) -> Start:
        """Return a start at the coefficients of an earlier fit: see `LocalPass.start_at`."""
        old = self._tensor(coef).double()
        offsets = self._tensor(intercept).double() + old @ self.places.center
        point = torch.column_stack([self.places.to_variables(old), offsets])
        fresh = self._tensor(np.flatnonzero(np.isnan(intercept)))
        if len(fresh):
            point[fresh] = self.start(fresh).point
        return Start(point, point, torch.zeros_like(point), close=True)

    def median_of_folds(self, solution: Solution, n_folds: int) -> Start:
        """Return a start over all rows at the median of the solutions with a fold held out."""
        points = self._tensor(solution.point).reshape(self.shape[0], n_folds, -1)
        point = points.median(dim=1).values
        return Start(point, point, torch.zeros_like(point), close=True)

    def continued(self, solution: Solution, C: float) -> Start:
        """Return a start at this pass's C from a solution at another one, to first order."""
        change = 1 / self.C - 1 / C
        point, diagonal = self._tensor(solution.point), self._tensor(solution.diagonal)
        gradient = change * self._penalty(point, self.places.to_coef(point[:, :-1]))[1]
        diagonal = diagonal.clone()
        diagonal[:, : None if self.penalize_intercept else -1] += change
        return Start(point - gradient / diagonal, point, gradient)

    # The objective

    def evaluate(self, points: Tensor, problems: Tensor, precision: Precision) -> Evaluation:
        """Evaluate the given problems, each at its own point, in one pass over the rows.

        Where the device has not enough memory for the scores of a block, smaller ones are tried.
        """
        what = f"{len(problems)} labels and {self.shape[1] - 1} features, even in small blocks"
        with room_on_device(self.device, what):
            while True:
                try:
                    return self._evaluate(points, problems, precision)
                except torch.OutOfMemoryError:
                    if self._cells <= 2**20:
                        raise
                    self._cells //= 4
                    torch.cuda.empty_cache()

    def _evaluate(self, points: Tensor, problems: Tensor, precision: Precision) -> Evaluation:
        coef, scaled, offset = self.places.linear(points)
        number: dict[str, Any] = {"dtype": torch.float64, "device": self.device}
        losses, curvatures, residuals = torch.zeros(3, len(points), **number)
        gradient = torch.zeros_like(coef)
        kind = torch.float64 if precision == Precision.DOUBLE else torch.float32
        slim, slim_offset = scaled.to(kind), offset.to(kind)
        for block in self.blocks:
            columns: Any = slice(None)
            if self.n_folds > 1:
                columns = (problems % self.n_folds != block.fold).nonzero().ravel()
                if not len(columns):
                    continue
            mine = slim[columns], slim_offset[columns], problems[columns]
            sums, slope = self._block(block, *mine, precision)
            for target, part in zip((losses, curvatures, residuals), sums, strict=True):
                target[columns] += part
            gradient[columns] += slope
        _, _, costly, positive_sums = self._totals(problems)
        # With the coefficients as they were rounded: theirs are the other part's scores.
        losses -= (slim.double() * positive_sums).sum(dim=1) + slim_offset.double() * costly
        residuals -= costly
        return self._with_penalty(points, coef, losses, curvatures, residuals, gradient)

    def _block(
        self, block: Block, coef: Tensor, offset: Tensor, problems: Tensor, precision: Precision
    ) -> tuple[Tensor, Tensor]:
        """Return sums (3, p) over a block's rows, and the gradient (p, d).

        The sums are those of losses without their positive part, curvatures and chances.
        """
        n_rows, n_problems, turned = len(block.weights), len(coef), block.transposed
        size = n_rows if turned is not None else max(1, self._cells // len(coef))
        more = -n_problems % COLUMN_PARTS
        coef, offset = functional.pad(coef, (0, 0, 0, more)), functional.pad(offset, (0, more))
        sums: Any = 0.0
        gradient: Any = 0.0
        for begin in range(0, n_rows, size):
            rows = slice(begin, min(begin + size, n_rows))
            if turned is None:
                x = Factor.of(block.x[rows], precision, len(coef))
                cells = forward(x, coef, offset, precision)
            else:
                cells = torch.addmm(offset, in_type(block.x, coef.dtype), coef.T)
            sums = sums + self._turn(cells, block, rows, problems)
            self._subtract_positives(cells, block, rows, problems)
            if turned is None:
                slope = backward(x, cells, precision)
            else:
                slope = (in_type(turned, cells.dtype) @ cells).T
            gradient = gradient + slope.double()
        return sums[:, :n_problems], gradient[:n_problems]

    def _turn(self, cells: Tensor, block: Block, rows: slice, problems: Tensor) -> Tensor:
        """Turn scores into weighted chances, in place; return the sums (3, p) over rows.

        Sums of values and of residuals decide when to stop, so they are float64.
        """
        if cells.is_cuda and cells.dtype == torch.float32 and not self._has_costs:
            from deltarank.linear.kernels.device_cells import turn_scores

            sums: Tensor = turn_scores(cells, block.weights[rows])
            return sums
        weights = self.cell_weights(block, rows, problems, cells.shape[1])
        losses = functional.softplus(cells).mul_(weights).sum(dim=0, dtype=torch.float64)
        cells.sigmoid_()
        curvatures = torch.addcmul(cells, cells, cells, value=-1).mul_(weights).sum(dim=0)
        cells.mul_(weights)
        return torch.stack([losses, curvatures.double(), cells.sum(dim=0, dtype=torch.float64)])

    def _subtract_positives(
        self, cells: Tensor, block: Block, rows: slice, problems: Tensor
    ) -> None:
        """Take the weights of relevant cells off, so that residuals are left.

        Residuals nearly cancel in the gradient. Chances alone would add up to what the positives
        would then be taken off, and the sums of TF32 products are cut off, not rounded.
        """
        found = slice(int(block.starts[rows.start]), int(block.starts[rows.stop]))
        places, members = block.rows[found] - rows.start, block.members[found]
        weights = block.weights[block.rows[found]] * (1 + block.extra_costs[found])
        weights = weights.to(cells.dtype)
        if len(problems) == self.labels.n_labels and self.n_folds == 1:
            cells.view(-1).index_add_(0, places * cells.shape[1] + members, weights, alpha=-1)
            return
        column = torch.full((self.labels.n_labels * self.n_folds,), -1, device=self.device)
        column[problems] = torch.arange(len(problems), device=self.device)
        for fold in range(self.n_folds):
            mine = column[members * self.n_folds + fold]
            mass = torch.where(mine < 0, 0.0, weights)
            flat = places * cells.shape[1] + mine.clamp(min=0)
            cells.view(-1).index_add_(0, flat, mass, alpha=-1)

    def cell_weights(self, block: Block, rows: slice, problems: Tensor, width: int) -> Tensor:
        """Return the weights of a block's cells, or of its rows (r, 1) where cells cost alike."""
        if not self._has_costs:
            return block.weights[rows, None]
        costs = torch.ones(rows.stop - rows.start, self.labels.n_labels, device=self.device)
        mine = slice(int(block.starts[rows.start]), int(block.starts[rows.stop]))
        costs[block.rows[mine] - rows.start, block.members[mine]] += block.extra_costs[mine]
        if block.unknown is not None:
            hidden = block.unknown.take(np.arange(rows.start, rows.stop))
            costs[cells_of(hidden, self.device)] = 0.0
        costs = costs[:, problems // self.n_folds] * block.weights[rows, None]
        return functional.pad(costs, (0, width - len(problems)))

    def _with_penalty(
        self,
        points: Tensor,
        coef: Tensor,
        losses: Tensor,
        curvatures: Tensor,
        residuals: Tensor,
        gradient: Tensor,
    ) -> Evaluation:
        square, slope = self._penalty(points, coef)
        slope /= self.C
        slope[:, :-1] += self.places.to_variables(self._centred(gradient, residuals))
        slope[:, -1] += residuals
        diagonal = torch.empty_like(points)
        diagonal[:, :-1] = torch.outer(curvatures, self.places.spectrum)
        diagonal[:, -1] = curvatures.clamp(min=torch.finfo(torch.float32).tiny)
        diagonal[:, : None if self.penalize_intercept else -1] += 1 / self.C
        return Evaluation(losses + square / (2 * self.C), slope, diagonal)

    def _centred(self, sums: Tensor, masses: Tensor) -> Tensor:
        """Turn sums of rows of the blocks, of total weight `masses`, into centred features."""
        places = self.places
        return sums * places.scale - torch.outer(masses, places.center - places.shift)

    def _penalty(self, points: Tensor, coef: Tensor) -> tuple[Tensor, Tensor]:
        """Return the squared norm that is penalised, and half its gradient."""
        slope = points.clone()
        slope[:, -1] = 0.0
        square = (slope * slope).sum(dim=1)
        if self.penalize_intercept:
            intercept = points[:, -1] - coef @ self.places.center
            square = square + intercept**2
            slope += torch.outer(intercept, self.intercept_direction)
        return square, slope

    @property
    def intercept_direction(self) -> Tensor:
        """Gradient of the intercept with respect to the variables, shape (v,)."""
        center = self.places.center
        one = torch.ones(1, dtype=torch.float64, device=self.device)
        return torch.cat([-self.places.to_variables(center[None])[0], one])

    def to_features(self, points: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return coefficients (p, d) and intercepts (p,) of the features as they were given."""
        points = self._tensor(points)
        coef = self.places.to_coef(points[:, :-1])
        offsets = points[:, -1] - coef @ self.places.center
        return coef.cpu().numpy(), offsets.cpu().numpy()

    def arrays(self) -> Iterator[NDArray[Any]]:
        """Yield all arrays that decide the objectives."""
        return arrays_of(self._layout.X, self.labels, self.weights, self.costs)

    def frequencies(self) -> NDArray[Any]:
        """Return how many rows are positive for each problem's label."""
        counts = np.bincount(self.labels.members, minlength=self.labels.n_labels)
        return np.repeat(counts, self.n_folds)
