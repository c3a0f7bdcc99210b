"""Data sets, made up and real."""

from deltarank.datasets.catalogue import CATALOGUE, DataSet
from deltarank.datasets.data import Data, DataFileError
from deltarank.datasets.encoder import Encoder
from deltarank.datasets.formats import detect_format, read
from deltarank.datasets.loading import Split, load, statistics
from deltarank.datasets.synthetic import BayesRisk, SyntheticModel
from deltarank.datasets.writers import write, write_libsvm, write_xmc

__all__ = [
    "CATALOGUE",
    "BayesRisk",
    "Data",
    "DataFileError",
    "DataSet",
    "Encoder",
    "Split",
    "SyntheticModel",
    "detect_format",
    "load",
    "read",
    "statistics",
    "write",
    "write_libsvm",
    "write_xmc",
]
