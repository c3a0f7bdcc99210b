"""Rankers: scikit-learn estimators that put labels in order."""

from deltarank.boosting.adaboost import AdaBoostRanker
from deltarank.boosting.adaboost_shared import AdaBoostMH, AdaBoostMR
from deltarank.gradient_trees.boosted_trees import BoostedTreeRanker
from deltarank.linear.kernel_logistic import KernelLogisticRanker
from deltarank.linear.logistic import SUCCESSOR_LOSSES, LogisticRanker
from deltarank.linear.logistic_cv import LogisticRankerCV
from deltarank.pairs.loglinear import LogLinearRanker
from deltarank.pairs.pairwise import PairwiseRanker
from deltarank.trees.label_tree import LabelTreeRanker
from deltarank.wrappers.calibrated import CalibratedRanker
from deltarank.wrappers.conformal import ConformalRanker
from deltarank.wrappers.metric_ranker import MetricRanker
from deltarank.wrappers.reduction import WeightedBinaryRelevance
from deltarank.wrappers.staged import StagedSearchCV

__all__ = [
    "SUCCESSOR_LOSSES",
    "AdaBoostMH",
    "AdaBoostMR",
    "AdaBoostRanker",
    "BoostedTreeRanker",
    "CalibratedRanker",
    "ConformalRanker",
    "KernelLogisticRanker",
    "LabelTreeRanker",
    "LogLinearRanker",
    "LogisticRanker",
    "LogisticRankerCV",
    "MetricRanker",
    "PairwiseRanker",
    "StagedSearchCV",
    "WeightedBinaryRelevance",
]
