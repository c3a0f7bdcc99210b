"""How exactly a device evaluates an objective: the way to a minimum needs less than its end."""

from enum import IntEnum


class Precision(IntEnum):
    """Grades of matrix products of float32 numbers, each several times slower than the one before.

    Coarse ones see three digits of their factors. Fine ones see all, but cut sums off where
    float32 would round them. Exact ones are those of float32. Double ones are of float64, for the
    few problems that float32 cannot tell the way to their minimum.
    """

    COARSE = 0
    FINE = 1
    EXACT = 2
    DOUBLE = 3
