"""Rankers: scikit-learn estimators that put labels in order."""

from deltarank.rankers.adaboost import AdaBoostRanker
from deltarank.rankers.adaboost_shared import AdaBoostMH, AdaBoostMR
from deltarank.rankers.calibrated import CalibratedRanker
from deltarank.rankers.kernel import KernelLogisticRanker
from deltarank.rankers.logistic import SUCCESSOR_LOSSES, LogisticRanker
from deltarank.rankers.logistic_cv import LogisticRankerCV
from deltarank.rankers.loglinear import LogLinearRanker
from deltarank.rankers.pairwise import PairwiseRanker
from deltarank.rankers.reduction import WeightedBinaryRelevance
from deltarank.rankers.staged import StagedSearchCV

__all__ = [
    "SUCCESSOR_LOSSES",
    "AdaBoostMH",
    "AdaBoostMR",
    "AdaBoostRanker",
    "CalibratedRanker",
    "KernelLogisticRanker",
    "LogLinearRanker",
    "LogisticRanker",
    "LogisticRankerCV",
    "PairwiseRanker",
    "StagedSearchCV",
    "WeightedBinaryRelevance",
]
