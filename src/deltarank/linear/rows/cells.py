"""Cells (row and label) of a block of rows under any loss, written in NumPy alone.

The logistic loss has a compiled form of this: see `linear.kernels.logistic`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.core.losses import Loss

Array = NDArray[Any]
# Starts and members of label lists, and the first column of each label: see `logistic_block`.
KernelLabels = tuple[Array, Array, Array]


class Cells(NamedTuple):
    """What a pass needs beside the rows to evaluate their cells.

    Attributes
    ----------
    problem : tuple
        Coefficients (d, p) and offsets (p,) in the form that kernels multiply by.
    weights : ndarray of float32, shape (n,)
    labels : KernelLabels
    costs : ndarray of float32
        One value per listed cell; 0 if it is unknown.
    """

    problem: tuple[Array, Array]
    weights: Array
    labels: KernelLabels
    costs: Array


def signs_and_masses(cells: Cells, rows: Array) -> tuple[Array, Array]:
    """Return the sign of each cell's margin and what the cell counts, each of shape (b, p)."""
    starts, members, first_column = cells.labels
    shape = (len(rows), len(cells.problem[1]))
    signs, masses = np.full(shape, -1.0), np.ones(shape)
    counts = starts[rows + 1] - starts[rows]
    listed = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in rows] or [rows])
    row = np.repeat(np.arange(len(rows)), counts)
    begin, end = first_column[members[listed]], first_column[members[listed] + 1]
    # A label owns as many columns as it has problems: none, one, or one per fold.
    width = end - begin
    column = np.repeat(begin + width - np.cumsum(width), width) + np.arange(width.sum())
    row, cost = np.repeat(row, width), np.repeat(cells.costs[listed], width)
    signs[row, column], masses[row, column] = 1.0, cost
    return signs, masses * cells.weights[rows][:, None]


def turn_scores(loss: Loss, cells: Cells, sums: Array, scores: Array, rows: Array) -> float:
    """Replace scores by residuals; add losses, curvatures and residuals up to ``sums`` (3, p).

    Returns the sum of the losses.
    """
    signs, masses = signs_and_masses(cells, rows)
    margins = signs * scores
    value, slope = loss.value_and_derivative(margins)
    sums[0] += (masses * value).sum(axis=0)
    sums[1] += (masses * loss.curvature(margins)).sum(axis=0)
    np.multiply(masses * signs, slope, out=scores)
    sums[2] += scores.sum(axis=0)
    return float(sums[0].sum())


def turn_to_curvatures(loss: Loss, cells: Cells, scores: Array, rows: Array) -> None:
    """Replace scores by curvatures."""
    signs, masses = signs_and_masses(cells, rows)
    scores[:] = masses * loss.curvature(signs * scores)
