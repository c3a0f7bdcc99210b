"""Data sets, made up and real."""

from deltarank.datasets.data import Data, DataFileError
from deltarank.datasets.encoder import Encoder
from deltarank.datasets.formats import detect_format, read
from deltarank.datasets.synthetic import BayesRisk, SyntheticModel

__all__ = [
    "BayesRisk",
    "Data",
    "DataFileError",
    "Encoder",
    "SyntheticModel",
    "detect_format",
    "read",
]
