"""Private running sums: the noise of the binary and the hybrid mechanism of Chan, Shi and Song.

Both divide a stream into dyadic blocks, add Laplace noise to the sum of each block once, and answer every prefix
from a few blocks. The noise of all prefixes can therefore be drawn before the stream is seen, even if the stream
depends on earlier answers: a private running sum is the exact one plus a path of noise.

The scales of the blocks that contain an item give the item's privacy loss. The number of blocks of a prefix gives
its error.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from experiments.arrays import FloatArray

__all__ = [
    "Block",
    "binary_blocks",
    "binary_noise",
    "error_bound",
    "hybrid_blocks",
    "hybrid_deviations",
    "hybrid_noise",
    "scales_at",
]


class Block(NamedTuple):
    """Items ``first`` to ``last`` (counted from 1, both included), summed and noised once."""

    first: int
    last: int
    scale: float
    """The scale of the Laplace noise, for items that change by at most 1."""


def binary_noise(streams: int, horizon: int, *, epsilon: float, rng: np.random.Generator) -> FloatArray:
    """Return the binary mechanism's noise after 0, 1, …, ``horizon`` items, a row for each stream.

    An item is in at most L = ⌊log₂ T⌋ + 1 blocks, one of each size 1, 2, 4, …; each has Laplace noise of scale L/ε.

    Privacy:
        ε-DP for the whole sequence of sums, if neighbouring streams differ in one item by at most 1. For items
        in [low, high] multiply the noise by high − low. This also holds for adaptively chosen streams.

    Cost:
        O(T log T) additions, O(T) memory.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> items = np.array([0.5, 1.0, 0.25])
        >>> private = np.cumsum(items) + binary_noise(1, 3, epsilon=1.0, rng=rng)[0, 1:]

    References:
        T.-H. H. Chan, E. Shi, D. Song, Private and continual release of statistics, 2011, section 3.
        C. Dwork, M. Naor, T. Pitassi, G. Rothblum, Differential privacy under continual observation, 2010.
    """
    levels = horizon.bit_length()
    return (levels / epsilon) * _dyadic_noise(streams, levels, rng)[:, : horizon + 1]


def hybrid_noise(streams: int, length: int, *, epsilon: float, rng: np.random.Generator) -> FloatArray:
    """Return the hybrid mechanism's noise after 0, 1, …, ``length`` items, a row for each stream.

    It is for streams that may end at any time. The items from 2ᵏ + 1 to 2ᵏ⁺¹ are one sum with noise of scale 2/ε
    (the logarithmic mechanism at ε/2). Until that sum is complete, a binary mechanism of k levels with noise of
    scale 2k/ε answers (also at ε/2).

    Privacy:
        ε-DP for the whole sequence of sums, however long, if neighbouring streams differ in one item by at most 1:
        the item is in one block of the logarithmic mechanism and in at most k blocks of one binary mechanism.

    Cost:
        O(T log T) additions, O(T) memory.

    Example:
        >>> hybrid_noise(2, 5, epsilon=1.0, rng=np.random.default_rng(1)).shape
        (2, 6)

    References:
        T.-H. H. Chan, E. Shi, D. Song, Private and continual release of statistics, 2011, section 4.
    """
    noise = np.zeros((streams, length + 1))
    whole = np.zeros((streams, 1))
    for k in range(length.bit_length()):
        whole = whole + (2 / epsilon) * rng.laplace(size=(streams, 1))
        begun = min(2**k, length + 1 - 2**k)
        noise[:, 2**k : 2 ** (k + 1)] = whole + (2 * k / epsilon) * _dyadic_noise(streams, k, rng)[:, :begun]
    return noise


def _dyadic_noise(streams: int, levels: int, rng: np.random.Generator) -> FloatArray:
    """Return, for n from 0 to 2^levels − 1, the sum of one unit of Laplace noise for each bit of n that is set.

    Bit j of n is set while the last whole block of size 2ʲ is in use, so the noise of that bit stays the same
    for 2ʲ numbers, and is zero for the next 2ʲ.
    """
    noise = np.zeros((streams, 2**levels))
    for j in range(levels):
        upper_halves = noise.reshape(streams, -1, 2, 2**j)[:, :, 1, :]
        upper_halves += rng.laplace(size=upper_halves.shape[:2])[:, :, np.newaxis]
    return noise


def binary_blocks(horizon: int, *, epsilon: float) -> Iterator[Block]:
    """Yield every block that the binary mechanism releases."""
    levels = horizon.bit_length()
    yield from _dyadic_blocks(0, levels, horizon, levels / epsilon)


def hybrid_blocks(length: int, *, epsilon: float) -> Iterator[Block]:
    """Yield every block that the hybrid mechanism releases for a stream of ``length`` items."""
    for k in range(length.bit_length()):
        yield Block(2**k // 2 + 1, 2**k, 2 / epsilon)
        yield from _dyadic_blocks(2**k, k, length, 2 * k / epsilon)


def _dyadic_blocks(start: int, levels: int, length: int, scale: float) -> Iterator[Block]:
    for j in range(levels):
        # A block is released only if bit j is set: every other one of its size.
        for last in range(start + 2**j, min(start + 2**levels - 1, length) + 1, 2 ** (j + 1)):
            yield Block(last - 2**j + 1, last, scale)


def scales_at(length: int, *, epsilon: float, horizon: int | None = None) -> FloatArray:
    """Return the scales of all noise in the sum of ``length`` items.

    They are the binary mechanism's if you give its ``horizon``, and the hybrid mechanism's otherwise.
    """
    if horizon is not None:
        return np.full(length.bit_count(), horizon.bit_length() / epsilon)
    k = length.bit_length() - 1
    return np.concatenate([np.full(k + 1, 2 / epsilon), np.full((length - 2**k).bit_count(), 2 * k / epsilon)])


def hybrid_deviations(length: int, *, epsilon: float) -> FloatArray:
    """Return the standard deviation of the hybrid mechanism's noise after 0, 1, …, ``length`` items: √(2 Σb²)."""
    squares = [(scales_at(n, epsilon=epsilon) ** 2).sum() for n in range(1, length + 1)]
    return np.asarray(np.sqrt(2 * np.array([0.0, *squares])))


def error_bound(scales: FloatArray, failure: float) -> float:
    """Return a bound that a sum of independent Laplace variables exceeds with probability at most ``failure``.

    With ν = max(√Σb², max b · √ln(2/δ)) it is ν √(8 ln(2/δ)): the tail bound behind the mechanisms' theorems
    (lemma 2.8 of Chan, Shi and Song), on both sides.

    Example:
        >>> round(error_bound(np.array([1.0]), 0.05), 2)  # the exact 95 % quantile is ln 20 = 3.00
        10.43
    """
    tail = math.log(2 / failure)
    spread = max(math.sqrt((scales**2).sum()), float(scales.max()) * math.sqrt(tail))
    return spread * math.sqrt(8 * tail)
