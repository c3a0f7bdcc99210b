"""Surrogates of the rank loss at one x: expected value, minimiser, regret, and who is consistent.

A surrogate is a function of the label distribution alone, so it is written with the distribution's
weights: univariate ones with the marginal weights, Eq. (11) and (12), pairwise ones with the pair
weights, Eq. (19).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

from deltarank.core.choices import choose
from deltarank.core.losses import LOSSES, Loss
from deltarank.core.weights import Weight
from deltarank.theory.distribution import LabelDistribution

Floats = NDArray[np.float64]


class Surrogate(NamedTuple):
    """A surrogate: expected loss and its minimiser, and whether the minimiser is a Bayes ranker."""

    risk: Callable[[LabelDistribution, Floats, Weight], float]
    minimizer: Callable[[LabelDistribution, Weight], Floats]
    consistent: bool


def surrogate_risk(
    distribution: LabelDistribution, scores: Any, surrogate: str, weight: Weight = "rank"
) -> float:
    """Return the expected surrogate loss of scores, Eq. (11), (12), (19), (40) or (41).

    Parameters
    ----------
    distribution : LabelDistribution
    scores : array of shape (m,)
    surrogate : str
        A name of `SURROGATES`, as ``"univariate logistic"`` or ``"pairwise exponential"``.
    weight : str, ("ndcg", k) or callable

    Examples
    --------
    >>> coin = LabelDistribution({"10": 0.5, "01": 0.5})
    >>> surrogate_risk(coin, [0.0, 0.0], "univariate exponential")
    2.0
    """
    return choose(SURROGATES, surrogate, "surrogate").risk(
        distribution, distribution.check_scores(scores), weight
    )


def surrogate_minimizer(
    distribution: LabelDistribution, surrogate: str, weight: Weight = "rank"
) -> Floats:
    """Return the scores with the least expected surrogate loss.

    Univariate minimisers are infinite for a label that is never, or always, relevant. Pairwise ones
    are fixed only up to a shift and are centred to mean 0. The squared, squared hinge and hinge
    losses always have a finite one, or several, of which one is returned; where the exponential
    and logistic losses have none, this is an error.

    Examples
    --------
    >>> people = LabelDistribution({"100": 0.25, "110": 0.50, "011": 0.20, "001": 0.05})
    >>> surrogate_minimizer(people, "univariate logistic").round(6)
    array([ 1.098612,  0.847298, -1.098612])
    >>> surrogate_minimizer(people, "pairwise logistic").round(6)
    array([ 0.391252,  0.580099, -0.971351])
    """
    return choose(SURROGATES, surrogate, "surrogate").minimizer(distribution, weight)


def surrogate_regret(
    distribution: LabelDistribution, scores: Any, surrogate: str, weight: Weight = "rank"
) -> float:
    """Return how much the scores lose to the surrogate's own minimiser.

    Examples
    --------
    >>> coin = LabelDistribution({"10": 0.5, "01": 0.5})
    >>> round(surrogate_regret(coin, [1.0, 0.0], "univariate logistic"), 6)
    0.120115
    """
    best = surrogate_minimizer(distribution, surrogate, weight)
    return surrogate_risk(distribution, scores, surrogate, weight) - surrogate_risk(
        distribution, best, surrogate, weight
    )


def _times(mass: Floats, values: Floats) -> Floats:
    """Multiply, where no mass makes even an infinite loss count nothing."""
    return np.where(mass > 0, mass * np.where(mass > 0, values, 0.0), 0.0)


def _univariate_risk(
    loss: Loss, distribution: LabelDistribution, scores: Floats, weight: Weight
) -> float:
    relevant = distribution.marginal_weights(weight)
    irrelevant = distribution.mean_weight(weight) - relevant
    with np.errstate(over="ignore", invalid="ignore"):
        expected = _times(relevant, loss.value(scores)) + _times(irrelevant, loss.value(-scores))
    return float(expected.sum())


def _univariate_minimizer(loss: Loss, distribution: LabelDistribution, weight: Weight) -> Floats:
    assert loss.link is not None
    return loss.link(distribution.relevances(weight))


def _pairwise_risk(
    loss: Loss, distribution: LabelDistribution, scores: Floats, weight: Weight
) -> float:
    return _pairwise_value(loss, distribution.pair_weights(weight)[1, 0], scores)


def _pairwise_minimizer(
    loss: Loss, attained: bool, distribution: LabelDistribution, weight: Weight
) -> Floats:
    """Minimise Eq. (19) by Newton's method with step halving.

    A loss that attains its least value at a finite margin makes Eq. (19) convex, bounded below and
    quadratic piece by piece, so that it has a minimiser whatever the weights. Gradients are within
    the range of the Hessian, so the shortest Newton step is one also where several are.
    """
    pairs = distribution.pair_weights(weight)[1, 0]
    if not attained:
        _require_finite_minimizer(pairs)
    scores = np.zeros(distribution.n_labels)
    value, gradient, hessian = _pairwise_derivatives(loss, pairs, scores)
    for _ in range(200):
        step = np.linalg.lstsq(hessian, -gradient, rcond=1e-14)[0]
        decrement = -gradient @ step
        if decrement <= 1e-24 * max(value, 1e-300):
            break
        size = 1.0
        while _pairwise_value(loss, pairs, scores + size * step) > value - 0.25 * size * decrement:
            size /= 2
            if size < 1e-12:
                break
        scores = scores + size * step
        value, gradient, hessian = _pairwise_derivatives(loss, pairs, scores)
    return scores - scores.mean()


def _pairwise_value(loss: Loss, pairs: Floats, scores: Floats) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(_times(pairs, loss.value(scores[:, None] - scores[None, :])).sum())


def _pairwise_derivatives(
    loss: Loss, pairs: Floats, scores: Floats
) -> tuple[float, Floats, Floats]:
    margins = scores[:, None] - scores[None, :]
    values, slopes = loss.value_and_derivative(margins)
    pull = pairs * slopes
    bend = pairs * loss.curvature(margins)
    bend = bend + bend.T
    # The Hessian of a sum over pairs is the Laplacian of the graph they make.
    laplacian = np.diag(bend.sum(axis=1)) - bend
    return float((pairs * values).sum()), pull.sum(axis=1) - pull.sum(axis=0), laplacian


def _require_finite_minimizer(pairs: Floats) -> None:
    """Refuse pair weights for which a decreasing loss could push labels apart for ever.

    As for Bradley-Terry models, a finite minimiser exists when each label can be reached from each
    other along pairs that occur.
    """
    if connected_components(pairs > 0, connection="strong")[0] > 1:
        raise ValueError(
            "this pairwise surrogate has no finite minimiser here: some labels are never below "
            "others (give every pair of labels a little probability both ways round, or take "
            "the squared or squared hinge loss)"
        )


def _pairwise_hinge_minimizer(distribution: LabelDistribution, weight: Weight) -> Floats:
    """Minimise Eq. (19) for the hinge as a linear programme: slacks xi_ij >= 1 - (h_i - h_j)."""
    pairs = distribution.pair_weights(weight)[1, 0]
    m = distribution.n_labels
    first, second = np.nonzero(pairs)
    n_pairs = len(first)
    margins = np.zeros((n_pairs, m + n_pairs))
    rows = np.arange(n_pairs)
    margins[rows, first], margins[rows, second], margins[rows, m + rows] = -1, 1, -1
    result = linprog(
        c=np.concatenate([np.zeros(m), pairs[first, second]]),
        A_ub=margins,
        b_ub=-np.ones(n_pairs),
        bounds=[(None, None)] * m + [(0, None)] * n_pairs,
        # The loss does not see shifts; without this the programme is unbounded in one direction.
        A_eq=np.concatenate([np.ones(m), np.zeros(n_pairs)])[None, :],
        b_eq=[0.0],
        method="highs",
    )
    # A hinge ties labels exactly; rounding keeps the solver's last digits from breaking the ties.
    return np.asarray(np.round(result.x[:m], 10))


def _penalized_linear_risk(
    distribution: LabelDistribution, scores: Floats, weight: Weight
) -> float:
    return (
        _pairwise_risk(LOSSES["linear"], distribution, scores, weight) + float(scores @ scores) / 2
    )


def _penalized_linear_minimizer(distribution: LabelDistribution, weight: Weight) -> Floats:
    marginal = distribution.marginal_weights(weight)
    return distribution.n_labels * (marginal - marginal.mean())


def _all_pairs_squared_risk(
    distribution: LabelDistribution, scores: Floats, weight: Weight
) -> float:
    residuals = distribution.labelings - scores
    mass = distribution.weights(weight) * distribution.probabilities
    # The sum over pairs of squared differences is m times the sum of squares about the mean.
    return float(mass @ residuals.var(axis=1)) * distribution.n_labels**2


def _all_pairs_squared_minimizer(distribution: LabelDistribution, weight: Weight) -> Floats:
    relevance = distribution.relevances(weight)
    return relevance - relevance.mean()


def univariate(name: str, consistent: bool) -> Surrogate:
    """Return the surrogate that sums a loss of `LOSSES` over labels, Eq. (11) and (12)."""
    loss = LOSSES[name]
    return Surrogate(
        partial(_univariate_risk, loss), partial(_univariate_minimizer, loss), consistent
    )


def pairwise(name: str, attained: bool) -> Surrogate:
    """Return the surrogate that sums a loss, whose least value is attained or not, over pairs."""
    loss = LOSSES[name]
    minimizer = partial(_pairwise_minimizer, loss, attained)
    return Surrogate(partial(_pairwise_risk, loss), minimizer, consistent=False)


SURROGATES: dict[str, Surrogate] = {
    "univariate exponential": univariate("exponential", consistent=True),
    "univariate logistic": univariate("logistic", consistent=True),
    "univariate squared": univariate("squared", consistent=True),
    "univariate squared hinge": univariate("squared_hinge", consistent=True),
    "univariate hinge": univariate("hinge", consistent=False),
    "pairwise exponential": pairwise("exponential", attained=False),
    "pairwise logistic": pairwise("logistic", attained=False),
    "pairwise squared": pairwise("squared", attained=True),
    "pairwise squared hinge": pairwise("squared_hinge", attained=True),
    "pairwise hinge": Surrogate(
        partial(_pairwise_risk, LOSSES["hinge"]), _pairwise_hinge_minimizer, consistent=False
    ),
    "pairwise linear, penalised": Surrogate(
        _penalized_linear_risk, _penalized_linear_minimizer, consistent=True
    ),
    "all pairs squared": Surrogate(
        _all_pairs_squared_risk, _all_pairs_squared_minimizer, consistent=True
    ),
}
