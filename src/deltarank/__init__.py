"""Rank the labels of an item, most likely relevant first, with a proof that it converges."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltarank import datasets, metrics, theory
    from deltarank.core.splits import LabelStratifiedKFold
    from deltarank.core.weights import instance_weights
    from deltarank.explanations import explain, top_features
    from deltarank.metrics import rank_loss
    from deltarank.rankers import (
        AdaBoostMH,
        AdaBoostMR,
        AdaBoostRanker,
        BoostedTreeRanker,
        CalibratedRanker,
        ConformalRanker,
        KernelLogisticRanker,
        LabelTreeRanker,
        LogisticRanker,
        LogisticRankerCV,
        LogLinearRanker,
        MetricRanker,
        PairwiseRanker,
        StagedSearchCV,
        WeightedBinaryRelevance,
    )
    from deltarank.storage import load, save
    from deltarank.storage.onnx_export import export_onnx
    from deltarank.wrappers.weight_diagnostics import weight_diagnostics

__version__ = "0.1.0"

# Loaded on first use, so that `import deltarank` and `deltarank --help` stay instant.
_HOME = {
    "AdaBoostMH": "deltarank.rankers",
    "AdaBoostMR": "deltarank.rankers",
    "AdaBoostRanker": "deltarank.rankers",
    "BoostedTreeRanker": "deltarank.rankers",
    "CalibratedRanker": "deltarank.rankers",
    "ConformalRanker": "deltarank.rankers",
    "KernelLogisticRanker": "deltarank.rankers",
    "LabelTreeRanker": "deltarank.rankers",
    "LabelStratifiedKFold": "deltarank.core.splits",
    "LogLinearRanker": "deltarank.rankers",
    "LogisticRanker": "deltarank.rankers",
    "LogisticRankerCV": "deltarank.rankers",
    "MetricRanker": "deltarank.rankers",
    "StagedSearchCV": "deltarank.rankers",
    "PairwiseRanker": "deltarank.rankers",
    "WeightedBinaryRelevance": "deltarank.rankers",
    "datasets": "deltarank.datasets",
    "explain": "deltarank.explanations",
    "export_onnx": "deltarank.storage.onnx_export",
    "metrics": "deltarank.metrics",
    "theory": "deltarank.theory",
    "instance_weights": "deltarank.core.weights",
    "load": "deltarank.storage",
    "rank_loss": "deltarank.metrics",
    "save": "deltarank.storage",
    "top_features": "deltarank.explanations",
    "weight_diagnostics": "deltarank.wrappers.weight_diagnostics",
}

__all__ = [  # noqa: RUF022
    "LogisticRanker",
    "LogisticRankerCV",
    "KernelLogisticRanker",
    "LabelTreeRanker",
    "AdaBoostRanker",
    "AdaBoostMR",
    "AdaBoostMH",
    "BoostedTreeRanker",
    "StagedSearchCV",
    "LogLinearRanker",
    "PairwiseRanker",
    "WeightedBinaryRelevance",
    "CalibratedRanker",
    "MetricRanker",
    "ConformalRanker",
    "LabelStratifiedKFold",
    "instance_weights",
    "weight_diagnostics",
    "rank_loss",
    "explain",
    "top_features",
    "save",
    "load",
    "export_onnx",
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
