"""Trees made from data: labels that occur in like rows stand together."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core import threads
from deltarank.trees.kernels.clusters import centroids, split_evenly
from deltarank.trees.tree import Forest, Node, number_nodes

Array = NDArray[Any]
LABELS_PER_TASK = 256


class LabelClusters:
    """Labels described by the sums of their rows, to be put into trees of like labels.

    Parameters
    ----------
    matrix : tuple
        Starts, columns and float32 values of a CSR matrix.
    n_features : int
    label_starts, label_rows : array
        The rows of each label, label after label.
    """

    def __init__(
        self,
        matrix: tuple[Array, Array, Array],
        n_features: int,
        label_starts: Array,
        label_rows: Array,
    ) -> None:
        self._n_features = n_features
        n_labels = len(label_starts) - 1
        parts = threads.run(
            [
                partial(
                    centroids, matrix, n_features, label_starts, label_rows, part.start, part.stop
                )
                for part in threads.row_blocks(n_labels, LABELS_PER_TASK)
            ]
        )
        counts = np.concatenate([np.diff(starts) for starts, _, _ in parts])
        starts = np.concatenate([[0], np.cumsum(counts)])
        indices, values = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
        self._centroids = starts, indices, values

    def trees(self, labels: Array, *, arity: int, leaf_size: int, seeds: Array) -> Forest:
        """Return one tree per seed.

        Parameters
        ----------
        labels : array of int
            Those that the trees are to have.
        arity : int
            Most children of a node that are no labels.
        leaf_size : int
            Most labels side by side.
        seeds : array of int
        """
        roots: list[Node] = [labels] * len(seeds)
        level = [(roots, place, int(seed)) for place, seed in enumerate(seeds)]
        while level:
            level = [it for it in level if len(it[0][it[1]]) > leaf_size]
            tasks = [
                partial(self._split, holder[place], arity, leaf_size, seed)
                for holder, place, seed in level
            ]
            below = []
            for (holder, place, seed), groups in zip(level, threads.run(tasks), strict=True):
                holder[place] = groups
                child_seeds = np.random.SeedSequence(seed).generate_state(len(groups))
                below += [(groups, k, int(child_seeds[k])) for k in range(len(groups))]
            level = below
        return number_nodes(roots)

    def _split(self, labels: Array, arity: int, leaf_size: int, seed: int) -> list[Node]:
        """Return groups of like labels, as equal in size as can be."""
        n_groups = min(arity, -(-len(labels) // leaf_size))
        labels = labels.astype(np.int64)
        bounds = split_evenly(self._centroids, self._n_features, labels, n_groups, seed)
        return [labels[bounds[k] : bounds[k + 1]] for k in range(n_groups)]
