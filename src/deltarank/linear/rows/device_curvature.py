"""Hessians of single problems on a device, estimated from rows sampled by their curvature.

For a rare label a few rows hold nearly all of it: see `deltarank.linear.rows.curvature`.
"""

import torch
from torch import Tensor

from deltarank.linear.rows.device import DevicePass
from deltarank.linear.rows.device_layout import Block
from deltarank.linear.rows.device_products import tf32_products

# Rows sampled, a variable.
ROWS_PER_VARIABLE = 32
# Cells of sampled rows at a time: float64, and a few copies.
CELLS_AT_A_TIME = 2**26


def sampled_hessians(data: DevicePass, points: Tensor, problems: Tensor) -> Tensor:
    """Return the Hessians (p, v, v) of few problems, each at its own point."""
    _, coef, offset = data.places.linear(points)
    linear = coef.float(), offset.float()
    curvatures = torch.cat([_curvatures(data, block, *linear, problems) for block in data.blocks])
    drawn = [_draw(each, ROWS_PER_VARIABLE * data.shape[1]) for each in curvatures.T]
    found = torch.zeros(
        len(points), data.shape[1], data.shape[1], dtype=torch.float64, device=data.device
    )
    begin = 0
    for block in data.blocks:
        x = block.x.to_dense() if block.transposed is not None else block.x
        for hessian, (rows, masses) in zip(found, drawn, strict=True):
            mine = (rows >= begin) & (rows < begin + len(x))
            _add_rows(hessian, data, x, rows[mine] - begin, masses[mine])
        begin += len(x)
    if data.penalize_intercept:
        found += torch.outer(data.intercept_direction, data.intercept_direction) / data.C
    found.diagonal(dim1=1, dim2=2)[:, :-1] += 1 / data.C
    return found


def _curvatures(
    data: DevicePass, block: Block, coef: Tensor, offset: Tensor, problems: Tensor
) -> Tensor:
    """Return the curvatures (r, p) of a block's cells."""
    with tf32_products(data.device, False):
        chances = torch.addmm(offset, block.x, coef.T).sigmoid_()
    weights = data.cell_weights(block, slice(0, len(chances)), problems, len(problems))
    outside = problems % data.n_folds != block.fold if data.n_folds > 1 else 1.0
    return chances * (1 - chances) * weights * outside


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


def _add_rows(hessian: Tensor, data: DevicePass, x: Tensor, rows: Tensor, masses: Tensor) -> None:
    """Add the outer products of rows of a block, times their masses."""
    size = max(1, CELLS_AT_A_TIME // data.shape[1])
    for part, mass in zip(rows.split(size), masses.split(size), strict=True):
        z = data.places.from_blocks(x[part])
        hessian.addmm_(z.T, z * mass[:, None])
