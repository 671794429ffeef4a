"""Draws from a stream: integers, coins and noise."""

import math

import numpy as np

from dpselect.kernels.chacha import Stream, next_word
from dpselect.kernels.compilation import compiled
from dpselect.kernels.quadrature import EXPONENTIAL, GUMBEL

TWO_64 = 2.0**64


@compiled
def draw_below(stream: Stream, bound: int) -> int:
    """Return a uniform integer in [0, bound), by rejection from the next power of two: no modulo bias."""
    mask = np.uint64(bound - 1)
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(shift)
    while True:
        value = next_word(stream) & mask
        if value < np.uint64(bound):
            return int(value)


@compiled
def draw_uniform(stream: Stream) -> float:
    """Return a uniform float in (0, 1): the middle of one of 2⁵² equal intervals, never 0 or 1."""
    return (np.float64(next_word(stream) >> np.uint64(12)) + 0.5) / 2.0**52


@compiled
def flip(stream: Stream, x: float) -> bool:
    """Return true with probability exp(−x), x ≥ 0. A sure thing (x = 0) uses no randomness."""
    if x == 0.0:
        return True
    return bool(np.float64(next_word(stream)) < math.exp(-x) * TWO_64)


@compiled
def draw_noise(stream: Stream, noise: int) -> float:
    """Return standard exponential, Laplace or Gumbel noise."""
    magnitude = -math.log(draw_uniform(stream))
    if noise == EXPONENTIAL:
        return magnitude
    if noise == GUMBEL:
        return -math.log(magnitude)
    return magnitude if next_word(stream) & np.uint64(1) else -magnitude
