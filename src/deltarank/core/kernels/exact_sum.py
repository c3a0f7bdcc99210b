"""Sums without rounding, so that no order or batching of the terms can change them."""

import numpy as np

from deltarank.core.compiling import njit

# A float64 has exponents over 2,100 binary places, 53 of them a term: Shewchuk's expansion of any
# sum has at most 40 non-overlapping parts.
MAX_PARTS = 64


@njit(nogil=True, cache=True)
def add_exactly(parts, n_parts, values):
    """Add `values` to the expansion ``parts[:n_parts]`` in place; return its new length.

    Shewchuk's grow-expansion: the parts do not overlap and add up to the sum exactly.
    """
    for value in values:
        kept = 0
        for j in range(n_parts):
            other = parts[j]
            if abs(value) < abs(other):
                value, other = other, value
            high = value + other
            low = other - (high - value)
            if low != 0.0:
                parts[kept] = low
                kept += 1
            value = high
        parts[kept] = value
        n_parts = kept + 1
    return n_parts


@njit(nogil=True, cache=True)
def add_exactly_at(parts, n_parts, places, values, first):
    """Add ``values[first:]`` to the expansions ``parts[place, : n_parts[place]]``, in place.

    Return how many values have been added: all, or those before the first without room.
    """
    for k in range(first, values.shape[0]):
        place = places[k]
        if n_parts[place] == parts.shape[1]:
            return k
        n_parts[place] = add_exactly(parts[place], n_parts[place], values[k : k + 1])
    return values.shape[0]


def empty_parts():
    """Return room for an expansion."""
    return np.zeros(MAX_PARTS)
