"""What a place needs whose solver runs in this process, on NumPy arrays."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltarank.core import threads
from deltarank.core.blas import one_blas_thread
from deltarank.linear.rows.tuning import LOCAL
from deltarank.linear.solvers.array_steps import ArraySteps
from deltarank.linear.solvers.lbfgs import Stage
from deltarank.linear.solvers.newton import Digits
from deltarank.linear.solvers.precision import Precision

Array = NDArray[Any]


class NumPyPlace:
    """Arrays of the solver in this process; see `linear.rows.protocol.Rows`."""

    xp = np
    bytes_per_block = 2**28

    make_steps, digits = ArraySteps, Digits()
    stages = (Stage(Precision.EXACT),)
    dual: Any = None

    def takes_dual(self, *Cs: float) -> bool:
        """Tell whether dual coordinate ascent is quicker; only rows here can take it."""
        return False

    def asarray(self, values: Any) -> Array:
        """Return numbers as float64."""
        return np.asarray(values, np.float64)

    def indices(self, values: Array) -> Array:
        """Return indices as they are."""
        return values

    def to_host(self, values: Array) -> Array:
        """Return numbers as they are."""
        return values

    def each(self, function: Callable[[Array], Array], items: list[Array]) -> list[Array]:
        """Apply a function to each item, in threads."""
        with one_blas_thread():
            return threads.run([partial(function, item) for item in items])

    def newton_steps(self, hessians: Array, gradients: Array) -> Array:
        """Return minus inverse Hessians times gradients."""
        # A little of the diagonal, so that a flat direction costs no accuracy and stops no solve.
        index = np.arange(hessians.shape[1])
        hessians[:, index, index] *= 1 + 1e-13
        hessians[:, index, index] += np.finfo(float).tiny
        return np.asarray(-np.linalg.solve(hessians, gradients[:, :, None])[:, :, 0], float)

    def eigenvectors(self, covariance: Array) -> tuple[Array, Array]:
        """Return the spectrum (d,) of a covariance and its eigenvectors, as columns."""
        with one_blas_thread() if len(covariance) <= LOCAL.few_features else nullcontext():
            spectrum, basis = np.linalg.eigh(covariance)
        return np.maximum(spectrum, 0.0), basis

    def product(self, left: Array, right: Array) -> Array:
        """Multiply, in float32 and on all threads where the right factor is large.

        Passes round to float32 anyway; many features would make these products as dear as a pass.
        """
        if len(right) <= LOCAL.few_features:
            return left @ right
        narrow = right.astype(np.float32)
        blocks = threads.even_parts(len(left), LOCAL.rows_per_product)
        tasks = [partial(np.matmul, left[block].astype(np.float32), narrow) for block in blocks]
        return np.concatenate(threads.run(tasks)).astype(np.float64)


class MatrixPlace(NumPyPlace):
    """The same for rows of a matrix, whose Hessians are made of sampled rows."""

    n_rows: int
    matrix: Any

    @property
    def is_scaled(self) -> bool:
        """Whether any scale is other than one."""
        return bool(self.matrix.is_scaled)

    @property
    def n_draws(self) -> int:
        """How many rows stand for all of them in a Hessian."""
        n_sampled = LOCAL.rows_per_variable * (len(self.matrix.scale) + 1)
        return n_sampled if self.n_rows > 2 * n_sampled else LOCAL.draws_of_all_rows

    def hessians_due(self, n_waited: int, n_active: int, precision: Precision) -> bool:
        """Tell whether Hessians cost no more than the rounds in which problems waited for one.

        Who has waited long will probably have to wait as long again, so this costs at most about
        twice what knowing the future would.
        """
        n_variables = len(self.matrix.scale) + 1
        cost = self.matrix.hessian_flops(min(self.n_rows, LOCAL.rows_per_variable * n_variables))
        pass_cost = 2 * self.matrix.flops_per_score * self.n_rows
        waited = n_waited * pass_cost * max(1.0, LOCAL.narrow_pass / n_active)
        fits = 8 * n_variables**2 * n_active <= LOCAL.bytes_of_hessians
        return n_waited >= LOCAL.min_patience and fits and cost <= waited
