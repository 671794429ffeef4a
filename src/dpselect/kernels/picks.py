"""Samplers of one row. Each returns the picked index, or UNRESOLVED where floats could not decide.

:mod:`dpselect.exact.picks` holds the same samplers in exact arithmetic. They read the same bits in the same
order, so a row that is unresolved here gets there the pick that infinitely precise floats would have given.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpselect.kernels.arrays import UNRESOLVED, IndexArray
from dpselect.kernels.chacha import (
    BYTES,
    GROUP_BYTES,
    Tape,
    candidate_byte,
    candidate_word,
    load_bytes,
    next_word,
)
from dpselect.kernels.compilation import borrowing, compiled
from dpselect.kernels.draws import (
    FAIL,
    PASS,
    UNSURE,
    draw_below,
    draw_exponential,
    judge,
    judge_byte,
    judge_word,
    split,
)
from dpselect.kernels.gaps import PAIRWISE
from dpselect.kernels.instructions import BLOCK, lowest_bit, reaching, zero_bytes
from dpselect.kernels.lineups import Lineup, block_of, exact_gap, gap_bound
from dpselect.kernels.quadrature import EXPONENTIAL, GUMBEL

NOBODY = -2

EXPENSIVE = -3
"""All gaps must be computed: too many are asked for one by one, or floats cannot tell.

