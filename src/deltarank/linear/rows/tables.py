"""Rows so few that exact Hessians of all problems are cheaper than any shortcut.

The Hessian of problem p is ``sum_i c_ip x_i x_i^T``, x with a constant 1: a product of the table of
all x_ij x_ik with the curvatures c, for all problems at once, in float64.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core.labels import LabelSets
from deltarank.core.losses import Loss
from deltarank.linear.coordinates import Moments
from deltarank.linear.rows.tuning import LOCAL

Floats = NDArray[np.float64]


def are_small(n_rows: int, n_features: int, n_problems: int) -> bool:
    """Tell whether tables of this many rows are small enough to be quick."""
    return n_rows * max((n_features + 1) ** 2, n_problems) <= LOCAL.largest_table


class Tables:
    """Values, gradients and Hessians of all problems from dense tables.

    Parameters
    ----------
    X, labels, weights, positive_cost, label_cost, loss
        As in `LocalRows`.
    moments : Moments
        Of the features, which come to variance one.
    folds : ndarray of int, shape (n,)
        In which each row is held out; ignored where ``n_folds`` is 1.
    n_folds : int
    """

    def __init__(
        self,
        X: Any,
        labels: LabelSets,
        weights: Floats,
        *,
        positive_cost: float | Floats,
        label_cost: Floats,
        moments: Moments,
        folds: NDArray[np.int64],
        n_folds: int,
        loss: Loss,
    ) -> None:
        rows, self._loss = np.flatnonzero(weights), loss
        X = (X[rows].toarray() if sparse.issparse(X) else X[rows]).astype(np.float64)
        x = (X - moments.center) / moments.spread
        # Spread that is only rounding of a constant feature is none.
        x[:, moments.spread <= 1e-12 * np.abs(moments.center)] = 0.0
        self._x = np.column_stack([x, np.ones(len(rows))])
        self._products = (self._x[:, :, None] * self._x[:, None, :]).reshape(len(rows), -1)
        relevant = labels.to_csr()[rows].toarray().astype(bool)
        costs = np.broadcast_to(positive_cost, len(weights))[rows][:, None] * label_cost
        masses = np.where(relevant, costs, 1.0) * weights[rows][:, None]
        if labels.unknown is not None:
            masses[labels.unknown.to_csr()[rows].toarray().astype(bool)] = 0.0
        # Problem l * n_folds + f is label l without fold f.
        self._signs = np.repeat(np.where(relevant, 1.0, -1.0), n_folds, axis=1)
        self._masses = np.repeat(masses, n_folds, axis=1)
        if n_folds > 1:
            outside = folds[rows][:, None] != np.arange(n_folds)
            self._masses *= np.tile(outside, labels.n_labels)

    def derivatives(
        self, points: Floats, problems: NDArray[np.intp]
    ) -> tuple[Floats, Floats, Floats]:
        """Evaluate the given problems, each at its own coefficients and offset (p, d + 1)."""
        signs, masses = self._signs[:, problems], self._masses[:, problems]
        margins = signs * (self._x @ points.T)
        value, slope = self._loss.value_and_derivative(margins)
        curvatures = masses * self._loss.curvature(margins)
        width = self._x.shape[1]
        hessian = (curvatures.T @ self._products).reshape(-1, width, width)
        return (masses * value).sum(axis=0), (masses * signs * slope).T @ self._x, hessian
