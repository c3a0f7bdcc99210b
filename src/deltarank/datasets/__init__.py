"""Data sets, made up and real."""

from deltarank.datasets.synthetic import BayesRisk, SyntheticModel

__all__ = ["BayesRisk", "SyntheticModel"]
