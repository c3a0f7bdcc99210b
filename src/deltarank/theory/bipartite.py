"""Bipartite ranking, and the reduction of multilabel ranking at one x to it (section 3)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.choices import choose
from deltarank.core.labels import row_numbers
from deltarank.core.losses import LOSSES, Loss
from deltarank.core.weights import Weight
from deltarank.theory.distribution import LabelDistribution

Floats = NDArray[np.float64]


class BipartiteProblem:
    """Objects drawn at random, each relevant with a chance of its own, to be put in order.

    Parameters
    ----------
    prior : array of shape (k,)
        Probability of drawing each object.
    relevances : array of shape (k,)
        Chance eta that the object is relevant.

    Examples
    --------
    >>> problem = BipartiteProblem([0.5, 0.5], [0.9, 0.2])
    >>> round(problem.rank_regret([0.0, 1.0]), 3)
    0.35
    """

    def __init__(self, prior: Any, relevances: Any) -> None:
        self.prior = row_numbers(prior, np.size(prior), "prior", of="object")
        if abs(self.prior.sum() - 1) > 1e-9:
            raise ValueError(f"prior must sum to 1; it sums to {self.prior.sum():.12g}")
        self.relevances = row_numbers(relevances, len(self.prior), "relevances", of="object")
        if (self.relevances > 1).any():
            raise ValueError(f"relevances must be at most 1; got {self.relevances.max()}")

    def rank_risk(self, scores: Any) -> float:
        """Return the chance that two draws differ in relevance and are misordered, Eq. (42).

        Examples
        --------
        >>> BipartiteProblem([0.5, 0.5], [1.0, 0.0]).rank_risk([0.0, 0.0])
        0.25
        """
        scores = self._check_scores(scores)
        first, second = scores[:, None], scores[None, :]
        misordered = (first < second) + 0.5 * (first == second)
        # An ordered pair of draws has its relevant one first or second, with equal chance.
        return float(2 * (self._pairs() * misordered).sum())

    def rank_regret(self, scores: Any) -> float:
        """Return how much the scores lose to the order of the relevances."""
        return self.rank_risk(scores) - self.rank_risk(self.relevances)

    def surrogate_risk(self, scores: Any, loss: str) -> float:
        """Return the expected exponential, logistic, ... loss of a draw.

        Examples
        --------
        >>> BipartiteProblem([0.5, 0.5], [1.0, 0.0]).surrogate_risk([0.0, 0.0], "exponential")
        1.0
        """
        return float(self.prior @ self._expected(choose(LOSSES, loss, "loss"), scores))

    def surrogate_regret(self, scores: Any, loss: str) -> float:
        """Return the expected loss less the least there is.

        Examples
        --------
        >>> BipartiteProblem([0.5, 0.5], [0.5, 0.0]).surrogate_regret([0.0, 0.0], "exponential")
        0.5
        """
        phi = choose(LOSSES, loss, "loss")
        if phi.bayes_risk is None:
            raise ValueError(f"the {loss} loss has no least expectation; choose another")
        return float(self.prior @ (self._expected(phi, scores) - phi.bayes_risk(self.relevances)))

    def _pairs(self) -> Floats:
        relevant = self.prior * self.relevances
        irrelevant = self.prior * (1 - self.relevances)
        return relevant[:, None] * irrelevant[None, :]

    def _expected(self, loss: Loss, scores: Any) -> Floats:
        scores = self._check_scores(scores)
        return self.relevances * loss.value(scores) + (1 - self.relevances) * loss.value(-scores)

    def _check_scores(self, scores: Any) -> Floats:
        array = np.asarray(scores, dtype=float)
        if array.shape != self.prior.shape or not np.isfinite(array).all():
            raise ValueError(
                f"scores must be {len(self.prior)} finite numbers, one an object; got {scores!r}"
            )
        return array


def bipartite_reduction(
    distribution: LabelDistribution, weight: Weight = "rank"
) -> BipartiteProblem:
    """Turn label ranking at one x into bipartite ranking: labels become objects, Eq. (15).

    The rank regret of any scores is m^2 W / 2 times their bipartite regret, Eq. (16), and their
    surrogate regret m W times the bipartite one, Eq. (17).

    Examples
    --------
    >>> people = LabelDistribution({"100": 0.25, "110": 0.50, "011": 0.20, "001": 0.05})
    >>> bipartite_reduction(people).relevances
    array([0.75, 0.7 , 0.25])
    """
    m = distribution.n_labels
    return BipartiteProblem(np.full(m, 1 / m), distribution.relevances(weight))
