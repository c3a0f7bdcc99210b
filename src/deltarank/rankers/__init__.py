"""Rankers: scikit-learn estimators that put labels in order."""

from deltarank.rankers.reduction import WeightedBinaryRelevance

__all__ = ["WeightedBinaryRelevance"]
