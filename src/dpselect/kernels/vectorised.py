"""Functions that the compiler vectorises: an exponential, a logarithm and a sum of products."""

import math

import numpy as np

from dpselect.kernels.arrays import FloatArray
from dpselect.kernels.compilation import compiled, compiled_in_any_order, in_numpy
from dpselect.kernels.instructions import float_bits, float_of_bits, fused_multiply_add

LOWEST = -708.0
"""Below this, exp(x) counts as zero."""
LOG2_HIGH, LOG2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
ROUND = 1.5 * 2.0**52
"""Numbers of this size are integers: adding it rounds, and leaves the integer in the last bits."""
_TAYLOR = np.polynomial.Polynomial([1.0 / math.factorial(i) for i in range(2, 16)])
_SERIES = np.polynomial.Chebyshev.interpolate(_TAYLOR, 9, domain=[-0.35, 0.35])
SERIES = tuple(_SERIES.convert(kind=np.polynomial.Polynomial).coef.tolist())
"""(exp(y) − 1 − y)/y² within 1e-16, for |y| ≤ log(2)/2."""


@compiled
def exponential(x: float) -> float:
    """Return exp(x) for x < 700, with an error of about one unit in the last place. The compiler vectorises it."""
    rounded = fused_multiply_add(x, 1.0 / math.log(2.0), ROUND)
    power = rounded - ROUND
    y = fused_multiply_add(power, -LOG2_LOW, fused_multiply_add(power, -LOG2_HIGH, x))
    square = y * y
    rest = fused_multiply_add(y, SERIES[9], SERIES[8])
    rest = fused_multiply_add(square, rest, fused_multiply_add(y, SERIES[7], SERIES[6]))
    rest = fused_multiply_add(square, rest, fused_multiply_add(y, SERIES[5], SERIES[4]))
    rest = fused_multiply_add(square, rest, fused_multiply_add(y, SERIES[3], SERIES[2]))
    rest = fused_multiply_add(square, rest, fused_multiply_add(y, SERIES[1], SERIES[0]))
    value = 1.0 + fused_multiply_add(square, rest, y)
    scaled = float_of_bits(float_bits(value) + (float_bits(rounded) << np.int64(52)))
    return scaled if x >= LOWEST else 0.0


_ATANH = np.polynomial.Polynomial([2.0 / (2 * i + 3) for i in range(12)])
_LOGARITHM = np.polynomial.Chebyshev.interpolate(_ATANH, 7, domain=[0.0, 0.0295])
LOGARITHM = tuple(_LOGARITHM.convert(kind=np.polynomial.Polynomial).coef.tolist())
"""(2 atanh(s) − 2s)/s³ within 1e-16, as a polynomial in s² ≤ ((√2 − 1)/(√2 + 1))²."""
LEAST = np.int64(np.float64(math.sqrt(0.5)).view(np.int64))
WHOLE = np.int64(np.float64(ROUND).view(np.int64))


@compiled
def logarithm(x: float) -> float:
    """Return log(x) for a positive x that is not subnormal, with an error of about one unit in the last place of 1.

    With x = 2^n m and m between √½ and √2, log(m) = 2 atanh(s) and s = (m − 1)/(m + 1).
    """
    bits = float_bits(x)
    power = (bits - LEAST) >> np.int64(52)
    rest = float_of_bits(bits - (power << np.int64(52))) - 1.0
    s = rest / (2.0 + rest)
    z = s * s
    series = 0.0
    for i in range(7, -1, -1):
        series = fused_multiply_add(z, series, LOGARITHM[i])
    whole = float_of_bits(power + WHOLE) - ROUND
    return fused_multiply_add(whole, math.log(2.0), fused_multiply_add(s * z, series, s + s))


@compiled_in_any_order
def product_sum(a: FloatArray, b: FloatArray) -> float:
    """Return Σ a_i b_i, over all of a."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@in_numpy(product_sum)
def _product_sum(a: FloatArray, b: FloatArray) -> float:
    return float(a @ b[: a.size])
