"""Rounds of boosting: gradients of all labels, their sketch, a tree, values of its leaves."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.core.blas import one_blas_thread
from deltarank.core.labels import LabelSets
from deltarank.core.threads import even_parts, run
from deltarank.gradient_trees.growth import Growth, Tree
from deltarank.gradient_trees.kernels.cells import (
    NUMBERS,
    PADDING,
    add_up,
    move_scores,
    sketch_rows,
)
from deltarank.gradient_trees.kernels.histograms import CURVATURE, WIDTH

# Rows that are worth a task of their own.
ROWS_PER_TASK = 2048
# Labels enter a sketch scaled by this power of their curvature, inverted: with 0 frequent labels
# decide the splits, with 1/2 all labels count alike. Little hangs on it.
SCALING = 0.25
# A label's curvature is not taken to be less.
LEAST_LEVEL = 1e-12


class Cells(NamedTuple):
    """What rows and labels weigh: everything a loss needs beside scores."""

    signs: NDArray[np.int8]
    weights: NDArray[Any]
    costs: NDArray[Any]

    @classmethod
    def of(cls, labels: LabelSets, weights: Any, costs: Any, constant: Any, dtype: Any) -> "Cells":
        """Lay cells out; labels with a constant score have no sign."""
        n_places = -(-labels.n_labels // PADDING) * PADDING
        signs = np.zeros((labels.n_rows, n_places), np.int8)
        signs[:, : labels.n_labels] = -1
        signs[labels.rows, labels.members] = 1
        if labels.unknown is not None:
            signs[labels.unknown.rows, labels.unknown.members] = 0
        signs[:, : labels.n_labels][:, constant] = 0
        return cls(signs, weights.astype(dtype), costs.astype(dtype))


class Rounds:
    """The state between trees: scores of all rows, and how curved each label's loss is."""

    def __init__(
        self,
        cells: Cells,
        growth: Growth,
        scores: NDArray[Any],
        loss: str,
        l2: float,
        learning_rate: float,
        sketch_size: int,
        generator: np.random.Generator,
    ) -> None:
        self.cells, self.growth, self.scores = cells, growth, scores
        self.loss, self.l2, self.learning_rate = NUMBERS[loss], l2, learning_rate
        self.sketch_size, self.generator = sketch_size, generator
        self.labels = np.flatnonzero(cells.signs.any(axis=0))
        self._sketches = np.zeros((len(scores), WIDTH), scores.dtype)
        self._leaves = np.empty(len(scores), np.int32)
        self._levels: NDArray[np.float64] | None = None

    def next(self, rows: Any, others: Any, features: Any) -> tuple[Tree, NDArray[np.float64]]:
        """Grow a tree on some rows by some features, and move the scores of these and others."""
        self._sketch(rows)
        tree = self.growth.grow(rows.copy(), self._sketches, features)
        sums = self._sums(tree.order, tree.starts)
        self._levels = sums[:, 1].sum(axis=0)
        values = -self.learning_rate * sums[:, 0] / (sums[:, 1] + self.l2)
        self._leaves[tree.order] = np.repeat(np.arange(tree.n_leaves), np.diff(tree.starts))
        if len(others):
            self.growth.leaves_of(tree, others, self._leaves)
        moves = (self._leaves, values.astype(self.scores.dtype), self.scores)
        blocks = even_parts(len(self.scores), ROWS_PER_TASK)
        run([partial(move_scores, block.start, block.stop, *moves) for block in blocks])
        return tree, values

    def _sketch(self, rows: Any) -> None:
        """Set sketch and curvature of rows from their scores."""
        if self._levels is None:
            self._levels = self._sums(rows, np.array([0, len(rows)]))[0, 1]
        total = float(self.cells.weights[rows].sum(dtype=np.float64))
        made_by = (it.astype(self.scores.dtype) for it in self._projection(self._levels / total))
        parts = (self.scores, *self.cells, *made_by, self._sketches)
        blocks = [rows[block] for block in even_parts(len(rows), ROWS_PER_TASK)]
        with one_blas_thread():
            run([partial(sketch_rows, self.loss, block, *parts) for block in blocks])

    def _projection(self, levels: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return what turns gradients into their sketch, and curvatures into their mean.

        The gain of a split over all labels is a sum of G_l^2 / (H_l + l2). Labels that are scaled
        by s_l share one curvature, their mean by s_l^2, so a label counts as s_l^2 times its G_l^2.
        """
        labels, size = self.labels, self.sketch_size
        levels = np.maximum(levels[labels], LEAST_LEVEL)
        scales = levels**-SCALING
        if len(labels) <= size:
            drawn = np.eye(len(labels), CURVATURE)
        else:
            drawn = np.zeros((len(labels), CURVATURE))
            drawn[:, :size] = self.generator.standard_normal((len(labels), size)) / np.sqrt(size)
        whole = (scales**2 * levels).sum()
        projection = np.zeros((self.scores.shape[1], CURVATURE))
        projection[labels] = drawn * scales[:, None] / np.sqrt(whole)
        mean = np.zeros(self.scores.shape[1])
        mean[labels] = scales**2 / whole
        return projection, mean

    def _sums(self, rows: Any, starts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return gradients and curvatures, (leaves, 2, places), of rows leaf by leaf.

        Tasks are parts of the rows, whatever leaves these are in.
        """
        tasks, leaves, parts = [], [], (self.scores, *self.cells)
        for block in even_parts(len(rows), ROWS_PER_TASK):
            inner = starts[(starts > block.start) & (starts < block.stop)]
            ends = np.array([block.start, *inner, block.stop])
            leaves.append(np.searchsorted(starts, ends[:-1], side="right") - 1)
            sums = np.empty((len(ends) - 1, 2, self.scores.shape[1]))
            tasks.append((partial(add_up, self.loss, rows, ends, *parts, sums), sums))
        run([task for task, _ in tasks])
        total = np.zeros((len(starts) - 1, 2, self.scores.shape[1]))
        for where, (_, sums) in zip(leaves, tasks, strict=True):
            total[where] += sums
        return total
