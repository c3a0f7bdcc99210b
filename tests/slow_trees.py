"""Gradient-boosted trees written down as defined: explicit gradients, every split tried.

Nothing here is shared with the library.
"""

import numpy as np

# phi'(t) and phi''(t).
DERIVATIVES = {
    "logistic": lambda t: (-1 / (1 + np.exp(t)), np.exp(t) / (1 + np.exp(t)) ** 2),
    "exponential": lambda t: (-np.exp(-t), np.exp(-t)),
    "squared": lambda t: (-2 * (1 - t), np.full_like(t, 2.0)),
    "squared_hinge": lambda t: (np.where(t < 1, -2 * (1 - t), 0.0), np.where(t < 1, 2.0, 0.0)),
}
STARTS = {
    "logistic": lambda p: np.log(p / (1 - p)),
    "exponential": lambda p: np.log(p / (1 - p)) / 2,
    "squared": lambda p: 2 * p - 1,
    "squared_hinge": lambda p: 2 * p - 1,
}


def goes_left(column, threshold, missing_left):
    """Which rows go left; in place of a threshold, (left, seen) are sets of categories."""
    if isinstance(threshold, tuple):
        left, seen = threshold
        return np.array([value in left or (value not in seen and missing_left) for value in column])
    return np.where(np.isnan(column), missing_left, column <= threshold)


class Trees:
    """Rounds of boosting; `trees` are nested tuples, leaves are arrays of values."""

    def __init__(self, X, Y, w, *, loss="logistic", cost=1.0, learning_rate=0.1, max_leaves=31,
                 min_child_weight=5.0, l2=1.0, power=0.25, draw=None, categorical=()):  # fmt: skip
        self.X, self.power, self.draw, self.categorical = X, power, draw, categorical
        self.signs = np.where(np.isnan(Y), 0.0, 2 * np.nan_to_num(Y) - 1)
        self.weights = w[:, None] * np.where(self.signs > 0, cost, np.abs(self.signs))
        self.w, self.loss, self.rate = w, loss, learning_rate
        self.max_leaves, self.least, self.l2 = max_leaves, min_child_weight, l2
        chance = (self.weights * (self.signs > 0)).sum(axis=0) / self.weights.sum(axis=0)
        self.base = STARTS[loss](chance)
        self.scores = np.tile(self.base, (len(X), 1))
        self.levels = self.derivatives()[1].sum(axis=0)
        self.trees = []

    def derivatives(self):
        slope, curvature = DERIVATIVES[self.loss](self.signs * self.scores)
        return self.weights * self.signs * slope, self.weights * curvature

    def round(self):
        gradients, curvatures = self.derivatives()
        level = self.levels / self.w.sum()
        scale = level**-self.power
        whole = (scale**2 * level).sum()
        sketch = gradients * scale / np.sqrt(whole)
        if self.draw is not None:
            sketch = sketch @ self.draw()
        curvature = curvatures @ (scale**2 / whole)
        root = [None]
        leaves = [(np.arange(len(self.X)), root, 0)]
        while len(leaves) < self.max_leaves:
            splits = [self.best_split(rows, sketch, curvature) for rows, _, _ in leaves]
            gains = [gain for gain, _ in splits]
            best = int(np.argmax(gains))
            if gains[best] <= 1e-12:
                break
            rows, parent, side = leaves.pop(best)
            question = splits[best][1]
            node = [question, None, None]
            parent[side] = node
            left = goes_left(self.X[rows, question[0]], *question[1:]).astype(bool)
            leaves += [(rows[left], node, 1), (rows[~left], node, 2)]
        for rows, parent, side in leaves:
            total = curvatures[rows].sum(axis=0) + self.l2
            value = -self.rate * gradients[rows].sum(axis=0) / total
            parent[side] = value
            self.scores[rows] += value
        self.levels = curvatures.sum(axis=0)
        self.trees.append(root[0])

    def best_split(self, rows, sketch, curvature):
        """The gain and question of the best split; the first of equals."""

        def worth(some):
            return (sketch[some].sum(axis=0) ** 2).sum() / (curvature[some].sum() + self.l2)

        best, found = -np.inf, None
        for feature in range(self.X.shape[1]):
            column = self.X[rows, feature]
            if feature in self.categorical:
                gain, *question = self.best_set(column, sketch[rows], curvature[rows])
                if gain > best + 1e-10:
                    best, found = gain, (feature, *question)
                continue
            missing = np.isnan(column)
            values = np.unique(self.X[~np.isnan(self.X[:, feature]), feature])
            cuts = [*((values[:-1] + values[1:]) / 2), np.inf]
            for missing_left in (False, True) if missing.any() else (None,):
                for cut in cuts:
                    left = goes_left(column, cut, bool(missing_left)).astype(bool)
                    sides = curvature[rows[left]].sum(), curvature[rows[~left]].sum()
                    if min(sides) < self.least or left.all() or not left.any():
                        continue
                    gain = worth(rows[left]) + worth(rows[~left]) - worth(rows)
                    if gain > best + 1e-10:
                        way = sides[0] >= sides[1] if missing_left is None else missing_left
                        best, found = gain, (feature, cut, bool(way))
        return best, found

    def best_set(self, column, sketch, curvature):
        """The gain and question of the best split of categories that the search should meet."""
        missing = np.isnan(column)
        seen = np.unique(column[~missing])
        if not len(seen) or len(seen) + missing.any() < 2:
            return -np.inf, None, None
        G = np.array([sketch[column == c].sum(axis=0) for c in seen])
        H = np.array([curvature[column == c].sum() for c in seen])
        means = G / H[:, None]
        gaps = np.sqrt(H)[:, None] * (means - sketch.sum(axis=0) / curvature.sum())
        covariance = gaps.T @ gaps
        start = gaps[np.argmax(np.square(gaps).sum(axis=1))]
        direction = np.linalg.matrix_power(covariance / np.trace(covariance), 20) @ start

        def worth(some):
            return (sketch[some].sum(axis=0) ** 2).sum() / (curvature[some].sum() + self.l2)

        everything = np.ones(len(column), bool)
        best, found = -np.inf, (None, None)
        for _ in range(10):
            order = seen[np.argsort(means @ direction, kind="stable")]
            better = False
            for missing_left in (False, True) if missing.any() else (None,):
                for n_left in range(1, len(seen) + 1):
                    left = np.isin(column, order[:n_left]) | (missing & bool(missing_left))
                    sides = curvature[left].sum(), curvature[~left].sum()
                    if min(sides) < self.least or left.all():
                        continue
                    gain = worth(left) + worth(~left) - worth(everything)
                    if gain > best + 1e-10:
                        way = sides[0] >= sides[1] if missing_left is None else missing_left
                        best, found, better = (
                            gain,
                            ((set(order[:n_left]), set(seen)), bool(way)),
                            True,
                        )
                        halves = left
            if not better:
                break
            direction = sketch[~halves].sum(axis=0) / curvature[~halves].sum()
            direction -= sketch[halves].sum(axis=0) / curvature[halves].sum()
        return best, *found

    def score(self, X):
        """Scores of other rows, one by one."""
        return np.array([self.base + sum(_value(tree, row) for tree in self.trees) for row in X])


def _value(tree, row):
    while isinstance(tree, list):
        (feature, threshold, missing_left), left, right = tree
        tree = left if goes_left(row[feature : feature + 1], threshold, missing_left)[0] else right
    return tree