The row is then started again from its first random bit, so that the pick is the same as if it had been at once.
"""

QUESTIONS = 48
"""How many gaps may be asked for one by one; about what sorting and a hull cost."""

EVERYBODY = np.uint64(2**64 - 1)
LOG_256 = math.log(256.0)
LONG_SHOT = 5.56
"""A gap above log 256 = 5.545…: such a candidate passes only if its byte is 0."""


class Source(NamedTuple):
    """Random bits, how far floats are to be trusted, and room for notes."""

    tape: Tape
    width: float
    seen: NDArray[np.bool_]
    """False for every candidate whenever a sampler starts, and again when it ends."""
    visited: IndexArray
    """Room for the visits, and for one number more."""


@compiled
def visits_of(kind: int, size: int) -> int:
    """Return how many candidates are visited in random order before the whole row is scanned.

    A visit costs about as much as scanning a dozen candidates, if few of those may pass, and much less if many. For
    GEM a scan is dearer, because everybody who passes costs a pass over the row.
    """
    return min(size, 48 + size // 64 if kind == PAIRWISE else 32 + size // 128)


@borrowing
def pick_noisy_max(
    noise: int,
    fixed_work: bool,  # noqa: FBT001
    lineup: Lineup,
    visits: int,
    source: Source,
) -> int:
    """Pick the candidate in front after noise of scale one."""
    if noise == EXPONENTIAL:
        return pick_passer_at_fixed_work(lineup, source) if fixed_work else pick_passer(lineup, visits, source)
    if noise == GUMBEL:
        return pick_until_pass(lineup, source)
    return pick_laplace(lineup, source)


@borrowing
def pick_passer(lineup: Lineup, visits: int, source: Source) -> int:
    """Let each candidate pass with probability exp(−gap), independently, and pick a passer uniformly.

    Candidates are visited in random order until one passes. After some ``visits``, the rest is scanned at
    once: given that nobody passed so far, the first to pass in random order is a uniform choice among all
    that pass.

    If the lineup is lazy, gaps are lower bounds: a coin that fails against one fails, any other is judged
    again against the gap itself.
    """
    size = lineup.values.size
    tape, width, seen, visited = source
    visited[-1] = 0  # questions
    picked = NOBODY
    count = 0
    while count < visits and picked == NOBODY:
        a, coin = split(next_word(tape), size)
        if a == UNSURE:
            picked = UNRESOLVED
        elif not seen[a]:
            seen[a] = True
            visited[count] = a
            count += 1
            verdict = judge_word(coin, size, gap_bound(lineup, a), width)
            if verdict != FAIL and lineup.lazy:
                visited[-1] += 1
                gap = exact_gap(lineup, a)
                verdict = EXPENSIVE if math.isnan(gap) else judge_word(coin, size, gap, width)
            if verdict != FAIL:
                picked = a if verdict == PASS else verdict
    if picked == NOBODY:
        picked = scan_passers(lineup, source)
    for i in range(count):
        seen[visited[i]] = False
    return picked


@borrowing
def scan_passers(lineup: Lineup, source: Source) -> int:
    """Test all candidates not seen and pick one that passes, uniformly.

    Candidate a's coin is U_a = 0.bbbbbbbb…, of which the first byte is looked at for everybody and 64 more
    bits where that does not decide. The i-th passer replaces the one held with probability 1/i.
    """
    tape, width, seen, visited = source
    picked, passers = UNRESOLVED, 0
    for first in range(0, lineup.values.size, BLOCK):
        if first % GROUP_BYTES == 0:
            load_bytes(tape, first // GROUP_BYTES)
        suspects = suspects_in_block(lineup, first, tape)
        while suspects != 0:
            a = first + lowest_bit(suspects)
            suspects &= suspects - np.uint64(1)
            byte = candidate_byte(tape, a)
            gap = gap_bound(lineup, a)
            if judge_byte(byte, gap, width) == FAIL or seen[a]:
                continue
            after_zero = next_word(tape) if byte == 0 else np.uint64(0)
            verdict = judge_candidate(tape, byte, after_zero, a, gap, width)
            if verdict != FAIL and lineup.lazy:
                visited[-1] += 1
                gap = exact_gap(lineup, a)
                if visited[-1] > QUESTIONS or math.isnan(gap):
                    return EXPENSIVE
                verdict = judge_candidate(tape, byte, after_zero, a, gap, width)
            if verdict == UNSURE:
                return UNRESOLVED
            if verdict == PASS:
                passers += 1
                if passers == 1 or draw_below(tape, passers) == 0:
                    picked = a
    return picked


@borrowing
def suspects_in_block(lineup: Lineup, first: int, tape: Tape) -> np.uint64:
    """Return a bit for each candidate of a block who may pass: who is no long shot, or whose byte is 0.

    The last block of a row may be incomplete. Its values are then read together with some before them.
    """
    size = lineup.values.size
    count = min(BLOCK, size - first)
    mask = zero_bytes(tape, BYTES + first % GROUP_BYTES // 8) & (EVERYBODY >> np.uint64(BLOCK - count))
    if size >= BLOCK and not lineup.lazy:
        cut = lineup.top - LONG_SHOT / lineup.rate
        return mask | reaching(lineup.values, first + count - BLOCK, cut) >> np.uint64(BLOCK - count)
    block = block_of(lineup, first)
    for i in range(block.values.size):
        mask |= np.uint64(gap_bound(block, i) < LONG_SHOT) << np.uint64(i)
    return mask


@borrowing
def judge_candidate(tape: Tape, byte: np.uint64, after_zero: np.uint64, a: int, x: float, width: float) -> int:
    """Decide candidate a's coin, U_a < exp(−x): by its byte if possible, else with 64 bits more.

    Most bytes that do not decide are zeros, so these draw their further bits in sequence. Which others do not
    decide depends on x, a rounded number, so the further bits of those are addressed by candidate.
    """
    if byte == 0:
        return judge_word(after_zero, 1, x - LOG_256, width)  # 256 U_a < 256 exp(−x)
    verdict = judge_byte(byte, x, width)
    if verdict == UNSURE:
        bits = np.float64(byte) * 2.0**64 + np.float64(candidate_word(tape, a))
        verdict = judge(bits, 1.0, 2.0**72, x, width)
    return verdict


@borrowing
def pick_passer_at_fixed_work(lineup: Lineup, source: Source) -> int:
    """Pick a passer uniformly, with the same work whatever the gaps: no early exit, no draw that depends on them.

    Every candidate draws a coin and a priority; of those that pass, the one of the largest priority is picked.
    """
    values, top, rate = lineup.values, lineup.top, lineup.rate
    tape, width, _, _ = source
    picked, unsure = 0, False
    best, rival = np.uint64(0), np.uint64(0)
    for a in range(values.size):
        verdict = judge(np.float64(next_word(tape)), 1.0, 2.0**64, (top - values[a]) * rate, width)
        priority = next_word(tape)
        unsure |= verdict == UNSURE
        contends = priority if verdict == PASS else np.uint64(0)
        wins = contends > best
        rival = best if wins else max(rival, contends)
        picked = a if wins else picked
        best = contends if wins else best
    return UNRESOLVED if unsure or best == rival else picked


@borrowing
def pick_until_pass(lineup: Lineup, source: Source) -> int:
    """Propose candidates uniformly until one passes: Pr[a] ∝ exp(−gap), the exponential mechanism."""
    values, top, rate = lineup.values, lineup.top, lineup.rate
    tape, width, _, _ = source
    while True:
        a, coin = split(next_word(tape), values.size)
        verdict = UNSURE if a == UNSURE else judge_word(coin, values.size, (top - values[a]) * rate, width)
        if verdict != FAIL:
            return a if verdict == PASS else UNRESOLVED


@borrowing
def pick_laplace(lineup: Lineup, source: Source) -> int:
    """Pick the largest of Laplace noise less gap. A word for each candidate: a sign bit, 63 bits of size."""
    values, top, rate = lineup.values, lineup.top, lineup.rate
    tape, width, _, _ = source
    best_low, best_high, picked, rival = -math.inf, -math.inf, UNRESOLVED, -math.inf
    for a in range(values.size):
        word = next_word(tape)
        size, error = draw_exponential(word >> np.uint64(1), np.uint64(1))
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
