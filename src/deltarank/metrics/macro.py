"""The metrics that are means over labels, as functions of labels and scores."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.metrics.streaming import StreamingMetric

Value = float | NDArray[np.float64]


def _evaluate(
    metric: str, Y: Any, scores: Any, k: int, *, trivial: str, per_label: bool,
    sample_weight: Any, classes: Any,
) -> Value:  # fmt: skip
    stream = StreamingMetric(metric, k=k, trivial=trivial)
    stream.update(Y, scores, sample_weight, classes=classes)
    return stream.label_values() if per_label else stream.result()


def macro_precision_at_k(
    Y: Any, scores: Any, k: int, *, trivial: str = "zero", per_label: bool = False,
    sample_weight: Any = None, classes: Any = None,
) -> Value:  # fmt: skip
    """Share of the rows with a label among the first k that have it, a mean over labels, Eq. (68).

    Parameters
    ----------
    Y, scores, sample_weight, classes
        As in `rank_loss`. A label that ties counts with its chance to be among the first k.
    k : int
        How many of the first labels count.
    trivial : {"zero", "skip"}
        Whether a label that is relevant in no row counts as 0 or is left out of the mean.
    per_label : bool
        Return one value per label (NaN where skipped) in place of the mean.

    Examples
    --------
    >>> Y, scores = [[1, 0, 0], [0, 1, 0]], [[0.9, 0.2, 0.1], [0.8, 0.3, 0.1]]
    >>> macro_precision_at_k(Y, scores, k=1, per_label=True)
    array([0.5, 0. , 0. ])
    >>> macro_precision_at_k(Y, scores, k=1, trivial="skip")
    0.25
    """
    return _evaluate(
        "macro_precision_at_k", Y, scores, k, trivial=trivial, per_label=per_label,
        sample_weight=sample_weight, classes=classes,
    )  # fmt: skip


def macro_recall_at_k(
    Y: Any, scores: Any, k: int, *, trivial: str = "zero", per_label: bool = False,
    sample_weight: Any = None, classes: Any = None,
) -> Value:  # fmt: skip
    """Share of the rows that have a label with it among the first k, a mean over labels, Eq. (69).

    Parameters as in `macro_precision_at_k`.

    Examples
    --------
    >>> Y, scores = [[1, 0, 0], [0, 1, 0]], [[0.9, 0.2, 0.1], [0.8, 0.3, 0.1]]
    >>> macro_recall_at_k(Y, scores, k=1, trivial="skip")
    0.5
    """
    return _evaluate(
        "macro_recall_at_k", Y, scores, k, trivial=trivial, per_label=per_label,
        sample_weight=sample_weight, classes=classes,
    )  # fmt: skip


def macro_f1_at_k(
    Y: Any, scores: Any, k: int, *, trivial: str = "zero", per_label: bool = False,
    sample_weight: Any = None, classes: Any = None,
) -> Value:  # fmt: skip
    """F1 of each label, predicted where it is among the first k, a mean over labels, Eq. (70).

    Parameters as in `macro_precision_at_k`.

    Examples
    --------
    >>> Y, scores = [[1, 0, 0], [0, 1, 0]], [[0.9, 0.2, 0.1], [0.8, 0.3, 0.1]]
    >>> macro_f1_at_k(Y, scores, k=2, per_label=True).round(3)
    array([0.667, 0.667, 0.   ])
    """
    return _evaluate(
        "macro_f1_at_k", Y, scores, k, trivial=trivial, per_label=per_label,
        sample_weight=sample_weight, classes=classes,
    )  # fmt: skip


def coverage_at_k(
    Y: Any, scores: Any, k: int, *, trivial: str = "zero", per_label: bool = False,
    sample_weight: Any = None, classes: Any = None,
) -> Value:  # fmt: skip
    """Share of the labels that are among the first k of a row that has them, Eq. (71).

    Not `coverage`, the depth of the last relevant label. Of the sample weights it only matters
    which are 0. Parameters as in `macro_precision_at_k`.

    Examples
    --------
    >>> Y, scores = [[1, 0, 0], [0, 1, 0]], [[0.9, 0.2, 0.1], [0.8, 0.3, 0.1]]
    >>> coverage_at_k(Y, scores, k=2, trivial="skip")
    1.0
    """
    return _evaluate(
        "coverage_at_k", Y, scores, k, trivial=trivial, per_label=per_label,
        sample_weight=sample_weight, classes=classes,
    )  # fmt: skip
