"""Ranking metrics: rank loss, Eq. (4), and its family, exact about ties, weights and batches."""

from deltarank.metrics.functions import (
    average_precision,
    coverage,
    label_propensities,
    ndcg_at_k,
    one_error,
    precision_at_k,
    propensity_scored_precision_at_k,
    rank_loss,
    recall_at_k,
)
from deltarank.metrics.pairwise import pairwise_loss
from deltarank.metrics.rows import METRICS
from deltarank.metrics.scorers import SCORERS, RankingScorer, get_scorer
from deltarank.metrics.streaming import StreamingMetric

__all__ = [
    "METRICS",
    "SCORERS",
    "RankingScorer",
    "StreamingMetric",
    "average_precision",
    "coverage",
    "get_scorer",
    "label_propensities",
    "ndcg_at_k",
    "one_error",
    "pairwise_loss",
    "precision_at_k",
    "propensity_scored_precision_at_k",
    "rank_loss",
    "recall_at_k",
]
