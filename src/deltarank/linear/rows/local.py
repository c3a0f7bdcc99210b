"""One pass over data in this machine's memory: values and gradients of all problems at once.

A problem is one label, or one label with one fold held out. Rows are taken in blocks, so no
(n, m) array is ever held; the blocks are grouped into chunks, one task a chunk.
"""

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from deltarank.core import threads
from deltarank.core.blas import one_blas_thread
from deltarank.core.labels import LabelSets
from deltarank.linear.rows.dense import DenseMatrix
from deltarank.linear.rows.matrices import Array, Cells, Frame, KernelLabels, Matrix, Problem
from deltarank.linear.rows.small import LARGEST_LOG_ODDS
from deltarank.linear.rows.sparse import SparseMatrix
from deltarank.linear.solvers.solution import Solution
from deltarank.linear.solvers.states import Evaluation, Start, State

# At least so many rows a task: fewer would not make up for adding their gradients.
ROWS_PER_CHUNK = 1024


class LocalPass:
    r"""The weighted, penalised logistic objectives of all problems.

    Problem (l, f) minimises, over the rows outside fold f,
    ``sum_i w_i c_il log(1 + exp(-y_il h_l(x_i))) + ||coef||^2 / (2 C)``.

    Parameters
    ----------
    matrix : Matrix
    labels : LabelSets
    weights : ndarray of shape (n,)
        Weights of the rows; rows of weight zero are never read.
    C : float
    positive_cost : float or ndarray of shape (n,)
        c_il of the relevant labels, one for all rows or one a row; the others cost one.
    penalize_intercept : bool
    folds : ndarray of int, shape (n,), or None
        Held-out fold of each row. Problem ``l * n_folds + f`` is label l without fold f.
    """

    engine = "local"
    state: State | None

    def __init__(
        self,
        matrix: Matrix,
        labels: LabelSets,
        weights: Array,
        *,
        C: float,
        positive_cost: float | Array = 1.0,
        penalize_intercept: bool = False,
        folds: Array | None = None,
    ) -> None:
        self.matrix, self.labels, self.C = matrix, labels, C
        self.weights = weights.astype(np.float32)
        self.positive_cost = np.broadcast_to(positive_cost, len(weights)).astype(np.float32)
        self._marked, is_relevant = labels.with_unknown()
        self._costs = np.where(is_relevant, self.positive_cost[self._marked.rows], np.float32(0.0))
        self.penalize_intercept = penalize_intercept
        rows = np.flatnonzero(self.weights > 0)
        self.n_folds = 1 if folds is None else int(folds.max()) + 1
        if folds is None:
            self.parts = [rows]
        else:
            self.parts = [rows[folds[rows] == f] for f in range(self.n_folds)]
        # Where the solver ended, if that is wanted: see `linear.growth`.
        self.remembers, self.state = False, None
        n_features = len(matrix.coordinates.center)
        self.shape = (labels.n_labels * self.n_folds, n_features + 1)

    @classmethod
    def over(
        cls, X: Any, labels: LabelSets, weights: Array, frame: Frame | None = None, **options: Any
    ) -> "LocalPass":
        """Return the pass over a dense or CSR matrix; for the options see the class."""
        matrix = SparseMatrix if sparse.issparse(X) else DenseMatrix
        return cls(matrix(X, np.flatnonzero(weights), weights, frame), labels, weights, **options)

    def start(self, problems: Array) -> Start:
        r"""Return linear discriminants, and gradients at constant scores, from label means alone.

        The discriminant raises the mean score of the positives by v, and scores of variance v
        raise E exp(score) by exp(v / 2): the intercept is lowered by v / 2. A Newton step from
        constant scores does not know this and overshoots for rare labels. The discriminant is
        shortened so that v grows like its root.
        """
        total, positive, sums = self._label_moments(problems, costly=False)
        costly, costly_sums, spectrum = positive, sums, self.matrix.coordinates.spectrum
        if self.positives_cost_more:
            _, costly, costly_sums = self._label_moments(problems, costly=True)
        # Features are centred, so the negatives' sums are minus those of all other rows.
        negative, negative_sums = total - positive, -sums
        if self.labels.unknown is not None:
            listed = self._sums_of(self.labels.unknown, problems, self.weights)
            negative = negative - listed[0]
            negative_sums = negative_sums - self._centred_variables(*listed)
        negative = np.maximum(negative, 0.0)
        mass = costly + negative
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = np.nan_to_num(np.log(costly) - np.log(negative))
        odds = np.clip(odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
        tiny = np.finfo(float).tiny
        share = costly / np.maximum(mass, tiny)
        constant, gradient = np.zeros((2, len(problems), self.shape[1]))
        constant[:, -1] = odds
        gradient[:, :-1] = (share - 1)[:, None] * costly_sums + share[:, None] * negative_sums
        point = constant.copy()
        point[:, :-1] = -gradient[:, :-1]
        point[:, :-1] /= np.multiply.outer(share * (1 - share) * mass, spectrum) + 1 / self.C
        lead = negative[:, None] * sums - positive[:, None] * negative_sums
        gain = np.einsum("ij,ij->i", point[:, :-1], lead)
        gain /= np.maximum(positive * negative, tiny)
        point[:, :-1] /= np.sqrt(np.maximum(gain, 1.0))[:, None]
        point[:, -1] -= (0.5 - share) * np.minimum(gain, 1.0)
        return Start(point, constant, gradient)

    @property
    def positives_cost_more(self) -> bool:
        """Whether any positive cell costs other than one."""
        return bool((self.positive_cost != 1).any())

    def start_at(self, coef: Array, intercept: Array) -> Start:
        """Return a start at the coefficients of the features of an earlier fit.

        Labels that were not fitted, whose intercept is NaN, get a start of their own. The gradient
        at constant scores tells the curvature along the way from there, as for any start.
        """
        places = self.matrix.coordinates
        coef = coef.astype(np.float64)
        # Threads of BLAS would spin on, at the cost of the passes that follow.
        with one_blas_thread():
            own = self.start(np.arange(self.shape[0]))
            point = np.column_stack([places.to_variables(coef), intercept + coef @ places.center])
        return own._replace(point=np.where(np.isnan(intercept)[:, None], own.point, point))

    def with_folds(self, folds: Array) -> "LocalPass":
        """Return the pass over the same data with folds held out."""
        return LocalPass(
            self.matrix,
            self.labels,
            self.weights,
            C=self.C,
            positive_cost=self.positive_cost,
            penalize_intercept=self.penalize_intercept,
            folds=folds,
        )

    def median_of_folds(self, solution: Solution, n_folds: int) -> Start:
        """Return a start over all rows at the median of the solutions with a fold held out.

        Not the mean: without the one fold that holds a rare label its intercept has no bound.
        """
        point = np.median(solution.point.reshape(self.shape[0], n_folds, -1), axis=1)
        return Start(point, point, np.zeros_like(point), close=True)

    def at(self, C: float) -> "LocalPass":
        """Return the same pass with another penalty; the data are shared."""
        other = copy.copy(self)
        other.C = C
        return other

    def continued(self, solution: Solution, C: float) -> Start:
        """Return a start at this pass's C from a solution at another one, to first order.

        At the solution the gradient of the losses balances the old penalty, so the gradient with
        the new penalty is known, and the diagonal turns it into a step.
        """
        change = 1 / self.C - 1 / C
        coef = self.matrix.coordinates.to_coef(solution.point[:, :-1])
        gradient = change * self._penalty(solution.point, coef)[1]
        diagonal = solution.diagonal.copy()
        diagonal[:, : None if self.penalize_intercept else -1] += change
        return Start(solution.point - gradient / diagonal, solution.point, gradient)

    def _label_moments(self, problems: Array, *, costly: bool) -> tuple[Array, Array, Array]:
        """Return each problem's total weight, positive weight and centred sum of positives."""
        total, positive, sums = self.label_sums(problems, costly=costly)
        return total, positive, self._centred_variables(positive, sums)

    def _centred_variables(self, masses: Array, sums: Array) -> Array:
        """Turn the kernels' sums of rows, of total weight `masses`, into the solver's variables."""
        return self.matrix.coordinates.to_variables(self.matrix.centred(sums, masses))

    def label_sums(self, problems: Array, *, costly: bool) -> tuple[Array, Array, Array]:
        """Return each problem's total weight, positive weight and sum of positives.

        Sums are in the kernels' form; if `costly`, positive cells count as often as they cost.
        """
        weights = self.weights * self.positive_cost if costly else self.weights
        total = np.zeros(len(problems))
        for part, columns in self._groups(problems):
            total[columns] += np.sum(weights[part], dtype=np.float64)
        return total, *self._sums_of(self.labels, problems, weights)

    def _sums_of(self, labels: LabelSets, problems: Array, weights: Array) -> tuple[Array, Array]:
        """Return the weight, and the sum in the kernels' form, of rows that hold each label."""
        mass, sums = np.zeros(len(problems)), np.zeros((len(problems), self.shape[1] - 1))
        for part, columns in self._groups(problems):
            listed = self._kernel_labels(labels, problems[columns])
            shared = (weights, listed, len(problems[columns]))
            pieces = self.chunks(part)
            tasks = [partial(self.matrix.label_sums, rows, *shared) for rows in pieces]
            for masses, found in threads.run(tasks):
                mass[columns] += masses
                sums[columns] += found
        return mass, sums

    def value_and_gradient(self, points: Array, problems: Array) -> Evaluation:
        """Evaluate the given problems, each at its own point, in one pass over the rows."""
        coef = self.matrix.coordinates.to_coef(points[:, :-1])
        return self.with_penalty(points, coef, *self._losses(coef, points[:, -1], problems))

    def _losses(self, coef: Array, offset: Array, problems: Array) -> tuple[Array, Array]:
        """Return the sums (3, p) and the kernels' gradient (p, d) over all rows."""
        groups = list(self._tiles(problems))
        tasks, owners = [], []
        for owner, (part, columns) in enumerate(groups):
            cells = self.cells(coef[columns], offset[columns], problems[columns])
            for rows in self.chunks(part):
                tasks.append(partial(self.matrix.chunk, rows, cells))
                owners.append(owner)
        with one_blas_thread():
            results = threads.run(tasks)
        sums, gradient = np.zeros((3, len(problems))), np.zeros_like(coef)
        for owner, (_, columns) in enumerate(groups):
            mine = [result for o, result in zip(owners, results, strict=True) if o == owner]
            sums[:, columns] += sum(s for s, _ in mine)
            gradient[columns] += self.matrix.total([g for _, g in mine])
        return sums, gradient

    def cells(self, coef: Array, offset: Array, problems: Array) -> Cells:
        """Return what the kernels need to evaluate problems at the given coefficients."""
        return self.kernel_cells(self.matrix.problem(coef, offset), problems)

    def kernel_cells(self, problem: Problem, problems: Array) -> Cells:
        """Return the same where the matrix has made its form of the coefficients already."""
        listed = self._kernel_labels(self._marked, problems)
        return Cells(problem, self.weights, listed, self._costs)

    def with_penalty(self, points: Array, coef: Array, sums: Array, gradient: Array) -> Evaluation:
        """Return the evaluation of problems from their losses' sums and gradients over rows."""
        losses, curvatures, residuals = sums
        places = self.matrix.coordinates
        square, slope = self._penalty(points, coef)
        slope /= self.C
        slope[:, :-1] += places.to_variables(self.matrix.centred(gradient, residuals))
        slope[:, -1] += residuals
        diagonal = np.empty_like(points)
        np.multiply.outer(curvatures, places.spectrum, out=diagonal[:, :-1])
        diagonal[:, -1] = np.maximum(curvatures, np.finfo(np.float32).tiny)
        diagonal[:, : None if self.penalize_intercept else -1] += 1 / self.C
        return Evaluation(losses + square / (2 * self.C), slope, diagonal)

    def penalty(self, points: Array) -> Evaluation:
        """Return what the penalty alone contributes to the evaluation of all problems."""
        coef = self.matrix.coordinates.to_coef(points[:, :-1])
        return self.with_penalty(points, coef, np.zeros((3, len(points))), np.zeros_like(coef))

    def _penalty(self, points: Array, coef: Array) -> tuple[Array, Array]:
        """Return the squared norm that is penalised, and half its gradient."""
        slope = points.copy()
        slope[:, -1] = 0.0
        square = np.einsum("ij,ij->i", slope, slope)
        if self.penalize_intercept:
            intercept = points[:, -1] - coef @ self.matrix.coordinates.center
            square += intercept**2
            slope += np.multiply.outer(intercept, self.intercept_direction)
        return square, slope

    @property
    def intercept_direction(self) -> Array:
        """Gradient of the intercept with respect to the variables, shape (v,)."""
        places = self.matrix.coordinates
        return np.append(-places.to_variables(places.center[None])[0], 1.0)

    def to_features(self, points: Array) -> tuple[Array, Array]:
        """Return coefficients (p, d) and intercepts (p,) of the features as they were given."""
        places = self.matrix.coordinates
        with one_blas_thread():
            coef = points[:, :-1] if places.basis is None else points[:, :-1] @ places.basis.T
            return coef, points[:, -1] - coef @ places.center

    def _tiles(self, problems: Array) -> Iterator[tuple[Array, Any]]:
        """Cut the groups into so many columns at a time as the matrix is quickest with."""
        width = self.matrix.columns_at_a_time
        for part, columns in self._groups(problems):
            chosen = np.arange(len(problems))[columns]
            n_tiles = -(-len(chosen) // width)
            tiles = [columns] if n_tiles == 1 else np.array_split(chosen, n_tiles)
            for tile in tiles:
                yield part, tile

    def _groups(self, problems: Array) -> Iterator[tuple[Array, Any]]:
        if self.n_folds == 1:
            yield self.parts[0], slice(None)
            return
        for f, part in enumerate(self.parts):
            columns = np.flatnonzero(problems % self.n_folds != f)
            if columns.size:
                yield part, columns

    def chunks(self, part: Array) -> list[Array]:
        """Return the given rows in pieces, a task each; one empty piece if there are none."""
        return [part[rows] for rows in threads.even_parts(len(part), ROWS_PER_CHUNK)] or [part]

    def _kernel_labels(self, labels: LabelSets, problems: Array) -> KernelLabels:
        """Return label sets as the kernels want them; see `logistic_block`."""
        first = np.searchsorted(problems // self.n_folds, np.arange(self.labels.n_labels + 1))
        return labels.starts, labels.members, first.astype(np.int32)

    @property
    def dtype(self) -> Any:
        """Kind of numbers the features are."""
        return self.matrix.dtype

    def arrays(self) -> Iterator[Array]:
        """Return all that the objectives are made of, but for the penalty."""
        yield from (self._marked.starts, self._marked.members, self._costs, self.weights)
        yield from self.matrix.arrays()

    def first_rows(self, n_rows: int) -> Iterator[Array]:
        """Return features, labels and costs of the first rows alone."""
        end = self._marked.starts[n_rows]
        yield from (self._marked.starts[: n_rows + 1], self._marked.members[:end])
        yield self._costs[:end]
        yield from self.matrix.first_rows(n_rows)

    @property
    def n_rows(self) -> int:
        """Number of rows that count."""
        return sum(len(part) for part in self.parts)

    def frequencies(self) -> Array:
        """Return how many rows are positive for each problem's label."""
        counts = np.bincount(self.labels.members, minlength=self.labels.n_labels)
        return np.repeat(counts, self.n_folds)
