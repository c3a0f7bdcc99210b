"""The best labels of a row by a search that opens the most promising node first.

What a node costs is minus the logarithm of the product of chances from the root down to it, so
costs only grow downwards and labels come out best first. With several trees a label's score is the
logit of the mean of its products. A label that comes out of one tree is looked up in the others;
no label that has not come out of any can score above what the cheapest open nodes of all trees
would together. So the search knows when it is done, and its result is exact.

Most nodes are never opened, and for those the order of magnitude will do: a node waits with the
part of its cost that needs no logarithm, and gets the rest when it comes to the front.
"""

import numpy as np

from deltarank.core.compiling import njit

# Costs of no less: the logit of a chance of nearly one stays finite.
LEAST_COST = 1e-300
# A share of the score by which rounding could let a bound be too low.
ROUNDING = 1e-5


@njit(inline="always", error_model="numpy")
def _cost(score):
    """Return minus the logarithm of a chance whose logit is the score."""
    return np.log1p(np.exp(-abs(score))) + max(-score, 0.0)


@njit(nogil=True, cache=True, error_model="numpy")
def mean_logit(costs):
    """Return the logit of the mean of exp(-cost)."""
    least, absent, present = np.inf, 0.0, 0.0
    for cost in costs:
        least = min(least, cost)
    for cost in costs:
        present += np.exp(least - cost)
        absent -= np.expm1(-max(cost, LEAST_COST))
    return np.log(present) - least - np.log(absent)


@njit(nogil=True, cache=True)
def _push(heap_costs, heap_nodes, size, cost, node):
    k = size
    while k > 0:
        above = (k - 1) >> 1
        if heap_costs[above] <= cost:
            break
        heap_costs[k], heap_nodes[k] = heap_costs[above], heap_nodes[above]
        k = above
    heap_costs[k], heap_nodes[k] = cost, node


@njit(nogil=True, cache=True)
def _pop(heap_costs, heap_nodes, size):
    """Take the first entry out of a heap of `size` entries."""
    cost, node = heap_costs[size - 1], heap_nodes[size - 1]
    k, child = 0, 1
    while child < size - 1:
        if child + 1 < size - 1 and heap_costs[child + 1] < heap_costs[child]:
            child += 1
        if heap_costs[child] >= cost:
            break
        heap_costs[k], heap_nodes[k] = heap_costs[child], heap_nodes[child]
        k, child = child, 2 * child + 1
    heap_costs[k], heap_nodes[k] = cost, node


@njit(nogil=True, cache=True, error_model="numpy")
def search_rows(matrix, forest, by_feature, intercepts, workspace, ranked, scores):
    """Write the best labels of each row, best first, ties by label, and their scores.

    Parameters
    ----------
    matrix : tuple (starts, indices, values)
        CSR of the rows.
    forest : tuple (bounds, labels, leaves, parents, depth)
        Roots, then the children of node 0, and so on, begin at `bounds`; others as in `Forest`.
    by_feature : tuple (starts, nodes, values)
        CSC of the nodes' coefficients.
    intercepts : ndarray of float64
        Of the nodes.
    workspace : tuple
        See `Nodes`.
    ranked : ndarray of intp, shape (n, top)
        At most as many as there are labels in the trees.
    scores : ndarray of float, shape (n, top)
    """
    starts, indices, values = matrix
    bounds, labels, leaves, parents, depth = forest
    heap_costs, heap_nodes, node_scores, opened, seen, stamp = workspace
    n_trees, top = leaves.shape[0], ranked.shape[1]
    sizes, costs = np.empty(n_trees, np.int64), np.empty(n_trees)
    path, rounded = np.empty(depth, np.int32), np.empty(1, scores.dtype)
    for i in range(ranked.shape[0]):
        stamp[0] += 1
        stored = slice(starts[i], starts[i + 1])
        row = (by_feature, intercepts, bounds, indices[stored], values[stored])
        _open(row, 0, node_scores, opened, stamp[0])
        for tree in range(n_trees):
            _push(heap_costs[tree], heap_nodes[tree], 0, max(-node_scores[tree], 0.0), ~tree)
            sizes[tree] = 1
        n_kept = 0
        while True:
            best = _cheapest(heap_costs, heap_nodes, sizes, node_scores, costs)
            if best < 0:
                break
            if n_kept == top:
                bound = mean_logit(costs)
                if scores[i, top - 1] > bound + ROUNDING * (1.0 + abs(bound)):
                    break
            node, cost = heap_nodes[best, 0], heap_costs[best, 0]
            _pop(heap_costs[best], heap_nodes[best], sizes[best])
            sizes[best] -= 1
            first, end = bounds[node + 1], bounds[node + 2]
            if first < end:
                _open(row, node + 1, node_scores, opened, stamp[0])
            for child in range(first, end):
                at_least = cost + max(-node_scores[child], 0.0)
                _push(heap_costs[best], heap_nodes[best], sizes[best], at_least, ~child)
                sizes[best] += 1
            label = labels[node]
            if label < 0 or seen[label] == stamp[0]:
                continue
            seen[label] = stamp[0]
            for tree in range(n_trees):
                n_above, above = 0, leaves[tree, label]
                while above >= 0:
                    path[n_above] = above
                    above, n_above = parents[above], n_above + 1
                costs[tree] = 0.0
                for k in range(n_above - 1, -1, -1):
                    _open(row, parents[path[k]] + 1, node_scores, opened, stamp[0])
                    costs[tree] += _cost(node_scores[path[k]])
            rounded[0] = mean_logit(costs)
            n_kept = _keep(label, rounded[0], ranked[i], scores[i], n_kept)


