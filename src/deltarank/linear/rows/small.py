"""Passes over data so small that exact Hessians of all problems are cheaper than any shortcut."""

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from deltarank.core.labels import LabelSets
from deltarank.linear.solvers.newton import Derivatives
from deltarank.linear.solvers.solution import Solution

Floats = NDArray[np.float64]
# Numbers held at most in the table of products of features, and in the scores of all problems.
LARGEST_TABLE = 2_000_000
# A label that is always or never positive has no finite optimal intercept; at this log-odds its
# loss is below anything float64 sums can show, so a solver stops there at once.
LARGEST_LOG_ODDS = 40.0


def is_small(n_rows: int, n_features: int, n_problems: int) -> bool:
    """Tell whether the tables of `SmallPass` are small enough to be quick."""
    return n_rows * max((n_features + 1) ** 2, n_problems) <= LARGEST_TABLE


class SmallPass:
    """Values, gradients and Hessians of all problems in float64.

    The Hessian of problem p is ``sum_i c_ip x_i x_i^T``, x with a constant 1: a product of the
    table of all x_ij x_ik with the curvatures c, for all problems at once.

    Parameters as in `deltarank.linear.rows.local.LocalPass`; the variables are the coefficients of
    standardised features, then the intercept.
    """

    engine = "small"

    def __init__(
        self,
        X: Any,
        labels: LabelSets,
        weights: Floats,
        *,
        C: float,
        positive_cost: float | Floats = 1.0,
        penalize_intercept: bool = False,
    ) -> None:
        rows = np.flatnonzero(weights)
        self.dtype = X.dtype
        X = (X[rows].toarray() if sparse.issparse(X) else X[rows]).astype(np.float64)
        self.C, self.penalize_intercept = C, penalize_intercept
        self.n_folds = 1
        self._rows = rows
        self.center = np.average(X, axis=0, weights=weights[rows])
        spread = np.sqrt(np.average((X - self.center) ** 2, axis=0, weights=weights[rows]))
        # Spread that is only rounding of a constant feature must not be blown up to one.
        real = spread > 1e-12 * np.abs(self.center)
        self.scale = np.where(real, spread, 1.0)
        self._x = np.column_stack([(X - self.center) / self.scale * real, np.ones(len(rows))])
        self._products = (self._x[:, :, None] * self._x[:, None, :]).reshape(len(rows), -1)
        relevant = labels.to_csr()[rows].toarray().astype(bool)
        self._signs = np.where(relevant, 1.0, -1.0)
        costs = np.broadcast_to(positive_cost, len(weights))[rows][:, None]
        self._costs = np.where(relevant, costs, 1.0) * weights[rows][:, None]
        if labels.unknown is not None:
            self._costs[labels.unknown.to_csr()[rows].toarray().astype(bool)] = 0.0
        self.shape = (self._costs.shape[1], X.shape[1] + 1)

    def at(self, C: float) -> "SmallPass":
        """Return the same pass with another penalty; the data are shared."""
        other = copy.copy(self)
        other.C = C
        return other

    def arrays(self) -> tuple[Floats, ...]:
        """Return all that the objectives are made of, but for the penalty."""
        return self._x, self._signs, self._costs, self.scale, self.center

    def start(self) -> Floats:
        """Return constant scores: the log-odds of each problem."""
        positive = (self._costs * (self._signs > 0)).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = np.log(positive) - np.log(self._costs.sum(axis=0) - positive)
        point = np.zeros(self.shape)
        point[:, -1] = np.clip(np.nan_to_num(odds), -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
        return point

    def start_at(self, coef: NDArray[Any], intercept: NDArray[Any]) -> Floats:
        """Return a start at the coefficients of an earlier fit: see `LocalPass.start_at`."""
        coef = coef.astype(np.float64)
        point = np.column_stack([coef * self.scale, intercept + coef @ self.center])
        return np.where(np.isnan(intercept)[:, None], self.start(), point)

    def with_folds(self, folds: NDArray[Any]) -> "SmallPass":
        """Return the pass over the same data with folds held out."""
        other = copy.copy(self)
        other.n_folds = int(folds.max()) + 1
        outside = (folds[self._rows][:, None] != np.arange(other.n_folds)).astype(np.float64)
        other._signs = np.repeat(self._signs, other.n_folds, axis=1)
        # Problem l * n_folds + f is label l without fold f.
        other._costs = np.repeat(self._costs, other.n_folds, axis=1)
        other._costs *= np.tile(outside, self.shape[0])
        other.shape = (self.shape[0] * other.n_folds, self.shape[1])
        return other

    def median_of_folds(self, solution: Solution, n_folds: int) -> Floats:
        """Return a start over all rows at the median of the solutions with a fold held out.

        Not the mean: without the one fold that holds a rare label its intercept has no bound.
        """
        return np.asarray(np.median(solution.point.reshape(self.shape[0], n_folds, -1), axis=1))

    def continued(self, solution: Solution, C: float) -> Floats:
        """Return a start from a solution at another C."""
        return solution.point

    def derivatives(self, points: Floats, problems: NDArray[np.intp]) -> Derivatives:
        """Evaluate the given problems, each at its own point."""
        signs, costs = self._signs[:, problems], self._costs[:, problems]
        margins = signs * (self._x @ points.T)
        missed = expit(-margins)
        value = (costs * np.logaddexp(0, -margins)).sum(axis=0)
        gradient = -(costs * signs * missed).T @ self._x
        hessian = (costs * missed * (1 - missed)).T @ self._products
        penalty = self._penalty()
        pull = points @ penalty
        value += np.einsum("ij,ij->i", points, pull) / 2
        v = self.shape[1]
        return Derivatives(value, gradient + pull, hessian.reshape(-1, v, v) + penalty)

    def _penalty(self) -> Floats:
        """Return the penalty's Hessian in the variables of standardised features."""
        penalty = np.diag(np.append(1 / self.scale**2, 0.0))
        if self.penalize_intercept:
            intercept = np.append(-self.center / self.scale, 1.0)
            penalty += np.outer(intercept, intercept)
        return penalty / self.C

    def to_features(self, points: Floats) -> tuple[Floats, Floats]:
        """Return coefficients (p, d) and intercepts (p,) of the features as they were given."""
        coef = points[:, :-1] / self.scale
        return coef, points[:, -1] - coef @ self.center
