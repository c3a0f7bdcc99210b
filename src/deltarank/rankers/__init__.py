"""Rankers: scikit-learn estimators that put labels in order."""

from deltarank.rankers.adaboost import AdaBoostRanker
from deltarank.rankers.adaboost_shared import AdaBoostMH, AdaBoostMR
from deltarank.rankers.kernel import KernelLogisticRanker
from deltarank.rankers.logistic import LogisticRanker
from deltarank.rankers.logistic_cv import LogisticRankerCV
from deltarank.rankers.reduction import WeightedBinaryRelevance
from deltarank.rankers.staged import StagedSearchCV

__all__ = [
    "AdaBoostMH",
    "AdaBoostMR",
    "AdaBoostRanker",
    "KernelLogisticRanker",
    "LogisticRanker",
    "LogisticRankerCV",
    "StagedSearchCV",
    "WeightedBinaryRelevance",
]
