"""The best labels of a row by a search that opens the most promising node first.

What a node costs is minus the logarithm of the product of chances from the root down to it, so
costs only grow downwards and labels come out best first. With several trees a label's score is the
logit of the mean of its products. A label that comes out of one tree is looked up in the others;
no label that has not come out of any can score above what the cheapest open nodes of all trees
would together. So the search knows when it is done, and its result is exact.
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
def _node_score(coef, intercepts, node, row):
    """Return a node's score for a row that is written out."""
    starts, indices, values = coef
    total = intercepts[node]
    for k in range(starts[node], starts[node + 1]):
        # Products of two float32 are exact here, so that leaving out zeros changes no bit.
        total += np.float64(values[k]) * np.float64(row[indices[k]])
    return total


@njit(nogil=True, cache=True)
def family_columns(child_starts, coef, n_features):
    """Return the coefficients of siblings feature by feature, so that a row looks at its own only.

    Returns
    -------
    column_starts : ndarray of int64, shape (n_nodes + 1,)
        The columns of the children of node v are those from ``column_starts[v]``.
    features : ndarray of int32
        Of each column, ascending within a family.
    entry_starts : ndarray of int64
    children, values : ndarray of int32 and float32
        Entries of each column: which child, counted from the first, and its coefficient.
    """
    starts, indices, values = coef
    n_nodes = child_starts.shape[0] - 1
    column_starts = np.zeros(n_nodes + 1, np.int64)
    last = np.full(n_features, -1, np.int64)
    for v in range(n_nodes):
        n_columns = 0
        for k in range(starts[child_starts[v]], starts[child_starts[v + 1]]):
            if last[indices[k]] != v:
                last[indices[k]] = v
                n_columns += 1
        column_starts[v + 1] = column_starts[v] + n_columns
    features = np.empty(column_starts[n_nodes], np.int32)
    entry_starts = np.zeros(column_starts[n_nodes] + 1, np.int64)
    children, ordered = np.empty(indices.shape[0], np.int32), np.empty_like(values)
    last[:] = -1
    place, end = np.zeros(n_features, np.int64), 0
    for v in range(n_nodes):
        own, n_columns = features[column_starts[v] : column_starts[v + 1]], 0
        for k in range(starts[child_starts[v]], starts[child_starts[v + 1]]):
            j = indices[k]
            if last[j] != v:
                last[j] = v
                own[n_columns] = j
                n_columns += 1
                place[j] = 0
            place[j] += 1
        own.sort()
        for column in range(n_columns):
            entry_starts[column_starts[v] + column] = end
            end += place[own[column]]
            place[own[column]] = entry_starts[column_starts[v] + column]
        for child in range(child_starts[v], child_starts[v + 1]):
            for k in range(starts[child], starts[child + 1]):
                children[place[indices[k]]] = child - child_starts[v]
                ordered[place[indices[k]]] = values[k]
                place[indices[k]] += 1
    entry_starts[-1] = end
    return column_starts, features, entry_starts, children[:end], ordered[:end]


