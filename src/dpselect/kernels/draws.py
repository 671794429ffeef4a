"""Draws from a stream: integers, and coins and noises that know how sure they are.

The law of a pick must be exactly the mechanism's, though kernels compute in floats. So a comparison of a
random real number with a computed one is decided here only if it comes out the same for every real number
that the random bits drawn so far may still become, and for every error the computation may have made;
otherwise it is UNSURE, and :mod:`dpselect.exact` decides the row in exact arithmetic, with the same bits.

``width`` bounds all relative errors of a computed probability: those of the gap (2⁻⁴² absolute, see
:mod:`dpselect.kernels.gaps`), of ``exp`` (assumed below 2⁻⁴⁴, some 500 units in the last place), and of the
few roundings here. It is an argument so that tests can widen it.
"""

import math

import numpy as np

from dpselect.kernels.chacha import Tape, next_word
from dpselect.kernels.compilation import borrowing, compiled
from dpselect.kernels.instructions import float_bits

FAIL, PASS, UNSURE = 0, 1, -1
LOW = np.uint64(0xFFFFFFFF)


@borrowing
def draw_below(tape: Tape, bound: int) -> int:
    """Return a uniform integer in [0, bound), 0 < bound ≤ 2³², by multiplication with rejection: no bias."""
    return draw_below_and_rest(tape, bound)[0]


@borrowing
def draw_below_and_rest(tape: Tape, bound: int) -> tuple[int, np.uint64]:
    """Return a uniform integer in [0, bound), and 32 random bits that it has not used."""
    word = next_word(tape)
    product = (word >> np.uint64(32)) * np.uint64(bound)
    low = product & LOW
    if low < np.uint64(bound):
        threshold = np.uint64((0x100000000 - bound) % bound)
        while low < threshold:
            word = next_word(tape)
            product = (word >> np.uint64(32)) * np.uint64(bound)
            low = product & LOW
    index: int = np.int64(product >> np.uint64(32))  # type: ignore[assignment] # an unsigned one would spread
    return index, word & LOW


@compiled
def judge(bits: float, scale: float, x: float, width: float) -> int:
    """Decide U < exp(−x), given that U lies in [bits, bits + 1)/scale."""
    threshold = math.exp(-x) * scale
    if (bits + 1.0) * (1.0 + width) < threshold:
        return PASS
    if bits * (1.0 - width) > threshold:
        return FAIL
    return UNSURE


@borrowing
def flip(tape: Tape, x: float, width: float) -> int:
    """Toss a coin that passes with probability exp(−x), x ≥ 0; it uses one word, whatever x."""
    return judge(np.float64(next_word(tape)), 2.0**64, x, width)


@compiled
def draw_exponential(bits: np.uint64) -> tuple[float, float]:
    """Return E = −log U and a bound on its error, given that U lies in [bits, bits + 1)/2⁶³.

    log(1 + 1/(2·bits)) < 0.51/(bits + ½) from 25 on; below, which happens once in 2⁵⁸ times, nothing is sure.
    """
    if bits < np.uint64(32):
        return 0.0, math.inf
    middle = np.float64(bits) + 0.5
    value = -math.log(middle * 2.0**-63)
    return value, 0.51 / middle + (1.0 + value) * 2.0**-44


@compiled
def largest_exponential(bits: np.uint64) -> float:
    """Return an upper bound on −log U, given that U lies in [bits, bits + 1)/2⁶³, without a logarithm.

    A float's bits, read as a fixed-point number, are its exponent and mantissa e + (f − 1), which is at most
    e + log₂ f: a lower bound on its binary logarithm, too low by less than 0.09. The rest is for rounding.
    """
    if bits < np.uint64(32):
        return 1e300
    logarithm = np.float64(float_bits(np.float64(bits))) * 2.0**-52 - 1023.0
    return (63.0 - logarithm) * 0.6931472 + 2.0**-30
