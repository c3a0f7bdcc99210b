"""Decimal text to the nearest float64, exactly as Python's ``float`` would read it.

Up to 19 digits are gathered in an integer w, so that the number is w times 10 to the q. Small w and
q are exact in one operation (Clinger). Otherwise w is multiplied with a 128-bit 5 to the q (Eisel
and Lemire, in Lemire's form), which decides the rounding but for rare cases; those are left to the
caller.
"""

import numpy as np

from deltarank.core.compiling import njit

SMALLEST_POWER, LARGEST_POWER = -342, 308
# Outcomes of reading a number.
EXACT, UNDECIDED, TOO_LARGE, NOT_A_NUMBER = 0, 1, 2, 3

_PLUS, _MINUS, _POINT, _ZERO = 43, 45, 46, 48
_UPPER_E, _LOWER_E = 69, 101
_INFINITY_BITS = 0x7FF << 52
# An undecided number is kept as a NaN whose lower bits are its offset plus one.
NAN_BITS, OFFSET_MASK = 0x7FF8 << 48, (1 << 48) - 1


def _powers_of_five() -> tuple[np.ndarray, np.ndarray]:
    """Return the upper and lower halves of 5 to the q, scaled to 128 bits, for every q."""
    high, low = [], []
    for q in range(SMALLEST_POWER, LARGEST_POWER + 1):
        power = 5 ** abs(q)
        if q < 0:
            # The reciprocal, rounded up.
            bits = (power - 1).bit_length()
            scaled = 2 ** (bits + 127 if q >= -27 else 2 * bits + 128) // power + 1
        else:
            scaled = power << max(0, 128 - power.bit_length())
        scaled >>= max(0, scaled.bit_length() - 128)
        high.append(scaled >> 64)
        low.append(scaled & (2**64 - 1))
    return np.array(high, np.uint64), np.array(low, np.uint64)


_HIGH, _LOW = _powers_of_five()
_EXACT_TENS = np.array([10.0**q for q in range(23)])


@njit(nogil=True, cache=True, inline="always")
def _times(a, b):
    """Return the upper and lower halves of the product of two 64-bit numbers."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> half) + (other >> half), a * b


@njit(nogil=True, cache=True)
def _leading_zeros(w):
    count = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - step) == 0:
            w <<= np.uint64(step)
            count += step
    return count


@njit(nogil=True, cache=True)
def nearest_bits(w, q):
    """Return the bits of the float64 nearest to w 10^q, w > 0, and whether that is decided."""
    if q < SMALLEST_POWER:
        return np.uint64(0), EXACT
    if q > LARGEST_POWER:
        return np.uint64(_INFINITY_BITS), TOO_LARGE
    zeros = _leading_zeros(w)
    w <<= np.uint64(zeros)
    high, low = _times(w, _HIGH[q - SMALLEST_POWER])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        carry, _ = _times(w, _LOW[q - SMALLEST_POWER])
        low += carry
        if carry > low:
            high += np.uint64(1)
    if low == np.uint64(0xFFFFFFFFFFFFFFFF) and not -27 <= q <= 55:
        return np.uint64(0), UNDECIDED
    top = np.int64(high >> np.uint64(63))
    shift = np.uint64(top + 9)
    mantissa = high >> shift
    exponent = ((217706 * q) >> 16) + 63 + top - zeros + 1023
    if exponent <= 0:  # subnormal
        if 1 - exponent >= 64:
            return np.uint64(0), EXACT
        mantissa >>= np.uint64(1 - exponent)
        mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
        return mantissa, EXACT  # a carry into bit 52 is the exponent 1, as it should be
    exact_half = low <= np.uint64(1) and -4 <= q <= 23 and mantissa & np.uint64(3) == np.uint64(1)
    if exact_half and mantissa << shift == high:
        mantissa &= ~np.uint64(1)  # a tie goes to the even neighbour
    mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
    if mantissa >= np.uint64(1 << 53):
        mantissa = np.uint64(1 << 52)
        exponent += 1
    if exponent >= 0x7FF:
        return np.uint64(_INFINITY_BITS), TOO_LARGE
    return (mantissa & np.uint64((1 << 52) - 1)) | np.uint64(exponent) << np.uint64(52), EXACT


@njit(nogil=True, cache=True)
def read_number(text, at, floats, bits, index):
    """Read the number at ``text[at]`` into ``floats[index]``; return its end and what it was.

    ``bits`` is `floats` seen as uint64. The text must end in a byte that is no part of a number.
    An UNDECIDED number is left for Python's ``float`` to read: a NaN holds its offset.
    """
    number_at = at
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    w, q, n_digits, dropped = np.uint64(0), 0, 0, False
    begin, after_point = at, 0
    while True:
        digit = np.uint8(text[at] - np.uint8(_ZERO))
        if digit < 10:
            if n_digits < 19:
                w = w * np.uint64(10) + np.uint64(digit)
                n_digits += w != 0
                q -= after_point
            else:
                dropped |= digit != 0
                q += 1 - after_point
        elif text[at] == _POINT and after_point == 0:
            after_point = 1
        else:
            break
        at += 1
    if at - begin == after_point:
        return at, NOT_A_NUMBER
    if text[at] == _LOWER_E or text[at] == _UPPER_E:
        at, power = _read_exponent(text, at + 1)
        if at < 0:
            return -at, NOT_A_NUMBER
        q += power
    if w < np.uint64(1 << 53) and -22 <= q <= 22 and not dropped:
        value = np.float64(np.int64(w))
        value = value / _EXACT_TENS[-q] if q < 0 else value * _EXACT_TENS[q]
        floats[index] = -value if negative else value
        return at, EXACT
    if w == 0:
        floats[index] = -0.0 if negative else 0.0
        return at, EXACT
    nearest, kind = nearest_bits(w, q)
    if dropped and kind == EXACT:
        # The number lies between w and w + 1: decided where both round alike.
        above, kind_above = nearest_bits(w + np.uint64(1), q)
        if above != nearest or kind_above != EXACT:
            kind = UNDECIDED
    if kind == UNDECIDED:
        bits[index] = np.uint64(NAN_BITS) | np.uint64(number_at + 1)
    else:
        bits[index] = nearest | np.uint64(negative) << np.uint64(63)
    return at, kind


@njit(nogil=True, cache=True)
def _read_exponent(text, at):
    """Return the end and the value of an exponent, or minus the end where there are no digits."""
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    begin, power = at, 0
    while np.uint8(text[at] - np.uint8(_ZERO)) < 10:
        if power < 100_000:
            power = power * 10 + np.int64(text[at]) - _ZERO
        at += 1
    if at == begin:
        return -at, 0
    return at, -power if negative else power
