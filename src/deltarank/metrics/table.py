"""The table of metrics: how each is summed up over rows, and whether more is better."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from deltarank.metrics import labels, rows
from deltarank.metrics.labels import LabelSums
from deltarank.metrics.row_sums import RowSums


class Metric(NamedTuple):
    """A mean over rows: two values per row, and whether more is better."""

    rows: Callable[..., rows.Rows]
    greater_is_better: bool

    @property
    def options(self) -> list[str]:
        """Names of its keyword arguments."""
        return list(inspect.signature(self.rows).parameters)[1:]

    def start(self, **options: Any) -> RowSums:
        """Return sums without rows yet."""
        return RowSums(self.rows, options)


class LabelMetric(NamedTuple):
    """A mean over labels: the value of each label's tallies, and whether more is better."""

    values: Callable[[labels.Tallies], labels.Floats]
    greater_is_better: bool

    @property
    def options(self) -> list[str]:
        """Names of its keyword arguments."""
        return list(inspect.signature(LabelSums).parameters)[1:]

    def start(self, **options: Any) -> LabelSums:
        """Return tallies without rows yet."""
        return LabelSums(self.values, **options)


METRICS: dict[str, Metric | LabelMetric] = {
    "rank_loss": Metric(rows.rank_loss_rows, False),
    "coverage": Metric(rows.coverage_rows, False),
    "one_error": Metric(rows.one_error_rows, False),
    "average_precision": Metric(rows.average_precision_rows, True),
    "precision_at_k": Metric(rows.precision_at_k_rows, True),
    "recall_at_k": Metric(rows.recall_at_k_rows, True),
    "ndcg_at_k": Metric(rows.ndcg_at_k_rows, True),
    "propensity_scored_precision_at_k": Metric(rows.propensity_scored_precision_at_k_rows, True),
    "propensity_scored_ndcg_at_k": Metric(rows.propensity_scored_ndcg_at_k_rows, True),
    "macro_precision_at_k": LabelMetric(labels.precision, True),
    "macro_recall_at_k": LabelMetric(labels.recall, True),
    "macro_f1_at_k": LabelMetric(labels.f1, True),
    "coverage_at_k": LabelMetric(labels.coverage, True),
}
