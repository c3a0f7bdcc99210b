"""Boosted trees as ONNX: trees give the leaves of a row, and a table the values of leaves."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.gradient_trees.boosted_trees import BoostedTreeRanker
from deltarank.gradient_trees.forest import Forest
from deltarank.gradient_trees.linear_scores import LARGEST
from deltarank.storage.onnx_graph import Graph, not_above

# Trees whose values are gathered and added at a time: a row takes as many times the labels.
TREES_PER_SUM = 16


def forest_scores(graph: Graph, rows: str, ranker: BoostedTreeRanker) -> str:
    """Add the values of a row's leaves, looked up by the numbers that the trees give.

    ONNX's trees could hold the values themselves, one entry per leaf and label; as a table these
    take a fraction of the space, and sums are of the kind of the graph.
    """
    fitted = np.isnan(ranker.constants_)
    scores = graph.constant(np.where(fitted, ranker.base_, ranker.constants_)[None])
    values = np.where(fitted, ranker.values_, 0)
    table = graph.constant(values, min(values.dtype, graph.dtype))
    firsts = _first_leaves(ranker._forest)
    rows = _beside(graph, rows, ranker)
    within = graph.trees(rows, ranker.n_trees_, **_nodes(ranker._forest, firsts, graph.dtype))
    leaves = graph.add("Add", graph.cast(within, np.int64), graph.constant(firsts, np.int64))
    axis = graph.constant([1], np.int64)
    for start in range(0, ranker.n_trees_, TREES_PER_SUM):
        stop = min(start + TREES_PER_SUM, ranker.n_trees_)
        some = graph.add("Gather", leaves, graph.constant(range(start, stop), np.int64), axis=1)
        leaf_values = graph.cast(graph.add("Gather", table, some), graph.dtype)
        scores = graph.add("Add", scores, graph.add("ReduceSum", leaf_values, axis, keepdims=0))
    return scores


def _beside(graph: Graph, rows: str, ranker: BoostedTreeRanker) -> str:
    """Return rows with linear scores beside them, rounded as the ranker rounds them."""
    linear = ranker._linear
    if not len(linear.coef):
        return rows
    wide = graph.cast(rows, np.float64)
    means = graph.constant(linear.means, np.float64)
    filled = graph.add("Where", graph.add("IsNaN", wide), means, wide)
    coef = linear.coef * linear.factors
    shift = linear.intercept - coef @ linear.means
    scores = graph.affine(filled, coef.T, shift, np.float64)
    ends = (graph.constant(end, np.float64) for end in (-LARGEST, LARGEST))
    scores = graph.cast(graph.add("Clip", scores, *ends), np.float32)
    return graph.add("Concat", rows, graph.cast(scores, graph.dtype), axis=1)


def _first_leaves(forest: Forest) -> NDArray[np.int64]:
    """Return the number of each tree's first leaf."""
    tree_of = np.repeat(np.arange(len(forest.roots)), _n_nodes(forest))
    counts = np.bincount(tree_of, minlength=len(forest.roots)) + 1  # a node more, a leaf more
    return np.concatenate([[0], np.cumsum(counts)[:-1]])


def _n_nodes(forest: Forest) -> NDArray[np.int64]:
    """Return how many inner nodes each tree has."""
    n_nodes = np.zeros(len(forest.roots), np.int64)
    inner = np.flatnonzero(forest.roots >= 0)
    n_nodes[inner] = np.diff(forest.roots[inner], append=len(forest.features))
    return n_nodes


