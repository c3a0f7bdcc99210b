"""What features add to scores of boosted trees: exact Shapley values, and effects of splits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.gradient_trees.forest import Forest
from deltarank.gradient_trees.kernels.contributions import NO_PARENT, add_contributions

Floats = NDArray[np.float64]


def contributions(forest: Forest, row: Floats, label: int) -> tuple[Floats, float]:
    """Return what each feature of a row adds to the sum of a label's values, and the mean sum.

    The mean is over training rows, by their weights.
    """
    values = forest.values[:, label].astype(np.float64)
    covers, means = _from_below(forest, values)
    parents, leaf_parents = _parents(forest)
    total = np.zeros(len(row))
    nodes = parents, leaf_parents, forest.features, forest.routes
    add_contributions(row, *nodes, covers, forest.leaf_weights, values, total)
    at_root = _below(forest.roots, values, means)
    return total, float(at_root.sum())


def effects(forest: Forest, label: int, n_features: int) -> Floats:
    """Return, by feature, how much more its splits give on the right than on the left.

    Each split counts with the share of training rows that came to it, and one between sets of
    categories, which have neither a right nor a left, with the size of the difference.
    """
    values = forest.values[:, label].astype(np.float64)
    covers, means = _from_below(forest, values)
    sides = _below(forest.children, values, means)
    tree = np.searchsorted(_first_nodes(forest), np.arange(len(covers)), side="right") - 1
    shares = covers / covers[_first_nodes(forest)[tree]]
    rise = sides[:, 1] - sides[:, 0]
    rise = shares * np.where(np.isnan(forest.thresholds), np.abs(rise), rise)
    return np.bincount(forest.features, weights=rise, minlength=n_features).astype(np.float64)


def _below(numbers: NDArray[Any], values: Floats, means: Floats) -> Floats:
    """Return the values of leaves and the means of nodes, by their numbers."""
    nodes = np.append(means, 0.0)[np.maximum(numbers, 0)]
    return np.where(numbers < 0, values[np.maximum(~numbers, 0)], nodes)


def _first_nodes(forest: Forest) -> NDArray[Any]:
    return forest.roots[forest.roots >= 0]


def _from_below(forest: Forest, values: Floats) -> tuple[Floats, Floats]:
    """Return the weight of each inner node and the mean value of its rows; children come later."""
    covers, means = np.zeros((2, len(forest.features)))
    for node in range(len(covers) - 1, -1, -1):
        for child in forest.children[node]:
            cover = forest.leaf_weights[~child] if child < 0 else covers[child]
            covers[node] += cover
            means[node] += cover * (values[~child] if child < 0 else means[child])
        means[node] /= covers[node]
    return covers, means


def _parents(forest: Forest) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the node above each inner node and leaf, inverted (~) for a right child."""
    parents = np.full(len(forest.features), NO_PARENT)
    leaf_parents = np.full(len(forest.values), NO_PARENT)
    nodes = np.arange(len(parents))
    for side, above in enumerate((nodes, ~nodes)):
        child = forest.children[:, side]
        leaf_parents[~child[child < 0]] = above[child < 0]
        parents[child[child >= 0]] = above[child >= 0]
    return parents, leaf_parents
