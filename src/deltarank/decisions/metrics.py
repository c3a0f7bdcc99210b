"""Which metrics have a best decision, of what kind, and from which chances.

A metric that adds up over cells has gains a_l eta_l + b_l of choosing label l in a row where it is
relevant with chance eta_l: the first k of them are best. What the coefficients need is known of
each label beforehand. Other metrics are functions of counts over all rows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.core.labels import LabelSets
from deltarank.core.weights import Weight
from deltarank.decisions.kernels import utilities
from deltarank.metrics import label_propensities
from deltarank.metrics.rows import check_propensities

Floats = NDArray[np.float64]


class Known(NamedTuple):
    """What is known of each label: the share of rows that have it, and its propensity."""

    shares: Floats
    propensities: Floats


def known_of(labels: LabelSets, counts: Floats | None, propensities: Any) -> Known:
    """Count what is known over rows that count so often; estimate propensities that are None."""
    counts = np.ones(labels.n_rows) if counts is None else counts
    positives = np.bincount(labels.members, counts[labels.rows], minlength=labels.n_labels)
    if propensities is None:
        propensities = label_propensities(labels.to_csr())
    return Known(positives / counts.sum(), check_propensities(propensities, labels.n_labels))


class Linear(NamedTuple):
    """Gains a_l eta_l + b_l: their slopes and offsets, and the weight that eta_l needs."""

    rule: Callable[[Known], tuple[Any, Any]]
    weight: Callable[[int], Weight] = lambda k: "uniform"


class Macro(NamedTuple):
    """A function of each label's counts; `by_row` if there is a rule for one row at a time."""

    kind: int
    by_row: bool = True


class FMeasure(NamedTuple):
    """The F-measure of each row's set."""


def _inverse(shares: Floats) -> Floats:
    """Return one over each share, and 0 for 0: nothing can be won or lost there."""
    return np.divide(1.0, shares, out=np.zeros(len(shares)), where=shares > 0)


def _balanced(known: Known) -> tuple[Floats, Floats]:
    per_relevant, spared = _inverse(known.shares), _inverse(1 - known.shares)
    return per_relevant + spared, -spared


DECISIONS: dict[str, Linear | Macro | FMeasure] = {
    "precision": Linear(lambda known: (1.0, 0.0)),
    "recall": Linear(lambda known: (1.0, 0.0), lambda k: "recall"),
    "ndcg": Linear(lambda known: (1.0, 0.0), lambda k: ("ndcg", k)),
    "propensity-precision": Linear(lambda known: (1 / known.propensities, 0.0)),
    "macro-recall": Linear(lambda known: (_inverse(known.shares), 0.0)),
    "balanced-accuracy": Linear(_balanced),
    "macro-f1": Macro(utilities.F1),
    "macro-jaccard": Macro(utilities.JACCARD),
    "macro-hmean": Macro(utilities.H_MEAN),
    "coverage": Macro(utilities.COVERAGE, by_row=False),
    "f-beta": FMeasure(),
}


def check_ways(metric: str, batch: bool, joint: bool) -> None:
    """Refuse to decide a batch together, its rows apart or labels jointly where that is no way."""
    decision = DECISIONS[metric]
    if joint and not isinstance(decision, FMeasure):
        raise ValueError(
            f"metric={metric!r} needs chances of single labels only; leave joint=False, which is "
            "for metric='f-beta'"
        )
    if batch and not isinstance(decision, Macro):
        raise ValueError(
            f"metric={metric!r} is decided row by row, the best way for a batch too; "
            "leave batch=False"
        )
    if isinstance(decision, Macro) and not (decision.by_row or batch):
        raise ValueError(
            f"metric={metric!r} has no rule for single rows; with batch=True the rows of each call "
            "are decided together"
        )