def _nodes(forest: Forest, firsts: NDArray[np.int64], dtype: Any) -> dict[str, Any]:
    """Return the attributes of a TreeEnsembleRegressor that gives the leaf within each tree."""
    asked = _questions(forest)
    n_leaves = _n_nodes(forest) + 1
    trees = np.arange(len(forest.roots))
    inner_tree = np.repeat(trees, _n_nodes(forest))[asked.owners]
    leaf_tree = np.repeat(trees, n_leaves)
    n_nodes = np.bincount(inner_tree, minlength=len(trees))
    first_node = np.concatenate([[0], np.cumsum(n_nodes)[:-1]])
    leaf = np.arange(len(leaf_tree)) - firsts[leaf_tree]
    # Within a tree, leaves are numbered behind inner nodes; the root is node 0.
    inner_id = np.arange(len(inner_tree)) - first_node[inner_tree]
    leaf_id = leaf + n_nodes[leaf_tree]
    tree = inner_tree[:, None]
    child = np.where(
        asked.children < 0,
        ~asked.children - firsts[tree] + n_nodes[tree],
        asked.children - first_node[tree],
    )
    nothing = np.zeros(len(leaf_tree), np.int64)
    values = np.concatenate([not_above(asked.values, dtype), nothing.astype(dtype)])
    modes = np.where(asked.is_equal, "BRANCH_EQ", "BRANCH_LEQ").tolist()
    missing = asked.missing_true.astype(int).tolist()
    return {
        "nodes_treeids": [*inner_tree.tolist(), *leaf_tree.tolist()],
        "nodes_nodeids": [*inner_id.tolist(), *leaf_id.tolist()],
        "nodes_featureids": [*forest.features[asked.owners].tolist(), *nothing.tolist()],
        **_numbers("nodes_values", values),
        "nodes_modes": [*modes, *["LEAF"] * len(leaf_tree)],
        "nodes_truenodeids": [*child[:, 0].tolist(), *nothing.tolist()],
        "nodes_falsenodeids": [*child[:, 1].tolist(), *nothing.tolist()],
        "nodes_missing_value_tracks_true": [*missing, *nothing.tolist()],
        "target_treeids": leaf_tree.tolist(),
        "target_nodeids": leaf_id.tolist(),
        "target_ids": leaf_tree.tolist(),
        **_numbers("target_weights", leaf.astype(dtype)),
    }


class _Questions(NamedTuple):
    """The nodes of a graph: which of the forest's each is part of, and what it asks."""

    owners: NDArray[np.int64]
    is_equal: NDArray[np.bool_]
    values: NDArray[np.float64]
    missing_true: NDArray[np.bool_]
    children: NDArray[np.int64]


def _questions(forest: Forest) -> _Questions:
    """Ask for a set of categories one by one: those that go where missing values do not go.

    Whatever is none of them, missing values too, goes on to the next question, in the end to the
    side of missing values.
    """
    is_set = np.isnan(forest.thresholds)
    bits = np.unpackbits(forest.category_sets.view(np.uint8), axis=1, bitorder="little")
    members = bits.astype(bool) ^ forest.missing_left[is_set, None]
    lengths = np.ones(len(is_set), np.int64)
    lengths[is_set] = members.sum(axis=1)
    ends = np.cumsum(lengths)
    owners = np.repeat(np.arange(len(is_set)), lengths)
    is_equal, values = is_set[owners], forest.thresholds[owners]
    values[is_equal] = np.nonzero(members)[1]
    children = forest.children.astype(np.int64)
    inner = children >= 0
    children[inner] = (ends - lengths)[children[inner]]
    turned = is_set & forest.missing_left
    children[turned] = children[turned, ::-1]
    children = children[owners]
    numbers = np.arange(len(owners))
    goes_on = numbers < ends[owners] - 1
    children[goes_on, 1] = numbers[goes_on] + 1
    return _Questions(owners, is_equal, values, forest.missing_left[owners] & ~is_equal, children)


def _numbers(name: str, numbers: NDArray[Any]) -> dict[str, Any]:
    """Return an attribute of numbers; those of float64 are a tensor, under another name."""
    from onnx import numpy_helper

    if numbers.dtype == np.float32:
        return {name: numbers.tolist()}
    return {f"{name}_as_tensor": numpy_helper.from_array(numbers, name)}
