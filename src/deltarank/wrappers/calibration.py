"""Increasing maps from scores to probabilities: isotonic steps, or Platt's logistic curve."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from deltarank.core.losses import sigmoid
from deltarank.linear.rows.numpy_place import NumPyPlace
from deltarank.linear.solvers.newton import newton
from deltarank.linear.solvers.states import Derivatives

Floats = NDArray[np.float64]


class Steps(NamedTuple):
    """A function that is linear between knots, and constant beyond them."""

    knots: Floats
    levels: Floats

    def __call__(self, scores: Floats) -> Floats:
        """Return probabilities."""
        return np.interp(scores, self.knots, self.levels)


class Curve(NamedTuple):
    """A logistic curve."""

    slope: float
    offset: float

    def __call__(self, scores: Floats) -> Floats:
        """Return probabilities."""
        return np.asarray(sigmoid(self.slope * scores + self.offset))


Map = Steps | Curve
# Where there is nothing to learn from.
NEVER = Steps(np.zeros(1), np.zeros(1))


def isotonic(scores: Floats, relevant: NDArray[np.bool_], counts: Floats) -> Map:
    """Return the increasing function with the least squared error, constant beyond the scores."""
    regression = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    regression.fit(scores, relevant.astype(float), sample_weight=counts)
    return Steps(regression.X_thresholds_, regression.y_thresholds_)


def platt(scores: Floats, relevant: NDArray[np.bool_], counts: Floats) -> Map:
    """Return the likeliest logistic curve, for targets drawn a little away from 0 and 1 (Platt).

    With N+ relevant and N- irrelevant rows the targets are (N+ + 1) / (N+ + 2) and
    1 / (N- + 2), so that the curve is never a step. Its slope is not let below 0.
    """
    center, spread = float(scores.mean()), float(scores.std()) or 1.0
    x = np.column_stack([(scores - center) / spread, np.ones(len(scores))])
    positive, total = float(counts[relevant].sum()), float(counts.sum())
    targets = np.where(relevant, (positive + 1) / (positive + 2), 1 / (total - positive + 2))

    def derivatives(points: Floats, problem: Any, careful: bool) -> Derivatives:
        margins = points @ x.T
        chances = sigmoid(margins)
        value = (counts * (np.logaddexp(0, margins) - targets * margins)).sum(axis=1)
        gradient = (counts * (chances - targets)) @ x
        curvature = counts * chances * (1 - chances)
        return Derivatives(value, gradient, np.einsum("pi,ij,ik->pjk", curvature, x, x))

    limits: dict[str, Any] = {"tol": 1e-12, "max_iter": 100}
    (slope, offset), *_ = newton(derivatives, np.zeros((1, 2)), NumPyPlace(), **limits).point
    if slope < 0:
        slope, offset = 0.0, np.log(counts @ targets) - np.log(counts @ (1 - targets))
    return Curve(slope / spread, offset - slope * center / spread)


METHODS: dict[str, Callable[..., Map]] = {"isotonic": isotonic, "platt": platt}


class Calibration:
    """Maps from the scores of labels to probabilities.

    A label with fewer than `min_positives` relevant, or irrelevant, rows shares one map with all
    other such labels, fitted to their cells together. Scores of labels that had no two classes in
    training (`constant`) tell nothing, and become 0 or 1.

    Parameters
    ----------
    method : callable
        One of `METHODS`.
    scores : array of shape (n, m)
    relevant, known : arrays of bool, shape (n, m)
    counts : array of shape (n,)
        How often each row counts.
    min_positives : int
    constant : float
        Scores that are as large as this, of either sign, are those of constant labels.
    """

    def __init__(
        self,
        method: Callable[..., Map],
        scores: Floats,
        relevant: NDArray[np.bool_],
        known: NDArray[np.bool_],
        counts: Floats,
        min_positives: int,
        constant: float,
    ) -> None:
        self.constant = constant
        usable = known & (np.abs(scores) < constant) & (counts > 0)[:, None]
        fewer = np.minimum((usable & relevant).sum(axis=0), (usable & ~relevant).sum(axis=0))
        self.pooled = fewer < min_positives

        def fitted(labels: Any) -> Map:
            rows, columns = np.nonzero(usable[:, labels])
            if not len(rows):
                return NEVER
            cells = scores[:, labels][rows, columns], relevant[:, labels][rows, columns]
            return method(*cells, counts[rows])

        shared = fitted(self.pooled)
        self.maps = [
            shared if is_pooled else fitted([label]) for label, is_pooled in enumerate(self.pooled)
        ]

    def __call__(self, scores: NDArray[Any]) -> Floats:
        """Return probabilities (n, m)."""
        columns = zip(self.maps, scores.T.astype(np.float64), strict=True)
        chances = np.column_stack([mapping(column) for mapping, column in columns])
        return np.where(np.abs(scores) < self.constant, chances, (scores > 0) * 1.0)

    def state(self) -> dict[str, Any]:
        """Return the maps as arrays: which map each label has, and the numbers of each map."""
        distinct = list({id(mapping): mapping for mapping in self.maps}.values())
        numbers = [np.atleast_1d(np.array(mapping, dtype=np.float64).T) for mapping in distinct]
        numbers_of = {id(mapping): place for place, mapping in enumerate(distinct)}
        return {
            "constant": self.constant,
            "pooled": self.pooled,
            "which": np.array([numbers_of[id(mapping)] for mapping in self.maps]),
            "curved": np.array([isinstance(mapping, Curve) for mapping in distinct]),
            "ends": np.cumsum([len(pairs.reshape(-1, 2)) for pairs in numbers]),
            "pairs": np.concatenate([pairs.reshape(-1, 2) for pairs in numbers]),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Calibration":
        """Return the calibration of a `state`, or refuse what is none."""
        calibration = cls.__new__(cls)
        ends, pairs = np.asarray(state["ends"]), np.asarray(state["pairs"])
        if pairs.dtype.kind != "f" or not np.isfinite(pairs).all() or pairs.shape[1:] != (2,):
            raise ValueError("maps to probabilities must be finite numbers")
        pieces = np.split(pairs, ends[:-1])
        if [ends[-1], *np.diff(ends, prepend=0)] != [len(pairs), *map(len, pieces)]:
            raise ValueError("maps to probabilities do not have as many numbers as they should")
        maps = [_map(*it) for it in zip(state["curved"], pieces, strict=True)]
        calibration.maps = [maps[place] for place in state["which"]]
        calibration.pooled, calibration.constant = state["pooled"], float(state["constant"])
        return calibration


def _map(curved: bool, pairs: Floats) -> Map:
    """Return an increasing map to probabilities, or refuse numbers that make none."""
    if curved and len(pairs) == 1 and pairs[0, 0] >= 0:
        return Curve(float(pairs[0, 0]), float(pairs[0, 1]))
    rising = bool((np.diff(pairs, axis=0) >= 0).all())
    if curved or not len(pairs) or not rising or pairs[0, 1] < 0 or pairs[-1, 1] > 1:
        raise ValueError("a map to probabilities must rise, and stay between 0 and 1")
    return Steps(np.array(pairs[:, 0]), np.array(pairs[:, 1]))
