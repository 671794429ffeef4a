"""Sorting and ranking numbers, in integer arithmetic."""

import math

import numpy as np
from numpy.typing import NDArray

from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.kernels.compilation import compiled
from dpselect.kernels.instructions import ordered_bits

Keys = NDArray[np.uint64]

DIGIT = 8
DIGITS = 1 << DIGIT
LAST = np.uint64(DIGITS - 1)
SIGN = np.uint64(1 << 63)

MOVES = 8
"""The number of moves for each candidate after which insertion sort gives up."""


@compiled
def fill_keys(values: FloatArray, keys: Keys) -> int:
    """Fill integers from 0 up that have the order of the values; return the bit length of the largest."""
    least, most = ~np.uint64(0), np.uint64(0)
    for a in range(values.size):
        keys[a] = np.uint64(ordered_bits(values[a] + 0.0)) ^ SIGN  # −0 + 0 is 0: the two zeros are equal
        least, most = min(least, keys[a]), max(most, keys[a])
    for a in range(values.size):
        keys[a] -= least
    return bit_length(most - least)


@compiled
def bit_length(number: np.uint64) -> int:
    """Return the bit length of a number."""
    bits = 0
    while number:
        number >>= np.uint64(1)
        bits += 1
    return bits


@compiled
def sort_by_bits(keys: Keys, order: IndexArray, from_bit: int, to_bit: int) -> tuple[Keys, IndexArray]:
    """Return keys and candidates sorted by a range of bits of the keys, least significant digit first."""
    spare_keys, spare_order = np.empty_like(keys), np.empty_like(order)
    counts = np.empty(DIGITS, np.int64)
    for low_bit in range(from_bit, to_bit, DIGIT):
        shift = np.uint64(low_bit)
        counts[:] = 0
        for key in keys:
            counts[(key >> shift) & LAST] += 1
        total = 0
        for digit in range(DIGITS):
            counts[digit], total = total, total + counts[digit]
        for a in range(keys.size):
            digit = (keys[a] >> shift) & LAST
            place = counts[digit]
            counts[digit] += 1
            spare_keys[place], spare_order[place] = keys[a], order[a]
        keys, spare_keys = spare_keys, keys
        order, spare_order = spare_order, order
    return keys, order


@compiled
def finish_by_insertion(keys: Keys, order: IndexArray) -> bool:
    """Sort nearly sorted keys by insertion; give up and return False if that takes too many moves."""
    moves = 0
    for i in range(1, keys.size):
        key, candidate, j = keys[i], order[i], i
        while j > 0 and keys[j - 1] > key:
            keys[j], order[j] = keys[j - 1], order[j - 1]
            j -= 1
        keys[j], order[j] = key, candidate
        moves += i - j
        if moves > MOVES * keys.size:
            return False
    return True


@compiled
def rising(values: FloatArray) -> tuple[Keys, IndexArray]:
    """Return integers that have the order of the values, sorted, and the candidates they belong to.

    This is a radix sort over the leading bits. The sign and exponent of a float take twelve bits, and with log₂ k
    + 3 more few of k different keys are still tied. Insertion sort orders those. If there are many, the sort is
    repeated over all bits.
    """
    k = values.size
    keys = np.empty(k, np.uint64)
    bits = fill_keys(values, keys)
    order = np.arange(k)
    enough = 15 + bit_length(np.uint64(k))
    keys, order = sort_by_bits(keys, order, max(0, bits - enough), bits)
    if bits > enough and not finish_by_insertion(keys, order):
        keys, order = sort_by_bits(keys, order, 0, bits)
    return keys, order


@compiled
def centred_ranks(values: FloatArray) -> IndexArray:
    """Return 2·rank − (k + 1), for ranks 1 … k with ties averaged: integers that sum to zero."""
    k = values.size
    keys, order = rising(values)
    ranks = np.empty(k, np.int64)
    i = 0
    while i < k:
        after = i + 1
        while after < k and keys[after] == keys[i]:
            after += 1
        for j in range(i, after):  # positions i … after−1 have ranks i+1 … after, of mean (i + 1 + after)/2
            ranks[order[j]] = i + after - k
        i = after
    return ranks


@compiled
def rank_covariance(x_ranks: IndexArray, y_ranks: IndexArray) -> tuple[int, int]:
    """Return Σ x y over centred ranks as high·2³² + low, 0 ≤ low < 2³².

    In one word of 64 bits the sum could overflow beyond two million ranks.
    """
    high, low = 0, 0
    for a in range(x_ranks.size):
        product = x_ranks[a] * y_ranks[a]
        high += product >> 32
        low += product & 0xFFFFFFFF
    return high + (low >> 32), low & 0xFFFFFFFF


@compiled
def rank_covariance_sign(x: FloatArray, y: FloatArray) -> int:
    """Return the exact sign of Spearman's correlation; 0 if x or y is constant, where it is undefined."""
    high, low = rank_covariance(centred_ranks(x), centred_ranks(y))
    if high < 0:
        return -1
    return 1 if high > 0 or low > 0 else 0


@compiled
def rank_correlation(x_ranks: IndexArray, y_ranks: IndexArray) -> float:
    """Return Spearman's correlation from centred ranks; NaN if x or y is constant.

    Sums are exact, so only the last four operations round. Since √(v·v) = v, equal ranks give exactly 1.
    """
    high, low = rank_covariance(x_ranks, y_ranks)
    x_high, x_low = rank_covariance(x_ranks, x_ranks)
    y_high, y_low = rank_covariance(y_ranks, y_ranks)
    unit = 2.0**32
    variances = (x_high * unit + x_low) * (y_high * unit + y_low)
    if variances == 0.0:
        return math.nan
    return (high * unit + low) / math.sqrt(variances)
