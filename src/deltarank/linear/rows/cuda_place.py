"""What a place needs whose solver keeps its vectors on a torch device."""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from deltarank.linear.rows.tuning import DEVICE
from deltarank.linear.solvers.lbfgs import Stage
from deltarank.linear.solvers.newton import Digits
from deltarank.linear.solvers.precision import Precision
from deltarank.linear.solvers.tensor_steps import TensorSteps


class DevicePlace:
    """Tensors of the solver on a device; see `linear.rows.protocol.Rows`."""

    xp, in_jobs = torch, False
    # A device has more memory than a cache, and likes wide products.
    bytes_per_block = 2**34
    make_steps = TensorSteps
    digits = Digits(noise=1e-7, negligible=1e-9, smallest_step=1e-6, rough=True, narrows=False)
    # The way to a minimum needs fewer digits than its end.
    stages = (
        Stage(Precision.COARSE, least_tol=1e-5, stragglers=16, smallest_step=0.05, idles=True),
        Stage(Precision.FINE, stragglers=16, smallest_step=0.05, idles=True),
        Stage(Precision.EXACT, stragglers=16, idles=True),
        Stage(Precision.DOUBLE, noise=1e-13, idles=True, everyone=False),
    )
    device: torch.device
    n_features: int
    dual = None

    def takes_dual(self, *Cs: float) -> bool:
        """Tell whether dual coordinate ascent is quicker: not on a device."""
        return False

    def asarray(self, values: Any) -> Tensor:
        """Return numbers as float64 on the device."""
        return torch.as_tensor(values).to(self.device, torch.float64)

    def indices(self, values: NDArray[Any]) -> Tensor:
        """Return indices on the device."""
        return torch.as_tensor(values).to(self.device)

    def to_host(self, values: Tensor) -> NDArray[Any]:
        """Return numbers as a NumPy array."""
        return values.cpu().numpy()

    def each(self, function: Any, items: list[Tensor]) -> list[Tensor]:
        """Apply a function to each item."""
        return [function(item) for item in items]

    def product(self, left: Tensor, right: Tensor) -> Tensor:
        """Return a matrix product in float64."""
        return left @ right

    def eigenvectors(self, covariance: Tensor) -> tuple[Tensor, Tensor]:
        """Return the spectrum (d,) of a covariance and its eigenvectors, as columns."""
        spectrum, basis = torch.linalg.eigh(covariance)
        return spectrum.clamp(min=0), basis

    def newton_steps(self, hessians: Tensor, gradients: Tensor) -> Tensor:
        """Return minus inverse Hessians times gradients; not a number where one has none."""
        factors, _ = torch.linalg.cholesky_ex(hessians)
        half = torch.linalg.solve_triangular(factors, gradients[:, :, None], upper=False)
        return torch.linalg.solve_triangular(factors.mT, half, upper=True)[:, :, 0].neg_()

    def hessians_due(self, n_waited: int, n_active: int, precision: Precision) -> bool:
        """Tell whether Hessians are due: for the last problems, which want all digits."""
        fits = 8 * (self.n_features + 1) ** 2 * n_active <= DEVICE.bytes_of_hessians
        return precision == Precision.DOUBLE and fits and n_waited >= DEVICE.rounds_per_hessian
