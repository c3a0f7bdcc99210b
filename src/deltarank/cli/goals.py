"""What ``--metric`` asks for: the weight, the score that tunes, and the rule that decides."""

import re
from typing import Any, NamedTuple

import numpy as np
import typer

from deltarank.metrics import SCORERS, StreamingMetric
from deltarank.metrics.placement import place
from deltarank.metrics.scorers import RankingScorer
from deltarank.metrics.table import METRICS, Metric
from deltarank.wrappers.decided_scorer import DecidedScorer

# For each metric: its name in the library, the row weight (None stands for ("ndcg", k)), and the
# rule of `MetricRanker` that turns chances into its best order, where chances alone are not it.
GOALS: dict[str, tuple[str, Any, str | None]] = {
    "rank-loss": ("rank_loss", "rank", None),
    "precision": ("precision_at_k", "uniform", None),
    "recall": ("recall_at_k", "recall", None),
    "ndcg": ("ndcg_at_k", None, None),
    "macro-recall": ("macro_recall_at_k", "uniform", "macro-recall"),
    "macro-f1": ("macro_f1_at_k", "uniform", "macro-f1"),
}
# Draws of rows for the interval of a mean over labels, which has no value per row.
MOST_DRAWS = 200


class Goal(NamedTuple):
    """A metric that a model is made for."""

    name: str
    metric: str
    k: int | None
    weight: Any
    rule: str | None

    @property
    def scoring(self) -> Any:
        """The score that parameters are chosen by: the metric, at the nearest k with a name.

        Where a rule decides, it is the metric under that rule.
        """
        if self.rule is not None and self.k is not None:
            return DecidedScorer(self.rule, self.metric, self.k)
        options = {} if self.k is None else {"k": min((1, 3, 5), key=self._distance)}
        named = {str(scorer): name for name, scorer in SCORERS.items()}
        return named[str(RankingScorer(self.metric, options))]

    def _distance(self, k: int) -> int:
        return abs(k - (self.k or 0))

    @property
    def options(self) -> dict[str, Any]:
        """The metric's own."""
        return {} if self.k is None else {"k": self.k}

    @property
    def is_of_rows(self) -> bool:
        """Whether the metric is a mean over rows, and not over labels."""
        return isinstance(METRICS[self.metric], Metric)

    def of_rows(self, Y: Any, scores: Any) -> Any:
        """Return the metric of each row."""
        from deltarank import metrics

        return getattr(metrics, self.metric)(Y, scores, per_instance=True, **self.options)


def read_goal(text: str) -> Goal:
    """Read a metric such as ``ndcg@5``.

    Examples
    --------
    >>> goal = read_goal("macro-f1@3")
    >>> goal.metric, goal.k, goal.weight, goal.rule
    ('macro_f1_at_k', 3, 'uniform', 'macro-f1')
    >>> goal = read_goal("ndcg@10")
    >>> goal.weight, goal.scoring
    (('ndcg', 10), 'ndcg_at_5')
    """
    parsed = re.fullmatch(r"([a-z0-9-]+?)(?:@([1-9][0-9]*))?", text)
    if parsed is None or parsed[1] not in GOALS:
        known = ", ".join(name if name == "rank-loss" else f"{name}@5" for name in GOALS)
        raise typer.BadParameter(f"--metric must be one of {known} (or another number); got {text}")
    name, k = parsed[1], None if parsed[2] is None else int(parsed[2])
    if (k is None) != (name == "rank-loss") and name != "ndcg":
        wanted = "no number of labels" if name == "rank-loss" else f"one, such as {name}@5"
        raise typer.BadParameter(f"--metric {name} has {wanted}; got {text}")
    metric, weight, rule = GOALS[name]
    if weight is None:
        weight = "ndcg" if k is None else ("ndcg", k)
    return Goal(text, metric, k, weight, rule)


def mean_of_goal(goal: Goal, values: Any, *, n_draws: int, seed: int) -> dict[str, Any]:
    """Return the mean of a metric's values, with its bootstrap interval of 95 % over rows."""
    from deltarank.core.statistics import paired_bootstrap

    interval = paired_bootstrap(values, 0.0, n_draws=n_draws, random_state=seed)
    return {
        "measure": goal.name,
        "value": interval.mean,
        "low": interval.low,
        "high": interval.high,
    }


def measure_goal(goal: Goal, Y: Any, scores: Any, *, n_draws: int, seed: int) -> dict[str, Any]:
    """Return the metric of scores, with its bootstrap interval of 95 % over rows."""
    if goal.is_of_rows:
        return mean_of_goal(goal, goal.of_rows(Y, scores), n_draws=n_draws, seed=seed)
    placement, generator = place(Y, scores), np.random.default_rng(seed)
    n_rows = scores.shape[0]

    def value(counts: Any) -> float:
        stream = StreamingMetric(goal.metric, **goal.options)
        stream.update_placed(placement, counts)
        return stream.result()

    drawn = [
        value(np.bincount(generator.integers(n_rows, size=n_rows), minlength=n_rows).astype(float))
        for _ in range(min(n_draws, MOST_DRAWS))
    ]
    low, high = np.quantile(drawn, [0.025, 0.975])
    whole = value(np.ones(n_rows))
    return {"measure": goal.name, "value": whole, "low": float(low), "high": float(high)}
