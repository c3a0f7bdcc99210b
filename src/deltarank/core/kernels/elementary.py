"""exp and log without branches or calls, so that LLVM can vectorise the loops round them.

numba would call the scalar functions of the C library, one cell at a time. ``exponential`` takes
arguments up to about 0 and ``logarithm`` positive normal ones; both keep the precision of their
argument. The polynomials in float32 err by less than two units in the last place.
"""

import numpy as np
from numba import types
from numba.extending import overload

from deltarank.core.compiling import njit

ZERO_32, ONE_32 = np.float32(0.0), np.float32(1.0)
# Only contraction (a * b + c in one rounding): NaN and infinity keep their meaning, so that a
# diverging problem shows itself.
FAST = {"contract"}

LOG2_E_32 = np.float32(1.44269504088896)
# ln 2 in two parts: the first has few bits, so that k * LN2_HIGH is exact (Cody and Waite).
LN2_HIGH = np.float32(0.693359375)
LN2_LOW = np.float32(-2.12194440e-4)
# Adding 1.5 * 2**23 rounds to the nearest integer and leaves it in the low bits.
ROUNDING_32 = np.float32(12582912.0)
# exp(-87) is the smallest normal float32 of this form; beyond it the loss is zero for us.
LOWEST = np.float32(-87.0)
# The bits of 1 / sqrt(2): mantissas between it and sqrt(2) keep the series short.
HALF_ROOT_32 = np.int32(0x3F3504F3)
HALF_ROOT_64 = np.int64(0x3FE6A09E667F3BCD)
LN2 = 0.6931471805599453
# ln 2 in two parts, of which the first has few enough bits for exact multiples.
LN2_UPPER, LN2_REST = 0.693145751953125, 1.42860682030941723212e-6
LOG2_E = 1.4426950408889634
# Adding 1.5 * 2**52 rounds to the nearest integer and leaves it in the low bits.
ROUNDING = 6755399441055744.0
# exp of it, a normal float64, stands for less.
LEAST_EXPONENT = -700.0


def exponential(x):
    """Return exp(x)."""
    raise NotImplementedError("for kernels only")


def logarithm(x):
    """Return log(x)."""
    raise NotImplementedError("for kernels only")


@overload(exponential, inline="always")
def _exponential(x):
    if x == types.float32:
        return lambda x: exp_negative(x)
    return lambda x: exp64(x if x > LEAST_EXPONENT else LEAST_EXPONENT)


@overload(logarithm, inline="always")
def _logarithm(x):
    if x == types.float32:
        return lambda x: _log32(x)
    return lambda x: _log64(x)


@njit(inline="always", fastmath=FAST)
def exp_negative(x):
    """Return exp(x) for x <= 0, float32."""
    x = x if x > LOWEST else LOWEST
    shifted = x * LOG2_E_32 + ROUNDING_32
    k = shifted - ROUNDING_32
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    p = np.float32(0.0013836845628855642)
    p = p * r + np.float32(0.008374815960830612)
    p = p * r + np.float32(0.04166822558553857)
    p = p * r + np.float32(0.16666420168003543)
    p = p * r + np.float32(0.4999999207970237)
    p = p * r + np.float32(1.0)
    p = p * r + np.float32(1.0)
    power = np.int32((np.int32(k) + np.int32(127)) << np.int32(23))
    return p * power.view(np.float32)


@njit(inline="always", fastmath=FAST, error_model="numpy")
def sigmoid(t):
    """Return the logistic function 1 / (1 + exp(-t)), float32.

    Kernels that want the loss and the curvature too write it out, since all of them share one
    exponential.
    """
    e = exp_negative(-abs(t))
    inverse = ONE_32 / (ONE_32 + e)
    return inverse if t >= ZERO_32 else e * inverse


@njit(inline="always", fastmath=FAST)
def log1p_unit(e):
    """Return log(1 + e) for 0 <= e <= 1, float32, with small relative error near 0."""
    p = np.float32(0.0052326881807785094)
    p = p * e + np.float32(-0.029505219961952992)
    p = p * e + np.float32(0.07822593190017556)
    p = p * e + np.float32(-0.1366324521398576)
    p = p * e + np.float32(0.19106007174860148)
    p = p * e + np.float32(-0.24842982572327552)
    p = p * e + np.float32(0.33319096905606327)
    p = p * e + np.float32(-0.4999949315076271)
    p = p * e + np.float32(1.0)
    return p * e


@njit(inline="always", fastmath=FAST)
def exp64(x):
    """Return exp(x) for |x| <= 700, without branch or call, so that loops over it vectorise.

    Taylor's series on |r| <= ln(2) / 2, where its rest is below half a unit in the last place.
    """
    shifted = np.float64(x * LOG2_E + ROUNDING)
    k = shifted - ROUNDING
    r = (x - k * LN2_UPPER) - k * LN2_REST
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    # The low bits of the shifted number are those of k.
    power = np.int64((shifted.view(np.int64) + np.int64(1023)) << np.int64(52))
    return p * power.view(np.float64)


@njit(inline="always", fastmath=FAST)
def _log32(x):
    """Add the exponent and a polynomial in the mantissa less one, as Cephes' logf does."""
    bits = np.float32(x).view(np.int32) - HALF_ROOT_32
    exponent = np.float32(bits >> np.int32(23))
    mantissa = (bits & np.int32(0x7FFFFF)) + HALF_ROOT_32
    f = np.int32(mantissa).view(np.float32) - np.float32(1.0)
    p = np.float32(7.0376836292e-2)
    p = p * f + np.float32(-1.1514610310e-1)
    p = p * f + np.float32(1.1676998740e-1)
    p = p * f + np.float32(-1.2420140846e-1)
    p = p * f + np.float32(1.4249322787e-1)
    p = p * f + np.float32(-1.6668057665e-1)
    p = p * f + np.float32(2.0000714765e-1)
    p = p * f + np.float32(-2.4999993993e-1)
    p = p * f + np.float32(3.3333331174e-1)
    tail = p * f * f * f - np.float32(0.5) * f * f + exponent * LN2_LOW
    return f + tail + exponent * LN2_HIGH


@njit(inline="always", fastmath=FAST, error_model="numpy")
def _log64(x):
    """Use the series of 2 artanh(s), s = f / (2 + f), with the coefficients of fdlibm."""
    bits = np.float64(x).view(np.int64) - HALF_ROOT_64
    exponent = np.float64(bits >> np.int64(52))
    mantissa = (bits & np.int64(0xFFFFFFFFFFFFF)) + HALF_ROOT_64
    f = np.int64(mantissa).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = 1.479819860511658591e-1
    p = p * z + 1.531383769920937332e-1
    p = p * z + 1.818357216161805012e-1
    p = p * z + 2.222219843214978396e-1
    p = p * z + 2.857142874366239149e-1
    p = p * z + 3.999999999940941908e-1
    p = p * z + 6.666666666666735130e-1
    half = 0.5 * f * f
    return exponent * LN2 - ((half - s * (half + z * p)) - f)
