"""Data sets, synthetic and real."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltarank.datasets.catalogue import CATALOGUE, DataSet
    from deltarank.datasets.data import Data
    from deltarank.datasets.encoder import Encoder
    from deltarank.datasets.example import example_rows
    from deltarank.datasets.extreme import long_tailed
    from deltarank.datasets.loading import Split, load, statistics
    from deltarank.datasets.preparation import Preparation
    from deltarank.datasets.readers.errors import DataFileError
    from deltarank.datasets.readers.formats import detect_format, read
    from deltarank.datasets.scaling import Scaler
    from deltarank.datasets.synthetic import BayesRisk, SyntheticModel
    from deltarank.datasets.text.vectorizer import TextVectorizer
    from deltarank.datasets.writers import write, write_libsvm, write_xmc

# Loaded on first use: a list of data sets needs no compiler, and a reader no statistics.
_HOME = {
    "CATALOGUE": "catalogue",
    "BayesRisk": "synthetic",
    "Data": "data",
    "DataFileError": "readers.errors",
    "DataSet": "catalogue",
    "Encoder": "encoder",
    "Preparation": "preparation",
    "Scaler": "scaling",
    "Split": "loading",
    "SyntheticModel": "synthetic",
    "TextVectorizer": "text.vectorizer",
    "detect_format": "readers.formats",
    "example_rows": "example",
    "load": "loading",
    "long_tailed": "extreme",
    "read": "readers.formats",
    "statistics": "loading",
    "write": "writers",
    "write_libsvm": "writers",
    "write_xmc": "writers",
}

__all__ = [
    "CATALOGUE",
    "BayesRisk",
    "Data",
    "DataFileError",
    "DataSet",
    "Encoder",
    "Preparation",
    "Scaler",
    "Split",
    "SyntheticModel",
    "TextVectorizer",
    "detect_format",
    "example_rows",
    "load",
    "long_tailed",
    "read",
    "statistics",
    "write",
    "write_libsvm",
    "write_xmc",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'deltarank.datasets' has no attribute {name!r}")
    return getattr(import_module(f"deltarank.datasets.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
