"""Scores of rows: every tree adds the values of the leaf that a row falls into."""

from deltarank.core.compiling import njit


@njit(nogil=True, cache=True)
def add_trees(X, roots, features, thresholds, missing_left, children, values, scores):
    """Add the values of some trees' leaves to the scores of dense rows; leaf k is child ~k."""
    for root in roots:
        for i in range(X.shape[0]):
            node = root
            while node >= 0:
                value = X[i, features[node]]
                goes_left = missing_left[node] if value != value else value <= thresholds[node]
                node = children[node, 0 if goes_left else 1]
            for j in range(scores.shape[1]):
                scores[i, j] += values[~node, j]
