"""The best rule "first k of a_l eta_l + b_l" for a macro metric, on held-out rows.

A classifier has a point: for each label the shares of rows where it is chosen, and rightly so. The
metric is a function of the point. The classifiers that draw one of several rules fill a convex set
of points, and over it the Frank-Wolfe method goes uphill: the slopes of the metric at the present
point are gains of a hit and of a choice, for which "first k of the expected gain" is the best rule,
and the next point lies on the line to that rule's point, where the metric is largest. (Schultheis,
Wydmuch, Kotlowski, Babbar, Dembczynski, ICLR 2024.)
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.core.labels import LabelSets
from deltarank.core.progress import progress
from deltarank.core.threads import even_parts, run
from deltarank.decisions.kernels.rules import count_choices
from deltarank.decisions.kernels.utilities import all_slopes, mean_utility
from deltarank.decisions.metrics import DECISIONS, Known

Floats = NDArray[np.float64]
STEPS = np.linspace(0, 1, 101)[1:]
STARTS = ("precision", "balanced-accuracy")
# Fewer rows to a thread cost more in the starting than they save.
LEAST_ROWS = 256


class HeldOut(NamedTuple):
    """Chances (n, m) of rows by rankers fitted without them, labels, and weights that sum to 1."""

    chances: NDArray[Any]
    labels: LabelSets
    weights: Floats

    @property
    def relevant(self) -> Floats:
        """Share of the rows that have each label."""
        weights = self.weights[self.labels.rows]
        shares = np.bincount(self.labels.members, weights, minlength=self.labels.n_labels)
        return shares.astype(np.float64)

    def point(self, rule: Floats, k: int) -> Floats:
        """Return the shares of rows (2, m) where the rule's first k hold a label rightly, at all.

        Parameters
        ----------
        rule : array of shape (2, m)
            Slopes and offsets.
        k : int
        """
        parts = even_parts(len(self.chances), LEAST_ROWS)
        counts = np.zeros((len(parts), *rule.shape))
        starts, members = self.labels.starts, self.labels.members
        tasks = [
            partial(
                count_choices,
                self.chances[rows], rule, k, (starts[rows.start : rows.stop + 1], members),
                self.weights[rows], counts[part],
            )
            for part, rows in enumerate(parts)
        ]  # fmt: skip
        run(tasks)
        return np.asarray(counts.sum(axis=0))


class Found(NamedTuple):
    """The best single rule, its metric, and that of the mixture of rules the method ended with."""

    rule: Floats
    value: float
    mixture_value: float


def frank_wolfe(
    rows: HeldOut, kind: int, k: int, *, never: float, tol: float = 1e-6, max_iter: int = 50
) -> Found:
    """Maximise the mean utility of labels over rules.

    Metrics that are not concave have several tops, so there are two starts: the first k by chance,
    which favours frequent labels, and by balanced accuracy, which favours rare ones. Returns the
    best of all rules met on the way. Where chances have a continuous distribution no mixture is
    better than the best single rule; otherwise `mixture_value` tells what it is worth. A label that
    no row has gets the offset `never`, and so is not chosen while there are others.
    """
    relevant = rows.relevant
    known = Known(relevant, np.ones(len(relevant)))
    ends = []
    with progress("choosing the rule", len(STARTS)) as done:
        for number, metric in enumerate(STARTS):
            start: Any = DECISIONS[metric]
            rule = np.array([np.broadcast_to(part, len(relevant)) for part in start.rule(known)])
            ends.append(_climb(rows, kind, k, rule, never, tol, max_iter))
            done(number + 1)
    best = max(ends, key=lambda end: end.value)
    return best._replace(mixture_value=max(end.mixture_value for end in ends))


def _climb(
    rows: HeldOut, kind: int, k: int, rule: Floats, never: float, tol: float, max_iter: int
) -> Found:
    """Go uphill from a rule's point until the best step gains less than `tol`, relatively."""
    relevant = rows.relevant
    rule[1, relevant <= 0] = never
    point = rows.point(rule, k)
    value = mean_utility(kind, *point, relevant)
    best, best_value = rule, value
    for _ in range(max_iter):
        rule = all_slopes(kind, *point, relevant)
        rule[1, relevant <= 0] = never
        target = rows.point(rule, k)
        reached = mean_utility(kind, *target, relevant)
        if reached > best_value:
            best, best_value = rule, reached
        ahead = [mean_utility(kind, *_between(point, target, s), relevant) for s in STEPS]
        furthest = int(np.argmax(ahead))
        if ahead[furthest] <= value + tol * max(value, tol):
            break
        point, value = _between(point, target, STEPS[furthest]), ahead[furthest]
    return Found(best, best_value, value)


def _between(point: Floats, target: Floats, step: float) -> Floats:
    return (1 - step) * point + step * target
