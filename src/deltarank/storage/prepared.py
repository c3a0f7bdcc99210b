"""A ranker with what it takes to rank the rows of a file: one model file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from deltarank.core.choices import choose
from deltarank.datasets import Preparation
from deltarank.datasets.scaling import Scaler
from deltarank.decisions.f_measure import best_f_sets
from deltarank.storage.models import ModelFileError, load_with_extra, save
from deltarank.wrappers.marginals import chances_of

# How a set of labels is chosen by their probabilities: with the largest expected F1 of the row if
# labels were independent, or all that are likelier than not.
SETS: dict[str, Callable[[Any], Any]] = {
    "f1": lambda chances: best_f_sets(np.asarray(chances, np.float64), 1.0, chances.shape[1]),
    "likely": lambda chances: chances > 0.5,
}


class Answer(NamedTuple):
    """A row's best labels, their scores and probabilities, and the labels of its set, if asked."""

    row: int
    labels: list[Any]
    scores: list[float]
    chances: list[float] | None = None
    chosen: list[Any] | None = None


# A row's number, its labels, best first, and their scores.
Ranking = tuple[int, list[Any], list[float]]
KEY, METRIC = "preparation", "metric"


def _scaled_ranker(pipeline: Pipeline, path: Path) -> tuple[Any, Preparation]:
    """Return the ranker behind a StandardScaler, which is a preparation; refuse other pipelines."""
    *before, ranker = [step for _, step in pipeline.steps if step not in (None, "passthrough")]
    if [type(step) for step in before] not in ([StandardScaler], []):
        steps = ", ".join(type(step).__name__ for step in before)
        raise ValueError(
            f"{path} holds a pipeline of scikit-learn, whose columns the commands do not know "
            f"(they know a StandardScaler before a ranker; got {steps}): use it in Python, by "
            "deltarank.load, or fit the file by `deltarank fit`"
        )
    vars(ranker).pop("feature_names_in_", None)  # features come as plain arrays here
    n_features = int(pipeline.n_features_in_)
    names = getattr(pipeline, "feature_names_in_", None)
    names = None if names is None else tuple(map(str, names))
    if not before:
        return ranker, Preparation(n_features, names=names)
    means, scales = np.zeros(n_features), np.ones(n_features)
    if before[0].with_mean:
        means = before[0].mean_
    if before[0].with_std:
        scales = before[0].scale_
    columns = tuple(range(n_features))
    scaler = Scaler(columns, tuple(means.tolist()), tuple(scales.tolist()))
    return ranker, Preparation(n_features, dense=True, names=names, scaler=scaler)


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
            return cls(*_scaled_ranker(ranker, path))
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

    @property
    def has_chances(self) -> bool:
        """Whether there are probabilities of the plain kind."""
        return hasattr(self.ranker, "predict_proba")

    def answers(
        self,
        X: Any,
        top: int,
        *,
        chances: bool = False,
        sets: str | None = None,
        checked: bool = False,
    ) -> Iterator[Answer]:
        """Yield the best labels of each row, their probabilities, and the labels of a set.

        Parameters
        ----------
        X : rows
        top : int
        chances : bool
            Whether to tell probabilities.
        sets : str, optional
            One of `SETS`.
        checked : bool
            Whether X is known to be what the ranker takes: finite, and in order.
        """
        choose_set = None if sets is None else choose(SETS, sets, "sets")
        if (chances or sets) and not self.has_chances:
            raise ValueError(
                "the model has no probabilities: fit it with --calibrate, or with --weight uniform"
            )
        X, top = X if checked else self.ranker._check_rows(X), min(top, len(self.classes))
        for rows, columns, scores in self.ranker._ranked_blocks(X, top):
            known, marks = None, None
            if chances or choose_set is not None:
                known = chances_of(self.ranker, X[rows])
                marks = None if choose_set is None else choose_set(known)
            yield from self._block_answers(rows, columns, scores, known, marks)

    def _block_answers(
        self, rows: slice, columns: Any, scores: Any, known: Any, marks: Any
    ) -> Iterator[Answer]:
        classes = self.classes
        for at, row in enumerate(range(rows.start, rows.stop)):
            ranked = columns[at]
            chosen = None
            if marks is not None:
                members = np.flatnonzero(marks[at])
                members = members[np.argsort(-known[at, members], kind="stable")]
                chosen = classes[members].tolist()
            chances = None if known is None else known[at, ranked].tolist()
            yield Answer(row, classes[ranked].tolist(), scores[at].tolist(), chances, chosen)

    def rankings(self, X: Any, top: int) -> Iterator[Ranking]:
        """Yield the best labels of each row, in the order of the rows."""
        classes, top = self.classes, min(top, len(self.classes))
        for rows, columns, scores in self.ranker._ranked_blocks(self.ranker._check_rows(X), top):
            for row, labels, values in zip(
                range(rows.start, rows.stop), columns, scores, strict=True
            ):
                yield row, classes[labels].tolist(), values.tolist()
