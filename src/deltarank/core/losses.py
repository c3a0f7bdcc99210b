"""Surrogate losses phi of a margin, and what each one's minimiser says about a probability."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, xlogy

Floats = NDArray[np.float64]


class Loss(NamedTuple):
    """A surrogate, elementwise in the margin; value and derivative share their costly part.

    For a label relevant with probability eta the expected loss of a score t is
    ``eta phi(t) + (1 - eta) phi(-t)``. `link` maps eta to its minimiser and `bayes_risk` to its
    minimum; `inverse_link` maps a score to the probability it stands for. `proper_curvature` is
    minus the second derivative of the minimum, the weight in the regret integral, Eq. (24). They
    are None for a loss whose expectation has no minimiser.

    A loss with a link can be trained wherever rows lie: value, derivative and curvature are given
    arrays or tensors, and must be written with operators and NumPy's functions. `fused` names
    compiled kernels of it, where there are any.
    """

    value_and_derivative: Callable[[Any], tuple[Floats, Floats]]
    curvature: Callable[[Any], Floats]
    link: Callable[[Any], Floats] | None
    inverse_link: Callable[[Any], Floats] | None
    bayes_risk: Callable[[Any], Floats] | None
    proper_curvature: Callable[[Any], Floats] | None
    fused: str | None = None

    def value(self, margin: Any) -> Floats:
        """Return phi alone."""
        return self.value_and_derivative(margin)[0]


# Compiled loops share another, in `core.kernels.elementary`. Device code keeps torch's own, which
# works in place and has gradients, and Triton kernels their own: they can call nothing else.
def sigmoid(scores: Any) -> Any:
    """Return the logistic function 1 / (1 + exp(-t)) of scores, in their own precision.

    Examples
    --------
    >>> sigmoid([-1000.0, 0.0, 1000.0])
    array([0. , 0.5, 1. ])
    """
    return expit(scores)


def _exponential(margin: Any) -> tuple[Floats, Floats]:
    value = np.exp(np.multiply(margin, -1.0))
    return value, -value


def _logistic(margin: Any) -> tuple[Floats, Floats]:
    rest = np.multiply(margin, -1.0)
    return np.logaddexp(0.0, rest), -sigmoid(rest)


def _squared(margin: Any) -> tuple[Floats, Floats]:
    rest = np.subtract(1.0, margin)
    return rest**2, -2 * rest


def _squared_hinge(margin: Any) -> tuple[Floats, Floats]:
    rest = np.maximum(np.subtract(1.0, margin), 0.0)
    return rest**2, -2 * rest


def _hinge(margin: Any) -> tuple[Floats, Floats]:
    # At the kink any slope in [-1, 0] is one; the right-hand one is taken.
    rest = np.maximum(np.subtract(1.0, margin), 0.0)
    return rest, np.where(rest > 0, -1.0, 0.0)


def _linear(margin: Any) -> tuple[Floats, Floats]:
    value = np.multiply(margin, -1.0)
    return value, 0 * value - 1.0


def _binary_entropy(eta: Any) -> Floats:
    return np.asarray(-xlogy(eta, eta) - xlogy(1 - np.asarray(eta), 1 - np.asarray(eta)))


def _spread(eta: Any) -> Floats:
    """Return eta (1 - eta)."""
    eta = np.asarray(eta, dtype=float)
    return eta * (1 - eta)


def _centred(eta: Any) -> Floats:
    return 2 * np.asarray(eta, dtype=float) - 1


LOSSES: dict[str, Loss] = {
    "exponential": Loss(
        value_and_derivative=_exponential,
        curvature=lambda t: _exponential(t)[0],
        link=lambda eta: logit(eta) / 2,
        inverse_link=lambda t: sigmoid(2 * np.asarray(t)),
        bayes_risk=lambda eta: 2 * np.sqrt(_spread(eta)),
        proper_curvature=lambda eta: _spread(eta) ** -1.5 / 2,
    ),
    "logistic": Loss(
        value_and_derivative=_logistic,
        curvature=lambda t: sigmoid(t) * sigmoid(np.multiply(t, -1.0)),
        link=logit,
        inverse_link=sigmoid,
        bayes_risk=_binary_entropy,
        proper_curvature=lambda eta: 1 / _spread(eta),
        fused="logistic",
    ),
    "squared": Loss(
        value_and_derivative=_squared,
        curvature=lambda t: np.multiply(t, 0.0) + 2.0,
        link=_centred,
        inverse_link=lambda t: (np.asarray(t) + 1) / 2,
        bayes_risk=lambda eta: 4 * _spread(eta),
        proper_curvature=lambda eta: np.full(np.shape(eta), 8.0),
    ),
    "squared_hinge": Loss(
        value_and_derivative=_squared_hinge,
        curvature=lambda t: np.where(np.less(t, 1.0), 2.0, 0.0),
        link=_centred,
        inverse_link=lambda t: (np.clip(t, -1, 1) + 1) / 2,
        bayes_risk=lambda eta: 4 * _spread(eta),
        proper_curvature=lambda eta: np.full(np.shape(eta), 8.0),
    ),
    "hinge": Loss(
        value_and_derivative=_hinge,
        curvature=lambda t: np.multiply(t, 0.0),
        link=lambda eta: np.sign(_centred(eta)),
        inverse_link=None,
        bayes_risk=lambda eta: 1 - np.abs(_centred(eta)),
        proper_curvature=None,
    ),
    "linear": Loss(
        value_and_derivative=_linear,
        curvature=lambda t: np.multiply(t, 0.0),
        link=None,
        inverse_link=None,
        bayes_risk=None,
        proper_curvature=None,
    ),
}
