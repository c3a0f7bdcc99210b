"""Histograms of all features on a CUDA device: rows sorted by bin once, then sums of stretches.

Imported only where there is a CUDA device, on which PyTorch brings Triton along.
"""

from typing import Any

import torch
import triton
import triton.language as tl

ROWS, COLUMNS = 32, 128


@triton.jit
def _stretches(
    cells, order, starts, found, n_rows, n_columns, n_bins,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    line, feature = tl.program_id(0), tl.program_id(0) // n_bins
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    there = column < n_columns
    begin = tl.load(starts + line + feature)
    end = tl.load(starts + line + feature + 1)
    every = tl.zeros((COLUMNS,), dtype=tl.float32)
    relevant = tl.zeros((COLUMNS,), dtype=tl.float32)
    for first in range(begin, end, ROWS):
        place = first + tl.arange(0, ROWS)
        inside = place < end
        row = tl.load(order + feature.to(tl.int64) * n_rows + place, mask=inside, other=0)
        where = row.to(tl.int64)[:, None] * n_columns + column[None, :]
        cell = tl.load(cells + where, mask=inside[:, None] & there[None, :], other=0.0)
        every += tl.sum(tl.abs(cell), axis=0)
        relevant += tl.sum(tl.maximum(cell, 0.0), axis=0)
    into = found + line.to(tl.int64) * 2 * n_columns + column
    tl.store(into, every, mask=there)
    tl.store(into + n_columns, relevant, mask=there)


def bin_sums(cells: Any, order: Any, starts: Any) -> Any:
    """Return the sums (d, n_bins, 2, m) of all and of the relevant cells (n, m) in each bin.

    Irrelevant cells are negative. Row ``order[f, k]`` is the k-th in the order of feature f's
    bins, and bin b has those from ``starts[f, b]`` to ``starts[f, b + 1]``.
    """
    (n_features, n_rows), n_columns = order.shape, cells.shape[1]
    n_bins = starts.shape[1] - 1
    found = torch.empty(n_features, n_bins, 2, n_columns, device=cells.device)
    grid = (n_features * n_bins, triton.cdiv(n_columns, COLUMNS))
    with torch.cuda.device(cells.device):
        _stretches[grid](
            cells, order, starts, found, n_rows, n_columns, n_bins, ROWS=ROWS, COLUMNS=COLUMNS
        )
    return found
