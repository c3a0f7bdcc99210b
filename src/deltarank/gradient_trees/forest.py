"""Trees as flat arrays: what a ranker keeps, a file holds and rows are scored by."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.boosting.bins import Cuts
from deltarank.core.threads import row_blocks, run
from deltarank.gradient_trees.growth import A_SET, Tree
from deltarank.gradient_trees.kernels.routes import MOST_CATEGORIES, SET_BYTES
from deltarank.gradient_trees.kernels.scores import add_trees

# Rows whose features and scores stay in cache while all trees pass over them.
ROWS_PER_BLOCK = 128


class Forest(NamedTuple):
    """Inner nodes of all trees, tree after tree, and their leaves; leaf k is child ~k.

    Attributes
    ----------
    roots : array of shape (t,)
        First node of each tree, or its only leaf.
    features, thresholds : arrays of shape (v,)
        A value goes left when it is at most the threshold; NaN at nodes that ask for categories.
    missing_left : array of shape (v,)
        Whether a missing value does.
    gains : array of shape (v,)
        What each split was worth.
    children : array of shape (v, 2)
        Left and right; always behind their parent.
    values : array of shape (k, m)
        What a leaf adds to the scores.
    leaf_weights : array of shape (k,)
        Weight of the rows in training that fell into each leaf.
    category_sets : array of shape (s, 32)
        The categories that go left at each node that asks for them, one bit each, lowest first.
    """

    roots: NDArray[np.int32]
    features: NDArray[np.int32]
    thresholds: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    gains: NDArray[np.float64]
    children: NDArray[np.int32]
    values: NDArray[Any]
    leaf_weights: NDArray[np.float64]
    category_sets: NDArray[np.int8]

    @classmethod
    def of_tree(cls, tree: Tree, values: Any, cuts: Cuts, weights: Any) -> "Forest":
        """Return a forest of one tree, whose leaves hold `values` (leaves, m)."""
        is_set = tree.cuts == A_SET
        thresholds = cuts.threshold(tree.features, np.maximum(tree.cuts, 0))
        thresholds[is_set] = np.nan
        sets = tree.goes_left[is_set, :MOST_CATEGORIES]
        return cls(
            np.array([0 if len(tree.features) else ~0], np.int32),
            tree.features,
            thresholds,
            tree.missing_left,
            tree.gains,
            tree.children,
            values,
            np.add.reduceat(weights[tree.order].astype(np.float64), tree.starts[:-1]),
            np.packbits(sets, axis=1, bitorder="little").view(np.int8),
        )

    @property
    def routes(self) -> tuple[NDArray[Any], ...]:
        """What kernels ask which way a value goes at a node."""
        set_numbers = (np.cumsum(np.isnan(self.thresholds)) - 1).astype(np.int32)
        return self.thresholds, self.missing_left, set_numbers, self.category_sets

    @classmethod
    def joined(cls, forests: "list[Forest]") -> "Forest":
        """Return all trees of several forests."""
        n_nodes = np.cumsum([0, *(len(it.features) for it in forests)])
        n_leaves = np.cumsum([0, *(len(it.values) for it in forests)])

        def moved(name: str) -> NDArray[np.int32]:
            parts = [
                np.where((numbers := getattr(it, name)) < 0, numbers - k, numbers + v)
                for it, v, k in zip(forests, n_nodes[:-1], n_leaves[:-1], strict=True)
            ]
            return np.concatenate(parts).astype(np.int32)

        joined = {name: np.concatenate([getattr(it, name) for it in forests]) for name in KEPT}
        return cls(**joined, roots=moved("roots"), children=moved("children"))

    def of_first(self, n_trees: int) -> "Forest":
        """Return the forest of the first trees."""
        later = self.roots[n_trees:]
        nodes = min([len(self.features), *later[later >= 0].tolist()])
        # The leaves of a tree are numbered before those of the next.
        links = np.concatenate([self.children[:nodes].ravel(), self.roots[:n_trees]])
        leaves = int((~links[links < 0]).max()) + 1
        parts = {name: getattr(self, name)[:nodes] for name in OF_NODES}
        parts |= {name: getattr(self, name)[:leaves] for name in OF_LEAVES}
        n_sets = int(np.isnan(self.thresholds[:nodes]).sum())
        parts["category_sets"] = self.category_sets[:n_sets]
        return Forest(roots=self.roots[:n_trees], children=self.children[:nodes], **parts)

    def check(self, n_features: int) -> None:
        """Refuse arrays that are not those of trees: kernels trust them."""
        n_nodes, n_leaves = len(self.features), len(self.values)
        numbers = np.arange(n_nodes)[:, None]
        is_leaf = self.children < 0
        right = np.where(is_leaf, ~self.children < n_leaves, self.children > numbers)
        within = (self.children < n_nodes) & (self.roots < n_nodes).all()
        if not (right & within).all() or not (~self.roots[self.roots < 0] < n_leaves).all():
            raise ValueError("children_ and roots_ are not those of trees")
        if not ((self.features >= 0) & (self.features < n_features)).all():
            raise ValueError(f"features_ must be numbers of features, below {n_features}")
        if self.category_sets.shape != (np.isnan(self.thresholds).sum(), SET_BYTES):
            raise ValueError("category_sets_ are not those of the nodes that ask for categories")

    def add_scores(self, X: Any, scores: NDArray[np.float64], trees: slice = slice(None)) -> None:
        """Add the values of some trees to the scores of rows, shared out among threads."""
        features: NDArray[Any] = self.features
        if sparse.issparse(X):
            used, features = np.unique(features, return_inverse=True)
            X = X[:, used]
        nodes = (features.astype(np.int32), self.routes, self.children, self.values)

        def add(rows: slice) -> None:
            block = X[rows].toarray() if sparse.issparse(X) else np.ascontiguousarray(X[rows])
            add_trees(block, self.roots[trees], *nodes, scores[rows])

        run([partial(add, rows) for rows in row_blocks(X.shape[0], ROWS_PER_BLOCK)])


OF_NODES = ("features", "thresholds", "missing_left", "gains")
OF_LEAVES = ("values", "leaf_weights")
KEPT = (*OF_NODES, *OF_LEAVES, "category_sets")
