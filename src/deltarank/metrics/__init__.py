"""Ranking metrics: rank loss, Eq. (4), and its family, exact about ties, weights and batches."""

from deltarank.metrics.functions import (
    average_precision,
    coverage,
    label_propensities,
    ndcg_at_k,
    one_error,
    precision_at_k,
    propensity_scored_ndcg_at_k,
    propensity_scored_precision_at_k,
    rank_loss,
    recall_at_k,
)
from deltarank.metrics.macro import (
    coverage_at_k,
    macro_f1_at_k,
    macro_precision_at_k,
    macro_recall_at_k,
)
from deltarank.metrics.pairwise import pairwise_loss
from deltarank.metrics.scorers import SCORERS, RankingScorer, get_scorer
from deltarank.metrics.streaming import StreamingMetric
from deltarank.metrics.table import METRICS

__all__ = [
    "METRICS",
    "SCORERS",
    "RankingScorer",
    "StreamingMetric",
    "average_precision",
    "coverage",
    "coverage_at_k",
    "get_scorer",
    "label_propensities",
    "macro_f1_at_k",
    "macro_precision_at_k",
    "macro_recall_at_k",
    "ndcg_at_k",
    "one_error",
    "pairwise_loss",
    "precision_at_k",
    "propensity_scored_ndcg_at_k",
    "propensity_scored_precision_at_k",
    "rank_loss",
    "recall_at_k",
]
