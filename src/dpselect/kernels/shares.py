"""Each candidate's share of the largest noise: c_a = (Δ_a + max_{b≠a} Δ_b)/L, between 1/2 and 1."""

from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import FloatArray
from dpselect.kernels.compilation import compiled_without_refcounts
from dpselect.kernels.instructions import MAGNITUDE, float_bits, float_of_bits


class Extremes(NamedTuple):
    """The extremes of a row of sensitivities."""

    widest: float
    second: float
    """The second largest; zero for a single candidate."""
    largest: float
    """L, the sum of both."""
    least: float
    """The smallest share c."""
    equal: bool
    """Whether all shares are equal: exactly, not just after rounding."""


@compiled_without_refcounts
def extremes_of(sensitivities: FloatArray) -> Extremes:
    """Return the extremes of a row of sensitivities, in two loops that the compiler vectorises."""
    first, last = np.int64(0), MAGNITUDE
    for a in range(sensitivities.size):
        bits = float_bits(sensitivities[a]) & MAGNITUDE  # not negative: they have the order of the floats
        first = max(first, bits)
        last = min(last, bits)
    second, ties = np.int64(0), 0
    for a in range(sensitivities.size):
        bits = float_bits(sensitivities[a]) & MAGNITUDE
        second = max(second, bits if bits < first else np.int64(0))
        ties += bits == first
    if ties > 1:
        second = first
    widest, next_widest = float_of_bits(first), float_of_bits(second)
    largest = widest + next_widest
    equal = last == second or sensitivities.size == 1
    return Extremes(widest, next_widest, largest, 1.0 if equal else (float_of_bits(last) + widest) / largest, equal)


@compiled_without_refcounts
def share_of(extremes: Extremes, sensitivity: float) -> float:
    """Return c = (Δ + largest other Δ)/L."""
    return (
        sensitivity + (extremes.widest if sensitivity < extremes.widest else extremes.second)
    ) / extremes.largest