@njit(nogil=True, cache=True, error_model="numpy")
def _open(row, family, node_scores, opened, stamp):
    """Write the scores of a family's nodes, unless they are there.

    A family's nodes stand one after the other in the list of every feature. The lists of a row's
    few features stay in cache while it is searched for. Products of two float32 are exact here and
    features come in the order of the row, as where all nodes are scored, so that no bit differs.
    """
    if opened[family] == stamp:
        return
    opened[family] = stamp
    (starts, nodes, coefficients), intercepts, bounds, indices, values = row
    first, end = bounds[family], bounds[family + 1]
    for node in range(first, end):
        node_scores[node] = intercepts[node]
    for k in range(indices.shape[0]):
        low, high, last = starts[indices[k]], starts[indices[k] + 1], starts[indices[k] + 1]
        while low < high:
            middle = (low + high) >> 1
            if nodes[middle] < first:
                low = middle + 1
            else:
                high = middle
        value = np.float64(values[k])
        while low < last and nodes[low] < end:
            node_scores[nodes[low]] += np.float64(coefficients[low]) * value
            low += 1


@njit(nogil=True, cache=True, error_model="numpy")
def _cheapest(heap_costs, heap_nodes, sizes, node_scores, costs):
    """Return the tree with the cheapest open node, and write those of all; -1 if all are done.

    A node that waits with a part of its cost, which its complement tells, gets the rest first.
    """
    best = -1
    for tree in range(sizes.shape[0]):
        if sizes[tree] == 0:
            return -1  # This tree has no further labels.
        while heap_nodes[tree, 0] < 0:
            cost, node = heap_costs[tree, 0], ~heap_nodes[tree, 0]
            _pop(heap_costs[tree], heap_nodes[tree], sizes[tree])
            score = node_scores[node]
            cost += _cost(score) - max(-score, 0.0)
            _push(heap_costs[tree], heap_nodes[tree], sizes[tree] - 1, cost, node)
        costs[tree] = heap_costs[tree, 0]
        if best < 0 or costs[tree] < costs[best]:
            best = tree
    return best


@njit(nogil=True, cache=True)
def _keep(label, score, ranked, scores, n_kept):
    """Put a label in its place among the best, if it is one of them; return how many there are."""
    top = ranked.shape[0]
    place = n_kept
    if n_kept == top:
        place = top - 1
        if not _is_above(score, label, scores[place], ranked[place]):
            return n_kept
    while place > 0 and _is_above(score, label, scores[place - 1], ranked[place - 1]):
        scores[place], ranked[place] = scores[place - 1], ranked[place - 1]
        place -= 1
    scores[place], ranked[place] = score, label
    return min(n_kept + 1, top)


@njit(nogil=True, cache=True)
def _is_above(score, label, other_score, other_label):
    return score > other_score or (score == other_score and label < other_label)


@njit(nogil=True, cache=True, error_model="numpy")
def score_labels(node_scores, child_starts, leaves, scores):
    """Write the scores (n, m) of all labels, from the scores (n, n_nodes) of all nodes.

    The scores of nodes are overwritten; labels that are in no tree keep what they have.
    """
    n_trees, n_labels = leaves.shape
    costs = np.empty(n_trees)
    for i in range(scores.shape[0]):
        of_nodes = node_scores[i]
        for node in range(n_trees):
            of_nodes[node] = _cost(of_nodes[node])
        for node in range(of_nodes.shape[0]):
            for child in range(child_starts[node], child_starts[node + 1]):
                of_nodes[child] = of_nodes[node] + _cost(of_nodes[child])
        for label in range(n_labels):
            if leaves[0, label] >= 0:
                for tree in range(n_trees):
                    costs[tree] = of_nodes[leaves[tree, label]]
                scores[i, label] = mean_logit(costs)
