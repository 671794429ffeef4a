"""The largest of height + share · Z, with shares between 1/2 and 1.

Exponential noise. Let the *gap* of a candidate be (highest height − height)/share. Its noisy score exceeds the
highest height with probability exp(−gap), independently of all others: it *passes*. The highest candidate always
passes, so only those that pass can be picked. Exponential noise has no memory. So a candidate that passes exceeds
the highest height by share · E with a fresh exponential variable E. The largest share · E is picked.

Most of these are never drawn. E = −log W is in *octave* j if 2^−(j+1) ≤ W < 2^−j. The number of candidates in
octave j or higher is a number of ones among random bits, as in random stopping, and they are a random set.
The sampler visits them from the highest octave down, flips the coin of each, and stops when no remaining octave can
reach the largest share · E so far. After a number of visits it scans all others in one pass, as permute-and-flip
does: one byte for each candidate decides most coins, and only those that pass draw E, given that it is in a lower
octave.

If all shares are equal, this is permute-and-flip, and that sampler is used.

Laplace and Gumbel noise. Every candidate draws its noise, and the largest interval around a noisy score is picked.

The twin in :mod:`dpselect.exact.samplers` does the same in exact arithmetic, without stopping early.
"""

import math

import numpy as np

from dpselect.kernels.arrays import INVALID, LARGEST, UNRESOLVED, FloatArray, IndexArray, Table
from dpselect.kernels.blocks import row_extent, row_of, widest_row
from dpselect.kernels.chacha import GROUP_BYTES, StreamState, candidate_byte, load_bytes, next_word, seek
from dpselect.kernels.coins import FAIL, PASS, UNSURE, bernoulli_exp, bernoulli_exp_byte, draw_exponential, split
from dpselect.kernels.compilation import compiled, compiled_without_refcounts
from dpselect.kernels.heterogeneous import (
    WIDER,
    PublicRow,
    Rule,
    fill_heights,
    fill_plain_heights,
    fill_public_row,
    new_public_row,
)
from dpselect.kernels.instructions import BLOCK, lowest_bit, ones_of
from dpselect.kernels.lazy_gaps import KNOWN, LazyGaps
from dpselect.kernels.pmf.integrands import EXPONENTIAL, GUMBEL
from dpselect.kernels.samplers.loops import Setup, Workspace, new_workspace, visits_of
from dpselect.kernels.samplers.permute_and_flip import bernoulli_exp_candidate, suspects_in_block
from dpselect.kernels.samplers.permute_and_flip import pick as pick_of_equal_noise

ALL = np.uint64(2**64 - 1)
LOG_2 = math.log(2.0)
OCTAVES = 64
"""The largest number of octaves."""
MARGIN = 1.0 + 2.0**-40
"""A factor beyond all relative rounding errors here."""


@compiled_without_refcounts
def count_octaves(size: int, stream: StreamState, counts: IndexArray) -> int:
    """Count the candidates in octave j or higher, j = 0, 1, …, until there are none; return how many counts.

    Candidates are halved three times in one pass: 64 of them take three words, and bit i belongs to the i-th.
    Returns UNSURE if there would be too many octaves.
    """
    counts[0] = size
    remaining, filled = size, 1
    while remaining > 0:
        if filled + 3 > OCTAVES:
            return UNSURE
        halves, quarters, eighths = 0, 0, 0
        for first in range(0, remaining, 64):
            word = next_word(stream) & (ALL >> np.uint64(64 - min(64, remaining - first)))
            halves += ones_of(word)
            word &= next_word(stream)
            quarters += ones_of(word)
            word &= next_word(stream)
            eighths += ones_of(word)
        counts[filled] = halves
        counts[filled + 1] = quarters
        counts[filled + 2] = eighths
        filled += 3
        remaining = eighths
    return filled


@compiled_without_refcounts
def pick(
    heights: FloatArray, top: float, public: PublicRow, visits: int, space: Workspace, counts: IndexArray
) -> int:
    """Pick the largest share · E among the candidates that pass."""
    size = heights.size
    stream, width, seen, visited = space
    octaves = count_octaves(size, stream, counts)
    if octaves == UNSURE:
        return UNRESOLVED
    lowest = 1
    while counts[lowest] > visits:
        lowest += 1
    best = (UNRESOLVED, -math.inf, -math.inf, -math.inf)
    made, sure, octave = 0, True, octaves - 1
    while octave >= lowest and sure and best[1] <= LOG_2 * MARGIN * (octave + 1):
        while made < counts[octave] and sure:
            a, coin = split(next_word(stream), size)
            if a == UNSURE:
                sure = False
            elif not seen[a]:
                seen[a] = True
                visited[made] = a
                made += 1
                verdict = bernoulli_exp(coin, size, (top - heights[a]) * public.inverses[a], width)
                if verdict == PASS:
                    # W = (1 + V)/2^(octave + 1), in units of 2⁻⁶³: between 1/2 and 1, and the octave
                    bits = np.uint64(2**62) | (next_word(stream) >> np.uint64(2))
                    noise, error = draw_exponential(bits, np.uint64(2))
                    best = keep_largest(a, LOG_2 * octave + noise, error, public.shares[a], best)
                sure = verdict != UNSURE
        octave -= 1
    if sure and best[1] <= LOG_2 * MARGIN * (octave + 1):
        sure, best = scan(heights, top, public, lowest, space, best)
    for i in range(made):
        seen[visited[i]] = False
    return best[0] if sure and best[1] > best[3] else UNRESOLVED


@compiled
def keep_largest(
    a: int, noise: float, error: float, share: float, best: tuple[int, float, float, float]
) -> tuple[int, float, float, float]:
    """Return (candidate, lower bound, upper bound) of the largest value so far, and a bound on all others."""
    picked, best_low, best_high, rival = best
    low, high = (noise - error) * share / MARGIN, (noise + error) * share * MARGIN
    if low > best_low:
        return a, low, high, max(rival, best_high)
    return picked, best_low, best_high, max(rival, high)


