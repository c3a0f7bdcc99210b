"""Checks of the numbers an estimator is given."""

from numbers import Integral, Real
from typing import Any

import numpy as np


def positive_number(value: Any, argument: str) -> float:
    """Return a positive, finite number, or refuse it."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
        raise ValueError(f"{argument} must be positive and finite; got {value!r}")
    return float(value)


def unit_number(value: Any, argument: str) -> float:
    """Return a number from 0 to 1, or refuse it."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) <= 1:
        raise ValueError(f"{argument} must be a number from 0 to 1; got {value!r}")
    return float(value)


def positive_integer(value: Any, argument: str) -> int:
    """Return a positive integer, or refuse it."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{argument} must be a positive integer; got {value!r}")
    return int(value)
