"""Boosting written down as defined: loops over features, thresholds, rows, labels and pairs.

Nothing here is shared with the library. AdaBoost.MR keeps its distribution over triples.
"""

from itertools import product

import numpy as np

TOLERANCE = 1e-6


def thresholds_of(column):
    """Midpoints of consecutive distinct values that are not missing."""
    values = np.unique(column[~np.isnan(column)])
    return (values[:-1] + values[1:]) / 2


def branches_of(column, threshold):
    """0 left, 1 right, 2 missing."""
    return np.where(np.isnan(column), 2, np.where(column <= threshold, 0, 1))


def impurity(criterion, relevant, other):
    """Of one branch."""
    if criterion == "error":
        return min(relevant, other)
    if criterion == "z":
        return 2 * np.sqrt(relevant * other)
    total = relevant + other
    return -sum(part * np.log(part / total) for part in (relevant, other) if part > 0)


def best_stump(X, score):
    """The (feature, threshold) with the least score(branches); the first of equals."""
    best, found = np.inf, (0, np.inf)
    for feature in range(X.shape[1]):
        for threshold in thresholds_of(X[:, feature]):
            value = score(branches_of(X[:, feature], threshold))
            if value < best - 1e-13:
                best, found = value, (feature, threshold)
    return found


def leaf_shares(D, y, branches):
    """Share of relevant weight of the three branches, by Weka's rules for empty ones."""
    weight = [D[branches == b].sum() for b in range(3)]
    relevant = [D[(branches == b) & (y == 1)].sum() for b in range(3)]
    everywhere = sum(relevant) / sum(weight)
    missing = relevant[2] / weight[2] if weight[2] > 0 else everywhere
    shares = [relevant[b] / weight[b] if weight[b] > 0 else missing for b in range(2)]
    return np.array([*shares, missing])


def adaboost_label(X, y, w, rounds, criterion, votes, shrinkage=1.0):
    """One label; returns [(feature, threshold, votes of the branches on the logit scale)]."""
    D, stumps = w / w.sum(), []
    for t in range(rounds):

        def score(branches, D=D):
            return sum(
                impurity(criterion, D[inside & (y == 1)].sum(), D[inside & (y == 0)].sum())
                for inside in (branches == b for b in range(3))
            )

        feature, threshold = best_stump(X, score)
        branches = branches_of(X[:, feature], threshold)
        shares = leaf_shares(D, y, branches)
        if votes == "real":
            steps, stop = real_steps(D, y, branches, shares), False
        else:
            signs = np.where(shares > 0.5, 1.0, -1.0)
            error = D[signs[branches] != 2 * y - 1].sum() / D.sum()
            stop = error >= 0.5 - TOLERANCE or error < TOLERANCE
            if stop and t > 0:
                break
            error = np.clip(error, 1e-12, 1 - 1e-12)
            steps = 0.5 * np.log((1 - error) / error) * signs
        steps = shrinkage * steps
        stumps.append([feature, threshold, 2 * steps])
        if t == 0:
            clipped = np.clip(shares, 1e-12, 1 - 1e-12)
            alone = np.log(clipped / (1 - clipped))
        if stop:
            break
        D = D * np.exp(-(2 * y - 1) * steps[branches])
        D /= D.sum()
    if len(stumps) == 1 and votes == "discrete":
        stumps[0][2] = alone
    return stumps


def real_steps(D, y, branches, shares):
    """Half the smoothed log odds of each branch."""
    e, steps = 0.5 / len(D), np.empty(3)
    for b in range(3):
        inside = branches == b
        relevant, other = D[inside & (y == 1)].sum(), D[inside & (y == 0)].sum()
        if not inside.any():
            relevant, other = shares[b], 1 - shares[b]
        steps[b] = 0.5 * np.log((relevant + e) / (other + e))
    return steps


def score_stumps(X, stumps):
    """Sum of the votes of one label's stumps."""
    total = np.zeros(len(X))
    for feature, threshold, votes in stumps:
        total += np.asarray(votes)[branches_of(X[:, feature], threshold)]
    return total


def shared_stump(X, Y, d, votes, n_cells):
    """The best stump for cell weights d of total 1: branches, edge and unscaled votes (3, m)."""
    signs = 2 * Y - 1

    def sums(branches):
        plus = [(d * (signs > 0))[branches == b].sum(axis=0) for b in range(3)]
        minus = [(d * (signs < 0))[branches == b].sum(axis=0) for b in range(3)]
        return np.array(plus), np.array(minus)

    def score(branches):
        plus, minus = sums(branches)
        if votes == "real":
            return 2 * np.sqrt(plus * minus).sum()
        return -np.abs(plus - minus).sum()

    feature, threshold = best_stump(X, score)
    branches = branches_of(X[:, feature], threshold)
    plus, minus = sums(branches)
    taken = np.array([(branches == b).any() for b in range(3)])[:, None]
    if votes == "real":
        e = 0.5 / n_cells
        return branches, None, taken * 0.5 * np.log((plus + e) / (minus + e))
    c = np.where(plus - minus >= 0, 1.0, -1.0) * taken
    return branches, (d * signs * c[branches]).sum(), c


def adaboost_mr(X, Y, w, rounds, votes, step):
    """Explicit D over triples (row, irrelevant, relevant); returns training scores and Z's."""
    n, m = Y.shape
    triples = [
        (i, q, p)
        for i in range(n)
        for q, p in product(np.flatnonzero(Y[i] == 0), np.flatnonzero(Y[i] == 1))
    ]
    rows, low, high = np.array(triples).T
    D = w[rows] / w[rows].sum()
    scores, normalizers = np.zeros((n, m)), []
    for _ in range(rounds):
        d = np.zeros((n, m))
        np.add.at(d, (rows, low), D / 2)
        np.add.at(d, (rows, high), D / 2)
        branches, edge, c = shared_stump(X, Y, d, votes, n * m)
        h = c[branches]
        gap = h[rows, high] - h[rows, low]
        alpha = 1.0
        if votes == "discrete" and step == "edge":
            alpha = 0.5 * np.log((1 + edge) / (1 - edge))
        elif votes == "discrete":
            alpha = 0.5 * np.log(D[gap > 1].sum() / D[gap < -1].sum())
        D = D * np.exp(-alpha / 2 * gap)
        normalizers.append(D.sum())
        D /= D.sum()
        scores += alpha * h
    return scores, np.array(normalizers)


def adaboost_mh(X, Y, w, rounds, votes):
    """Distribution over cells; returns training scores (twice the sums of votes) and Z's."""
    n, m = Y.shape
    signs = 2 * Y - 1
    D = np.repeat(w[:, None], m, axis=1) / (w.sum() * m)
    scores, normalizers = np.zeros((n, m)), []
    for _ in range(rounds):
        branches, edge, c = shared_stump(X, Y, D, votes, n * m)
        alpha = 1.0 if votes == "real" else 0.5 * np.log((1 + edge) / (1 - edge))
        h = c[branches]
        D = D * np.exp(-alpha * signs * h)
        normalizers.append(D.sum())
        D /= D.sum()
        scores += alpha * h
    return 2 * scores, np.array(normalizers)
