"""Permute-and-flip (noisy max with exponential noise), with Bernoulli draws only.

Every candidate passes with probability exp(−gap), independently, and one of those that pass is picked uniformly.
"""

import math

import numpy as np

from dpselect.kernels.arrays import ALL_GAPS_NEEDED, INVALID, LARGEST, UNRESOLVED, FloatArray, IndexArray
from dpselect.kernels.blocks import row_extent, row_of
from dpselect.kernels.chacha import (
    BYTES,
    GROUP_BYTES,
    StreamState,
    candidate_byte,
    candidate_word,
    load_bytes,
    next_word,
    seek,
)
from dpselect.kernels.coins import (
    ALL_BITS,
    FAIL,
    PASS,
    UNSURE,
    bernoulli_exp,
    bernoulli_exp_byte,
    bernoulli_exp_interval,
    draw_below,
    split,
)
from dpselect.kernels.compilation import compiled_without_refcounts
from dpselect.kernels.instructions import BLOCK, lowest_bit, reaching, zero_bytes
from dpselect.kernels.lazy_gaps import LAZY, LazyGaps, block_of, exact_gap, fill_heights, gap_bound
from dpselect.kernels.samplers.loops import (
    GapRows,
    ScoreRows,
    Setup,
    Workspace,
    pick_from_gaps,
    pick_from_scores,
    visits_of,
)

KEEP_LOOKING = -2
"""Used in place of a pick: no candidate has passed yet."""

MOST_SINGLE_GAPS = 48
"""The number of lazy gaps that are computed one by one. They cost about as much as sorting and a hull."""

LOG_256 = math.log(256.0)
ONE_BYTE_GAP = 5.56
"""A candidate with a gap above log 256 = 5.545… passes only if its byte is 0; the rest is a margin for rounding."""


@compiled_without_refcounts
def pick(gaps: LazyGaps, visits: int, workspace: Workspace) -> int:
    """Let each candidate pass with probability exp(−gap), independently, and pick one that passes uniformly.

    The sampler visits candidates in random order until one passes. After ``visits`` of them it scans all others in
    one pass. Given that none has passed so far, the first to pass in random order is a uniform choice among all
    that pass.

    Lazy gaps are lower bounds. A coin that fails against the bound fails; any other is compared with the gap
    itself.
    """
    size = gaps.values.size
    stream, error_bound, seen, visited = workspace
    visited[-1] = 0  # the number of gaps computed one by one
    picked = KEEP_LOOKING
    count = 0
    while count < visits and picked == KEEP_LOOKING:
        a, coin = split(next_word(stream), size)
        if a == UNSURE:
            picked = UNRESOLVED
        elif not seen[a]:
            seen[a] = True
            visited[count] = a
            count += 1
            verdict = bernoulli_exp(coin, size, gap_bound(gaps, a), error_bound)
            if verdict != FAIL and gaps.lazy:
                visited[-1] += 1
                gap = exact_gap(gaps, a)
                verdict = ALL_GAPS_NEEDED if math.isnan(gap) else bernoulli_exp(coin, size, gap, error_bound)
            if verdict != FAIL:
                picked = a if verdict == PASS else verdict
    if picked == KEEP_LOOKING:
        picked = scan(gaps, workspace)
    for i in range(count):
        seen[visited[i]] = False
    return picked


