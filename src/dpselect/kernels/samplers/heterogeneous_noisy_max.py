"""The largest of height + share · Z, with shares between 1/2 and 1.

Let the *gap* of a candidate be (highest height − height)/share. Its noisy score exceeds the
highest height with probability exp(−gap), independently of all others: it *passes*. The highest candidate always
passes, so only those that pass can be picked. Exponential noise has no memory. So a candidate that passes exceeds
the highest height by share · E with a fresh exponential variable E. The largest share · E is picked.

Most of these are never drawn. E = −log W is in *octave* j if 2^−(j+1) ≤ W < 2^−j. The number of candidates in
octave j or higher is a number of ones among random bits, as in random stopping, and they are a random set.
The sampler visits them from the highest octave down, flips the coin of each, and stops when no remaining octave can
reach the largest share · E so far. After a number of visits, smaller as long as nobody has passed, it scans all
others in one pass, as permute-and-flip does. One byte for each candidate decides most coins, and only those that
pass draw E, given that it is in a lower octave.

If all shares are equal, this is permute-and-flip. Rows of equal shares are left to that sampler.

The twin in :mod:`dpselect.exact.samplers` does the same in exact arithmetic, without stopping early.
"""

import math
from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import (
    ALL_GAPS_NEEDED,
    INVALID,
    LARGEST,
    UNRESOLVED,
    Column,
    FloatArray,
    IndexArray,
    Rows,
    Units,
)
from dpselect.kernels.blocks import load_next_row, row_extent, row_of
from dpselect.kernels.chacha import BYTES, GROUP_BYTES, candidate_byte, load_bytes, next_word, seek, use_key
from dpselect.kernels.coins import (
    ALL_BITS,
    FAIL,
    LOG_2,
    LOGARITHMS,
    OCTAVES,
    PASS,
    UNSURE,
    bernoulli_exp_byte,
    bernoulli_exp_interval,
    draw_exponential,
    fill_octave_counts,
    sequential_word,
    split,
)
from dpselect.kernels.compilation import compiled, compiled_without_refcounts
from dpselect.kernels.heterogeneous import (
    NEAR,
    WIDER,
    Heights,
    LawParameters,
    fill_levels,
    height_of,
    highest_of,
    same_sensitivities,
)
from dpselect.kernels.instructions import BLOCK, lowest_bit, reaching, zero_bytes
from dpselect.kernels.samplers.loops import Setup, Visits, Workspace, new_workspace, visits_of
from dpselect.kernels.samplers.permute_and_flip import ONE_BYTE_GAP, bernoulli_exp_candidate
from dpselect.kernels.shares import extremes_of, share_of

MARGIN = 1.0 + 2.0**-40
"""A factor beyond all relative rounding errors here."""


@compiled_without_refcounts
def pick(
    heights: Heights, top: float, few: int, many: int, space: Workspace, counts: IndexArray, block: FloatArray
) -> int:
    """Pick the largest share · E among the candidates that pass; ``block`` has room for BLOCK heights."""
    size = heights.values.size
    stream, error_bound, seen, visited = space
    counts[0] = size  # candidates in octave j or higher
    octaves, _ = fill_octave_counts(sequential_word, stream, 0, size, 1, counts)
    if octaves == UNSURE:
        return UNRESOLVED
    best = (UNRESOLVED, -math.inf, -math.inf, -math.inf)
    made, sure, octave, visits = 0, True, octaves - 1, few
    while octave > 0 and counts[octave] <= visits and sure and best[1] <= LOG_2 * MARGIN * (octave + 1):
        while made < counts[octave] and sure:
            a, coin = split(next_word(stream), size)
            if a == UNSURE:
                sure = False
            elif not seen[a]:
                seen[a] = True
                visited[made] = a
                made += 1
                verdict = flip(heights, top, a, coin, error_bound)
                if verdict == PASS:
                    word, share = next_word(stream), share_of(heights.extremes, heights.sensitivities[a])
                    if LOG_2 * MARGIN * (octave + 1) * share > best[1]:  # otherwise it is not the largest
                        # W = (1 + V)/2^(octave + 1), in units of 2⁻⁶³: between 1/2 and 1, and the octave
                        bits = np.uint64(2**62) | (word >> np.uint64(2))
                        noise, error = draw_exponential(bits, np.uint64(2))
                        best = keep_largest(a, LOG_2 * octave + noise, error, share, best)
                    visits = many
                sure = verdict != UNSURE
        octave -= 1
    if sure and best[1] <= LOG_2 * MARGIN * (octave + 1):
        sure, best = scan(heights, top, octave + 1, space, block, best)
    for i in range(made):
        seen[visited[i]] = False
    return best[0] if sure and best[1] > best[3] else UNRESOLVED


