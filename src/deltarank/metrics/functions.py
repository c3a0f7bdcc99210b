"""The metrics as functions of labels and scores."""

from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from deltarank.core.chunks import is_chunked, map_aligned, total_of_chunks, values_of_rows
from deltarank.core.labels import label_sets
from deltarank.core.weights import Weight
from deltarank.core.workers import added
from deltarank.metrics.placement import place
from deltarank.metrics.streaming import StreamingMetric
from deltarank.metrics.table import METRICS, Metric

Value = float | NDArray[np.float64]


def _evaluate(
    metric: str,
    Y: Any,
    scores: Any,
    *,
    per_instance: bool,
    sample_weight: Any,
    classes: Any,
    **options: Any,
) -> Value:
    if per_instance:
        if is_chunked(Y) or is_chunked(scores):
            chunks = (Y, "Y"), (scores, "scores")
            values = partial(_row_values, metric, options, classes)
            return map_aligned(partial(values_of_rows, values), *chunks)
        return _row_values(metric, options, classes, Y, scores)
    stream = StreamingMetric(metric, **options)
    stream.update(Y, scores, sample_weight, classes=classes)
    return stream.result()


def _row_values(
    metric: str, options: dict[str, Any], classes: Any, Y: Any, scores: Any
) -> NDArray[np.float64]:
    values, units = cast(Metric, METRICS[metric]).rows(place(Y, scores, classes), **options)
    return np.divide(values, units, out=np.full(len(values), np.nan), where=units > 0)


def rank_loss(
    Y: Any,
    scores: Any,
    weight: Weight = "rank",
    ties: str = "half",
    trivial: str = "zero",
    per_instance: bool = False,
    sample_weight: Any = None,
    *,
    classes: Any = None,
) -> Value:
    """Weighted number of label pairs in the wrong order, Eq. (4), averaged over rows.

    With ``weight="rank"`` it is the share of (relevant, irrelevant) pairs that are misordered:
    0 for a perfect ranking, 1 for a reversed one, 1/2 when all scores tie.

    Parameters
    ----------
    Y : array, sparse matrix or list of label sets
        Zero-one matrix of shape (n, m), or sets of column indices (or of names, with `classes`).
        NaN in a matrix means unknown: the label is left out of its row's ranking and pairs. Y,
        scores and sample_weight may be Dask collections, cut alike: each chunk is measured where it
        is, and only sums travel.
    scores : array of shape (n, m)
        Higher ranks first. float32 and float64 are used as they are.
    weight : str, ("ndcg", k) or callable
        w(y), not normalised: see `deltarank.instance_weights`.
    ties : {"half", "full", "none"}
        What a tied pair costs: 1/2, as the paper has it; 1, as scikit-learn has it; or 0.
    trivial : {"zero", "skip"}
        Whether a row without pairs counts as 0 or is left out of the mean.
    per_instance : bool
        Return one value per row (NaN where skipped) in place of the mean.
    sample_weight : array of shape (n,), optional
        Weights of the rows in the mean.
    classes : sequence, optional
        Names of the labels in column order, when Y is a list of sets of names.

    See Also
    --------
    StreamingMetric : The same over batches.

    Examples
    --------
    >>> rank_loss([[1, 0, 1, 0]], [[0.9, 0.7, 0.3, 0.3]])
    0.375
    >>> rank_loss([{"sea", "sun"}], [[0.9, 0.7, 0.3]], classes=["sea", "fog", "sun"])
    0.5
    """
    return _evaluate(
        "rank_loss", Y, scores, per_instance=per_instance, sample_weight=sample_weight,
        classes=classes, weight=weight, ties=ties, trivial=trivial,
    )  # fmt: skip


def coverage(
    Y: Any, scores: Any, *, trivial: str = "zero", per_instance: bool = False,
    sample_weight: Any = None, classes: Any = None,
) -> Value:  # fmt: skip
    """Count the steps from the first label down to the last relevant one, Eq. (30).

    One less than scikit-learn's ``coverage_error``, and 0 when the only relevant label is first.
    Parameters as in `rank_loss`; a row is trivial when it has no relevant label.

    Examples
    --------
    >>> coverage([[1, 0, 1, 0]], [[0.9, 0.7, 0.3, 0.1]])
    2.0
    """
    return _evaluate(
        "coverage", Y, scores, per_instance=per_instance, sample_weight=sample_weight,
        classes=classes, trivial=trivial,
    )  # fmt: skip


def one_error(
    Y: Any, scores: Any, *, trivial: str = "zero", per_instance: bool = False,
    sample_weight: Any = None, classes: Any = None,
) -> Value:  # fmt: skip
    """Share of rows whose first label is irrelevant, Eq. (31).

    Parameters as in `rank_loss`; a row is trivial when it has no relevant label.

    Examples
    --------
    >>> one_error([[1, 0], [0, 1]], [[0.9, 0.7], [0.9, 0.7]])
    0.5
    """
    return _evaluate(
        "one_error", Y, scores, per_instance=per_instance, sample_weight=sample_weight,
        classes=classes, trivial=trivial,
    )  # fmt: skip


def average_precision(
    Y: Any, scores: Any, *, trivial: str = "zero", per_instance: bool = False,
    sample_weight: Any = None, classes: Any = None,
) -> Value:  # fmt: skip
    """Precision at each relevant label's position, averaged over labels and rows, Eq. (32).

    scikit-learn's ``label_ranking_average_precision_score`` is the same without ties and without
    trivial rows (those without a relevant label), which count 1 there and 0 here.
    Parameters as in `rank_loss`.

    Examples
    --------
    >>> average_precision([[1, 0, 1, 0]], [[0.9, 0.7, 0.3, 0.1]])
    0.8333333333333333
    """
    return _evaluate(
        "average_precision", Y, scores, per_instance=per_instance, sample_weight=sample_weight,
        classes=classes, trivial=trivial,
    )  # fmt: skip


