"""Functions written for NumPy, applied to tensors of any device.

A loss is written once, with NumPy. NumPy asks an array of another kind to carry out a function
itself (``__array_ufunc__``, ``__array_function__``); a tensor does not answer, so it is wrapped in
something that does, by the function of the same name in torch.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

# Functions whose name in torch is another.
_NAMES = {"clip": "clamp", "absolute": "abs", "conjugate": "conj_physical", "power": "pow"}


def on_tensors(function: Callable[[Any], Any], tensor: Tensor) -> Any:
    """Return what a function written for NumPy makes of a tensor, as tensors.

    Examples
    --------
    >>> import numpy as np, torch
    >>> def hinge(t):
    ...     return np.maximum(1 - t, 0), np.where(t < 1, -1.0, 0.0)
    >>> [part.tolist() for part in on_tensors(hinge, torch.tensor([0.5, 2.0]))]
    [[0.5, 0.0], [-1.0, 0.0]]
    """
    return _unwrapped(function(_Wrapped(tensor)))


def _unwrapped(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_unwrapped, value))
    return value.tensor if isinstance(value, _Wrapped) else value


class _Wrapped(np.lib.mixins.NDArrayOperatorsMixin):
    """A tensor that carries NumPy's functions out by torch's."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor."""
        return tuple(self.tensor.shape)

    def astype(self, dtype: Any) -> "_Wrapped":
        """Return the tensor as floating-point numbers; losses know no others."""
        return _Wrapped(self.tensor.double())

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            return NotImplemented
        return self._call(ufunc.__name__, inputs, {})

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return self._call(function.__name__, args, options)

    def _call(self, name: str, args: Any, options: Any) -> Any:
        function = getattr(torch, _NAMES.get(name, name), None) or getattr(
            torch.special, name, None
        )
        if function is None:
            raise TypeError(f"a loss on a device may not use {name}, which torch does not have")
        return _Wrapped(function(*map(self._tensor, args), **options))

    def _tensor(self, value: Any) -> Any:
        if isinstance(value, _Wrapped):
            return value.tensor
        if not np.isscalar(value):
            return value
        number = float(value)  # type: ignore[arg-type]  # NumPy calls complex numbers scalars too
        return torch.as_tensor(number, dtype=torch.float64, device=self.tensor.device)
