"""Metrics over batches, with a result that does not depend on how rows were batched."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core.choices import choose
from deltarank.core.chunks import is_chunked, total_of_chunks
from deltarank.core.labels import row_numbers
from deltarank.metrics.placement import Placement, place
from deltarank.metrics.row_sums import ExactSum
from deltarank.metrics.table import METRICS, LabelMetric


class StreamingMetric:
    """Compute a metric batch by batch, in constant memory.

    The sums behind it are exact, so the result is the same, to the last bit, for every order and
    batching of the rows, and for partial results merged from several workers.

    Parameters
    ----------
    metric : str
        Name of a metric of `deltarank.metrics`, as ``"rank_loss"``.
    **options
        Keyword arguments of that metric, as ``k=5`` or ``ties="full"``.

    Examples
    --------
    >>> loss = StreamingMetric("rank_loss")
    >>> loss.update([[1, 0, 0]], [[0.9, 0.1, 0.2]])
    >>> loss.update([[0, 1, 0]], [[0.9, 0.1, 0.2]])
    >>> loss.result()
    0.5
    """

    def __init__(self, metric: str = "rank_loss", **options: Any) -> None:
        self.metric = metric
        self.options = options
        chosen = choose(METRICS, metric, "metric")
        known = chosen.options
        for option in options:
            if option not in known:
                raise TypeError(
                    f"{metric} has no option {option!r}; its options are {', '.join(known)}"
                )
        self._sums: Any = chosen.start(**options)
        self._weight = ExactSum()
        self._n_rows = 0

    def update(
        self, Y: Any, scores: Any, sample_weight: Any = None, *, classes: Any = None
    ) -> None:
        """Take in a batch of rows; a Dask one chunk by chunk, where its chunks are."""
        if is_chunked(Y) or is_chunked(scores):
            collections = (Y, "Y"), (scores, "scores"), (sample_weight, "sample_weight")
            measure = partial(_measured, self.metric, self.options, classes)
            self._add(total_of_chunks(measure, *collections, merge=_merged))
            return
        self.update_placed(place(Y, scores, classes), sample_weight)

    def update_placed(self, placement: Placement, sample_weight: Any = None) -> None:
        """Take in a batch whose relevant labels have been placed already.

        Examples
        --------
        >>> loss = StreamingMetric("rank_loss")
        >>> loss.update_placed(place([[1, 0, 0]], [[0.1, 0.9, 0.2]], None))
        >>> loss.result()
        1.0
        """
        n_rows = placement.labels.n_rows
        if sample_weight is None:
            weights = np.ones(n_rows)
        else:
            weights = row_numbers(sample_weight, n_rows, "sample_weight")
        self._sums.add(placement, weights)
        self._weight.add(weights)
        self._n_rows += n_rows

    def merge(self, other: "StreamingMetric") -> None:
        """Take in what another metric of the same kind has seen.

        Examples
        --------
        >>> here, there = StreamingMetric("one_error"), StreamingMetric("one_error")
        >>> here.update([[1, 0]], [[0.9, 0.1]])
        >>> there.update([[0, 1]], [[0.9, 0.1]])
        >>> here.merge(there)
        >>> here.result()
        0.5
        """
        if other.metric != self.metric or not _equal(other.options, self.options):
            raise ValueError(
                f"only like metrics merge; this is {self.metric} with {self.options}, "
                f"the other {other.metric} with {other.options}"
            )
        self._add(other)

    def _add(self, other: "StreamingMetric") -> None:
        self._sums.merge(other._sums)
        self._weight.merge(other._weight)
        self._n_rows += other._n_rows

    def result(self) -> float:
        """Return the metric of all rows seen; 0 when none of them has anything to rank."""
        self._check_seen()
        return float(self._sums.result())

    def label_values(self) -> NDArray[np.float64]:
        """Return the value of each label of a metric that is a mean over labels, shape (m,).

        NaN for a label that is left out: with ``trivial="skip"``, one relevant in no row.

        Examples
        --------
        >>> recall = StreamingMetric("macro_recall_at_k", k=1)
        >>> recall.update([[1, 0, 0], [0, 1, 0]], [[0.9, 0.1, 0.2], [0.9, 0.1, 0.2]])
        >>> recall.label_values()
        array([1., 0., 0.])
        """
        if not isinstance(METRICS[self.metric], LabelMetric):
            means = [name for name, metric in METRICS.items() if isinstance(metric, LabelMetric)]
            raise ValueError(
                f"{self.metric} is a mean over rows; values of labels are those of "
                f"{', '.join(means)}"
            )
        self._check_seen()
        return np.asarray(self._sums.label_values())

    def _check_seen(self) -> None:
        if self._n_rows == 0:
            raise ValueError("no rows yet: call update(Y, scores) first")
        if float(self._weight) == 0:
            raise ValueError("sample_weight must not be 0 for every row")


def _measured(
    metric: str, options: dict[str, Any], classes: Any, Y: Any, scores: Any, sample_weight: Any
) -> StreamingMetric:
    streaming = StreamingMetric(metric, **options)
    streaming.update(Y, scores, sample_weight, classes=classes)
    return streaming


def _merged(parts: list[StreamingMetric]) -> StreamingMetric:
    whole = StreamingMetric(parts[0].metric, **parts[0].options)
    for part in parts:
        whole._add(part)
    return whole


def _equal(options: dict[str, Any], others: dict[str, Any]) -> bool:
    """Compare options, of which one may be an array."""
    return options.keys() == others.keys() and all(
        np.array_equal(value, others[name]) for name, value in options.items()
    )
