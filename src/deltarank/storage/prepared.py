"""A ranker with what it takes to rank the rows of a file: one model file."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from deltarank.datasets import Preparation
from deltarank.storage.models import ModelFileError, load_with_extra, save

# A row's number, its labels, best first, and their scores.
Ranking = tuple[int, list[Any], list[float]]
KEY, METRIC = "preparation", "metric"


@dataclass(frozen=True)
class Model:
    """A fitted ranker, how rows of a file become its features, and the metric it was made for."""

    ranker: Any
    preparation: Preparation
    metric: str | None = None

    @classmethod
    def load(cls, path: Path, *, mmap: bool = True) -> "Model":
        """Read a model file, also one that was saved without a preparation."""
        ranker, extra = load_with_extra(path, mmap=mmap)
        if isinstance(ranker, Pipeline):
            raise ValueError(
                f"{path} holds a pipeline of scikit-learn, whose columns the commands do not know: "
                "use it in Python, by deltarank.load, or fit the file by `deltarank fit`"
            )
        names = getattr(ranker, "feature_names_in_", None)
        if names is not None:
            del ranker.feature_names_in_  # features come as plain arrays here
        if not isinstance(extra, dict) or KEY not in extra:
            known = None if names is None else tuple(map(str, names))
            return cls(ranker, Preparation(ranker.n_features_in_, names=known))
        try:
            preparation = Preparation.from_json(extra[KEY])
        except (TypeError, ValueError) as error:
            raise ModelFileError(path, str(error)) from None
        if preparation.n_features != ranker.n_features_in_:
            raise ModelFileError(path, "its ranker and its preparation have not the same features")
        metric = extra.get(METRIC)
        if not (metric is None or type(metric) is str):
            raise ModelFileError(path, f"its metric must be a name; got {metric!r}")
        return cls(ranker, preparation, metric)

    def save(self, path: Path) -> None:
        """Write the model file, whole or not at all."""
        extra = {KEY: self.preparation.to_json(packed=True)}
        save(self.ranker, path, extra=extra | ({METRIC: self.metric} if self.metric else {}))

    @property
    def classes(self) -> NDArray[Any]:
        """Names of the labels."""
        return np.asarray(self.ranker.classes_)

    def find_label(self, name: str) -> Any:
        """Return the label with this name; a label that is a number is named by its digits."""
        matches = [label for label in self.classes.tolist() if str(label) == name]
        return matches[0] if matches else name

    def scores(self, X: Any) -> NDArray[Any]:
        """Return one score per row and label, also where two classes share one."""
        scores: NDArray[Any] = self.ranker._all_class_scores(self.ranker._check_rows(X))
        return scores

    def all_scores(self, X: Any) -> NDArray[Any]:
        """Return the same, block by block, with progress."""
        blocks = self.ranker._score_blocks(self.ranker._check_rows(X))
        return np.concatenate([scores for _, scores in blocks])

    def rankings(self, X: Any, top: int) -> Iterator[Ranking]:
        """Yield the best labels of each row, in the order of the rows."""
        classes, top = self.classes, min(top, len(self.classes))
        for rows, columns, scores in self.ranker._ranked_blocks(self.ranker._check_rows(X), top):
            for row, labels, values in zip(
                range(rows.start, rows.stop), columns, scores, strict=True
            ):
                yield row, classes[labels].tolist(), values.tolist()
