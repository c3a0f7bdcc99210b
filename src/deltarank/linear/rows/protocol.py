"""What the objective asks of rows, wherever they lie.

Rows answer only what their place alone can answer: sums over rows. What is minimised, in which
variables and from where, is the objective's. A new place is a new class with these methods.
"""

from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from deltarank.core.losses import Loss
from deltarank.linear.coordinates import Moments
from deltarank.linear.solvers.lbfgs import Stage, Steps
from deltarank.linear.solvers.newton import Digits
from deltarank.linear.solvers.precision import Precision
from deltarank.linear.solvers.states import Start


class Sums(NamedTuple):
    """Sums over the rows of p problems: losses and their derivatives.

    Attributes
    ----------
    losses, curvatures, residuals : array of shape (p,)
        Of value, second and first derivative of the loss with respect to the score.
    gradient : array of shape (p, d)
        With respect to the coefficients, in the units of the rows.
    """

    losses: Any
    curvatures: Any
    residuals: Any
    gradient: Any


class Rows(Protocol):
    """Rows with their labels and weights.

    A problem is one label, or one label with one fold held out: problem ``l * n_folds + f`` is
    label l without fold f. Features are seen in the units ``(x - center) / scale``; a score is
    ``coef . x + offset`` in these units. Arrays go in and come out as the place likes them: NumPy
    arrays, or tensors on a device.

    Attributes
    ----------
    xp : module
        ``numpy`` or ``torch``: the namespace of the arrays.
    loss : Loss
    n_rows, n_features, n_labels, n_folds : int
        Rows that count.
    dtype : dtype
        Of the features as they were given.
    center, scale : array of shape (d,)
    is_scaled : bool
        Whether any scale is other than one.
    frequencies : ndarray of shape (m,)
        How many rows that count hold each label.
    has_costs, has_unknown : bool
        Whether relevant cells cost other than one, and whether there are unknown ones.
    takes_newton : bool
        Whether `derivatives` of all problems are cheaper than any shortcut.
    in_jobs : bool
        Whether other processes may solve some of the problems, each with these rows.
    bytes_per_block : int
        Memory that the solver may use for the problems that it solves together.
    digits : Digits
        What sums can tell: see `linear.solvers.newton`.
    stages : tuple of Stage
        Of evaluations of ascending precision: see `linear.solvers.lbfgs`.
    """

    @property
    def xp(self) -> Any: ...
    @property
    def loss(self) -> Loss: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def n_folds(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def center(self) -> Any: ...
    @property
    def scale(self) -> Any: ...
    @property
    def is_scaled(self) -> bool: ...
    @property
    def frequencies(self) -> NDArray[Any]: ...
    @property
    def has_costs(self) -> bool: ...
    @property
    def has_unknown(self) -> bool: ...
    @property
    def takes_newton(self) -> bool: ...
    @property
    def in_jobs(self) -> bool: ...
    @property
    def bytes_per_block(self) -> int: ...
    @property
    def digits(self) -> Digits: ...
    @property
    def stages(self) -> tuple[Stage, ...]: ...

    # What the solver's arrays need of the place

    def asarray(self, values: Any) -> Any:
        """Return numbers as float64, where the place holds them."""

    def indices(self, values: NDArray[Any]) -> Any:
        """Return indices of problems where the place holds them."""

    def to_host(self, values: Any) -> NDArray[Any]:
        """Return numbers as a NumPy array."""

    def each(self, function: Any, items: list[Any]) -> list[Any]:
        """Apply a function to each item, side by side where the place can."""

    def product(self, left: Any, right: Any) -> Any:
        """Return a matrix product."""

    def eigenvectors(self, covariance: Any) -> tuple[Any, Any]:
        """Return the spectrum (d,) of a covariance and its eigenvectors, as columns."""

    def newton_steps(self, hessians: Any, gradients: Any) -> Any:
        """Return minus inverse Hessians times gradients."""

    def make_steps(self, start: Start, memory: int) -> Steps:
        """Return the vectors of L-BFGS, with room for this many pairs of each problem."""

    # Other ways to a minimum

    def takes_dual(self, *Cs: float) -> bool:
        """Tell whether `dual`, one cell after the other, is quicker than passes over all cells."""

    @property
    def dual(self) -> Any:
        """The same rows for dual coordinate ascent: see `linear.rows.dual.DualProblems`."""

    # Sums over rows

    def with_folds(self, folds: Any) -> "Rows":
        """Return the same rows with folds held out."""

    def moments(self) -> Moments:
        """Return the moments of the features as they were given."""

    def masses(self, problems: Any) -> NDArray[Any]:
        """Return the weights (3, p) of relevant cells, of their costs, and of the other cells.

        On the host, and of known cells only.
        """

    def label_sums(self, problems: Any, cells: str) -> Any:
        """Return the weighted sums (p, d) of the rows of each problem's cells.

        Parameters
        ----------
        cells : {"relevant", "costly", "unknown"}
            Cells whose label is relevant, the same counted as often as they cost, or cells of which
            nobody knows.
        """

    def evaluate(self, coef: Any, offset: Any, problems: Any, precision: Precision) -> Sums:
        """Return the sums of the given problems, each at its own coefficients."""

    def derivatives(self, points: Any, problems: Any, careful: bool) -> tuple[Any, Any, Any]:
        """Return losses (p,), gradients (p, d + 1) and Hessians (p, d + 1, d + 1).

        At coefficients of features of variance one, the offset last; asked for only of rows that
        take Newton's method.
        """

    def hessians(
        self, coef: Any, offset: Any, problems: Any, curvatures: Any, left_out: Any
    ) -> list[Any]:
        """Return Hessians (d + 1, d + 1) of the losses, roughly, the offset last.

        Parameters
        ----------
        curvatures : array of shape (p,)
            Sums of all curvatures, as `evaluate` returned them at these coefficients.
        left_out : array of int, shape (p,)
            The fold each goes without, or -1 for an average one.
        """

    def hessians_due(self, n_waited: int, n_active: int, precision: Precision) -> bool:
        """Tell whether Hessians cost no more than the rounds in which problems waited for one."""

    def digest(self) -> bytes:
        """Return something short that other rows, labels, weights or costs would hardly have."""
