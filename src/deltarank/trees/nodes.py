"""The nodes of fitted trees: scores of all labels, and a search for the best ones."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core import threads
from deltarank.core.caching import cached_property
from deltarank.linear.coefficients import linear_scores
from deltarank.trees.kernels.search import family_columns, score_labels, search_rows
from deltarank.trees.tree import Forest

Array = NDArray[Any]
ROWS_PER_TASK = 64
# Scores of so many nodes at a time: 32 MB of float64.
CELLS_PER_CHUNK = 4_000_000


@dataclass(frozen=True, eq=False)
class Nodes:
    """What the kernels want to know of fitted trees, made once per fit.

    Attributes
    ----------
    forest : Forest
    leaves : array of shape (n_trees, m)
        Leaf of each label, or -1.
    parents : array of shape (n_nodes,)
    depth : int
    coef : CSR array of shape (n_nodes, d)
        float32.
    intercept : array of shape (n_nodes,)
        float64.
    """

    forest: Forest
    leaves: Array
    parents: Array
    depth: int
    coef: sparse.csr_array
    intercept: Array

    @classmethod
    def of(cls, forest: Forest, n_labels: int, coef: Any, intercept: Array) -> "Nodes":
        """Return the nodes of a forest with their coefficients."""
        leaves, parents = forest.leaves(n_labels), forest.parents
        return cls(forest, leaves, parents, forest.depth, coef, intercept)

    @property
    def n_labels(self) -> int:
        """Number of labels that the trees have."""
        return int((self.leaves[:1] >= 0).sum())

    @cached_property
    def _coef_parts(self) -> tuple[Array, Array, Array]:
        return self.coef.indptr.astype(np.int64, copy=False), self.coef.indices, self.coef.data

    @cached_property
    def _columns(self) -> tuple[Array, ...]:
        """The coefficients by family, made when a search first wants them."""
        return family_columns(self.forest.child_starts, self._coef_parts, self.coef.shape[1])

    def scorer(self, constants: Array) -> Callable[[Any], Array]:
        """Return a function that gives the scores (n, m) of rows.

        Parameters
        ----------
        constants : array of shape (m,)
            Scores of labels that the trees do not have.
        """
        by_feature = sparse.csc_array(self.coef)
        child_starts = self.forest.child_starts

        def score(X: Any) -> Array:
            scores = np.tile(constants.astype(X.dtype), (X.shape[0], 1))
            rows = _as_searched(X)
            for chunk in threads.row_blocks(
                len(scores), max(1, CELLS_PER_CHUNK // len(self.parents))
            ):
                of_nodes = linear_scores(rows[chunk].astype(np.float64), by_feature, self.intercept)
                own = scores[chunk]
                threads.run(
                    [
                        partial(score_labels, of_nodes[it], child_starts, self.leaves, own[it])
                        for it in threads.row_blocks(len(own), ROWS_PER_TASK)
                    ]
                )
            return scores

        return (
            score
            if self.n_labels
            else lambda X: np.tile(constants.astype(X.dtype), (X.shape[0], 1))
        )

    def search(self, X: Any, top: int) -> tuple[NDArray[np.intp], Array]:
        """Return the columns of the best labels of the trees, ties in column order, and scores."""
        rows = _as_searched(X)
        ranked = np.empty((X.shape[0], top), np.intp)
        scores = np.empty((X.shape[0], top), X.dtype)
        if top == 0:
            return ranked, scores
        starts = rows.indptr.astype(np.int64, copy=False)
        forest = (*self.forest, self.leaves, self.parents, self.depth)
        coefficients = (self._coef_parts, self._columns, self.intercept)
        threads.run(
            [
                partial(
                    search_rows, (starts[it.start : it.stop + 1], rows.indices, rows.data),
                    X.shape[1], forest, *coefficients, ranked[it], scores[it],
                )
                for it in threads.row_blocks(X.shape[0], ROWS_PER_TASK)
            ]
        )  # fmt: skip
        return ranked, scores


def _as_searched(X: Any) -> sparse.csr_array:
    """Return rows in the precision of coefficients, and sparse."""
    with np.errstate(over="ignore"):  # their scores tell
        rows = sparse.csr_array(X, dtype=np.float32)
    rows.indices = rows.indices.astype(np.int32, copy=False)
    return rows
