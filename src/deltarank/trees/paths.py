"""What the features of a row add to a label's score, along the paths to it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from deltarank.core.losses import sigmoid
from deltarank.trees.nodes import Nodes

Floats = NDArray[np.float64]
# Points of Gauss and Legendre's rule: along a line a score is smooth, and these give all digits
# that matter.
N_POINTS = 64


class Paths(NamedTuple):
    """The nodes on the ways to one label, a row per tree; shorter ways end in certain nodes.

    Attributes
    ----------
    coef : array of shape (n_trees, depth, d)
    intercept : array of shape (n_trees, depth)
    """

    coef: Floats
    intercept: Floats

    @classmethod
    def to(cls, nodes: Nodes, label: int) -> "Paths":
        """Return the paths to a label that the trees have."""
        leaves = nodes.leaves[:, label]
        ways = np.full((len(leaves), nodes.depth), -1)
        for tree, node in enumerate(leaves):
            for step in range(nodes.depth):
                if node < 0:
                    break
                ways[tree, step] = node
                node = nodes.parents[node]
        coef, intercept = np.zeros((*ways.shape, nodes.coef.shape[1])), np.full(ways.shape, np.inf)
        met = ways >= 0
        coef[met] = nodes.coef[ways[met]].toarray()  # all at once: a look through every coefficient
        intercept[met] = nodes.intercept[ways[met]]
        return cls(coef, intercept)

    def contributions(self, row: Floats) -> tuple[Floats, float]:
        """Return what each feature adds to the score, and the score of a row of zeros.

        They add up to the score. Each is the feature's value times the mean of the score's slope
        along the straight line from zeros to the row, which for a linear score is the coefficient
        times the value.
        """
        points, weights = np.polynomial.legendre.leggauss(N_POINTS)
        along = self.coef @ row
        scores = self.intercept + np.multiply.outer((points + 1) / 2, along)
        slopes = np.tensordot(weights / 2, _slopes(scores), axes=1)
        return row * np.tensordot(slopes, self.coef, axes=2), float(_logit(self.intercept))

    def effects(self) -> Floats:
        """Return what the score of a row of zeros gains when a feature rises to 1."""
        scores = self.intercept + np.moveaxis(self.coef, 2, 0)
        return _logit(scores) - _logit(self.intercept)


def _log_chances(scores: Any) -> Any:
    """Return the logarithms (..., n_trees) of the products of chances along each path."""
    return -np.logaddexp(0.0, -scores).sum(axis=-1)


def _logit(scores: Any) -> Any:
    """Return the logit of the mean over trees of the products along paths."""
    logs = _log_chances(scores)
    present = logsumexp(logs, axis=-1)
    return present - np.log(-np.expm1(logs).sum(axis=-1))


def _slopes(scores: Any) -> Any:
    """Return how the logit changes with the score of each node."""
    logs = _log_chances(scores)[..., None]
    # Of p / (mean p (1 - mean p)) / n_trees, without leaving the range of floats.
    shares = np.exp(logs - logsumexp(logs, axis=-2, keepdims=True))
    absent = -np.expm1(logs).mean(axis=-2, keepdims=True)
    return shares / absent * sigmoid(-scores)
