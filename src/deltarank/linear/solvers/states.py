"""Where a solver begins, what it finds there, and what it leaves to another."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltarank.linear.kernels.lbfgs import move

Array = NDArray[Any]


class Evaluation(NamedTuple):
    """Values (p,), gradients (p, v) and approximate Hessian diagonals (p, v) of p problems."""

    value: Array
    gradient: Array
    diagonal: Array


class Start(NamedTuple):
    """Where to begin, and a point whose gradient is known already, each of shape (p, v).

    The pair of the two gives the first estimate of the curvature along the first step. A start
    that is `close` to the minimum is worth a Hessian at once.
    """

    point: Array
    known_point: Array
    known_gradient: Array
    close: bool = False

    def of(self, problems: Array) -> "Start":
        """Return the start of some of the problems."""
        return Start(
            self.point[problems],
            self.known_point[problems],
            self.known_gradient[problems],
            self.close,
        )


class State(NamedTuple):
    """Where p problems are, and what a solver has learnt of their curvature on the way.

    Attributes
    ----------
    point : array of shape (p, v)
    found : Evaluation
        At those points.
    steps, changes : arrays of float32, shape (p, memory, v)
        Pairs of steps and changes of the gradient.
    products : array of shape (p, memory)
        Their scalar products.
    n_pairs : array of int, shape (p,)
    factors : array of shape (h, v, v)
        Cholesky factors of Hessians.
    slots : array of int, shape (p,)
        Which of them is each problem's, or -1.
    """

    point: Array
    found: Evaluation
    steps: Array
    changes: Array
    products: Array
    n_pairs: Array
    factors: Array
    slots: Array

    def of(self, problems: Array) -> "State":
        """Return the state of some of the problems."""
        if len(problems) == len(self.point):
            return self
        return State(
            self.point[problems],
            Evaluation(*(part[problems] for part in self.found)),
            self.steps[problems],
            self.changes[problems],
            self.products[problems],
            self.n_pairs[problems],
            self.factors,
            self.slots[problems],
        )

    def add_pair(self, step: Array, change: Array) -> None:
        """Add, in place, the pair of a step from the points to each problem's pairs."""
        everyone, gradient = np.arange(len(self.point)), self.found.gradient
        pairs = ((self.steps, self.changes), self.products, self.n_pairs)
        old = self.point.copy(), gradient.copy()
        move(everyone, self.point + step, gradient + change, old, *pairs)
