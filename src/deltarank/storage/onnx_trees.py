"""Boosted trees as ONNX: trees give the leaves of a row, and a table the values of leaves."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.gradient_trees.boosted_trees import BoostedTreeRanker
from deltarank.gradient_trees.forest import Forest
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
    within = graph.trees(rows, ranker.n_trees_, **_nodes(ranker._forest, firsts, graph.dtype))
    leaves = graph.add("Add", graph.cast(within, np.int64), graph.constant(firsts, np.int64))
    axis = graph.constant([1], np.int64)
    for start in range(0, ranker.n_trees_, TREES_PER_SUM):
        stop = min(start + TREES_PER_SUM, ranker.n_trees_)
        some = graph.add("Gather", leaves, graph.constant(range(start, stop), np.int64), axis=1)
        leaf_values = graph.cast(graph.add("Gather", table, some), graph.dtype)
        scores = graph.add("Add", scores, graph.add("ReduceSum", leaf_values, axis, keepdims=0))
    return scores


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
    n_nodes = _n_nodes(forest)
    trees = np.arange(len(forest.roots))
    inner_tree, leaf_tree = np.repeat(trees, n_nodes), np.repeat(trees, n_nodes + 1)
    first_node = np.concatenate([[0], np.cumsum(n_nodes)[:-1]])
    leaf = np.arange(len(leaf_tree)) - firsts[leaf_tree]
    # Within a tree, leaves are numbered behind inner nodes; the root is node 0.
    inner_id = np.arange(len(inner_tree)) - first_node[inner_tree]
    leaf_id = leaf + n_nodes[leaf_tree]
    tree = inner_tree[:, None]
    child = np.where(
        forest.children < 0,
        ~forest.children - firsts[tree] + n_nodes[tree],
        forest.children - first_node[tree],
    )
    nothing = np.zeros(len(leaf_tree), np.int64)
    thresholds = np.concatenate([not_above(forest.thresholds, dtype), nothing.astype(dtype)])
    return {
        "nodes_treeids": [*inner_tree.tolist(), *leaf_tree.tolist()],
        "nodes_nodeids": [*inner_id.tolist(), *leaf_id.tolist()],
        "nodes_featureids": [*forest.features.tolist(), *nothing.tolist()],
        **_numbers("nodes_values", thresholds),
        "nodes_modes": ["BRANCH_LEQ"] * len(inner_tree) + ["LEAF"] * len(leaf_tree),
        "nodes_truenodeids": [*child[:, 0].tolist(), *nothing.tolist()],
        "nodes_falsenodeids": [*child[:, 1].tolist(), *nothing.tolist()],
        "nodes_missing_value_tracks_true": [
            *forest.missing_left.astype(int).tolist(),
            *nothing.tolist(),
        ],
        "target_treeids": leaf_tree.tolist(),
        "target_nodeids": leaf_id.tolist(),
        "target_ids": leaf_tree.tolist(),
        **_numbers("target_weights", leaf.astype(dtype)),
    }


def _numbers(name: str, numbers: NDArray[Any]) -> dict[str, Any]:
    """Return an attribute of numbers; those of float64 are a tensor, under another name."""
    from onnx import numpy_helper

    if numbers.dtype == np.float32:
        return {name: numbers.tolist()}
    return {f"{name}_as_tensor": numpy_helper.from_array(numbers, name)}
