"""Samplers of one row. Each returns the picked index, or UNRESOLVED where floats could not decide.

:mod:`dpselect.exact.picks` holds the same samplers in exact arithmetic. They read the same bits in the same
order, so a row that is unresolved here gets there the pick that infinitely precise floats would have given.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.kernels.chacha import (
    BYTES,
    GROUP_BYTES,
    GROUP_WORDS,
    SEQUENCE,
    USED,
    Tape,
    candidate_word,
    load_bytes,
    next_group,
    next_word,
)
from dpselect.kernels.compilation import borrowing, compiled
from dpselect.kernels.draws import (
    FAIL,
    LOW,
    PASS,
    UNSURE,
    draw_below,
    draw_exponential,
    flip,
    judge,
    largest_exponential,
)
from dpselect.kernels.gaps import PAIRWISE
from dpselect.kernels.instructions import BLOCK, find_suspects, lowest_bit
from dpselect.kernels.lazy_gaps import GapOracle, exact_gap
from dpselect.kernels.quadrature import EXPONENTIAL, GUMBEL, NO_ETA

LOG_2 = math.log(2.0)
UNRESOLVED = -1
NOBODY = -2
INVALID = -4
"""A score is not finite, or too large."""

EXPENSIVE = -3
"""All gaps must be computed: the oracle would be asked too often, or cannot tell.

The row is then started again from its first random bit, so that the pick is the same as if it had been at once.
"""

QUESTIONS = 48
"""How many gaps an oracle may be asked for; about what sorting and a hull cost."""

LONG_SHOT = 5.56
"""A gap above log 256 = 5.545…: such a candidate passes only if its byte is 0."""

FAILS_FROM = np.append(np.inf, -np.log(np.arange(1, 256) / 256) + 2.0**-20)
"""The gap from which a coin whose first byte is b, U ≥ b/256, fails: −log(b/256), and a margin for rounding."""


@compiled
def visits_of(kind: int, size: int) -> int:
    """Return how many candidates are visited in random order before the whole row is scanned.

    A visit costs about as much as scanning 30 candidates, if few of those may pass, and much less if many. For GEM
    a scan is dearer, because everybody who passes costs a pass over the row.
    """
    return min(size, 48 + size // 64 if kind == PAIRWISE else 16 + size // 128)


@borrowing
def pick_noisy_max(
    noise: int,
    values: FloatArray,
    top: float,
    rate: float,
    visits: int,
    tape: Tape,
    seen: NDArray[np.bool_],
    visited: IndexArray,
    oracle: GapOracle,
    width: float,
) -> int:
    """Pick the candidate in front after noise of scale one, its gap being (top − value) · rate.

    ``seen`` must be false for every candidate on entry, and is so again on return; ``visited`` is room for the
    visits, and for one number more.
    """
    if noise == EXPONENTIAL:
        return pick_passer(values, top, rate, visits, tape, seen, visited, oracle, width)
    if noise == GUMBEL:
        return pick_until_pass(values, top, rate, tape, width)
    return pick_laplace(values, top, rate, tape, width)


@borrowing
def pick_passer(
    values: FloatArray,
    top: float,
    rate: float,
    visits: int,
    tape: Tape,
    seen: NDArray[np.bool_],
    visited: IndexArray,
    oracle: GapOracle,
    width: float,
) -> int:
    """Let each candidate pass with probability exp(−gap), independently, and pick a passer uniformly.

    Candidates are visited in random order until one passes. After some ``visits``, the rest is scanned at
    once: given that nobody passed so far, the first to pass in random order is a uniform choice among all
    that pass.

    If the oracle is lazy, gaps are lower bounds: a coin that fails against one fails, any other is judged
    again against the gap itself.
    """
    visited[-1] = 0  # questions to the oracle
    picked = NOBODY
    count = 0
    while count < visits and picked == NOBODY:
        a = draw_below(tape, values.size)
        while seen[a]:
            a = draw_below(tape, values.size)
        seen[a] = True
        visited[count] = a
        count += 1
        word = next_word(tape)
        gap = (top - values[a]) * rate
        if gap >= FAILS_FROM[word >> np.uint64(56)]:
            continue
        bits = np.float64(word)
        verdict = judge(bits, 2.0**64, gap, width)
        if verdict != FAIL and oracle.lazy:
            visited[-1] += 1
            gap = exact_gap(oracle, a)
            verdict = judge(bits, 2.0**64, gap, width)
            if math.isnan(gap):
                picked = EXPENSIVE
                continue
        if verdict != FAIL:
            picked = a if verdict == PASS else UNRESOLVED
    if picked == NOBODY:
        picked = scan_passers(values, top, rate, tape, seen, visited, oracle, width)
    for i in range(count):
        seen[visited[i]] = False
    return picked


@borrowing
def scan_passers(
    values: FloatArray,
    top: float,
    rate: float,
    tape: Tape,
    seen: NDArray[np.bool_],
    visited: IndexArray,
    oracle: GapOracle,
    width: float,
) -> int:
    """Test all candidates not seen and pick one that passes, uniformly.

    Candidate a's coin is U_a = 0.bbbbbbbb…, of which the first byte is looked at for everybody and 64 more
    bits where that does not decide. The i-th passer replaces the one held with probability 1/i.
    """
    cut = top - LONG_SHOT / rate
    picked, passers = UNRESOLVED, 0
    for first in range(0, values.size, BLOCK):
        if first % GROUP_BYTES == 0:
            load_bytes(tape, first // GROUP_BYTES)
        at = BYTES + first % GROUP_BYTES // 8
        suspects = suspects_in_block(values, first, cut, tape, at)
        while suspects != 0:
            a = first + lowest_bit(suspects)
            suspects &= suspects - np.uint64(1)
            byte = (tape[at + (a - first) // 8] >> np.uint64(8 * (a & 7))) & np.uint64(0xFF)
            gap = (top - values[a]) * rate
            if gap >= FAILS_FROM[byte] or seen[a]:
                continue
            verdict = judge_candidate(tape, byte, a, gap, width)
            if verdict != FAIL and oracle.lazy:
                visited[-1] += 1
                gap = exact_gap(oracle, a)
                if visited[-1] > QUESTIONS or math.isnan(gap):
                    return EXPENSIVE
                verdict = judge_candidate(tape, byte, a, gap, width)
            if verdict == UNSURE:
                return UNRESOLVED
            if verdict == PASS:
                passers += 1
                if passers == 1 or draw_below(tape, passers) == 0:
                    picked = a
    return picked


@borrowing
def suspects_in_block(values: FloatArray, first: int, cut: float, tape: Tape, at: int) -> np.uint64:
    """Return a bit for each candidate of a block who may pass: its value reaches ``cut``, or its byte is 0."""
    if first + BLOCK <= values.size:
        return find_suspects(values, first, cut, tape, at)
    mask = np.uint64(0)
    for a in range(first, values.size):
        byte = (tape[at + (a - first) // 8] >> np.uint64(8 * (a & 7))) & np.uint64(0xFF)
        if values[a] >= cut or byte == 0:
            mask |= np.uint64(1) << np.uint64(a - first)
    return mask


@borrowing
def judge_candidate(tape: Tape, byte: np.uint64, a: int, x: float, width: float) -> int:
    """Decide candidate a's coin, U_a < exp(−x): by its byte if possible, else with its word."""
    verdict = judge(np.float64(byte), 2.0**8, x, width)
    if verdict == UNSURE:
        bits = np.float64(byte) * 2.0**64 + np.float64(candidate_word(tape, a))
        verdict = judge(bits, 2.0**72, x, width)
    return verdict


