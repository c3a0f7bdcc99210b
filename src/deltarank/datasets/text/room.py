"""Room for arrays: memory up to a limit, then files without a name, mapped into memory."""

import math
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Room:
    """Hands out arrays; those that exceed the limit lie in temporary files.

    The files are in the folder that `tempfile` chooses (TMPDIR), have no name where the system
    allows that, and are gone with the last array that lies in them.

    Parameters
    ----------
    limit : int, optional
        Bytes of memory to hand out; by default as many as are wanted.

    Examples
    --------
    >>> room = Room(limit=100)
    >>> room.empty(10, np.int64).shape, room.empty(3, np.int64).shape
    ((10,), (3,))
    >>> room.left  # of the second array nothing is in memory
    20
    """

    def __init__(self, limit: int | None = None) -> None:
        self.left = limit

    def takes(self, n_bytes: int) -> bool:
        """Tell whether so much more memory may be used; if so, it counts as used."""
        if self.left is None:
            return True
        fits = n_bytes <= self.left
        self.left -= n_bytes if fits else 0
        return fits

    def empty(self, size: int, dtype: Any) -> NDArray[Any]:
        """Return an array that is not filled yet."""
        n_bytes = size * np.dtype(dtype).itemsize
        return np.empty(size, dtype) if self.takes(n_bytes) else mapped((size,), dtype)


def mapped(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return an array that lies in a temporary file."""
    with tempfile.TemporaryFile(prefix="deltarank-") as file:
        file.truncate(math.prod(shape) * np.dtype(dtype).itemsize)
        return np.asarray(np.memmap(file, dtype, "r+", shape=shape))
