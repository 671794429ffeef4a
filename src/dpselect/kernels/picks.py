"""Samplers of one row. Each returns the picked index, or UNRESOLVED where floats could not decide.

:mod:`dpselect.exact.picks` holds the same samplers in exact arithmetic. They read the same bits in the same
order, so a row that is unresolved here gets there the pick that infinitely precise floats would have given.
"""

import math

import numpy as np

from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.kernels.chacha import GROUP_BYTES, Stream, candidate_word, load_bytes, next_word
from dpselect.kernels.compilation import compiled
from dpselect.kernels.draws import FAIL, PASS, TWO_72, UNSURE, draw_below, draw_exponential, flip, judge
from dpselect.kernels.quadrature import EXPONENTIAL, GUMBEL

UNRESOLVED = -1
NOBODY = -2
VISITS = 16
"""Candidates visited in random order before the whole row is scanned; it balances the two costs."""

LONG_SHOT = 5.56
"""A gap above log 256 = 5.545…: such a candidate passes only if its byte is 0."""


@compiled
def pick_noisy_max(
    noise: int,
    values: FloatArray,
    top: float,
    rate: float,
    stream: Stream,
    order: IndexArray,
    width: float,
) -> int:
    """Pick the candidate in front after noise of scale one, its gap being (top − value) · rate.

    ``order`` must be 0, 1, 2, … on entry, and is so again on return.
    """
    if noise == EXPONENTIAL:
        return pick_passer(values, top, rate, stream, order, width)
    if noise == GUMBEL:
        return pick_until_pass(values, top, rate, stream, width)
    return pick_laplace(values, top, rate, stream, width)


@compiled
def pick_passer(
    values: FloatArray, top: float, rate: float, stream: Stream, order: IndexArray, width: float
) -> int:
    """Let each candidate pass with probability exp(−gap), independently, and pick a passer uniformly.

    Candidates are visited in random order until one passes. After VISITS of them, the rest is scanned at
    once: given that nobody passed so far, the first to pass in random order is a uniform choice among all
    that pass.
    """
    visits = min(VISITS, values.size)
    swaps = np.empty(VISITS, np.int64)
    picked = NOBODY
    visited = 0
    while visited < visits and picked == NOBODY:
        swap = visited + draw_below(stream, values.size - visited)
        order[visited], order[swap] = order[swap], order[visited]
        swaps[visited] = swap
        verdict = flip(stream, (top - values[order[visited]]) * rate, width)
        if verdict != FAIL:
            picked = order[visited] if verdict == PASS else UNRESOLVED
        visited += 1
    if picked == NOBODY:
        picked = scan_passers(values, top, rate, stream, order[:visited], width)
    for i in range(visited - 1, -1, -1):
        order[i], order[swaps[i]] = order[swaps[i]], order[i]
    return picked