@njit(nogil=True, cache=True, error_model="numpy")
def _family_scores(columns, intercepts, node, child_starts, row_indices, row_values, scores):
    """Write the scores of a node's children.

    Features of the row come in their order, as in `_node_score`, so that no bit differs.
    """
    column_starts, features, entry_starts, children, values = columns
    first = child_starts[node]
    for child in range(first, child_starts[node + 1]):
        scores[child - first] = intercepts[child]
    low, end = column_starts[node], column_starts[node + 1]
    for k in range(row_indices.shape[0]):
        high, feature = end, row_indices[k]
        while low < high:
            middle = (low + high) >> 1
            if features[middle] < feature:
                low = middle + 1
            else:
                high = middle
        if low < end and features[low] == feature:
            value = np.float64(row_values[k])
            for entry in range(entry_starts[low], entry_starts[low + 1]):
                scores[children[entry]] += np.float64(values[entry]) * value


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
def search_rows(matrix, n_features, forest, coef, columns, intercepts, ranked, scores):
    """Write the best labels of each row, best first, ties by label, and their scores.

    Parameters
    ----------
    matrix : tuple (starts, indices, values)
        CSR of the rows.
    n_features : int
    forest : tuple (child_starts, labels, leaves, parents, depth)
        See `Forest`.
    coef : tuple (starts, indices, values)
        CSR of the nodes' coefficients.
    columns : tuple
        The same by family: see `family_columns`.
    intercepts : ndarray of float64
        Of the nodes.
    ranked : ndarray of intp, shape (n, top)
        At most as many as there are labels in the trees.
    scores : ndarray of float, shape (n, top)
    """
    starts, indices, values = matrix
    child_starts, labels, leaves, parents, depth = forest
    n_trees, n_nodes = leaves.shape[0], labels.shape[0]
    heap_costs = np.empty((n_trees, n_nodes))
    heap_nodes = np.empty((n_trees, n_nodes), np.int32)
    sizes, costs, of_family = np.empty(n_trees, np.int64), np.empty(n_trees), np.empty(n_nodes)
    path, rounded = np.empty(depth, np.int32), np.empty(1, scores.dtype)
    row, seen = np.zeros(n_features, np.float32), np.full(leaves.shape[1], -1, np.int64)
    # What is known of this row's costs, and of which row the entries are.
    known = np.empty(n_nodes), np.full(n_nodes, -1, np.int64)
    for i in range(ranked.shape[0]):
        for k in range(starts[i], starts[i + 1]):
            row[indices[k]] = values[k]
        for tree in range(n_trees):
            heap_nodes[tree, 0] = tree
            heap_costs[tree, 0] = _cost(_node_score(coef, intercepts, tree, row))
            known[0][tree], known[1][tree] = heap_costs[tree, 0], i
            sizes[tree] = 1
        row_indices = indices[starts[i] : starts[i + 1]]
        row_values = values[starts[i] : starts[i + 1]]
        n_kept, top = 0, ranked.shape[1]
        while True:
            best = _cheapest(heap_costs, sizes, costs)
            if best < 0:
                break
            if n_kept == top:
                bound = mean_logit(costs)
                if scores[i, top - 1] > bound + ROUNDING * (1.0 + abs(bound)):
                    break
            node, cost = heap_nodes[best, 0], heap_costs[best, 0]
            _pop(heap_costs[best], heap_nodes[best], sizes[best])
            sizes[best] -= 1
            first, end = child_starts[node], child_starts[node + 1]
            if first < end:
                _family_scores(
                    columns, intercepts, node, child_starts, row_indices, row_values, of_family
                )
            for child in range(first, end):
                below = cost + _cost(of_family[child - first])
                known[0][child], known[1][child] = below, i
                _push(heap_costs[best], heap_nodes[best], sizes[best], below, child)
                sizes[best] += 1
            label = labels[node]
            if label < 0 or seen[label] == i:
                continue
            seen[label] = i
            for tree in range(n_trees):
                costs[tree] = cost
                if tree != best:
                    leaf = leaves[tree, label]
                    costs[tree] = _path_cost(coef, intercepts, parents, leaf, row, path, known, i)
            rounded[0] = mean_logit(costs)
            n_kept = _keep(label, rounded[0], ranked[i], scores[i], n_kept)
        for k in range(starts[i], starts[i + 1]):
            row[indices[k]] = 0


@njit(nogil=True, cache=True)
def _cheapest(heap_costs, sizes, costs):
    """Return the tree with the cheapest open node, and write those of all; -1 if all are done."""
    best = -1
    for tree in range(sizes.shape[0]):
        if sizes[tree] == 0:
            return -1  # This tree has told all labels.
        costs[tree] = heap_costs[tree, 0]
        if best < 0 or costs[tree] < costs[best]:
            best = tree
    return best


@njit(nogil=True, cache=True)
def _path_cost(coef, intercepts, parents, leaf, row, path, known, i):
    """Return the cost of a leaf, added up from the root down as the search does."""
    costs, row_of = known
    node, n = leaf, 0
    while row_of[node] != i:  # the root at the latest is known
        path[n] = node
        node, n = parents[node], n + 1
    total = costs[node]
    for k in range(n - 1, -1, -1):
        total += _cost(_node_score(coef, intercepts, path[k], row))
        costs[path[k]], row_of[path[k]] = total, i
    return total


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
