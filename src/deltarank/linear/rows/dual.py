"""Rows as dual coordinate ascent wants them: cells of one label after the other.

Labels are problems of their own that share nothing but the rows, so threads take some labels each,
and any number of threads gives the same bits.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.core import memory, threads
from deltarank.core.labels import LabelSets
from deltarank.core.progress import progress
from deltarank.linear.kernels.dual_paths import ascend_labels, row_geometry
from deltarank.linear.kernels.lanes import LANES
from deltarank.linear.rows.tuning import LOCAL

Array = NDArray[Any]
NO_SCORES = np.empty((0, 0, 0), np.float32)
NO_POINTS, NO_ROWS = np.empty((0, 0), np.float32), np.empty(0, np.int64)


class Ascent(NamedTuple):
    """How problems are to be solved.

    Attributes
    ----------
    penalized : bool
        Whether intercepts are penalised.
    tol : float
        Relative duality gap to stop at.
    max_epochs : int
    """

    penalized: bool
    tol: float
    max_epochs: int


class DualProblems:
    """Cells of all labels, label by label.

    Parameters
    ----------
    matrix : tuple
        Starts, columns and float32 values of a CSR matrix.
    center : ndarray of shape (d,)
        Weighted mean of the features: problems whose rows are centred converge sooner.
    weights : ndarray of float32, shape (n,)
    marked : LabelSets
        Relevant and unknown labels of each row.
    costs : ndarray of float32
        What each of these cells costs, 0 if it is unknown.
    folds : list of tuple
        The rows of each fold that count, and all of its rows; without folds, one of all rows.
    """

    def __init__(
        self,
        matrix: tuple[Array, Array, Array],
        center: Array,
        weights: Array,
        marked: LabelSets,
        costs: Array,
        folds: list[tuple[Array, Array]],
    ) -> None:
        starts, indices, values = matrix
        self._weights, self._center, self._folds = weights, center, folds
        # Columns by how many rows they are in: those that most rows need stay in the cache.
        counts = np.bincount(indices, minlength=len(center))
        self._features = np.argsort(-counts, kind="stable").astype(np.int32)
        columns = np.empty_like(self._features)
        columns[self._features] = np.arange(len(center), dtype=np.int32)
        self._matrix = (starts, columns[indices], values)
        by_label = np.argsort(marked.members, kind="stable")
        self._counts = np.bincount(marked.members, minlength=marked.n_labels)
        ends = np.concatenate([[0], np.cumsum(self._counts)]).astype(np.int64)
        self._labels = (ends, marked.rows[by_label].astype(np.int32), costs[by_label])
        self._geometries: dict[bool, Any] = {}

    def solve(
        self, problems: Array, C: float, ascent: Ascent, starts: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Return points (p, d + 1), numbers of epochs (p,) and which have converged (p,).

        Problem ``l * n_folds + f`` is label l without fold f, and points are in the variables of
        the features as they are, the score at the centre last. Points to start from may be given.
        """
        points = np.empty((len(problems), len(self._center) + 1), np.float32)
        n_epochs, converged = np.empty(len(problems), np.int64), np.empty(len(problems), bool)
        begin = NO_POINTS if starts is None else self._shifted(starts, ascent, -1.0)
        Cs = np.array([C], np.float32)
        tasks, targets = [], []
        for rows, _, chosen in self._tasks(problems):
            # Each task writes to its own array, copied below, as problems need not be adjacent.
            solved = np.empty((len(chosen), points.shape[1]), np.float32)
            first_points = begin[chosen] if len(begin) else NO_POINTS
            labels = problems[chosen] // len(self._folds)
            tasks.append(
                partial(
                    self._ascend, rows, labels, Cs, ascent, first_points, solved, NO_ROWS, NO_SCORES
                )
            )
            targets.append((chosen, solved))
        for (chosen, solved), outcome in zip(targets, self._run(tasks), strict=True):
            points[chosen] = solved
            n_epochs[chosen], converged[chosen] = outcome
        return self._shifted(points, ascent, 1.0), n_epochs, converged

    def _shifted(self, points: Array, ascent: Ascent, sign: float) -> Array:
        """Turn intercepts into scores at the centre (1), or back (-1), where they are penalised."""
        points = points.astype(np.float32)
        if ascent.penalized:
            points[:, -1] += sign * (points[:, :-1] @ self._center)
        return points

    def held_out_scores(self, labels: Array, Cs: Array, ascent: Ascent) -> Array:
        """Return the scores (c, n, p) of every row by problems that go without its fold.

        One problem for each label and fold, along ascending values of C; rows of no fold score 0.
        """
        scores = np.zeros((len(Cs), len(self._weights), len(labels)), np.float32)
        n_folds, values = len(self._folds), Cs.astype(np.float32)
        problems = (labels[:, None] * n_folds + np.arange(n_folds)).reshape(-1)
        tasks = [
            partial(self._score, rows, unseen, labels, chosen // n_folds, values, ascent, scores)
            for rows, unseen, chosen in self._tasks(problems)
        ]
        self._run(tasks)
        return scores

    def _score(
        self, rows: Array, unseen: Array, labels: Array, columns: Array, Cs: Array, ascent: Ascent,
        scores: Array,
    ) -> None:  # fmt: skip
        """Write the scores of rows that some labels have not seen."""
        block = np.empty((len(Cs), len(unseen), len(columns)), np.float32)
        self._ascend(rows, labels[columns], Cs, ascent, NO_POINTS, NO_POINTS, unseen, block)
        scores[:, unseen[:, None], columns] = block

    def _ascend(
        self, rows: Array, labels: Array, Cs: Array, ascent: Ascent, *rest: Array
    ) -> tuple[Array, Array]:
        columns, geometry = self._geometry(ascent.penalized)
        rows_and_labels = (rows, self._weights, self._labels, labels, Cs, tuple(ascent))
        return ascend_labels(self._matrix, geometry, columns, *rows_and_labels, *rest)

    def _geometry(self, penalized: bool) -> tuple[Any, Any]:
        """Return the centre that problems are solved around, and how rows lie to it."""
        if penalized not in self._geometries:
            center = (self._center * (not penalized)).astype(np.float32)[self._features]
            norm = np.float32(np.square(center, dtype=np.float64).sum())
            geometry = (norm, *row_geometry(self._matrix, center))
            self._geometries[penalized] = (center, self._features), geometry
        return self._geometries[penalized]

    def _tasks(self, problems: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Yield rows to fit, rows to leave out, and where problems over these rows stand.

        Labels of like frequency, which take like numbers of epochs, are solved side by side.
        """
        n_folds = len(self._folds)
        for fold, (part, left_out) in enumerate(self._folds):
            others = [rows for f, (rows, _) in enumerate(self._folds) if f != fold] or [part]
            seen = np.sort(np.concatenate(others)).astype(np.int32)
            positions = np.flatnonzero(problems % n_folds == fold)
            positions = positions[
                np.argsort(-self._counts[problems[positions] // n_folds], kind="stable")
            ]
            for block in threads.row_blocks(len(positions), LANES):
                yield seen, left_out, positions[block]

    def _run(self, tasks: list[Any]) -> list[Any]:
        """Run tasks on all threads, some at a time: progress shows, and a fit can be stopped.

        Where there is not the memory for as many tasks as threads, fewer run at once.
        """
        results: list[Any] = []
        bytes_per_task = 4 * LANES * (2 * len(self._weights) + len(self._center))
        at_once = max(1, memory.budget() // bytes_per_task)
        n_threads = threads.n_threads()
        at_a_time = at_once if at_once < n_threads else LOCAL.tasks_per_thread * n_threads
        with progress("ascending", len(tasks)) as done:
            done.each = at_a_time
            for block in threads.row_blocks(len(tasks), at_a_time):
                results += threads.run(tasks[block])
                done(len(results))
        return results
