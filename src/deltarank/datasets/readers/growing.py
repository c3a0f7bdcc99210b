"""An array that grows at its end, in place."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# The share of room to spare, which is also the most memory that is held and not used.
_SPARE = 0.125


class Growing:
    """An array to append to; large ones are moved by the operating system, not copied.

    Examples
    --------
    >>> growing = Growing(np.int32)
    >>> growing.append(np.array([1, 2]))
    >>> growing.append(np.array([3]))
    >>> growing.finish()
    array([1, 2, 3], dtype=int32)
    """

    def __init__(self, dtype: Any) -> None:
        self._array = np.empty(1024, dtype)
        self.size = 0

    def append(self, part: NDArray[Any]) -> None:
        """Add numbers at the end."""
        end = self.size + len(part)
        if end > len(self._array):
            self._array.resize(int(end * (1 + _SPARE)), refcheck=False)
        self._array[self.size : end] = part
        self.size = end

    def finish(self) -> NDArray[Any]:
        """Return the array, cut to size."""
        self._array.resize(self.size, refcheck=False)
        return self._array
