"""The nodes of fitted trees: scores of all labels, and a search for the best ones."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from deltarank.core import threads
from deltarank.core.caching import cached_property
from deltarank.linear.coefficients import linear_scores
from deltarank.trees.kernels.search import score_labels, search_rows
from deltarank.trees.tree import Forest

Array = NDArray[Any]
ROWS_PER_TASK = 64
# Scores of this many nodes at a time: 32 MB of float64.
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
    coef : CSC array of shape (n_nodes, d)
        float32; CSR where it comes from the file of an older release.
    intercept : array of shape (n_nodes,)
        float64.
    """

    forest: Forest
    leaves: Array
    parents: Array
    depth: int
    coef: sparse.csc_array | sparse.csr_array
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

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again, and is larger than the model."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def _by_feature(self) -> sparse.csc_array:
        """The coefficients feature by feature: they themselves, but for older files."""
        return sparse.csc_array(self.coef)

    @cached_property
    def _searched(self) -> tuple[tuple[Any, ...], tuple[Array, ...]]:
        """The forest and its coefficients as a search takes them."""
        bounds = np.concatenate([[0], self.forest.child_starts])
        forest = (bounds, self.forest.labels, self.leaves, self.parents, self.depth)
        coef = self._by_feature
        return forest, (coef.indptr.astype(np.int64, copy=False), coef.indices, coef.data)

    @cached_property
    def _idle(self) -> list[tuple[Array, ...]]:
        """Workspaces that no search uses now: most entries of one are never looked at."""
        return []

    def _workspace(self) -> tuple[Array, ...]:
        """Return what a search notes down of a row; entries count if they bear the row's stamp.

        Costs and nodes of one heap per tree, scores of nodes, stamps of families and labels, and
        the latest stamp.
        """
        n_trees, n_nodes = self.leaves.shape[0], len(self.parents)
        heaps = np.empty((n_trees, n_nodes)), np.empty((n_trees, n_nodes), np.int32)
        stamps = np.zeros(n_nodes + 1, np.int64), np.zeros(self.leaves.shape[1], np.int64)
        return *heaps, np.empty(n_nodes), *stamps, np.zeros(1, np.int64)

    def scorer(self, constants: Array) -> Callable[[Any], Array]:
        """Return a function that gives the scores (n, m) of rows.

        Parameters
        ----------
        constants : array of shape (m,)
            Scores of labels that the trees do not have.
        """
        by_feature, child_starts = self._by_feature, self.forest.child_starts

        def score(X: Any) -> Array:
            scores = np.tile(constants.astype(X.dtype), (X.shape[0], 1))
            rows = _as_searched(X)
            for chunk in threads.row_blocks(
                len(scores), max(1, CELLS_PER_CHUNK // len(self.parents))
            ):
                of_nodes = linear_scores(rows[chunk].astype(np.float64), by_feature, self.intercept)
                chunk_scores = scores[chunk]
                threads.run(
                    [
                        partial(
                            score_labels, of_nodes[it], child_starts, self.leaves, chunk_scores[it]
                        )
                        for it in threads.row_blocks(len(chunk_scores), ROWS_PER_TASK)
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
        blocks = threads.row_blocks(X.shape[0], ROWS_PER_TASK)
        threads.run(
            [partial(self._search_block, rows, it, ranked[it], scores[it]) for it in blocks]
        )
        return ranked, scores

    def _search_block(self, rows: Any, block: slice, ranked: Array, scores: Array) -> None:
        try:
            workspace = self._idle.pop()
        except IndexError:
            workspace = self._workspace()
        starts = rows.indptr[block.start : block.stop + 1].astype(np.int64, copy=False)
        matrix = (starts, rows.indices, rows.data)
        search_rows(matrix, *self._searched, self.intercept, workspace, ranked, scores)
        self._idle.append(workspace)


def _as_searched(X: Any) -> sparse.csr_array:
    """Return rows in the precision of coefficients, and sparse."""
    with np.errstate(over="ignore"):  # their scores tell
        rows = sparse.csr_array(X, dtype=np.float32)
    rows.indices = rows.indices.astype(np.int32, copy=False)
    return rows
