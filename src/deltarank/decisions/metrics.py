"""Which metrics have a best decision, of what kind, and from which chances.

A metric that adds up over cells has gains a_l eta_l + b_l of choosing label l in a row where it is
relevant with chance eta_l: the first k of them are best. What the coefficients need is known of
each label beforehand. Other metrics are functions of counts over all rows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.core.weights import Weight
from deltarank.decisions.kernels import utilities

Floats = NDArray[np.float64]


class Known(NamedTuple):
    """What is known of each label: the share of rows that have it, and its propensity."""

    shares: Floats
    propensities: Floats


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
    found, spared = _inverse(known.shares), _inverse(1 - known.shares)
    return found + spared, -spared


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