@compiled
def scan_passers(
    values: FloatArray, top: float, rate: float, stream: Stream, visited: IndexArray, width: float
) -> int:
    """Test all candidates not in ``visited`` and pick one that passes, uniformly.

    Candidate a's coin is U_a = 0.bbbbbbbb…, of which the first byte is looked at for everybody and 64 more
    bits where that does not decide. The i-th passer replaces the one held with probability 1/i.
    """
    cut = top - LONG_SHOT / rate
    picked, passers = UNRESOLVED, 0
    for first in range(0, values.size, GROUP_BYTES):
        load_bytes(stream, first // GROUP_BYTES)
        for i in range(min(GROUP_BYTES, values.size - first)):
            a = first + i
            if (stream.candidate_bytes[i] != 0 and values[a] < cut) or is_among(visited, a):
                continue
            bits = np.float64(stream.candidate_bytes[i]) * 2.0**64 + np.float64(candidate_word(stream, a))
            verdict = judge(bits, TWO_72, (top - values[a]) * rate, width)
            if verdict == UNSURE:
                return UNRESOLVED
            if verdict == PASS:
                passers += 1
                if passers == 1 or draw_below(stream, passers) == 0:
                    picked = a
    return picked


@compiled
def is_among(visited: IndexArray, a: int) -> bool:
    """Tell whether a is in a short list."""
    for b in visited:
        if a == b:
            return True
    return False


@compiled
def pick_until_pass(values: FloatArray, top: float, rate: float, stream: Stream, width: float) -> int:
    """Propose candidates uniformly until one passes: Pr[a] ∝ exp(−gap), the exponential mechanism."""
    while True:
        a = draw_below(stream, values.size)
        verdict = flip(stream, (top - values[a]) * rate, width)
        if verdict != FAIL:
            return a if verdict == PASS else UNRESOLVED


@compiled
def pick_laplace(values: FloatArray, top: float, rate: float, stream: Stream, width: float) -> int:
    """Pick the largest of Laplace noise less gap. A word for each candidate: a sign bit, 63 bits of size."""
    best_low, best_high, picked, rival = -math.inf, -math.inf, UNRESOLVED, -math.inf
    for a in range(values.size):
        word = next_word(stream)
        size, error = draw_exponential(word >> np.uint64(1))
        gap = (top - values[a]) * rate
        if gap == math.inf:
            continue
        value = (size if word & np.uint64(1) else -size) - gap
        error += width * (1.0 + size + gap)
        if value - error > best_low:
            rival = max(rival, best_high)
            best_low, best_high, picked = value - error, value + error, a
        else:
            rival = max(rival, value + error)
    return picked if best_low > rival else UNRESOLVED


@compiled
def pick_by_random_stopping(
    noise: int,
    scores: FloatArray,
    sensitivities: FloatArray,
    scale: float,
    gamma: float,
    eta: float,
    stream: Stream,
    width: float,
) -> int:
    """Draw K candidates with replacement, add fresh noise of scale · Δ_a to each, and pick the largest.

    Draws without noise (Δ_a = 0) are compared exactly; those that tie share the pick uniformly.
    """
    top = scores.max()
    best_low, best_high, picked, rival = -math.inf, -math.inf, UNRESOLVED, -math.inf
    atom, atom_pick, ties = -math.inf, UNRESOLVED, 0
    stop = new_stop(gamma, eta, stream)
    drawn = 0
    while True:
        a = draw_below(stream, scores.size)
        drawn += 1
        if sensitivities[a] == 0.0:
            if scores[a] > atom:
                atom, atom_pick, ties = scores[a], a, 1
            elif scores[a] == atom:
                ties += 1
                if draw_below(stream, ties) == 0:
                    atom_pick = a
        else:
            word = next_word(stream)
            size, error = draw_exponential(word >> np.uint64(1))
            spread = scale * sensitivities[a]
            shortfall = scores[a] - top
            value = spread * (size if noise == EXPONENTIAL or word & np.uint64(1) else -size) + shortfall
            error = spread * (error + width * (1.0 + size)) - width * shortfall
            if value - error > best_low:
                rival = max(rival, best_high)
                best_low, best_high, picked = value - error, value + error, a
            else:
                rival = max(rival, value + error)
        verdict = stops(stop, drawn, gamma, eta, stream, width)
        if verdict == UNSURE:
            return UNRESOLVED
        if verdict == PASS:
            break
    level = atom - top
    doubt = -width * level if level > -math.inf else 0.0
    if level - doubt > max(best_high, rival):
        return atom_pick
    return picked if best_low > max(rival, level + doubt) else UNRESOLVED


@compiled
def new_stop(gamma: float, eta: float, stream: Stream) -> FloatArray:
    """Return [U, Pr[K ≤ n], Pr[K = n+1]] before the first draw, where U decides K by inversion.

    Geometric K (η = 1) is decided draw by draw instead, and so is γ = 1.
    """
    stop = np.zeros(3)
    if eta != 1.0 and gamma < 1.0:
        stop[0] = np.float64(next_word(stream)) * 2.0**-64
        stop[2] = first_stop(gamma, eta)
    return stop


@compiled
def first_stop(gamma: float, eta: float) -> float:
    """Return Pr[K = 1] = η(1−γ)/(γ^−η − 1)."""
    decay = -math.log(gamma)
    if eta == 0.0:
        return (1.0 - gamma) / decay
    if eta * decay > 40.0:
        return (1.0 - gamma) * math.exp(math.log(eta) - eta * decay)
    return (1.0 - gamma) * eta / math.expm1(eta * decay)


@compiled
def stops(stop: FloatArray, drawn: int, gamma: float, eta: float, stream: Stream, width: float) -> int:
    """Decide whether K = drawn, given that K ≥ drawn.

    For η = 1 a coin of probability γ, compared bit by bit with γ · 2⁶⁴, which is exact in floats but for a
    fraction. Otherwise U against Pr[K ≤ n], summed by Pr[K = n+1]/Pr[K = n] = (1−γ)(n+η)/(n+1); each of its
    terms loses at most 2⁻⁴⁹ to rounding.
    """
    if gamma == 1.0:
        return PASS
    if eta == 1.0:
        threshold = gamma * 2.0**64
        word = next_word(stream)
        whole = np.uint64(threshold)
        if word < whole:
            return PASS
        return FAIL if word > whole or np.float64(whole) == threshold else UNSURE
    stop[1] += stop[2]
    stop[2] *= (1.0 - gamma) * (drawn + eta) / (drawn + 1.0)
    doubt = width + drawn * 2.0**-49
    if stop[0] + doubt < stop[1]:
        return PASS
    return FAIL if stop[0] - doubt > stop[1] else UNSURE


@compiled
def pick_largest_noisy(
    noise: int, scores: FloatArray, sensitivities: FloatArray, scale: float, stream: Stream
) -> int:
    """Pick the largest score after noise of scale · Δ_a, every candidate drawn once (not private, floats)."""
    top = scores.max()
    best, picked, ties = -math.inf, UNRESOLVED, 0
    for a in range(scores.size):
        value = scores[a] - top
        if sensitivities[a] > 0.0:
            word = next_word(stream)
            size = draw_exponential(word >> np.uint64(1))[0]
            if noise == GUMBEL:
                size = -math.log(size)
            elif noise != EXPONENTIAL and not word & np.uint64(1):
                size = -size
            value += scale * sensitivities[a] * size
        best, picked, ties = keep_larger(value, a, best, picked, ties, stream)
    return picked


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
