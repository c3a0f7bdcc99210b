"""Where a solver begins, and what it finds there."""

from typing import Any, NamedTuple


class Evaluation(NamedTuple):
    """Values (p,), gradients (p, v) and approximate Hessian diagonals (p, v) of p problems."""

    value: Any
    gradient: Any
    diagonal: Any


class Derivatives(NamedTuple):
    """Values (p,), gradients (p, v) and Hessians (p, v, v) of p problems."""

    value: Any
    gradient: Any
    hessian: Any


class Start(NamedTuple):
    """Where to begin, and a point whose gradient is known already, each of shape (p, v).

    The pair of the two gives the first estimate of the curvature along the first step. A start
    that is `near` the minimum needs no rough evaluations; one that is `close` to it is worth a
    Hessian at once.
    """

    point: Any
    known_point: Any
    known_gradient: Any
    near: bool = False
    close: bool = False

    def of(self, problems: Any) -> "Start":
        """Return the start of some of the problems."""
        return self._replace(
            point=self.point[problems],
            known_point=self.known_point[problems],
            known_gradient=self.known_gradient[problems],
        )
