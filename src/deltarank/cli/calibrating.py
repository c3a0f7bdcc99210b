"""Probabilities for a model of the commands."""

from typing import Any

from sklearn.base import clone

from deltarank.cli.inputs import note
from deltarank.core.labels import label_array
from deltarank.core.memory import require
from deltarank.core.progress import progress
from deltarank.datasets import Data
from deltarank.rankers import CalibratedRanker, LogisticRanker, LogisticRankerCV
from deltarank.storage.prepared import Model
from deltarank.wrappers.calibrated import BYTES_PER_CELL

FOLDS = 5


def calibrated(model: Model, data: Data, seed: int) -> Model:
    """Return the model with probabilities: its ranker fitted again, as it was chosen, by folds."""
    n_rows, n_labels = data.Y.shape
    way_out = "leave --calibrate out, or fit fewer labels by --min-count"
    require(n_rows * n_labels * BYTES_PER_CELL, "--calibrate", way_out)
    ranker = CalibratedRanker(settled(model.ranker), cv=FOLDS, random_state=seed)
    with progress("calibrating", 1.0) as done:
        done.each = 1.0
        ranker.fit(model.preparation.transform(data.X), data.Y)
    if data.label_names is not None:
        ranker.classes_ = ranker.ranker_.classes_ = label_array(data.label_names)
    pooled = int(ranker.pooled_.sum())
    if pooled:
        note(
            f"note: {pooled} of {n_labels} labels have fewer than {ranker.min_positives} rows: "
            "they share one map to probabilities"
        )
    return Model(ranker, model.preparation, model.metric)


def settled(ranker: Any) -> Any:
    """Return an unfitted ranker with the parameters that were chosen for a fitted one."""
    chosen = {name: getattr(ranker, f"{name}_") for name in _CHOSEN if hasattr(ranker, f"{name}_")}
    if not isinstance(ranker, LogisticRankerCV):
        return clone(ranker).set_params(**chosen)
    parameters = ranker.get_params()
    shared = LogisticRanker().get_params().keys() & parameters.keys()
    return LogisticRanker(**{**{name: parameters[name] for name in shared}, **chosen})


# What searches choose, by the names of the parameters.
_CHOSEN = ("C", "balance", "gamma", "n_landmarks")