@compiled_without_refcounts
def scan(
    heights: FloatArray,
    top: float,
    public: PublicRow,
    lowest: int,
    space: Workspace,
    best: tuple[int, float, float, float],
) -> tuple[bool, tuple[int, float, float, float]]:
    """Flip the coins of all candidates not yet visited, whose E is below octave ``lowest``.

    Returns whether floats could decide every coin, and the largest value.
    """
    stream, width, seen, _ = space
    bounds = LazyGaps(heights, top, 1.0, KNOWN, heights, 0.0, 0.0, 0.0)  # shares are at most 1
    floor = 0.5**lowest
    for first in range(0, heights.size, BLOCK):
        if first % GROUP_BYTES == 0:
            load_bytes(stream, first // GROUP_BYTES)
        suspects = suspects_in_block(bounds, first, stream)
        while suspects != 0:
            a = first + lowest_bit(suspects)
            suspects &= suspects - np.uint64(1)
            byte = candidate_byte(stream, a)
            gap = (top - heights[a]) * public.inverses[a]
            if bernoulli_exp_byte(byte, gap, width) == FAIL or seen[a]:
                continue
            after_zero = next_word(stream) if byte == 0 else np.uint64(0)
            verdict = bernoulli_exp_candidate(stream, byte, after_zero, a, gap, width)
            if verdict == UNSURE:
                return False, best
            if verdict == PASS:
                uniform = (np.float64(next_word(stream)) + 0.5) * 2.0**-64
                w = floor + (1.0 - floor) * uniform
                noise = -math.log(w)
                best = keep_largest(a, noise, 2.0**-51 / w + noise * 2.0**-44, public.shares[a], best)
    return True, best


@compiled
def draw_gumbel(word: np.uint64) -> tuple[float, float]:
    """Return −log(−log(1 − V)) and a bound on its error, given that V lies in [word, word + 1)/2⁶⁴."""
    if word < np.uint64(64) or word > np.uint64(2**64 - 2**24):
        return 0.0, math.inf
    v = (np.float64(word) + 0.5) * 2.0**-64
    size = -math.log1p(-v)
    relative = 1.02 / np.float64(word) + 2.0**-51 / (1.0 - v) / size * v + 2.0**-44
    value = -math.log(size)
    return value, relative + (1.0 + abs(value)) * 2.0**-44


@compiled_without_refcounts
def pick_noisy(noise: int, heights: FloatArray, top: float, public: PublicRow, space: Workspace) -> int:
    """Pick the largest height + share · Z. A candidate takes one word: for Laplace noise a sign bit and 63 bits."""
    best_low, best_high, picked, rival = -math.inf, -math.inf, UNRESOLVED, -math.inf
    for a in range(heights.size):
        word = next_word(space.stream)
        if noise == GUMBEL:
            size, error = draw_gumbel(word)
        else:
            size, error = draw_exponential(word >> np.uint64(1), np.uint64(1))
            size = size if word & np.uint64(1) else -size
        gap = top - heights[a]
        if gap == math.inf:
            continue
        value = public.shares[a] * size - gap
        error += space.width * (1.0 + abs(size) + gap)
        if value - error > best_low:
            rival = max(rival, best_high)
            best_low, best_high, picked = value - error, value + error, a
        else:
            rival = max(rival, value + error)
    return picked if best_low > rival else UNRESOLVED


@compiled_without_refcounts
def pick_rows(
    first: int,
    last: int,
    table: Table,
    rule: Rule,
    few: Setup,
    many: Setup,
    space: Workspace,
    public: PublicRow,
    counts: IndexArray,
    picks: IndexArray,
) -> None:
    """Pick one candidate for each row; ``few`` has the visits of permute-and-flip, ``many`` those of this one."""
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        best, magnitude = row_extent(scores)
        if not magnitude <= LARGEST:
            picks[row] = INVALID
            continue
        largest, least = fill_public_row(rule, table, row, public)
        seek(space.stream, few.units.nonces, row)
        heights, trusted = public.heights[: scores.size], True
        if rule.plain and largest > 0.0:
            rate = rule.epsilon / largest
            if least == 1.0 and rule.noise == EXPONENTIAL:
                equal = LazyGaps(scores, best, rate, KNOWN, scores, 0.0, 0.0, 0.0)
                picks[row] = pick_of_equal_noise(equal, visits_of(few.visits, scores.size), space)
                continue
            top = fill_plain_heights(scores, best, rate, public)
        else:
            top, trusted = fill_heights(rule, table, row, largest, public)
        if not trusted:
            picks[row] = UNRESOLVED
        elif rule.noise != EXPONENTIAL:
            picks[row] = pick_noisy(rule.noise, heights, top, public, space)
        elif least == 1.0:
            equal = LazyGaps(heights, top, 1.0, KNOWN, heights, 0.0, 0.0, 0.0)
            picks[row] = pick_of_equal_noise(equal, visits_of(few.visits, scores.size), space)
        else:
            picks[row] = pick(heights, top, public, visits_of(many.visits, scores.size), space, counts)


@compiled
def select_rows(
    first: int, last: int, table: Table, rule: Rule, few: Setup, many: Setup, picks: IndexArray
) -> None:
    """Pick one candidate for each row of a block."""
    size = widest_row(first, last, table.bounds)
    stream, width, seen, visited = new_workspace(many, size)
    space = Workspace(stream, width * WIDER, seen, visited)
    pick_rows(first, last, table, rule, few, many, space, new_public_row(size), np.empty(OCTAVES, np.int64), picks)
