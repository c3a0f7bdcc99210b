"""Scores of rows: every tree adds the values of the leaf that a row falls into."""

from deltarank.core.compiling import njit
from deltarank.gradient_trees.kernels.routes import goes_left


@njit(nogil=True, cache=True)
def add_trees(X, roots, features, routes, children, values, scores):
    """Add the values of some trees' leaves to the scores of dense rows; leaf k is child ~k.

    ``routes`` are what `goes_left` takes beside a value and a node.
    """
    for root in roots:
        for i in range(X.shape[0]):
            node = root
            while node >= 0:
                is_left = goes_left(X[i, features[node]], node, *routes)
                node = children[node, 0 if is_left else 1]
            for j in range(scores.shape[1]):
                scores[i, j] += values[~node, j]
