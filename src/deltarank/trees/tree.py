"""Trees over labels: one numbering for the nodes of several trees, children side by side."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Forest(NamedTuple):
    """Trees whose leaves are labels.

    Nodes are numbered level by level: first the roots, one per tree, then the children of node 0,
    of node 1, and so on.

    Attributes
    ----------
    child_starts : array of shape (n_nodes + 1,)
        The children of v are the nodes from ``child_starts[v]`` to ``child_starts[v + 1]``.
    labels : array of shape (n_nodes,)
        The label of a leaf; -1 of other nodes.
    """

    child_starts: NDArray[np.int64]
    labels: NDArray[np.int32]

    def check(self, n_labels: int) -> None:
        """Refuse what is no forest, as a file may hold: kernels trust it."""
        starts, labels, n = self.child_starts, self.labels, self.n_nodes
        is_forest = (
            starts.shape == (n + 1,)
            and 1 <= starts[0] <= n
            and starts[-1] == n
            and bool((np.diff(starts) >= 0).all())
            # Parents come before their children.
            and bool((starts[:-1] > np.arange(n)).all())
        )
        if not is_forest:
            raise ValueError("child_starts_ is not that of trees")
        leaves = np.diff(starts) == 0
        if not ((labels >= -1) & (labels < n_labels) & ((labels < 0) | leaves)).all():
            raise ValueError(f"node_labels_ must be labels of leaves, below {n_labels}")
        per_tree = self.leaves(n_labels)
        known = per_tree >= 0
        if (known != known[:1]).any() or known.sum() != (labels >= 0).sum():
            raise ValueError("node_labels_ must hold each label once per tree")

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.labels)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.child_starts[0])

    @property
    def parents(self) -> NDArray[np.int32]:
        """The parent of each node, -1 of a root."""
        families = np.repeat(np.arange(self.n_nodes), np.diff(self.child_starts))
        return np.concatenate([np.full(self.n_trees, -1), families]).astype(np.int32)

    def leaves(self, n_labels: int) -> NDArray[np.int32]:
        """Return the leaf (n_trees, n_labels) of each label, -1 of labels that have none."""
        leaf_of = np.full((self.n_trees, n_labels), -1, np.int32)
        nodes = np.flatnonzero(self.labels >= 0)
        leaf_of[self._from_parents(np.arange(self.n_trees), 0)[nodes], self.labels[nodes]] = nodes
        return leaf_of

    @property
    def depth(self) -> int:
        """Number of nodes of the longest path from a root."""
        return int(self._from_parents(np.ones(self.n_trees), 1).max())

    def _from_parents(self, of_roots: Array, step: int) -> NDArray[np.int64]:
        """Return what each node has from its parent, plus `step`."""
        values, level = of_roots.astype(np.int64), slice(0, self.n_trees)
        while level.start < level.stop:
            counts = np.diff(self.child_starts[level.start : level.stop + 1])
            values = np.concatenate([values, np.repeat(values[level], counts) + step])
            level = slice(level.stop, len(values))
        return values


# A node that is not numbered yet: a label, or what is below.
Node = Any


def number_nodes(roots: Sequence[Node]) -> Forest:
    """Give numbers to the nodes of trees that are nested lists of labels, or arrays of labels.

    A node with one child alone is left out, for the child says the same.

    Examples
    --------
    >>> forest = number_nodes([[[0, 2], [[1]]]])
    >>> forest.child_starts, forest.labels
    (array([1, 3, 5, 5, 5, 5]), array([-1, -1,  1,  0,  2], dtype=int32))
    """
    starts, labels, waiting = [len(roots)], [], deque(map(_shortened, roots))
    while waiting:
        node = waiting.popleft()
        is_label = isinstance(node, int)
        labels.append(node if is_label else -1)
        children = [] if is_label else [_shortened(child) for child in node]
        waiting.extend(children)
        starts.append(starts[-1] + len(children))
    return Forest(np.array(starts, np.int64), np.array(labels, np.int32))


def _shortened(node: Node) -> Node:
    while not isinstance(node, int | np.integer) and len(node) == 1:
        node = node[0]
    return int(node) if isinstance(node, np.integer) else node


def from_hierarchy(parents: Mapping[Any, Any], names: Sequence[Any], seen: Array) -> Forest:
    """Return the tree of a hierarchy that is given by the parent of each name.

    Parameters
    ----------
    parents : mapping
        From names of labels or groups to the name of what is above; what has no entry is at the
        top. A label that is itself above others becomes a child of its own group.
    names : sequence
        Of the labels.
    seen : array of int
        The labels that the tree is to have; groups without any are left out.
    """
    nodes: dict[Any, list[Node]] = {}
    root: list[Node] = []

    def group_of(name: Any) -> list[Node]:
        """Return the list of what is below a name, made with all above it when first asked for."""
        path = []
        while name is not None and name not in nodes:
            if name in path:
                raise ValueError(f"tree must have no cycle; {name!r} is above itself")
            path.append(name)
            name = parents.get(name)
        for below in reversed(path):
            nodes[below] = []
            (root if name is None else nodes[name]).append(nodes[below])
            name = below
        return root if name is None else nodes[name]

    above = set(parents.values())
    for label in seen.tolist():
        name = names[label]
        group_of(name if name in above else parents.get(name)).append(label)
    return number_nodes([root])