@borrowing
def pick_passer_at_fixed_work(values: FloatArray, top: float, rate: float, tape: Tape, width: float) -> int:
    """Pick a passer uniformly, with the same work whatever the gaps: no early exit, no draw that depends on them.

    Every candidate draws a coin and a priority; of those that pass, the one of the largest priority is picked.
    """
    picked, unsure = 0, False
    best, rival = np.uint64(0), np.uint64(0)
    for a in range(values.size):
        verdict = judge(np.float64(next_word(tape)), 2.0**64, (top - values[a]) * rate, width)
        priority = next_word(tape)
        unsure |= verdict == UNSURE
        contends = priority if verdict == PASS else np.uint64(0)
        wins = contends > best
        rival = best if wins else max(rival, contends)
        picked = a if wins else picked
        best = contends if wins else best
    return UNRESOLVED if unsure or best == rival else picked


@borrowing
def pick_until_pass(values: FloatArray, top: float, rate: float, tape: Tape, width: float) -> int:
    """Propose candidates uniformly until one passes: Pr[a] ∝ exp(−gap), the exponential mechanism."""
    while True:
        a = draw_below(tape, values.size)
        verdict = flip(tape, (top - values[a]) * rate, width)
        if verdict != FAIL:
            return a if verdict == PASS else UNRESOLVED