def precision_at_k(
    Y: Any, scores: Any, k: int, *, trivial: str = "zero", per_instance: bool = False,
    sample_weight: Any = None, classes: Any = None,
) -> Value:  # fmt: skip
    """Share of the first k labels that are relevant, Eq. (33).

    Parameters as in `rank_loss`; a row is trivial when it has no relevant label.

    Examples
    --------
    >>> precision_at_k([[1, 0, 1, 0]], [[0.9, 0.7, 0.3, 0.1]], k=2)
    0.5
    """
    return _evaluate(
        "precision_at_k", Y, scores, per_instance=per_instance, sample_weight=sample_weight,
        classes=classes, k=k, trivial=trivial,
    )  # fmt: skip


def recall_at_k(
    Y: Any, scores: Any, k: int, *, trivial: str = "zero", per_instance: bool = False,
    sample_weight: Any = None, classes: Any = None,
) -> Value:  # fmt: skip
    """Share of the relevant labels that are among the first k, Eq. (34).

    Parameters as in `rank_loss`; a row is trivial when it has no relevant label.

    Examples
    --------
    >>> recall_at_k([[1, 0, 1, 0]], [[0.9, 0.7, 0.3, 0.1]], k=3)
    1.0
    """
    return _evaluate(
        "recall_at_k", Y, scores, per_instance=per_instance, sample_weight=sample_weight,
        classes=classes, k=k, trivial=trivial,
    )  # fmt: skip


def ndcg_at_k(
    Y: Any, scores: Any, k: int | None = None, *, trivial: str = "zero",
    per_instance: bool = False, sample_weight: Any = None, classes: Any = None,
) -> Value:  # fmt: skip
    """Discounted gain of the first k labels (all, by default) over the best attainable, Eq. (35).

    Equals scikit-learn's ``ndcg_score``, ties included.
    Parameters as in `rank_loss`; a row is trivial when it has no relevant label.

    Examples
    --------
    >>> ndcg_at_k([[1, 0, 1, 0]], [[0.9, 0.3, 0.7, 0.1]], k=2)
    1.0
    """
    return _evaluate(
        "ndcg_at_k", Y, scores, per_instance=per_instance, sample_weight=sample_weight,
        classes=classes, k=k, trivial=trivial,
    )  # fmt: skip


def propensity_scored_precision_at_k(
    Y: Any, scores: Any, k: int, propensities: Any, *, per_instance: bool = False,
    sample_weight: Any = None, classes: Any = None,
) -> Value:  # fmt: skip
    """Precision at k where finding a rare label is worth more, over the best attainable, Eq. (36).

    Parameters
    ----------
    Y, scores, per_instance, sample_weight, classes
        As in `rank_loss`.
    k : int
        How many of the first labels count.
    propensities : array of shape (m,)
        Chance that a relevant label was recorded as such: see `label_propensities`.

    Examples
    --------
    >>> scores = [[0.9, 0.3, 0.7]]
    >>> propensity_scored_precision_at_k([[1, 1, 0]], scores, k=1, propensities=[1, 0.5, 0.5])
    0.5
    """
    return _evaluate(
        "propensity_scored_precision_at_k", Y, scores, per_instance=per_instance,
        sample_weight=sample_weight, classes=classes, k=k, propensities=propensities,
    )  # fmt: skip


def propensity_scored_ndcg_at_k(
    Y: Any, scores: Any, k: int | None = None, *, propensities: Any, per_instance: bool = False,
    sample_weight: Any = None, classes: Any = None,
) -> Value:  # fmt: skip
    """Discounted gain where a rare label is worth more, over the best attainable, Eq. (67).

    Parameters as in `propensity_scored_precision_at_k`; `k` may be None, for all places.

    Examples
    --------
    >>> scores = [[0.9, 0.3, 0.7]]
    >>> propensity_scored_ndcg_at_k([[1, 1, 0]], scores, k=1, propensities=[1, 0.5, 0.5])
    0.5
    """
    return _evaluate(
        "propensity_scored_ndcg_at_k", Y, scores, per_instance=per_instance,
        sample_weight=sample_weight, classes=classes, k=k, propensities=propensities,
    )  # fmt: skip


def label_propensities(Y: Any, a: float = 0.55, b: float = 1.5) -> NDArray[np.float64]:
    """Estimate how likely a relevant label was recorded, from training labels, Eq. (37).

    The defaults are those of the extreme classification literature (Jain et al. 2016); for
    Wikipedia it uses a=0.5, b=0.4 and for Amazon a=0.6, b=2.6. Y may be a Dask collection: only
    numbers of rows travel.

    Examples
    --------
    >>> label_propensities([[1, 0], [1, 0], [1, 1]]).round(3)
    array([0.933, 0.91 ])
    """
    if is_chunked(Y):
        n_rows, frequency = total_of_chunks(_label_counts, (Y, "Y"), merge=added)
    else:
        n_rows, frequency = _label_counts(Y)
    scale = (np.log(n_rows) - 1) * (b + 1) ** a
    return np.asarray(1 / (1 + np.maximum(scale, 0) * (frequency + b) ** -a))


def _label_counts(Y: Any) -> tuple[int, NDArray[np.int64]]:
    """Return the number of rows, and of those in which each label is relevant."""
    labels = label_sets(Y, without_unknown="label_propensities counts over all rows; fill it in")
    return labels.n_rows, np.bincount(labels.members, minlength=labels.n_labels)
