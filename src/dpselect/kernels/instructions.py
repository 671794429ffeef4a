"""Operations that the compiler's language lacks: here in Python, in ``generated`` as machine instructions."""

import math
from fractions import Fraction

import numpy as np

from dpselect.kernels.arrays import FlagArray, FloatArray
from dpselect.kernels.chacha import StreamState
from dpselect.kernels.compilation import compiled, compiled_without_refcounts, instruction

MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
"""All bits of a float except its sign."""

BLOCK = 64
"""The number of candidates tested together: one for each bit of an integer."""


@instruction
def fused_multiply_add(a: float, b: float, c: float) -> float:
    """Return a·b + c, rounded once."""
    if not (math.isfinite(a * b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    return float(exact) if exact else a * b + c


@instruction
def float_bits(value: float) -> np.int64:
    """Return the bits of a float as a signed integer.

    The integers of nonnegative floats have the order of the floats, and negative floats give negative integers. A
    maximum over bits is therefore a maximum over floats, which the compiler vectorises without fast math.
    """
    return np.float64(value).view(np.int64)


@instruction
def float_of_bits(bits: np.int64) -> float:
    """Return the float that has these bits."""
    return np.int64(bits).view(np.float64)


@compiled
def ordered_bits(value: float) -> np.int64:
    """Return an integer; these integers have the order of the floats."""
    return ordered_bits_of(float_bits(value))


@compiled
def ordered_bits_of(bits: np.int64) -> np.int64:
    """Convert between a float's bits and an integer of the same order: flip all but the sign bit of negatives."""
    return bits ^ ((bits >> np.int64(63)) & MAGNITUDE)


@instruction
def ones_of(number: np.uint64) -> int:
    """Return the number of bits that are set."""
    return int(number).bit_count()


def mask_of(flags: FlagArray) -> np.uint64:
    """Return an integer with one bit for each of BLOCK flags."""
    mask: np.uint64 = np.packbits(flags, bitorder="little").view(np.uint64)[0]
    return mask


@instruction
def reaching(values: FloatArray, first: int, cut: float) -> np.uint64:
    """Return a mask with one bit for each of the BLOCK values from index ``first`` on: set if at least ``cut``."""
    return mask_of(values[first : first + BLOCK] >= cut)


@instruction
def zero_bytes(stream: StreamState, at: int | np.int64) -> np.uint64:
    """Return a mask with one bit for each of the BLOCK bytes from word ``at`` of a stream on: set if it is zero."""
    return mask_of(stream[at : at + BLOCK // 8].view(np.uint8) == 0)


@instruction
def leading_zeros(number: np.uint64) -> int:
    """Return the number of zero bits above the highest bit that is set."""
    return 64 - int(number).bit_length()


@instruction
def lowest_bit(mask: np.uint64) -> int:
    """Return the position of the lowest bit that is set."""
    return (int(mask) & -int(mask)).bit_length() - 1


@instruction
def load_ahead(values: FloatArray, first: int, last: int) -> None:
    """Let the processor load values [first, last) while it does something else."""


@compiled_without_refcounts
def first_reaching(values: FloatArray, cut: float) -> int:
    """Return the index of the first value that is at least ``cut``. There must be one."""
    first = 0
    while first + BLOCK <= values.size:
        mask = reaching(values, first, cut)
        if mask != 0:
            return first + lowest_bit(mask)
        first += BLOCK
    while not values[first] >= cut:
        first += 1
    return first