@borrowing
def pick_laplace(values: FloatArray, top: float, rate: float, tape: Tape, width: float) -> int:
    """Pick the largest of Laplace noise less gap. A word for each candidate: a sign bit, 63 bits of size."""
    best_low, best_high, picked, rival = -math.inf, -math.inf, UNRESOLVED, -math.inf
    for a in range(values.size):
        word = next_word(tape)
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
    top: float,
    sensitivities: FloatArray,
    scale: float,
    gamma: float,
    eta: float,
    tape: Tape,
    width: float,
) -> int:
    """Draw K candidates with replacement, add fresh noise of scale · Δ_a to each, and pick the largest.

    Draws without noise (Δ_a = 0) are compared exactly; those that tie share the pick uniformly.
    """
    best_low, best_high, picked, rival = -math.inf, -math.inf, UNRESOLVED, -math.inf
    atom, atom_pick, ties = -math.inf, UNRESOLVED, 0
    stop = new_stop(gamma, eta, tape)
    always = np.uint64(noise == EXPONENTIAL)
    bound = np.uint64(scores.size)
    rejected = np.uint64((0x100000000 - scores.size) % scores.size)
    drawn = 0
    used = np.int64(tape[USED])
    while True:
        # What draw_below_and_rest and next_word do, written out: this loop is nothing but draws.
        low = np.uint64(0)
        while True:
            if used == GROUP_WORDS:
                next_group(tape)
                used = np.int64(0)
            word = tape[SEQUENCE + used]
            used += 1
            product = (word >> np.uint64(32)) * bound
            low = product & LOW
            if low >= rejected:
                break
        a: int = np.int64(product >> np.uint64(32))  # type: ignore[assignment]
        rest = word & LOW
        drawn += 1
        if sensitivities[a] == 0.0:
            if scores[a] > atom:
                atom, atom_pick, ties = scores[a], a, 1
            elif scores[a] == atom:
                ties += 1
                tape[USED] = used
                if draw_below(tape, ties) == 0:
                    atom_pick = a
                used = np.int64(tape[USED])
        else:
            if used == GROUP_WORDS:
                next_group(tape)
                used = np.int64(0)
            word = tape[SEQUENCE + used]
            used += 1
            upwards = np.float64((word | always) & np.uint64(1))  # a factor: a branch would be guessed wrongly
            spread = scale * sensitivities[a]
            shortfall = scores[a] - top
            most = upwards * spread * largest_exponential(word >> np.uint64(1))
            if most + shortfall + 2.0**-30 * (most - shortfall) > best_low:  # else it cannot come out largest
                size, error = draw_exponential(word >> np.uint64(1))
                value = spread * (size if upwards > 0.0 else -size) + shortfall
                error = spread * (error + width * (1.0 + size)) - width * shortfall
                if value - error > best_low:
                    rival = max(rival, best_high)
                    best_low, best_high, picked = value - error, value + error, a
                else:
                    rival = max(rival, value + error)
        verdict = stops(stop, drawn, gamma, eta, rest, width)
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
def new_stop(gamma: float, eta: float, tape: Tape) -> FloatArray:
    """Return the state before the first draw: U, Pr[K ≤ n], Pr[K = n+1] in units of γ^η · 2^(300c), and c.

    U decides K by inversion. Geometric K (η = 1) is decided draw by draw instead, and so is γ = 1. Pr[K = 1] is
    η(1−γ)/(γ^−η − 1), which for large η is too small for a float: hence the unit.
    """
    stop = np.zeros(4)
    if eta != 1.0 and gamma < 1.0:
        stop[0] = np.float64(next_word(tape)) * 2.0**-64
        decay = -math.log(gamma)
        if abs(eta) * decay < NO_ETA:
            stop[2] = (1.0 - gamma) / decay
        elif eta > 0.0:
            stop[2] = (1.0 - gamma) * eta / -math.expm1(-eta * decay)
        else:
            stop[2] = (1.0 - gamma) * eta / math.expm1(eta * decay)
    return stop


@borrowing
def stops(stop: FloatArray, drawn: int, gamma: float, eta: float, rest: np.uint64, width: float) -> int:
    """Decide whether K = drawn, given that K ≥ drawn.

    For η = 1 a coin of probability γ whose first 32 bits are ``rest``, compared with γ · 2³², which is exact in
    floats. Otherwise U against Pr[K ≤ n], summed by Pr[K = n+1]/Pr[K = n] = (1−γ)(n+η)/(n+1). Each term loses at
    most 2⁻⁴⁹ to rounding, and all of them 2⁻⁴² of the exponent η log(1/γ), which is a logarithm's error, amplified.
    """
    if gamma == 1.0:
        return PASS
    if eta == 1.0:
        threshold = gamma * 2.0**32
        if np.float64(rest) + 1.0 <= threshold:
            return PASS
        return FAIL if np.float64(rest) >= threshold else UNSURE
    exponent = -max(0.0, eta) * -math.log(gamma) if abs(eta) * -math.log(gamma) >= NO_ETA else 0.0
    stop[1] += stop[2] * math.exp(exponent + stop[3] * (300.0 * LOG_2))
    stop[2] *= (1.0 - gamma) * (drawn + eta) / (drawn + 1.0)
    if stop[2] > 2.0**300:
        stop[2] *= 2.0**-300
        stop[3] += 1.0
    doubt = width + drawn * 2.0**-49 - exponent * 2.0**-42
    if stop[0] + doubt < stop[1]:
        return PASS
    return FAIL if stop[0] - doubt > stop[1] else UNSURE


@compiled
def pick_largest_noisy(noise: int, scores: FloatArray, sensitivities: FloatArray, scale: float, tape: Tape) -> int:
    """Pick the largest score after noise of scale · Δ_a, every candidate drawn once (not private, floats)."""
    top = scores.max()
    best, picked, ties = -math.inf, UNRESOLVED, 0
    for a in range(scores.size):
        value = scores[a] - top
        if sensitivities[a] > 0.0:
            word = next_word(tape)
            size = draw_exponential(word >> np.uint64(1))[0]
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
