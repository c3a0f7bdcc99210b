"""Rank the labels of an item, most likely relevant first, with a proof that it converges."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltarank import datasets, metrics, theory
    from deltarank.metrics import rank_loss
    from deltarank.rankers import (
        LogisticRanker,
        LogisticRankerCV,
        LogLinearRanker,
        PairwiseRanker,
        WeightedBinaryRelevance,
    )
    from deltarank.splits import LabelStratifiedKFold
    from deltarank.weights import instance_weights, weight_diagnostics

__version__ = "0.1.0"

# Loaded on first use, so that `import deltarank` and `deltarank --help` stay instant.
_HOME = {
    "LabelStratifiedKFold": "deltarank.splits",
    "LogLinearRanker": "deltarank.rankers",
    "LogisticRanker": "deltarank.rankers",
    "LogisticRankerCV": "deltarank.rankers",
    "PairwiseRanker": "deltarank.rankers",
    "WeightedBinaryRelevance": "deltarank.rankers",
    "datasets": "deltarank.datasets",
    "metrics": "deltarank.metrics",
    "theory": "deltarank.theory",
    "instance_weights": "deltarank.weights",
    "rank_loss": "deltarank.metrics",
    "weight_diagnostics": "deltarank.weights",
}

__all__ = [  # noqa: RUF022
    "LogisticRanker",
    "LogisticRankerCV",
    "LogLinearRanker",
    "PairwiseRanker",
    "WeightedBinaryRelevance",
    "LabelStratifiedKFold",
    "instance_weights",
    "weight_diagnostics",
    "rank_loss",
    "metrics",
    "theory",
    "datasets",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'deltarank' has no attribute {name!r}")
    home = import_module(_HOME[name])
    return home if home.__name__ == f"deltarank.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
