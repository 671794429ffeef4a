"""Draws from a stream: integers, and coins and noise that report when floats cannot decide.

A pick must follow the mechanism's law exactly, although kernels compute in floats. A comparison of a random real
number with a computed one is therefore decided here only if the result is certain. It must be the same for every
real number that starts with the random bits drawn so far, and for every error within the bounds. Otherwise the
result is UNSURE, and :mod:`dpselect.exact` decides the row in exact arithmetic, with the same bits.

``error_bound`` bounds all relative errors of a computed probability: those of the gap (2⁻⁴² absolute, see
:mod:`dpselect.kernels.gaps`), of ``exp`` (assumed below 2⁻⁴⁴, some 500 units in the last place), and of the few
roundings here. It is an argument so that tests can widen it.
"""

import math
from collections.abc import Callable

import numpy as np

from dpselect.kernels.arrays import IndexArray
from dpselect.kernels.chacha import StreamState, next_word
from dpselect.kernels.compilation import compiled, compiled_without_refcounts, inlined
from dpselect.kernels.instructions import leading_zeros, ones_of

FAIL, PASS, UNSURE = 0, 1, -1
ALL_BITS = np.uint64(2**64 - 1)
LOW = np.uint64(0xFFFFFFFF)

LOGARITHMS = np.append(np.inf, -np.log(np.arange(1, 257) / 256))
"""The gaps x at which exp(−x) is 0, 1/256, 2/256, …, 1."""

LOG_2 = math.log(2.0)
OCTAVES = 64
"""The largest number of octaves."""
FINE_LOGARITHMS = np.append(np.inf, -np.log(np.arange(1, 1026) / 1024))
"""−log(t/1024) for t = 0, 1, …, 1025."""


@compiled_without_refcounts
def draw_below(stream: StreamState, bound: int) -> int:
    """Return a uniform integer in [0, bound), 0 < bound ≤ 2³², without bias (multiplication with rejection)."""
    product = (next_word(stream) >> np.uint64(32)) * np.uint64(bound)
    low = product & LOW
    if low < np.uint64(bound):
        threshold = np.uint64((0x100000000 - bound) % bound)
        while low < threshold:
            product = (next_word(stream) >> np.uint64(32)) * np.uint64(bound)
            low = product & LOW
    index: int = np.int64(product >> np.uint64(32))  # type: ignore[assignment] # unsigned, it would make later results unsigned
    return index


@compiled
def split(word: np.uint64, parts: int) -> tuple[int, np.uint64]:
    """Split a random real number U in [word, word + 1)/2⁶⁴ into an index and a new one: parts · U = index + V.

    The index is uniform in [0, parts), parts ≤ 2³². V is uniform in [0, 1) and independent of the index. Returns
    the index, or UNSURE if the word does not determine it, and ``rest`` such that V lies in [rest, rest +
    parts)/2⁶⁴.
    """
    number = np.uint64(parts)
    low = (word & LOW) * number
    high = (word >> np.uint64(32)) * number + (low >> np.uint64(32))
    rest = (high << np.uint64(32)) | (low & LOW)
    index: int = np.int64(high >> np.uint64(32))  # type: ignore[assignment] # unsigned, it would make later results unsigned
    return (index if rest <= np.uint64(0) - number else UNSURE), rest


@compiled
def bernoulli_exp_byte(byte: np.uint64, x: float, error_bound: float) -> int:
    """Decide U < exp(−x) from a table, which usually suffices, given that U lies in [byte, byte + 1 + 2⁻²⁴)/2⁸."""
    margin = error_bound + 2.0**-23
    if x + margin < LOGARITHMS[byte + np.uint64(1)]:
        return PASS
    return FAIL if x - margin > LOGARITHMS[byte] else UNSURE


@compiled
def bernoulli_exp_interval(bits: float, span: float, scale: float, x: float, error_bound: float) -> int:
    """Decide U < exp(−x), given that U lies in [bits, bits + span)/scale."""
    threshold = math.exp(-x) * scale
    if (bits + span) * (1.0 + error_bound) < threshold:
        return PASS
    if bits * (1.0 - error_bound) > threshold:
        return FAIL
    return UNSURE


