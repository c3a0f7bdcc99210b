"""One pass over the data for losses of label pairs: all labels are one problem."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from deltarank.core import threads
from deltarank.core.blas import one_blas_thread
from deltarank.core.choices import choose
from deltarank.core.labels import LabelSets
from deltarank.core.progress import progress
from deltarank.linear.coordinates import Coordinates
from deltarank.linear.objective import Objective
from deltarank.linear.rows.local import LocalRows
from deltarank.linear.rows.matrices import Array, chunks, coupled_chunk
from deltarank.linear.rows.protocol import Sums
from deltarank.linear.solvers.array_steps import ArraySteps
from deltarank.linear.solvers.lbfgs import Stage, lbfgs
from deltarank.linear.solvers.precision import Precision
from deltarank.linear.solvers.solution import Solution
from deltarank.linear.solvers.states import Evaluation, Start
from deltarank.metrics.kernels.pairwise import PAIRWISE, rounded_hinge_pairs
from deltarank.metrics.pairwise import own_losses, plain_pairs

MEMORY = 10
BYTES_OF_HISTORY = 2**30
# Of each variable, histories and gradients of parts aside: measured.
BYTES_OF_VECTORS = 112
SMALLEST_CURVATURE = 1e-10
# The solver's estimate of the gap was seen to be 20 times too small here: one problem of many
# labels has slow directions that the first, fast steps do not show.
MARGIN = 30.0
# Most problems take one descent; what those that take more have done is shown with this reserve.
SHARE_OF_A_DESCENT = 0.9


class PairLoss(NamedTuple):
    """A kernel of `metrics.kernels.pairwise` and its curvature in a score difference of 0.

    `bipartite` losses are sums over relevant and irrelevant labels; the others bend alike for
    every label.
    """

    kernel: Any
    curvature: float
    bipartite: bool = True


# What can be minimised: linear alone has no minimum, and the hinge's kink is rounded off.
PAIR_LOSSES = {
    "logistic": PairLoss(PAIRWISE["logistic"], 0.25),
    "exponential": PairLoss(PAIRWISE["exponential"], 1.0),
    "squared": PairLoss(PAIRWISE["squared"], 2.0),
    "squared_hinge": PairLoss(PAIRWISE["squared_hinge"], 2.0),
    "hinge": PairLoss(rounded_hinge_pairs, 1.0),
    "penalized_linear": PairLoss(PAIRWISE["penalized_linear"], 1.0, bipartite=False),
    "all_pairs_squared": PairLoss(PAIRWISE["all_pairs_squared"], 2.0, bipartite=False),
}


def pair_loss(name: Any) -> PairLoss:
    """Return what a name stands for: a pairwise loss of ours, or a loss entered in `LOSSES`."""
    # A loss made of pieces may have no curvature at 0; then the scale is that of the hinge.
    pair_by_pair = {
        key: PairLoss(plain_pairs(loss), float(loss.curvature(0.0)) or 1.0)
        for key, loss in own_losses().items()
    }
    return choose({**pair_by_pair, **PAIR_LOSSES}, name, "loss")


def bytes_of_solver(shape: tuple[int, int], n_labels: int) -> int:
    """Return about what solving takes for rows of this shape: vectors, histories, gradients."""
    n_variables = n_labels * (shape[1] + 1)
    n_parts = len(chunks(np.arange(shape[0])))
    return n_variables * (BYTES_OF_VECTORS + 8 * _history(n_variables) + 8 * n_parts)


def _history(n_variables: int) -> int:
    """Return how many pairs of steps and gradients are remembered, in float32."""
    return int(np.clip(BYTES_OF_HISTORY // (8 * n_variables), 3, MEMORY))


class PairwisePass:
    r"""The objective ``sum_i w_i sum_pq phi(h_p(x_i) - h_q(x_i)) + sum_l ||coef_l||^2 / (2 C)``.

    The variables are those of all labels' problems in `Objective`, one after the other. The
    solver's diagonal is the curvature at equal scores: how often a label is in a pair, times the
    spectrum of the features. Products are taken in the precision of X.

    Parameters
    ----------
    X : dense or CSR matrix
    labels : LabelSets
    weights : ndarray of shape (n, 2)
        What a pair of a row counts, and what the row counts; rows whose pairs count 0 are not read.
    loss : PairLoss
    C : float
    """

    def __init__(
        self, X: Any, labels: LabelSets, weights: Array, *, loss: PairLoss, C: float
    ) -> None:
        self._rows = LocalRows(X, labels, weights[:, 0])
        coordinates = Coordinates.rotated(self._rows.moments(), self._rows)
        self._each = Objective(self._rows, C=C, coordinates=coordinates)
        self._labels, self._weights, self._loss = labels, weights, loss
        self._curvatures = loss.curvature * _pair_counts(labels, weights[:, 0], loss.bipartite)
        self.shape = self._each.shape

    def evaluate(self, points: Array, problems: Array, precision: Precision) -> Evaluation:
        """Evaluate the one problem at points of shape (1, m (d + 1))."""
        matrix, coordinates = self._rows.matrix, self._each.coordinates
        point = points.reshape(self.shape)
        problem = matrix.problem(coordinates.to_rows(point[:, :-1]), point[:, -1], matrix.dtype)
        tasks = [
            partial(coupled_chunk, matrix, rows, problem, self._row_losses)
            for rows in chunks(self._rows.parts[0])
        ]
        with one_blas_thread():
            values, residuals, gradients = zip(*threads.run(tasks), strict=True)
        residual = sum(residuals)
        gradient = matrix.centred(matrix.total(list(gradients)), residual)
        none = np.zeros(self.shape[0])
        labels = self._each.with_penalty(point, Sums(none, self._curvatures, residual, gradient))
        diagonal = labels.diagonal.reshape(1, -1)
        return Evaluation(
            np.array([sum(values) + labels.value.sum()]),
            labels.gradient.reshape(1, -1),
            # Without a penalty a feature that never varies has no curvature at all.
            np.maximum(diagonal, SMALLEST_CURVATURE * diagonal.max()),
        )

    def _row_losses(self, scores: Array, rows: Array) -> float:
        losses = np.empty(len(rows))
        labels = (self._labels.starts, self._labels.members)
        self._loss.kernel(scores, rows, self._weights, labels, losses)
        return float(losses.sum())

    def solve(self, *, tol: float, max_iter: int) -> Solution:
        """Minimise from scores of zero to a relative gap of about ``tol``.

        On losses made of pieces, the solver may get stuck with pairs of steps and gradients that
        tell of curvature where there is none; it then goes on without them, as long as that helps.
        """
        n_variables = self.shape[0] * self.shape[1]
        point, value, n_used = np.zeros((1, n_variables)), np.inf, 0
        with progress("solving", 1.0) as done:
            while True:
                done.each = SHARE_OF_A_DESCENT * done.left
                solution = self._descend(point, tol / MARGIN, max_iter - n_used)
                n_used += int(solution.n_iter[0])
                gain = value - solution.value[0]
                if solution.converged[0] or n_used >= max_iter or not gain > 0:
                    return solution._replace(n_iter=np.array([n_used]))
                point, value = solution.point, solution.value[0]

    def _descend(self, point: Array, tol: float, max_iter: int) -> Solution:
        start = Start(point, point, np.zeros_like(point))
        with one_blas_thread():
            return lbfgs(
                self.evaluate,
                start,
                ArraySteps(start, _history(point.size)),
                stages=(Stage(Precision.EXACT),),
                tol=tol,
                max_iter=max_iter,
            )

    def to_features(self, points: Array) -> tuple[Array, Array]:
        """Return coefficients (m, d) and intercepts (m,) of the features as they were given."""
        return self._each.to_features(points.reshape(self.shape))


def _pair_counts(labels: LabelSets, weights: Array, bipartite: bool) -> Array:
    """Return the weight of the pairs that each label is in, shape (m,)."""
    m, sizes = labels.n_labels, labels.sizes
    if not bipartite:
        return np.full(m, (m - 1) * weights.sum())
    ranked = weights * ~labels.trivial
    as_relevant, as_other = ranked * (m - sizes), ranked * sizes
    counts = np.full(m, as_other.sum())
    change = (as_relevant - as_other)[labels.rows]
    return counts + np.bincount(labels.members, weights=change, minlength=m)
