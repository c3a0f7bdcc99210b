"""What a pass does with scores on a CUDA device, in Triton: one read and one write per cell.

Imported only where there is a CUDA device, on which PyTorch brings Triton along.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

ROWS, COLUMNS = 64, 128
# With two more numbers per cell fewer rows fit into registers.
WEIGHTED_ROWS = 16
# Hessians are made in square tiles, from this many rows at a time, by about this many programs.
TILE, ROWS_AT_A_TIME, PROGRAMS = 128, 64, 1024


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


@triton.jit
def _weighted(
    scores, costs, targets, curvatures, sums, n_rows, n_columns,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row < n_rows)[:, None] & (column < n_columns)[None, :]
    place = row.to(tl.int64)[:, None] * n_columns + column[None, :]
    score = tl.load(scores + place, mask=inside, other=0.0)
    cost = tl.load(costs + place, mask=inside, other=0.0)
    target = tl.load(targets + place, mask=inside, other=0.0)
    small = tl.exp(-tl.abs(score))
    chance = tl.where(score >= 0, 1.0, small) / (1.0 + small)
    loss = cost * (tl.maximum(score, 0.0) + libdevice.log1p(small)) - target * score
    tl.store(scores + place, cost * chance - target, mask=inside)
    tl.store(curvatures + place, cost * chance * (1.0 - chance), mask=inside)
    into = sums + tl.program_id(0) * n_columns + column
    tl.store(into, tl.sum(loss, axis=0), mask=column < n_columns)


def turn_weighted(scores: Any, costs: Any, targets: Any) -> Any:
    """Turn scores (n, p) into residuals, in place; return losses (p,) and curvatures (n, p).

    A cell's loss is ``cost log(1 + exp(score)) - target score``.
    """
    n_rows, n_columns = scores.shape
    grid = (triton.cdiv(n_rows, WEIGHTED_ROWS), triton.cdiv(n_columns, COLUMNS))
    sums = torch.empty(grid[0], n_columns, device=scores.device)
    curvatures = torch.empty_like(scores)
    with torch.cuda.device(scores.device):
        _weighted[grid](
            scores, costs, targets, curvatures, sums, n_rows, n_columns,
            ROWS=WEIGHTED_ROWS, COLUMNS=COLUMNS,
        )  # fmt: skip
    return sums.sum(dim=0, dtype=torch.float64), curvatures


@triton.jit
def _outer(
    high, low, masses, found, n_rows, width, n_problems, rows_a_part, n_tiles,
    CAREFUL: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    problem, part, tile = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    above = (tile // n_tiles) * TILE + tl.arange(0, TILE)
    across = (tile % n_tiles) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for begin in range(part * rows_a_part, tl.minimum((part + 1) * rows_a_part, n_rows), ROWS):
        row = (begin + tl.arange(0, ROWS)).to(tl.int64)
        there = row < n_rows
        mass = tl.load(masses + row * n_problems + problem, mask=there, other=0.0)
        # Columns of x' are rows of x: both factors are read as they lie in memory.
        upper = above[:, None] + row[None, :] * width
        lower = row[:, None] * width + across[None, :]
        left = tl.load(high + upper, mask=there[None, :], other=0.0)
        right = tl.load(high + lower, mask=there[:, None], other=0.0).to(tl.float32)
        if CAREFUL:
            whole = left.to(tl.float32) + tl.load(low + upper, mask=there[None, :], other=0.0)
            right += tl.load(low + lower, mask=there[:, None], other=0.0)
            whole, right = whole * mass[None, :], right * mass[:, None]
            left, short = whole.to(tl.float16), right.to(tl.float16)
            total = tl.dot(left, (right - short.to(tl.float32)).to(tl.float16), total)
            total = tl.dot((whole - left.to(tl.float32)).to(tl.float16), short, total)
        else:
            short = (right * mass[:, None]).to(tl.bfloat16)
        total = tl.dot(left, short, total)
    into = found + (part * n_problems + problem).to(tl.int64) * width * width
    tl.store(into + above[:, None] * width + across[None, :], total)


def weighted_products(curvatures: Any, x: Any, rest: Any = None) -> Any:
    """Return ``sum_i c_ip x_i x_i'`` (p, w, w), w a multiple of `TILE`.

    With x (n, w) in bfloat16, factors have two or three digits; x and a rest, in float16, have six.
    """
    (n_rows, width), n_problems, careful = x.shape, curvatures.shape[1], rest is not None
    n_tiles = width // TILE
    n_parts = max(1, min(16, PROGRAMS // (n_problems * n_tiles**2)))
    found = torch.empty(n_parts, n_problems, width, width, device=x.device)
    rows_a_part = triton.cdiv(triton.cdiv(n_rows, n_parts), ROWS_AT_A_TIME) * ROWS_AT_A_TIME
    # Small curvatures stay within the range of float16 as roots on both sides.
    masses = curvatures.sqrt() if careful else curvatures
    with torch.cuda.device(x.device):
        _outer[n_problems, n_parts, n_tiles**2](
            x, rest if careful else x, masses, found,
            n_rows, width, n_problems, rows_a_part, n_tiles,
            CAREFUL=careful, ROWS=ROWS_AT_A_TIME, TILE=TILE, num_warps=8,
        )  # fmt: skip
    return found.sum(dim=0)
