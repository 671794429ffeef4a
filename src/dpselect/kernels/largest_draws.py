"""Random stopping: the largest of K noisy draws, most of which are out of the race after 32 random bits.

Draw i has a random real number U_i of its own. k · U_i = a + V draws the candidate a and leaves V, uniform again;
2V = sign + W gives the sign of the noise and leaves W, and −log W is its size. The first 32 bits of every U_i are
looked at. If they do not tell which draw is largest, all draws are looked at once more, with 64 bits more of each.

:mod:`dpselect.exact.largest_draws` does the same in exact arithmetic.
"""

import math

import numpy as np

from dpselect.kernels.arrays import FloatArray
from dpselect.kernels.chacha import Tape, candidate_word, next_word, packed_word
from dpselect.kernels.compilation import borrowing, compiled, inlined
from dpselect.kernels.draws import (
    LOW,
    UNSURE,
    draw_below,
    draw_exponential,
    exponential_bounds,
    largest_exponential,
)
from dpselect.kernels.picks import UNRESOLVED
from dpselect.kernels.quadrature import EXPONENTIAL, GUMBEL, NO_ETA

COARSE, FINE = False, True
HALF = np.uint64(2**63)
LOG_2 = math.log(2.0)

MOST_DRAWS = 2**33
"""Beyond that many a random stream would be exhausted, and so would everybody's patience."""


@borrowing
def pick_by_random_stopping(
    noise: int,
    scores: FloatArray,
    top: float,
    sensitivities: FloatArray,
    scale: float,
    gamma: float,
    eta: float,
    tape: Tape,
    width: float,
) -> int:
    """Draw K candidates with replacement, add fresh noise of scale · Δ_a to each, and pick the largest."""
    count = count_draws(packed_word(tape, 0), gamma, eta, width)
    if count == UNSURE:
        return UNRESOLVED
    picked = pick_largest_draw(COARSE, count, noise, scores, top, sensitivities, scale, tape, width)
    if picked == UNRESOLVED:
        picked = pick_largest_draw(FINE, count, noise, scores, top, sensitivities, scale, tape, width)
    return picked


@borrowing
def pick_largest_draw(
    fine: bool,  # noqa: FBT001
    count: int,
    noise: int,
    scores: FloatArray,
    top: float,
    sensitivities: FloatArray,
    scale: float,
    tape: Tape,
    width: float,
) -> int:
    """Pick the largest of so many draws. Of draws without noise (Δ_a = 0) that tie, the first counts."""
    best_low, best_high, picked, rival = -math.inf, -math.inf, UNRESOLVED, -math.inf
    atom, atom_pick = -math.inf, UNRESOLVED
    always = HALF if noise == EXPONENTIAL else np.uint64(0)
    for i in range(count):
        a, rest, span = draw(tape, i, scores.size, fine)
        if a == UNSURE:
            return UNRESOLVED
        if sensitivities[a] == 0.0:
            if scores[a] > atom:
                atom, atom_pick = scores[a], a
            continue
        upwards = np.float64((rest | always) >> np.uint64(63))  # a factor, since a branch would be guessed wrongly
        bits = rest & ~HALF
        spread = scale * sensitivities[a]
        shortfall = scores[a] - top
        reach = upwards * spread * largest_exponential(bits)
        if not shortfall + reach + 2.0**-30 * (reach - shortfall) <= best_low:  # else it cannot come out largest
            least, most = exponential_bounds(bits, span, fine)
            if upwards == 0.0:
                least, most = -most, -least
            doubt = width * (spread * (1.0 + abs(least)) - shortfall)
            low, high = shortfall + spread * least - doubt, shortfall + spread * most + doubt
            if low > best_low:
                rival = max(rival, best_high)
                best_low, best_high, picked = low, high, a
            else:
                rival = max(rival, high)
    level = atom - top
    doubt = -width * level if level > -math.inf else 0.0
    if level - doubt > max(best_high, rival):
        return atom_pick
    return picked if best_low > max(rival, level + doubt) else UNRESOLVED