@compiled_without_refcounts
def flip(heights: Heights, top: float, a: int, coin: np.uint64, error_bound: float) -> int:
    """Decide U < exp(−gap) of candidate a, given that U lies in [coin, coin + size)/2⁶⁴: by a table, if possible.

    With the table, it compares gap · width and so divides nothing.
    """
    widest, second, largest, _, _ = heights.extremes
    sensitivity, byte = heights.sensitivities[a], coin >> np.uint64(56)
    width = sensitivity + (widest if sensitivity < widest else second)
    distance = (top - height_of(heights, a)) * largest
    margin = error_bound + 2.0**-22  # more than all roundings, and than the end of the interval
    if distance > (LOGARITHMS[byte] + margin) * width:
        return FAIL
    if distance < (LOGARITHMS[byte + np.uint64(1)] - margin) * width:
        return PASS
    size = np.float64(heights.values.size)
    return bernoulli_exp_interval(np.float64(coin), size, 2.0**64, distance / width, error_bound)


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
    heights: Heights,
    top: float,
    lowest: int,
    space: Workspace,
    block: FloatArray,
    best: tuple[int, float, float, float],
) -> tuple[bool, tuple[int, float, float, float]]:
    """Flip the coins of all candidates not yet visited, whose E is below octave ``lowest``.

    Returns whether floats could decide every coin, and the largest value.
    """
    stream, error_bound, seen, _ = space
    size, floor = heights.values.size, 0.5**lowest
    for first in range(0, size, BLOCK):
        if first % GROUP_BYTES == 0:
            load_bytes(stream, first // GROUP_BYTES)
        for i in range(min(BLOCK, size - first)):
            block[i] = height_of(heights, first + i)
        suspects = zero_bytes(stream, BYTES + first % GROUP_BYTES // 8)
        suspects |= reaching(block, 0, top - ONE_BYTE_GAP)  # shares are at most 1, so gaps are at least that large
        suspects &= ALL_BITS >> np.uint64(BLOCK - min(BLOCK, size - first))
        while suspects != 0:
            i = lowest_bit(suspects)
            a = first + i
            suspects &= suspects - np.uint64(1)
            byte = candidate_byte(stream, a)
            share = share_of(heights.extremes, heights.sensitivities[a])
            gap = (top - block[i]) / share
            if bernoulli_exp_byte(byte, gap, error_bound) == FAIL or seen[a]:
                continue
            after_zero = next_word(stream) if byte == 0 else np.uint64(0)
            verdict = bernoulli_exp_candidate(stream, byte, after_zero, a, gap, error_bound)
            if verdict == UNSURE:
                return False, best
            if verdict == PASS:
                uniform = (np.float64(next_word(stream)) + 0.5) * 2.0**-64
                w = floor + (1.0 - floor) * uniform
                noise = -math.log(w)
                best = keep_largest(a, noise, 2.0**-51 / w + noise * 2.0**-44, share, best)
    return True, best


class Space(NamedTuple):
    """Room to pick one row, and the numbers of visits."""

    work: Workspace
    levels: FloatArray
    counts: IndexArray
    block: FloatArray
    left: FloatArray
    """Scores, neutral offsets and sensitivities of the candidates that a list has left."""
    few: Visits
    """As long as nobody has passed."""
    many: Visits


def new_space(setup: Setup, few: Visits, size: int) -> Space:
    """Return room for rows of up to ``size`` candidates."""
    stream, error_bound, seen, visited = new_workspace(setup, size)
    work = Workspace(stream, error_bound * WIDER, seen, visited)
    counts, block, left = np.empty(OCTAVES, np.int64), np.empty(BLOCK), np.empty((3, size))
    return Space(work, np.empty(size), counts, block, left, few, setup.visits)


@compiled_without_refcounts
def pick_row(heights: Heights, top: float, space: Space) -> int:
    """Pick one candidate of one row."""
    few, many = visits_of(space.few, heights.values.size), visits_of(space.many, heights.values.size)
    return pick(heights, top, few, many, space.work, space.counts, space.block)


@compiled_without_refcounts
def pick_plainly(heights: Heights, space: Space) -> int:
    """Pick one candidate of one row, without offsets and tilts, from heights whose origin is the first score."""
    values, _, rate, offsets, sensitivities, extremes = heights
    if extremes.equal:
        return ALL_GAPS_NEEDED if row_extent(values)[1] <= LARGEST else INVALID
    top, magnitude, farthest = highest_of(heights)
    if not magnitude <= LARGEST:
        return INVALID
    if farthest * rate > NEAR:
        heights = Heights(values, row_extent(values)[0], rate, offsets, sensitivities, extremes)
        top, _, _ = highest_of(heights)
    return pick_row(heights, top, space)


@compiled_without_refcounts
def select_from_scores(
    first: int,
    last: int,
    table: Rows,
    law: LawParameters,
    neutral: Column,
    units: Units,
    space: Space,
    lists: IndexArray,
) -> None:
    """Make a list for each row of a block, without offsets and tilts, with a key for each pick.

    The last candidate of a row takes the place of each pick. A list ends with the mark of the pick that cannot be
    made: ALL_GAPS_NEEDED if the shares of all that are left are equal.
    """
    shared, left = extremes_of(row_of(table.sensitivities, table.bounds, first)), space.left
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        sensitivities = row_of(table.sensitivities, table.bounds, row)
        offsets = row_of(neutral, table.bounds, row)
        if row > first and not same_sensitivities(table, row, row - 1):
            shared = extremes_of(sensitivities)
        load_next_row(row, last, table.scores, table.bounds)
        extremes, size = shared, scores.size
        for number in range(min(units.key.shape[0], size)):
            if number == 1:
                for a in range(size):
                    left[0, a], left[1, a], left[2, a] = scores[a], sensitivities[a], offsets[a]
            if number > 0:
                end, taken = size - number, lists[row, number - 1]
                for i in range(3):
                    left[i, taken] = left[i, end]
                scores, sensitivities, offsets = left[0, :end], left[1, :end], left[2, :end]
                extremes = extremes_of(sensitivities)
            use_key(space.work.stream, units.key, number)
            seek(space.work.stream, units.nonces, row)
            rate = law.epsilon / extremes.largest
            heights = Heights(scores, scores[0], rate, offsets, sensitivities, extremes)
            lists[row, number] = pick_plainly(heights, space)
            if lists[row, number] < 0:
                break


@compiled_without_refcounts
def select_from_levels(
    rows: IndexArray,
    table: Rows,
    law: LawParameters,
    neutral: Column,
    units: Units,
    space: Space,
    picks: IndexArray,
) -> None:
    """Pick one candidate for each of the given rows, with offsets and tilts; pass over rows of equal shares."""
    for row in rows:
        sensitivities = row_of(table.sensitivities, table.bounds, row)
        extremes, levels = extremes_of(sensitivities), space.levels[: sensitivities.size]
        seek(space.work.stream, units.nonces, row)
        if extremes.equal:
            continue
        if not fill_levels(law, table, row, extremes, levels):
            picks[row] = UNRESOLVED
        else:
            heights = Heights(levels, 0.0, 1.0, row_of(neutral, table.bounds, row), sensitivities, extremes)
            picks[row] = pick_row(heights, highest_of(heights)[0], space)
