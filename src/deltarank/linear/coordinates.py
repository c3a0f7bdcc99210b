"""The variables that problems are solved in: features centred, scaled and rotated.

Rows hold features in units of their own, ``(x - center) / scale``, and speak of coefficients and
gradients in these units only. The solver's variables of a problem are its rotated coefficients,
then its offset, the score of a row at the centre. In the eigenvectors of the weighted covariance a
label's Hessian is close to a multiple of the diagonal ``spectrum`` for *every* label, because the
weights do not depend on the label. X itself is never rotated: rotating coefficients and gradients
costs d^2 per label, and X may be memory-mapped.

Everything here is written once for NumPy arrays and for tensors of a device.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

# Variances near the smallest float64 have lost their digits, and their inverses are infinite.
FLAT = 1e-300


class Moments(NamedTuple):
    """Weighted moments of the features over some rows; those of parts merge to those of all.

    Attributes
    ----------
    total : float
        Weight of the rows.
    center, variance : array of shape (d,)
    covariance : array of shape (d, d) or None
        None where there are too many features for it.
    """

    total: float
    center: Any
    variance: Any
    covariance: Any

    @property
    def spread(self) -> Any:
        """Deviation of each feature, or one if it has none or too little to divide by."""
        flat = self.variance <= FLAT
        return (self.variance * ~flat + flat) ** 0.5

    @classmethod
    def merged(cls, parts: list[Self]) -> Self:
        """Return the moments of all rows from those of parts: within them and between them."""
        total = sum(part.total for part in parts)
        shares = [part.total / total if total else 0.0 for part in parts]
        weighted = list(zip(shares, parts, strict=True))
        center = np.sum([share * part.center for share, part in weighted], axis=0)
        variance = np.zeros_like(center)
        for share, part in weighted:
            variance += share * (part.variance + (part.center - center) ** 2)
        covariance: Any = None
        if all(part.covariance is not None for part in parts):
            covariance = np.zeros((len(center), len(center)))
            for share, part in weighted:
                apart = part.center - center
                covariance += share * (part.covariance + np.multiply.outer(apart, apart))
        return cls(total, center, variance, covariance)


class Coordinates(NamedTuple):
    """Map between the solver's variables and coefficients in the units of the rows.

    Attributes
    ----------
    center, scale : array of shape (d,)
        Units of the rows.
    basis : array of shape (d, d) or None
        Variables to coefficients of the features as they were given; None stands for the identity.
    stretch : array of shape (d,) or None
        What a variable's coefficient is multiplied by to be in the units of the rows, after the
        basis; None stands for ones.
    penalty : array of shape (d,)
        What the square of each variable counts in the penalty.
    spectrum : array of shape (d,)
        Weighted variance along each variable.
    product : callable
        Matrix product where the arrays lie.
    """

    center: Any
    scale: Any
    basis: Any
    stretch: Any
    penalty: Any
    spectrum: Any
    product: Callable[[Any, Any], Any]

    @classmethod
    def rotated(cls, moments: Moments, rows: Any) -> Self:
        """Return the coordinates that diagonalise the covariance, or the features as they are."""
        one, basis, spectrum = rows.scale * 0 + 1, None, moments.variance
        if moments.covariance is not None:
            spectrum, basis = rows.eigenvectors(moments.covariance)
        stretch = rows.scale if rows.is_scaled else None
        return cls(rows.center, rows.scale, basis, stretch, one, spectrum, rows.product)

    @classmethod
    def standardized(cls, moments: Moments, rows: Any) -> Self:
        """Return features scaled to variance one: for Newton's method, which needs no rotation."""
        spread, one = moments.spread, rows.scale * 0 + 1
        stretch = rows.scale / spread
        return cls(rows.center, rows.scale, None, stretch, spread**-2, one, rows.product)

    def to_rows(self, variables: Any) -> Any:
        """Return coefficients (p, d) in the units of the rows."""
        coef = variables if self.basis is None else self.product(variables, self.basis.T)
        return coef if self.stretch is None else coef * self.stretch

    def gradient(self, gradient: Any) -> Any:
        """Return the gradient with respect to the variables of one in the units of the rows."""
        stretched = gradient if self.stretch is None else gradient * self.stretch
        return stretched if self.basis is None else self.product(stretched, self.basis)

    def hessian(self, hessian: Any) -> Any:
        """Turn, in place, a Hessian (d + 1, d + 1), the offset last, from rows' units."""
        if self.stretch is not None:
            hessian[:-1] *= self.stretch[:, None]
            hessian[:, :-1] *= self.stretch
        if self.basis is not None:
            hessian[:-1] = self.basis.T @ hessian[:-1]
            hessian[:, :-1] = hessian[:, :-1] @ self.basis
        return hessian

    def to_features(self, points: Any) -> tuple[Any, Any]:
        """Return coefficients (p, d) and intercepts (p,) of the features as they were given."""
        coef = points[:, :-1] * self._unit if self.basis is None else points[:, :-1] @ self.basis.T
        return coef, points[:, -1] - coef @ self.center

    def from_features(self, coef: Any, intercept: Any) -> tuple[Any, Any]:
        """Return variables (p, d) and offsets (p,) of coefficients of the features as given."""
        offsets = intercept + coef @ self.center
        if self.basis is not None:
            return self.product(coef, self.basis), offsets
        return coef / self._unit, offsets

    @property
    def intercept_direction(self) -> Any:
        """Gradient of the intercept with respect to the variables but the offset, shape (d,)."""
        if self.basis is None:
            return -self.center * self._unit
        return -self.product(self.center[None], self.basis)[0]

    @property
    def _unit(self) -> Any:
        """Coefficient of each feature, as it was given, at a variable of one; without a basis."""
        return 1 / self.scale if self.stretch is None else self.stretch / self.scale
