"""Rankers: scikit-learn estimators that put labels in order."""

from deltarank.rankers.logistic import SUCCESSOR_LOSSES, LogisticRanker
from deltarank.rankers.logistic_cv import LogisticRankerCV
from deltarank.rankers.loglinear import LogLinearRanker
from deltarank.rankers.pairwise import PairwiseRanker
from deltarank.rankers.reduction import WeightedBinaryRelevance

__all__ = [
    "SUCCESSOR_LOSSES",
    "LogLinearRanker",
    "LogisticRanker",
    "LogisticRankerCV",
    "PairwiseRanker",
    "WeightedBinaryRelevance",
]
