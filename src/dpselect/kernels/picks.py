"""Samplers of one row: from gaps, or from scores with noise of their own, to the picked index."""

import math

from dpselect.kernels.arrays import FloatArray
from dpselect.kernels.chacha import Stream
from dpselect.kernels.compilation import compiled
from dpselect.kernels.draws import draw_below, draw_noise, draw_uniform, flip
from dpselect.kernels.quadrature import EXPONENTIAL, GUMBEL


@compiled
def pick_noisy_max(noise: int, gaps: FloatArray, stream: Stream) -> int:
    """Pick the candidate whose gap and noise of scale one leave it in front."""
    if noise == EXPONENTIAL:
        return pick_passer(gaps, stream)
    if noise == GUMBEL:
        return pick_until_pass(gaps, stream)
    best, picked, ties = -math.inf, -1, 0
    for a in range(gaps.size):
        if gaps[a] < math.inf:
            value = draw_noise(stream, noise) - gaps[a]
            best, picked, ties = keep_larger(value, a, best, picked, ties, stream)
    return picked


@compiled
def pick_passer(gaps: FloatArray, stream: Stream) -> int:
    """Let each candidate pass with probability exp(−gap) and pick one passer uniformly.

    One pass over the row; the i-th passer replaces the one held with probability 1/i. The leader, of gap
    zero, always passes.
    """
    picked, passers = -1, 0
    for a in range(gaps.size):
        if flip(stream, gaps[a]):
            passers += 1
            if passers == 1 or draw_below(stream, passers) == 0:
                picked = a
    return picked


@compiled
def pick_until_pass(gaps: FloatArray, stream: Stream) -> int:
    """Propose candidates uniformly until one passes: Pr[a] ∝ exp(−gap), the exponential mechanism."""
    while True:
        a = draw_below(stream, gaps.size)
        if flip(stream, gaps[a]):
            return a


@compiled
def keep_larger(
    value: float, a: int, best: float, picked: int, ties: int, stream: Stream
) -> tuple[float, int, int]:
    """Return the new (best, picked, ties) after seeing ``value``; equal values share the pick uniformly."""
    if value > best:
        return value, a, 1
    if value == best:
        ties += 1
        if draw_below(stream, ties) == 0:
            picked = a
    return best, picked, ties


@compiled
def pick_largest_noisy(noise: int, scores: FloatArray, scales: FloatArray, stream: Stream) -> int:
    """Pick the largest q_a + b_a Z_a, every candidate drawn once."""
    top = scores.max()
    best, picked, ties = -math.inf, -1, 0
    for a in range(scores.size):
        value = scores[a] - top
        if scales[a] > 0.0:
            value += scales[a] * draw_noise(stream, noise)
        best, picked, ties = keep_larger(value, a, best, picked, ties, stream)
    return picked


@compiled
def pick_by_random_stopping(
    noise: int, scores: FloatArray, scales: FloatArray, gamma: float, eta: float, stream: Stream
) -> int:
    """Draw K candidates with replacement, add fresh noise to each, and pick the largest.

    K is truncated negative binomial; it is drawn by inversion, one term of its law for each draw made:
    Pr[K = 1] = η(1−γ)/(γ^−η − 1) and Pr[K = n+1] / Pr[K = n] = (1−γ)(n+η)/(n+1).
    """
    top = scores.max()
    best, picked, ties = -math.inf, -1, 0
    remaining = draw_uniform(stream)
    decay = -math.log(gamma)
    if gamma == 1.0:
        term = 1.0
    elif eta == 0.0:
        term = (1.0 - gamma) / decay
    else:
        term = eta * (1.0 - gamma) / math.expm1(eta * decay)
    drawn = 0
    while True:
        a = draw_below(stream, scores.size)
        value = scores[a] - top
        if scales[a] > 0.0:
            value += scales[a] * draw_noise(stream, noise)
        best, picked, ties = keep_larger(value, a, best, picked, ties, stream)
        drawn += 1
        remaining -= term
        term *= (1.0 - gamma) * (drawn + eta) / (drawn + 1.0)
        if remaining < 0.0 or term == 0.0:
            return picked
