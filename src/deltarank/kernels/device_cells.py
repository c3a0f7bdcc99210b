"""The elementwise work of a pass on a CUDA device as one Triton kernel: a read and a write a cell.

Imported only where there is a CUDA device, on which PyTorch brings Triton along.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

ROWS, COLUMNS = 64, 128


@triton.jit
def _cells(scores, weights, sums, n_rows, n_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row < n_rows)[:, None] & (column < n_columns)[None, :]
    place = scores + row.to(tl.int64)[:, None] * n_columns + column[None, :]
    weight = tl.load(weights + row, mask=row < n_rows, other=0.0)[:, None]
    score = tl.load(place, mask=inside, other=0.0)
    small = tl.exp(-tl.abs(score))
    chance = tl.where(score >= 0, 1.0, small) / (1.0 + small)
    loss = weight * (tl.maximum(score, 0.0) + libdevice.log1p(small))
    residual = weight * chance
    tl.store(place, residual, mask=inside)
    into = sums + tl.program_id(0) * 3 * n_columns + column
    there = column < n_columns
    tl.store(into, tl.sum(loss, axis=0), mask=there)
    tl.store(into + n_columns, tl.sum(residual * (1.0 - chance), axis=0), mask=there)
    tl.store(into + 2 * n_columns, tl.sum(residual, axis=0), mask=there)


def turn_scores(scores: Any, weights: Any) -> Any:
    """Turn scores into weighted chances, in place; return sums (3, p) of their cells in float64.

    The sums are those of losses log(1 + exp(score)), curvatures and chances. A program adds up
    `ROWS` rows in float32, their sums are added up in float64.
    """
    n_rows, n_columns = scores.shape
    grid = (triton.cdiv(n_rows, ROWS), triton.cdiv(n_columns, COLUMNS))
    sums = torch.empty(grid[0], 3, n_columns, device=scores.device)
    with torch.cuda.device(scores.device):
        _cells[grid](scores, weights, sums, n_rows, n_columns, ROWS=ROWS, COLUMNS=COLUMNS)
    return sums.sum(dim=0, dtype=torch.float64)
