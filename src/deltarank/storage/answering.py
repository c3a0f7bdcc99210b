"""What a model file answers to whoever has rows in memory: a table, a matrix, a list."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from deltarank.datasets import Preparation
from deltarank.storage.estimators import last_step
from deltarank.storage.models import load_with_extra
from deltarank.storage.prepared import KEY, Model


@dataclass(frozen=True)
class Answering:
    """A ranker or pipeline from a file, and how rows become its features, if the file says so."""

    estimator: Any
    preparation: Preparation | None = None

    @classmethod
    def load(cls, path: Path) -> "Answering":
        """Read a model file of any kind into memory."""
        estimator, extra = load_with_extra(path, mmap=False)
        if isinstance(estimator, Pipeline) or not isinstance(extra, dict) or KEY not in extra:
            return cls(estimator)
        model = Model.load(path, mmap=False)
        return cls(model.ranker, model.preparation)

    @property
    def classes(self) -> NDArray[Any]:
        """Names of the labels."""
        return np.asarray(last_step(self.estimator).classes_)

    @property
    def columns(self) -> dict[str, str] | int | None:
        """Columns and their kinds, or how many numbers a row has; None where that is not known."""
        if isinstance(self.estimator, Pipeline):
            return None
        preparation = self.preparation
        if preparation is not None and preparation.encoder is not None:
            return {column.name: column.kind for column in preparation.encoder.columns}
        names = getattr(self.estimator, "feature_names_in_", None)
        if preparation is not None:
            names = preparation.names
        if names is None:
            return int(self.estimator.n_features_in_)
        return dict.fromkeys(map(str, names), "number")

    def rank(self, rows: Any, top: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the best labels of each row, and their scores."""
        ranker, X = last_step(self.estimator), self._features(rows)
        scores = ranker._all_class_scores(ranker._check_rows(X))
        best = np.argsort(-scores, axis=1, kind="stable")[:, :top]
        return self.classes[best], np.take_along_axis(scores, best, axis=1)

    def _features(self, rows: Any) -> Any:
        if isinstance(self.estimator, Pipeline):
            return self.estimator[:-1].transform(rows)
        if self.preparation is None:
            return rows
        if self.preparation.encoder is not None:
            rows = self.preparation.encoder.transform(rows)
        elif self.preparation.names is not None and hasattr(rows, "columns"):
            rows = np.asarray(rows[list(self.preparation.names)], dtype=float)
        elif hasattr(rows, "to_numpy"):
            rows = rows.to_numpy(dtype=float)
        return self.preparation.transform(rows)