@compiled
def bernoulli_exp(word: np.uint64, span: int, x: float, error_bound: float) -> int:
    """Decide U < exp(−x), given that U lies in [word, word + span)/2⁶⁴, span ≤ 2³²."""
    verdict = bernoulli_exp_byte(word >> np.uint64(56), x, error_bound)
    return (
        bernoulli_exp_interval(np.float64(word), np.float64(span), 2.0**64, x, error_bound)
        if verdict == UNSURE
        else verdict
    )


@compiled
def draw_exponential(bits: np.uint64, span: np.uint64) -> tuple[float, float]:
    """Return E = −log U and a bound on its error, given that U lies in [bits, bits + span)/2⁶³.

    If bits ≥ 32 · span, then log(1 + span/(2·bits)) < 0.51 · span/(bits + span/2). For fewer bits the bound is
    infinite.
    """
    half = 0.5 * np.float64(span)
    middle = np.float64(bits) + half
    if middle < 65.0 * half:
        return 0.0, math.inf
    value = -math.log(middle * 2.0**-63)
    return value, 1.02 * half / middle + (1.0 + value) * 2.0**-44


@compiled
def exponential_bounds(bits: np.uint64, span: np.uint64, fine: bool) -> tuple[float, float]:  # noqa: FBT001
    """Return bounds on −log U, given that U lies in [bits, bits + span)/2⁶³ and below 1.

    If ``fine``, the bounds come from a logarithm, otherwise from a table. Let t be the ten bits that follow the
    ``zeros`` leading zero bits. Then U ≥ t/1024 · 2^−zeros, and U < (t + 2)/1024 · 2^−zeros if the span is less
    than one step of the table.
    """
    if fine:
        value, error = draw_exponential(bits, span)
        return max(0.0, value - error), value + error
    zeros = leading_zeros(bits) - 1
    t = (bits << np.uint64(zeros)) >> np.uint64(53)
    octaves = np.float64(zeros) * LOG_2
    narrow = zeros <= 53 and span >> np.uint64(53 - zeros) == 0
    return (octaves + FINE_LOGARITHMS[t + np.uint64(2)] if narrow else 0.0), octaves + FINE_LOGARITHMS[t]


@compiled_without_refcounts
def sequential_word(stream: StreamState, _number: int) -> np.uint64:
    """Return the next word of the sequential region, whatever its number."""
    return next_word(stream)


@inlined
def fill_octave_counts(
    word_at: Callable[[StreamState, int], np.uint64],
    stream: StreamState,
    used: int,
    remaining: int,
    filled: int,
    counts: IndexArray,
) -> tuple[int, int]:
    """Count how many of the remaining draws have W < 2^−j, for j = 1, 2, …, until there are none.

    Counts are written from number ``filled`` on, words are read from number ``used`` on. Returns how many counts
    there are then (UNSURE if there would be too many), and the first unused word. Draws are halved three times in
    one pass: 64 of them take three words, and bit i belongs to the i-th.
    """
    while remaining > 0:
        if filled + 3 > OCTAVES:
            filled = UNSURE
            break
        halves, quarters, eighths = 0, 0, 0
        for first in range(0, remaining, 64):
            word = word_at(stream, used) & (ALL_BITS >> np.uint64(64 - min(64, remaining - first)))
            halves += ones_of(word)
            word &= word_at(stream, used + 1)
            quarters += ones_of(word)
            word &= word_at(stream, used + 2)
            eighths += ones_of(word)
            used += 3
        counts[filled] = halves
        counts[filled + 1] = quarters
        counts[filled + 2] = eighths
        filled += 3
        remaining = eighths
    return filled, used


@compiled_without_refcounts
def keep_larger(
    value: float, a: int, best: float, picked: int, ties: int, stream: StreamState
) -> tuple[float, int, int]:
    """Return the new (best, picked, ties) after seeing ``value``; ties are broken uniformly."""
    if value > best:
        return value, a, 1
    if value == best:
        ties += 1
        if draw_below(stream, ties) == 0:
            picked = a
    return best, picked, ties
