"""Compile with numba, and keep the machine code where there is a place for it."""

import secrets
from collections.abc import Callable
from itertools import count
from typing import Any

from numba import njit as _njit
from numba.core.bytecode import FunctionIdentity

# Numba numbers functions from 1 in every process and makes the numbers part of symbols. It makes
# NumPy's sorts from closures of one name, so kernels that two processes compiled and cached may
# hold a sort and an argsort under one symbol, and whichever is loaded first then serves both
# without a word: numbers must not recur.
FunctionIdentity._unique_ids = count(secrets.randbits(62))


def njit(decorated: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile as numba's decorator does; without a folder to write to, in every process anew.

    Numba refuses ``cache=True`` where neither the package nor the user's cache can be written, as
    in a container with a read-only disk and no home.

    Examples
    --------
    >>> njit(nogil=True, cache=True)(lambda number: 2 * number)(4)
    8
    """
    if decorated is not None:
        return _njit(decorated)

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return _njit(**options)(function)
        except RuntimeError:
            return _njit(**{**options, "cache": False})(function)

    return compiled
