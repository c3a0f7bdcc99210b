"""What a solver returns."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Solution(NamedTuple):
    """Where a solver stopped, one row per problem.

    Attributes
    ----------
    point : array of shape (p, v)
    value, gradient_norm : array of shape (p,)
    n_iter : array of int, shape (p,)
        Evaluations used, rejected steps included.
    converged : array of bool, shape (p,)
    diagonal : array of shape (p, v)
        Diagonal of the Hessian, or about that, for warm starts.
    """

    point: NDArray[Any]
    value: NDArray[np.float64]
    gradient_norm: NDArray[np.float64]
    n_iter: NDArray[np.int64]
    converged: NDArray[np.bool_]
    diagonal: NDArray[np.float64]
