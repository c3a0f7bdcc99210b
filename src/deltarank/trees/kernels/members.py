"""Which rows hold a label below each node, and which cells of a family are relevant."""

import numpy as np

from deltarank.core.compiling import njit


@njit(nogil=True, cache=True)
def rows_of_nodes(starts, members, counted, leaves, parents):
    """Return the rows with a relevant label below each node, node after node, ascending.

    Parameters
    ----------
    starts, members : ndarray
        Relevant labels of each row.
    counted : ndarray of int32
        The rows to look at, ascending.
    leaves : ndarray of int32, shape (n_trees, m)
        Leaf of each label, or -1.
    parents : ndarray of int32
        Parent of each node, -1 of a root.

    Returns
    -------
    node_starts : ndarray of int64
    node_rows : ndarray of int32
    """
    n_nodes = parents.shape[0]
    last, node_starts = np.full(n_nodes, -1, np.int32), np.zeros(n_nodes + 1, np.int64)
    for i in counted:
        for k in range(starts[i], starts[i + 1]):
            for tree in range(leaves.shape[0]):
                node = leaves[tree, members[k]]
                while node >= 0 and last[node] != i:
                    last[node] = i
                    node_starts[node + 1] += 1
                    node = parents[node]
    for node in range(n_nodes):
        node_starts[node + 1] += node_starts[node]
    ends, node_rows = node_starts[:-1].copy(), np.empty(node_starts[n_nodes], np.int32)
    last[:] = -1
    for i in counted:
        for k in range(starts[i], starts[i + 1]):
            for tree in range(leaves.shape[0]):
                node = leaves[tree, members[k]]
                while node >= 0 and last[node] != i:
                    last[node] = i
                    node_rows[ends[node]] = i
                    ends[node] += 1
                    node = parents[node]
    return node_starts, node_rows


@njit(nogil=True, cache=True)
def family_signs(rows, node_starts, node_rows, first, end, n_lanes):
    """Return the signs (n, n_lanes) of the nodes from `first` to `end` in some rows.

    1 where a row has a relevant label below the node, else -1; 0 in lanes without a node. Rows of
    the nodes must be among the given ones, and all ascending.
    """
    signs = np.zeros((rows.shape[0], n_lanes), np.int8)
    for node in range(first, end):
        lane, k = node - first, 0
        signs[:, lane] = -1
        for place in range(node_starts[node], node_starts[node + 1]):
            while rows[k] < node_rows[place]:
                k += 1
            signs[k, lane] = 1
    return signs


@njit(nogil=True, cache=True)
def kept_coefficients(features, coef, width, threshold):
    """Return the coefficients (f, lanes) of the first lanes that reach a threshold, lane by lane.

    Returns
    -------
    counts : ndarray of int64, shape (width,)
    indices, values : ndarray
        Features ascending.
    """
    order = np.argsort(features)
    counts = np.zeros(width, np.int64)
    for j in range(coef.shape[0]):
        for c in range(width):
            counts[c] += abs(coef[j, c]) >= threshold and coef[j, c] != 0
    ends = np.zeros(width, np.int64)
    ends[1:] = np.cumsum(counts)[:-1]
    indices, values = np.empty(counts.sum(), np.int32), np.empty(counts.sum(), np.float32)
    for j in order:
        for c in range(width):
            if abs(coef[j, c]) >= threshold and coef[j, c] != 0:
                indices[ends[c]], values[ends[c]] = features[j], coef[j, c]
                ends[c] += 1
    return counts, indices, values