@inlined
def draw(tape: Tape, i: int, size: int, fine: bool) -> tuple[int, np.uint64, np.uint64]:  # noqa: FBT001
    """Return the candidate of draw i, or UNSURE, and (rest, span) such that V lies in [rest, rest + span)/2⁶⁴.

    With U_i in [u, u + 1)/2³², k · U_i · 2⁶⁴ lies within k · 2³² above k · u · 2³². With 64 bits f more, it lies
    within k/2³² ≤ 1 above k · u · 2³² + k · f/2³², and rounding the last term down takes another 1.
    """
    number = np.uint64(size)
    leading = (packed_word(tape, 1 + i // 2) >> np.uint64(32 * (i & 1))) & LOW
    product = leading * number
    a: int = np.int64(product >> np.uint64(32))  # type: ignore[assignment] # an unsigned one would spread
    rest, span = product << np.uint64(32), number << np.uint64(32)
    if fine or size >= 2**31 or (rest & ~HALF) > HALF - span:  # the last: neither a nor the sign may be sure
        further = candidate_word(tape, i)
        added = (further >> np.uint64(32)) * number + (((further & LOW) * number) >> np.uint64(32))
        a += 1 if rest > ~added else 0  # the carry
        rest, span = rest + added, np.uint64(2)
        if (rest & ~HALF) > HALF - span:
            a = UNSURE
    return a, rest, span


@compiled
def count_draws(word: np.uint64, gamma: float, eta: float, width: float) -> int:
    """Return K, the smallest n such that U < Pr[K ≤ n], given that U lies in [word, word + 1)/2⁶⁴; or UNSURE.

    Pr[K = 1] is η(1−γ)/(γ^−η − 1), and Pr[K = n+1]/Pr[K = n] is (1−γ)(n+η)/(n+1). Terms are added up in units of
    γ^η · 2^(300 · shifts), because for large η the first ones are too small for a float. Each term loses at
    most 2⁻⁴⁹ to rounding, and all of them 2⁻⁴² of the exponent η log(1/γ), which is a logarithm's error, amplified.
    """
    if gamma == 1.0:
        return 1
    if eta == 1.0:
        return count_geometric_draws(word, gamma, width)
    uniform = np.float64(word) * 2.0**-64
    decay = -math.log(gamma)
    exponent = -max(0.0, eta) * decay
    if abs(eta) * decay < NO_ETA:
        term, exponent = (1.0 - gamma) / decay, 0.0
    elif eta > 0.0:
        term = (1.0 - gamma) * eta / -math.expm1(-eta * decay)
    else:
        term = (1.0 - gamma) * eta / math.expm1(eta * decay)
    unit, shifts = math.exp(exponent), 0.0
    reached = 0.0
    for n in range(1, MOST_DRAWS):
        reached += term * unit
        term *= (1.0 - gamma) * (n + eta) / (n + 1.0)
        if term > 2.0**300:
            term *= 2.0**-300
            shifts += 1.0
            unit = math.exp(exponent + shifts * (300.0 * LOG_2))
        doubt = width + n * 2.0**-49 - exponent * 2.0**-42
        if uniform + doubt < reached:
            return n
        if not uniform - doubt > reached:
            return UNSURE
    raise OverflowError("a random stream is exhausted")


@compiled
def count_geometric_draws(word: np.uint64, gamma: float, width: float) -> int:
    """Return K for η = 1: Pr[K > n] = (1−γ)^n, so that K is log(1 − U)/log(1 − γ), rounded down, and one more."""
    size, error = draw_exponential(~word >> np.uint64(1), np.uint64(1))
    rate = -math.log1p(-gamma)
    level = size / rate
    if level > MOST_DRAWS:
        raise OverflowError("a random stream is exhausted")
    doubt = error / rate + level * width
    least, most = np.floor(level - doubt), np.floor(level + doubt)
    return int(least) + 1 if least == most else UNSURE


@borrowing
def pick_largest_noisy(
    noise: int, scores: FloatArray, top: float, sensitivities: FloatArray, scale: float, tape: Tape
) -> int:
    """Pick the largest score after noise of scale · Δ_a, every candidate drawn once (not private, floats)."""
    best, picked, ties = -math.inf, UNRESOLVED, 0
    for a in range(scores.size):
        value = scores[a] - top
        if sensitivities[a] > 0.0:
            word = next_word(tape)
            size = draw_exponential(word >> np.uint64(1), np.uint64(1))[0]
            if noise == GUMBEL:
                size = -math.log(size)
            elif noise != EXPONENTIAL and not word & np.uint64(1):
                size = -size
            value += scale * sensitivities[a] * size
        best, picked, ties = keep_larger(value, a, best, picked, ties, tape)
    return picked


@borrowing
def keep_larger(value: float, a: int, best: float, picked: int, ties: int, tape: Tape) -> tuple[float, int, int]:
    """Return the new (best, picked, ties) after seeing ``value``; equal values share the pick uniformly."""
    if value > best:
        return value, a, 1
    if value == best:
        ties += 1
        if draw_below(tape, ties) == 0:
            picked = a
    return best, picked, ties