@compiled_without_refcounts
def scan(gaps: LazyGaps, workspace: Workspace) -> int:
    """Test all candidates not yet visited and pick one that passes, uniformly.

    Candidate a's coin is U_a = 0.bbbbbbbb…. The sampler reads the first byte for every candidate, and 64 more bits
    where the byte does not decide. The i-th candidate to pass replaces the current pick with probability 1/i.
    """
    stream, error_bound, seen, visited = workspace
    picked, passers = UNRESOLVED, 0
    for first in range(0, gaps.values.size, BLOCK):
        if first % GROUP_BYTES == 0:
            load_bytes(stream, first // GROUP_BYTES)
        suspects = suspects_in_block(gaps, first, stream)
        while suspects != 0:
            a = first + lowest_bit(suspects)
            suspects &= suspects - np.uint64(1)
            byte = candidate_byte(stream, a)
            gap = gap_bound(gaps, a)
            if bernoulli_exp_byte(byte, gap, error_bound) == FAIL or seen[a]:
                continue
            after_zero = next_word(stream) if byte == 0 else np.uint64(0)
            verdict = bernoulli_exp_candidate(stream, byte, after_zero, a, gap, error_bound)
            if verdict != FAIL and gaps.lazy:
                visited[-1] += 1
                gap = exact_gap(gaps, a)
                if visited[-1] > MOST_SINGLE_GAPS or math.isnan(gap):
                    return ALL_GAPS_NEEDED
                verdict = bernoulli_exp_candidate(stream, byte, after_zero, a, gap, error_bound)
            if verdict == UNSURE:
                return UNRESOLVED
            if verdict == PASS:
                passers += 1
                if passers == 1 or draw_below(stream, passers) == 0:
                    picked = a
    return picked


@compiled_without_refcounts
def suspects_in_block(gaps: LazyGaps, first: int, stream: StreamState) -> np.uint64:
    """Return a mask of the candidates in a block that may pass: gap below ONE_BYTE_GAP, or byte 0.

    The last block of a row may be incomplete. It is then read together with values before it.
    """
    size = gaps.values.size
    count = min(BLOCK, size - first)
    mask = zero_bytes(stream, BYTES + first % GROUP_BYTES // 8) & (ALL_BITS >> np.uint64(BLOCK - count))
    if size >= BLOCK and not gaps.lazy:
        cut = gaps.top - ONE_BYTE_GAP / gaps.rate
        return mask | reaching(gaps.values, first + count - BLOCK, cut) >> np.uint64(BLOCK - count)
    block = block_of(gaps, first)
    for i in range(block.values.size):
        mask |= np.uint64(gap_bound(block, i) < ONE_BYTE_GAP) << np.uint64(i)
    return mask


@compiled_without_refcounts
def bernoulli_exp_candidate(
    stream: StreamState, byte: np.uint64, after_zero: np.uint64, a: int, x: float, error_bound: float
) -> int:
    """Decide candidate a's coin, U_a < exp(−x), from its byte if possible, otherwise with 64 more bits.

    Most bytes that do not decide are zero, and those candidates draw their further bits from the sequential
    region. Which other bytes do not decide depends on x, a rounded number, so their further bits are addressed by
    candidate.
    """
    if byte == 0:
        return bernoulli_exp(after_zero, 1, x - LOG_256, error_bound)  # 256 U_a < 256 exp(−x)
    verdict = bernoulli_exp_byte(byte, x, error_bound)
    if verdict == UNSURE:
        bits = np.float64(byte) * 2.0**64 + np.float64(candidate_word(stream, a))
        verdict = bernoulli_exp_interval(bits, 1.0, 2.0**72, x, error_bound)
    return verdict


@compiled_without_refcounts
def select_from_scores(rows: ScoreRows, setup: Setup, space: Workspace, picks: IndexArray) -> None:
    """Pick one candidate for each row of a block, from gaps over the largest sensitivity."""
    pick_from_scores(pick, rows, setup, space, picks)


@compiled_without_refcounts
def select_from_gaps(rows: GapRows, setup: Setup, space: Workspace, picks: IndexArray) -> None:
    """Pick one candidate for each of the given rows, from gaps computed before."""
    pick_from_gaps(pick, rows, setup, space, picks)


@compiled_without_refcounts
def select_pairwise(
    rows: ScoreRows, tilts: FloatArray, setup: Setup, room: FloatArray, space: Workspace, picks: IndexArray
) -> None:
    """Pick one candidate for each row from GEM gaps, computed only where the sampler looks; room is for one row."""
    first, last, table, rate = rows
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        sensitivities = row_of(table.sensitivities, table.bounds, row)
        picks[row] = ALL_GAPS_NEEDED if row_extent(scores)[1] <= LARGEST else INVALID
        if picks[row] == INVALID:
            continue
        heights = room[: scores.size]
        top, leader_sensitivity, narrowest, error = fill_heights(scores, sensitivities, tilts[row], heights)
        if narrowest > 0.0:
            seek(space.stream, setup.units.nonces, row)
            gaps = LazyGaps(heights, top, rate, LAZY, sensitivities, leader_sensitivity, narrowest, error)
            picks[row] = pick(gaps, visits_of(setup.visits, scores.size), space)
