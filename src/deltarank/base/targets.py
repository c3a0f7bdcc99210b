"""What is to be ranked: labels as users give them, and predictions in the same form."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from deltarank.core.arguments import refuse_hidden
from deltarank.core.labels import (
    LabelSets,
    check_label_rows,
    is_list_of_sets,
    label_array,
    label_sets,
    without_series,
)


class Targets(NamedTuple):
    """Label sets, the names of the labels, and the form in which predictions go back."""

    labels: LabelSets
    classes: NDArray[Any]
    form: str


def read_targets(Y: Any, without_unknown: str | None = None) -> Targets:
    """Read Y of any accepted form; for `without_unknown` see `label_sets`.

    A zero-one matrix (array, sparse, data frame: its columns name the labels), a list or Series of
    label sets, or a vector of classes, one per row. Two classes make a single label, as in
    scikit-learn: the second one.
    """
    if Y is None:
        raise ValueError("this ranker requires y to be passed, but the target y is None")
    refuse_hidden(Y, "Y")
    Y = without_series(Y)
    if is_list_of_sets(Y):
        check_label_rows(Y, "Y")
        classes = _sorted_names({label for row in Y for label in row})
        return Targets(label_sets(Y, classes=classes.tolist()), classes, "sets")
    if sparse.issparse(Y):
        labels = label_sets(Y, without_unknown=without_unknown)
        return Targets(labels, np.arange(labels.n_labels), "sparse")
    array = np.asarray(Y)
    if array.ndim == 1 or _is_column_of_classes(array):
        return _read_classes(column_or_1d(array, warn=True))
    labels = label_sets(Y, without_unknown=without_unknown)
    names = getattr(Y, "columns", None)
    classes = np.arange(labels.n_labels) if names is None else np.asarray(names)
    return Targets(labels, classes, "dense")


def _is_column_of_classes(array: NDArray[Any]) -> bool:
    if array.ndim != 2 or array.shape[1] != 1:
        return False
    known = array[~np.isnan(array)] if array.dtype.kind == "f" else array
    return not np.isin(known, (0, 1)).all()


def _read_classes(y: NDArray[Any]) -> Targets:
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    classes, positions = np.unique(y, return_inverse=True)
    classes = label_array(classes)
    if len(classes) <= 2:
        relevant = positions == len(classes) - 1
        starts = np.concatenate([[0], np.cumsum(relevant)])
        labels = LabelSets(starts, np.zeros(starts[-1], np.int32), 1)
        return Targets(labels, classes, "binary")
    labels = LabelSets(np.arange(len(y) + 1), positions.astype(np.int32), len(classes))
    return Targets(labels, classes, "classes")


def _sorted_names(names: set[Any]) -> NDArray[Any]:
    if not names:
        raise ValueError("Y must hold at least one label; every label set is empty")
    try:
        return label_array(sorted(names))
    except TypeError:
        raise ValueError(
            "label names must be all strings or all numbers, so that they have an order"
        ) from None


def _as_sets(marks: NDArray[np.bool_], classes: NDArray[Any]) -> list[set[Any]]:
    return [set(classes[row].tolist()) for row in marks]


# How marked labels (and, for one class per row, scores) become predictions in the form Y had.
PREDICTIONS: dict[str, Callable[[NDArray[Any], NDArray[np.bool_], NDArray[Any]], Any]] = {
    "dense": lambda scores, marks, classes: marks.astype(np.int64),
    "sparse": lambda scores, marks, classes: sparse.csr_matrix(marks, dtype=np.int64),
    "sets": lambda scores, marks, classes: _as_sets(marks, classes),
    "classes": lambda scores, marks, classes: classes[scores.argmax(axis=1)],
    "binary": lambda scores, marks, classes: classes[marks[:, 0].astype(int) * (len(classes) - 1)],
}
