"""Scores of a linear ranker as further features of trees.

A split by a single feature cuts rows along an axis only; one by a linear score cuts them along the
direction that tells a label apart.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.base.ranker import constant_scores
from deltarank.core.labels import LabelSets, label_sets
from deltarank.core.losses import LOSSES
from deltarank.core.splits import LabelStratifiedKFold
from deltarank.linear.fit import Options, fit, solve_path
from deltarank.linear.objective import Objective
from deltarank.linear.rows.local import LocalRows

Floats = NDArray[np.float64]
# Folds that training rows are scored in, each by a fit of the others: scores of rows that the fit
# has seen would look better to the trees than those of new rows are.
FOLDS = 5
# Inverses of the penalty's strength, ascending: tried while the rows held out gain.
CS = (0.01, 0.1, 1.0, 10.0)
# To what share of their least values the objectives are brought, and by how many passes at most.
OPTIONS = Options(tol=1e-5, max_iter=200)
# Scores of no more labels than this, the most frequent: each costs as much as a feature.
MOST_SCORES = 128
# Wider rows get none: coefficients would take more room than trees.
MOST_FEATURES = 50_000
# Of the powers of two that features are measured in: their inverses are finite, too.
EXPONENTS = (-960, 960)
# In these units one value among 10 ** 12 varies more; what varies less is next to nothing.
LEAST_VARIANCE = 1e-14
# Scores are this far from zero at most: a label that a fold has never seen has none.
LARGEST = 15.0


class LinearScores(NamedTuple):
    """Coefficients of features brought to mean 0 and variance 1.

    Attributes
    ----------
    coef : array of shape (k, d)
        Of some labels.
    intercept : array of shape (k,)
    means, factors : arrays of shape (d,)
        What stands for a missing value and is subtracted from any, and what the rest is multiplied
        by: one over the standard deviation; 0 for categories.
    """

    coef: Floats
    intercept: Floats
    means: Floats
    factors: Floats

    @classmethod
    def none(cls, n_features: int) -> "LinearScores":
        """Return what adds no scores."""
        zeros = np.zeros(n_features)
        return cls(np.zeros((0, n_features)), np.zeros(0), zeros, zeros)

    def of(self, X: Any) -> NDArray[Any]:
        """Return the scores (n, k) of rows.

        They are rounded to float32, so that it does not matter in which order sums are taken.
        """
        coef = self.coef * self.factors
        scores = _filled(X, self.means) @ coef.T + (self.intercept - coef @ self.means)
        return np.clip(scores, -LARGEST, LARGEST).astype(np.float32)

    def beside(self, X: Any, scores: Any = None) -> Any:
        """Return rows with their scores, or those given, as further columns."""
        if not len(self.coef):
            return X
        scores = (self.of(X) if scores is None else scores).astype(X.dtype)
        if sparse.issparse(X):
            return sparse.csr_array(sparse.hstack([X, sparse.csr_array(scores)], format="csr"))
        return np.hstack([X, scores])

    def shared_out(self, added: Floats, row: Floats) -> Floats:
        """Share what scores added, which is behind what the d features did, among the features.

        Each gets as much as the size of its part in the score's distance from the mean.
        """
        parts = np.abs(self.coef * (np.where(np.isnan(row), self.means, row) - self.means))
        parts *= self.factors
        somewhere = parts.any(axis=1, keepdims=True)
        return self._joined(added, np.where(somewhere, parts, np.abs(self._coef_used)))

    def spread(self, numbers: Floats, *, signed: bool = False) -> Floats:
        """Share numbers of d features and k scores among the features, by their coefficients."""
        return self._joined(numbers, self._coef_used if signed else np.abs(self._coef_used))

    @property
    def _coef_used(self) -> Floats:
        return np.where(self.factors > 0, self.coef, 0.0)

    def _joined(self, numbers: Floats, parts: Floats) -> Floats:
        n_features = len(self.means)
        sizes = np.abs(parts).sum(axis=1, keepdims=True)
        shares = parts / np.where(sizes > 0, sizes, 1.0)
        return np.asarray(numbers[:n_features] + numbers[n_features:] @ shares)


def fit_scores(
    X: Any, labels: LabelSets, weights: Floats, is_categorical: NDArray[np.bool_], seed: int
) -> tuple[LinearScores, NDArray[Any] | None]:
    """Fit linear scores, and return those of the training rows, each from a fit without its fold.

    There are none of too few or too wide rows, nor where all features hold categories.
    """
    wanted = _frequent(labels, weights)
    has_room = labels.n_rows >= 2 * FOLDS and X.shape[1] <= MOST_FEATURES
    if not len(wanted) or not has_room or is_categorical.all():
        return LinearScores.none(X.shape[1]), None
    means, factors = _moments(X)
    means[is_categorical] = factors[is_categorical] = 0.0
    rows = _filled(X, means)
    if sparse.issparse(X):
        rows = sparse.csr_array(rows.multiply(factors))
    else:
        rows = (rows - means) * factors
    some = label_sets(labels.to_matrix()[:, wanted])

    objective = Objective(LocalRows(rows, some, weights, loss=LOSSES["logistic"]), C=CS[0])

    def in_units(coef: Floats, intercept: Floats) -> LinearScores:
        coef, intercept = coef.astype(np.float64), intercept.astype(np.float64)
        if sparse.issparse(X):
            intercept = intercept + coef @ (means * factors)
        return LinearScores(coef, intercept, means, factors)

    folds = LabelStratifiedKFold(FOLDS, random_state=seed).folds(labels.to_csr())
    best, scores, least = CS[0], None, np.inf
    path = solve_path(objective.with_folds(folds), np.array(CS), OPTIONS)
    for C, (current, solution) in zip(CS, path, strict=False):
        coef, intercept = current.to_features(solution.point)
        held_out = np.empty((labels.n_rows, len(wanted)), np.float32)
        for fold in range(FOLDS):
            out = folds == fold
            held_out[out] = in_units(coef[fold::FOLDS], intercept[fold::FOLDS]).of(X[out])
        loss = _loss(some, weights, held_out)
        if loss >= least:
            break
        best, scores, least = C, held_out, loss
    whole = fit(objective.with_C(best), OPTIONS)
    return in_units(whole.coef, whole.intercept), scores


def _loss(labels: LabelSets, weights: Floats, scores: NDArray[np.float32]) -> float:
    """Return the weighted logistic loss of scores."""
    known = np.ones(scores.shape, bool)
    if labels.unknown is not None:
        known[labels.unknown.rows, labels.unknown.members] = False
    margins = -scores
    margins[labels.rows, labels.members] *= -1
    losses = np.logaddexp(0, -margins, where=known, out=np.zeros_like(scores))
    return float((weights @ losses).sum())


def _frequent(labels: LabelSets, weights: Floats) -> NDArray[np.intp]:
    """Return the labels to score: none that is relevant in no row, or in all."""
    counts = np.bincount(labels.members, minlength=labels.n_labels)
    counts = np.where(np.isnan(constant_scores(labels, weights)), counts, 0)
    most = np.argsort(-counts, kind="stable")[:MOST_SCORES]
    return np.sort(most[counts[most] > 0])


def _filled(X: Any, means: Floats) -> Any:
    """Return rows whose missing values are means."""
    if not sparse.issparse(X):
        return np.where(np.isnan(X), means, X)
    filled = X.astype(np.float64)
    missing = np.isnan(filled.data)
    filled.data[missing] = means[filled.indices[missing]]
    return filled


def _moments(X: Any) -> tuple[Floats, Floats]:
    """Return means, and one over the standard deviation; 0 where there is none."""
    missing = _marks(X, np.isnan)
    counts = np.maximum(X.shape[0] - _sums(missing), 1)
    known = _filled(X, np.zeros(X.shape[1]))
    # In units of the largest value, powers of two, squares neither overflow nor vanish.
    largest = abs(known).max(axis=0)
    largest = largest.toarray().reshape(-1) if sparse.issparse(X) else largest
    units = np.exp2(np.clip(np.frexp(largest)[1], *EXPONENTS))
    if sparse.issparse(X):
        known = sparse.csr_array(known.multiply(1 / units))
        means = _sums(known) / counts
        variances = _sums(known.power(2)) / counts - means**2
    else:
        known = known / units
        means = _sums(known) / counts
        variances = _sums(np.where(np.isnan(X), 0.0, known - means) ** 2) / counts
    usable = variances > np.maximum(1e-12 * means**2, LEAST_VARIANCE)
    factors = np.where(usable, 1 / np.sqrt(np.where(usable, variances, 1.0)), 0.0)
    return means * units, factors / units


def _marks(X: Any, ask: Any) -> Any:
    if not sparse.issparse(X):
        return ask(X)
    return sparse.csr_array((ask(X.data), X.indices, X.indptr), X.shape)


def _sums(X: Any) -> Floats:
    return np.asarray(X.sum(axis=0), np.float64).reshape(-1)
