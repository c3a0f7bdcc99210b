"""What is minimised: weighted losses of all problems, and a penalty; once for every place.

Problem (l, f) minimises, over the rows outside fold f,

    a_l sum_i w_i c_il phi(y_il h_l(x_i)) + ||coef||^2 / (2 C),

with phi the loss, a_l the label's weight, and without the cells of which nobody knows whether they
are relevant. Rows give sums over rows wherever they lie (`linear.rows.protocol`); everything else
is here, written for NumPy arrays and for tensors of a device alike.
"""

import copy
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deltarank.core.caching import cached_property
from deltarank.linear.coordinates import Coordinates
from deltarank.linear.rows.protocol import Rows, Sums
from deltarank.linear.solvers.precision import Precision
from deltarank.linear.solvers.solution import Solution
from deltarank.linear.solvers.states import Derivatives, Evaluation, Start

# A label that is always or never relevant has no finite best intercept; at such a share of relevant
# rows its loss is below anything sums can show, so a solver stops there at once.
SMALLEST_SHARE = 1e-16


class Objective:
    """The objectives of all problems over some rows.

    Parameters
    ----------
    rows : Rows
    C : float
        Inverse of the penalty's strength.
    penalize_intercept : bool
    label_weights : ndarray of shape (m,), optional
        What each label's losses count; 1 by default.
    coordinates : Coordinates, optional
        Variables to solve in; by default those that suit the rows.

    Attributes
    ----------
    shape : tuple of int
        Numbers of problems and of variables, (p, v).
    """

    def __init__(
        self,
        rows: Rows,
        *,
        C: float,
        penalize_intercept: bool = False,
        label_weights: NDArray[Any] | None = None,
        coordinates: Coordinates | None = None,
    ) -> None:
        self.rows, self.C, self.penalize_intercept = rows, C, penalize_intercept
        self.label_weights = label_weights
        if coordinates is None:
            suited = Coordinates.standardized if rows.takes_newton else Coordinates.rotated
            coordinates = suited(rows.moments(), rows)
        self.coordinates = coordinates

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of problems and of variables."""
        return self.rows.n_labels * self.rows.n_folds, self.rows.n_features + 1

    def with_C(self, C: float) -> Self:  # noqa: N802  C is the parameter's name
        """Return the same problems with another penalty; the rows are shared."""
        other = copy.copy(self)
        other.C = C
        other.__dict__.pop("_penalty_hessian", None)
        return other

    def with_folds(self, folds: Any) -> Self:
        """Return the problems with one fold of the rows held out each."""
        other = copy.copy(self)
        other.rows = self.rows.with_folds(folds)
        return other

    def takes_dual(self, *Cs: float) -> bool:
        """Tell whether dual coordinate ascent, which knows one C for all labels, is quicker."""
        return self.label_weights is None and self.rows.takes_dual(*Cs)

    # Values and derivatives

    def _weighted(self, sums: Any, problems: Any, times: int = 1) -> Any:
        """Return sums over rows, one per problem, times (or, with -1, over) its label's weight."""
        if self.label_weights is None:
            return sums
        label = self.rows.to_host(problems) // self.rows.n_folds
        weights = self.rows.asarray(self.label_weights[label] ** times)
        return sums * weights.reshape(-1, *[1] * (sums.ndim - 1))

    def evaluate(
        self, points: Any, problems: Any, precision: Precision = Precision.EXACT
    ) -> Evaluation:
        """Evaluate the given problems, each at its own point, in one pass over the rows."""
        coef = self.coordinates.to_rows(points[:, :-1])
        sums = self.rows.evaluate(coef, points[:, -1], problems, precision)
        return self.with_penalty(points, Sums(*(self._weighted(part, problems) for part in sums)))

    def with_penalty(self, points: Any, sums: Sums) -> Evaluation:
        """Return the evaluation of problems from the sums of their losses over rows."""
        coordinates, xp = self.coordinates, self.rows.xp
        square, slope = self._penalty(points)
        slope[:, :-1] += coordinates.gradient(sums.gradient)
        slope[:, -1] += sums.residuals
        diagonal = xp.empty_like(points)
        xp.multiply(sums.curvatures[:, None], coordinates.spectrum, out=diagonal[:, :-1])
        diagonal[:, :-1] += coordinates.penalty / self.C
        # Never zero: a label that is always relevant has no curvature left.
        diagonal[:, -1] = sums.curvatures.clip(min=np.finfo(np.float32).tiny)
        diagonal[:, -1] += float(self.penalize_intercept) / self.C
        return Evaluation(sums.losses + square, slope, diagonal)

    def derivatives(self, points: Any, problems: Any, careful: bool = True) -> Derivatives:
        """Evaluate with Hessians; where the place offers quicker, rough ones, unless `careful`."""
        sums = self.rows.derivatives(points, problems, careful)
        value, gradient, hessian = (self._weighted(part, problems) for part in sums)
        # Few operations: on a device each takes as long to launch as these problems to evaluate.
        pull = points @ self._penalty_hessian
        value = value + (points * pull).sum(axis=1) / 2
        return Derivatives(value, pull + gradient, hessian + self._penalty_hessian)

    def hessians(self, points: Any, problems: Any, diagonals: Any) -> tuple[Any, NDArray[Any]]:
        """Return Hessians (h, v, v), roughly, and which of them is each problem's, shape (p,).

        Folds of a frequent label share one, taken over all rows at the point of the first of
        them. A rare label's curvature sits in a few rows, so there each fold has its own.
        """
        rows, coordinates = self.rows, self.coordinates
        problem = rows.to_host(problems)
        label, fold = np.divmod(problem, rows.n_folds)
        shared = (rows.frequencies[label] >= self.shape[1]) & (rows.n_folds > 1)
        key = np.where(shared, label * rows.n_folds, problem)
        _, first, owner = np.unique(key, return_index=True, return_inverse=True)
        coef = coordinates.to_rows(points[first][:, :-1])
        left_out = np.where(shared, -1, fold)[first]
        curvatures = self._weighted(diagonals[first][:, -1], problems[first], -1)
        hessians = rows.hessians(coef, points[first][:, -1], problems[first], curvatures, left_out)
        if self.label_weights is not None:
            weights = self.label_weights[problem[first] // rows.n_folds]
            hessians = [float(w) * one for w, one in zip(weights, hessians, strict=True)]
        finished = rows.each(self._finish_hessian, hessians)
        return rows.xp.stack(finished), owner

    def _finish_hessian(self, hessian: Any) -> Any:
        return self.coordinates.hessian(hessian) + self._penalty_hessian

    def penalty(self, points: Any) -> Evaluation:
        """Return what the penalty alone contributes to `evaluate`."""
        value, gradient = self._penalty(points)
        weights = self._with_offset(self.coordinates.penalty, float(self.penalize_intercept))
        return Evaluation(value, gradient, self.rows.xp.zeros_like(points) + weights / self.C)

    def _penalty(self, points: Any) -> tuple[Any, Any]:
        """Return the penalties (p,) and their gradients (p, v)."""
        xp = self.rows.xp
        slope = xp.empty_like(points)
        xp.multiply(points[:, :-1], self.coordinates.penalty / self.C, out=slope[:, :-1])
        slope[:, -1] = 0.0
        value = xp.einsum("ij,ij->i", points[:, :-1], slope[:, :-1]) / 2
        if self.penalize_intercept:
            direction = self._with_offset(self.coordinates.intercept_direction, 1.0)
            intercept = points @ direction / self.C
            value = value + self.C * intercept**2 / 2
            slope += intercept[:, None] * direction
        return value, slope

    @cached_property
    def _penalty_hessian(self) -> Any:
        coordinates, xp = self.coordinates, self.rows.xp
        hessian = xp.diag(self._with_offset(coordinates.penalty, 0.0))
        if self.penalize_intercept:
            direction = self._with_offset(coordinates.intercept_direction, 1.0)
            hessian = hessian + xp.outer(direction, direction)
        return hessian / self.C

    def _with_offset(self, values: Any, offset: float) -> Any:
        """Return values of the variables, with one of the offset behind them."""
        return self.rows.xp.concatenate([values, values[:1] * 0 + offset])

    # Where to begin

    def start(self, problems: Any) -> Start:
        """Return where to begin: a part of the first step from the best constant scores."""
        masses = self.rows.masses(problems)
        if self.label_weights is not None:
            label = self.rows.to_host(problems) // self.rows.n_folds
            masses = masses * self.label_weights[label]
        constant, terms = self._constants(*masses)
        if self.rows.takes_newton:
            return self._newton_start(problems, constant, terms)
        return self._discriminant(problems, constant, terms)

    def _discriminant(self, problems: Any, constant: NDArray[Any], terms: Any) -> Start:
        r"""Return linear discriminants, and gradients at constant scores, from label means alone.

        For the logistic loss the discriminant raises the mean score of the relevant rows by v, and
        scores of variance v raise E exp(score) by exp(v / 2): the offset is lowered by v / 2. A
        Newton step from constant scores does not know this and overshoots for rare labels. The
        discriminant is shortened so that v grows like its root.
        """
        rows, coordinates = self.rows, self.coordinates
        sums = partial(self._label_sums, problems)
        relevant = sums("relevant")
        costly = sums("costly") if rows.has_costs else relevant
        # Features are centred, so the sums of the others are minus those of the relevant rows.
        others = -relevant
        if rows.has_unknown:
            others = others - sums("unknown")
        up, down, curvature, mass, other, pairs, lowering = map(rows.asarray, terms)
        gradient = coordinates.gradient(up[:, None] * costly + down[:, None] * others)
        step = -gradient / (
            curvature[:, None] * coordinates.spectrum + coordinates.penalty / self.C
        )
        lead = coordinates.gradient(other[:, None] * relevant - mass[:, None] * others)
        gain = (step * lead).sum(axis=1) / pairs
        step = step / (gain.clip(min=1.0) ** 0.5)[:, None]
        offset = rows.asarray(constant)
        lowered = offset - lowering * gain.clip(max=1.0)
        stack = rows.xp.hstack
        return Start(
            stack([step, lowered[:, None]]),
            stack([gradient * 0, offset[:, None]]),
            stack([gradient, offset[:, None] * 0]),
        )

    def _label_sums(self, problems: Any, cells: str) -> Any:
        return self._weighted(self.rows.label_sums(problems, cells), problems)

    def _newton_start(self, problems: Any, constant: NDArray[Any], terms: Any) -> Start:
        """Return a part of Newton's step from constant scores, as short as a discriminant."""
        rows = self.rows
        offset = rows.asarray(constant)[:, None]
        point = rows.xp.hstack([offset * 0 + self.coordinates.penalty * 0, offset])
        _, gradient, hessian = self.derivatives(point, problems, careful=False)
        step = rows.xp.nan_to_num(rows.newton_steps(hessian, gradient))
        *_, mass, other, pairs, _ = terms
        # A label that is always or never relevant has no rows to set apart.
        apart = np.divide(mass + other, pairs, where=mass * other > 0, out=np.zeros_like(pairs))
        gain = -(step * gradient).sum(axis=1) * rows.asarray(apart)
        point = point + step / (rows.xp.nan_to_num(gain).clip(min=1.0) ** 0.5)[:, None]
        return Start(point, point, point * 0)

    def _constants(
        self, relevant: NDArray[Any], costly: NDArray[Any], other: NDArray[Any]
    ) -> tuple[NDArray[Any], list[NDArray[Any]]]:
        """Return the best constant score of each problem, and what its first step is made of.

        These are the slopes of the loss for relevant and for other cells, the curvature, the
        weights of relevant and of other rows, their product, and what share of the lead that a
        direction gives relevant rows the offset is lowered by.
        """
        loss, tiny = self.rows.loss, np.finfo(float).tiny
        share = costly / np.maximum(costly + other, tiny)
        assert loss.link is not None, "a loss that is trained has a link"
        score = loss.link(np.clip(share, SMALLEST_SHARE, 1 - SMALLEST_SHARE))
        up, down = loss.value_and_derivative(score)[1], -loss.value_and_derivative(-score)[1]
        curvature = costly * loss.curvature(score) + other * loss.curvature(-score)
        pairs = np.maximum(relevant * other, tiny)
        return score, [up, down, curvature, relevant, other, pairs, 0.5 - share]

    def start_at(self, coef: NDArray[Any], intercept: NDArray[Any]) -> Start:
        """Return a start at the coefficients of the features of an earlier fit.

        Labels that were not fitted, whose intercept is NaN, get a start of their own. The gradient
        at constant scores tells the curvature along the way from there, as for any start.
        """
        rows = self.rows
        default = self.start(rows.indices(np.arange(self.shape[0])))
        known = rows.asarray(np.where(np.isnan(intercept), 0.0, intercept))
        variables, offset = self.coordinates.from_features(rows.asarray(coef), known)
        point = rows.xp.hstack([variables, offset[:, None]])
        fresh = rows.asarray(np.isnan(intercept))[:, None]
        return default._replace(point=rows.xp.where(fresh > 0, default.point, point), near=True)

    def median_of_folds(self, solution: Solution, n_folds: int) -> Start:
        """Return a start over all rows at the median of the solutions with a fold held out.

        Not the mean: without the one fold that holds a rare label its intercept has no bound.
        """
        median = np.median(solution.point.reshape(self.shape[0], n_folds, -1), axis=1)
        point = self.rows.asarray(median)
        return Start(point, point, point * 0, near=True, close=True)

    def continued(self, solution: Solution, C: float) -> Start:
        """Return a start at this objective's C from a solution at another one, to first order.

        At the solution the gradient of the losses balances the old penalty, so the gradient with
        the new penalty is known, and the diagonal turns it into a step.
        """
        point = self.rows.asarray(solution.point)
        change = 1 / self.C - 1 / C
        penalty = self.penalty(point)
        gradient = penalty.gradient * (change * self.C)
        diagonal = self.rows.asarray(solution.diagonal) + penalty.diagonal * (change * self.C)
        ahead = point if self.rows.takes_newton else point - gradient / diagonal
        return Start(ahead, point, gradient)

    def to_features(self, points: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return coefficients (p, d) and intercepts (p,) of the features as they were given."""
        of_features = self.coordinates.to_features(self.rows.asarray(points))
        coef, intercept = map(self.rows.to_host, of_features)
        return coef, intercept
