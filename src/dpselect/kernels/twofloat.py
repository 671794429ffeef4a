"""Unevaluated sums of two floats: about 106 bits, for differences that would cancel in 53.

A pair (high, low) with |low| ≤ ulp(high)/2 represents high + low. The algorithms are the classical ones of Dekker
and Knuth. Errors are relative to the exact result, with u = 2⁻⁵³: ``two_difference`` is exact; ``add`` errs by
less than 4u², also where its arguments cancel; ``multiply`` by less than 8u² (M. Joldes, J.-M. Muller,
V. Popescu, Tight and rigorous error bounds for basic building blocks of double-word arithmetic, 2017: algorithms 6
and 11).
"""

from dpselect.kernels.compilation import compiled
from dpselect.kernels.instructions import fused_multiply_add

TwoFloat = tuple[float, float]


@compiled
def two_sum(a: float, b: float) -> TwoFloat:
    """Return a + b exactly."""
    total = a + b
    part_b = total - a
    return total, (a - (total - part_b)) + (b - part_b)


@compiled
def two_difference(a: float, b: float) -> TwoFloat:
    """Return a − b exactly."""
    return two_sum(a, -b)


@compiled
def normalised(high: float, low: float) -> TwoFloat:
    """Return high + low as a pair, given |high| ≥ |low|."""
    total = high + low
    return total, low - (total - high)


@compiled
def add(a_high: float, a_low: float, b_high: float, b_low: float) -> TwoFloat:
    """Return a + b."""
    high, error = two_sum(a_high, b_high)
    low, low_error = two_sum(a_low, b_low)
    high, error = normalised(high, error + low)
    return normalised(high, error + low_error)


@compiled
def adds_exactly(a_high: float, a_low: float, b_high: float, b_low: float) -> bool:
    """Return whether ``add`` returns a + b without any rounding."""
    high, error = two_sum(a_high, b_high)
    low, low_error = two_sum(a_low, b_low)
    error, first_lost = two_sum(error, low)
    high, error = normalised(high, error)
    _, second_lost = two_sum(error, low_error)
    return first_lost == 0.0 and second_lost == 0.0


@compiled
def multiply(a_high: float, a_low: float, b_high: float, b_low: float) -> TwoFloat:
    """Return a · b."""
    product = a_high * b_high
    error = fused_multiply_add(a_high, b_high, -product)
    error += a_high * b_low + a_low * b_high
    return normalised(product, error)
