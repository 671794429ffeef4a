"""Random stopping: the largest of K noisy draws, most of which are never made because their noise is small.

Draw i's noise is ±(−log W_i) times a scale. A fair coin decides whether it is positive. Another decides whether
W_i < 1/2, and if so another whether W_i < 1/4, and so on. The number of positive draws among K is therefore the
number of ones among K random bits. Of the N_j positive draws with W < 2^−j, the number with W < 2^−(j+1) is the
number of ones among N_j bits.

Draws of one *octave*, 2^−(j+1) ≤ W < 2^−j, have the same law. Draw i has a random real number U_i of its own. k ·
U_i = a + V gives the candidate a and leaves V, which is uniform again, and W = (1 + V)/2^(j+1). The sampler visits
octaves from the largest noise to the smallest, and negative noise (W = V) last. It stops when no remaining octave
can reach the largest noisy score so far.

It reads the first 32 bits of every U_i. If they do not determine the largest draw, it visits all draws again with
64 more bits of each. Its twin in :mod:`dpselect.exact.samplers` does the same in exact arithmetic.
"""

import math
from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import (
    INVALID,
    LARGEST,
    MOST_DRAWS,
    UNRESOLVED,
    FloatArray,
    IndexArray,
    Rows,
    Units,
    WordArray,
)
from dpselect.kernels.blocks import load_next_row, row_extent, row_of
from dpselect.kernels.chacha import StreamState, candidate_word, load_pair, new_stream, paired_word, seek_in_pair
from dpselect.kernels.coins import (
    FINE_LOGARITHMS,
    LOW,
    OCTAVES,
    UNSURE,
    draw_exponential,
    exponential_bounds,
    fill_octave_counts,
)
from dpselect.kernels.compilation import compiled, compiled_without_refcounts, inlined
from dpselect.kernels.pmf.integrands import NO_ETA

COARSE, FINE = False, True
LOG_2 = math.log(2.0)
HALF = np.uint64(2**62)
"""1/2, for numbers in units of 2⁻⁶³."""

DOWN = -1
"""Follows octave 0: the draws with negative noise."""


class Stopping(NamedTuple):
    """The law: the noise, and the number of draws with a logarithm that it needs."""

    one_sided: bool
    scale: float
    """Candidate a's noise has scale ``scale`` · Δ_a."""
    gamma: float
    eta: float
    rate: float
    """−log(1 − γ)."""


class Row(NamedTuple):
    """The candidates of a row."""

    scores: FloatArray
    top: float
    """The largest score."""
    sensitivities: FloatArray
    widest: float
    """The largest sensitivity."""


class Space(NamedTuple):
    """Random bits, room to count octaves, and a bound on the relative error of a computed probability."""

    stream: StreamState
    counts: IndexArray
    error_bound: float


def new_space(key: WordArray, error_bound: float) -> Space:
    """Return room for any row."""
    return Space(new_stream(key), np.empty(OCTAVES + 1, np.int64), error_bound)


@compiled_without_refcounts
def pick(law: Stopping, row: Row, space: Space) -> int:
    """Draw K candidates with replacement, add fresh noise of scale · Δ_a to each, and pick the largest."""
    count = count_draws(paired_word(space.stream, 0), law, space.error_bound)
    if count == UNSURE:
        return UNRESOLVED
    octaves, words = count_octaves(law.one_sided, count, space.stream, space.counts)
    if octaves == UNSURE:
        return UNRESOLVED
    draws = Draws(space.stream, space.counts, count, octaves, words)
    picked = pick_largest_draw(COARSE, draws, row, law.scale, space.error_bound)
    if picked == UNRESOLVED:
        picked = pick_largest_draw(FINE, draws, row, law.scale, space.error_bound)
    return picked


class Draws(NamedTuple):
    """The draws of a row: their bits, their number, the number of octaves, and their first word."""

    stream: StreamState
    counts: IndexArray
    """The number of positive draws with W < 2^−j, for j = 0, 1, …"""
    total: int
    octaves: int
    words: int


@compiled_without_refcounts
def count_octaves(one_sided: bool, count: int, stream: StreamState, counts: IndexArray) -> tuple[int, int]:  # noqa: FBT001
    """Count the positive draws with W < 2^−j, j = 0, 1, …; with one-sided noise all draws are positive."""
    counts[0] = count
    return fill_octave_counts(paired_word, stream, 1, count, 1 if one_sided else 0, counts)


@compiled_without_refcounts
def pick_largest_draw(fine: bool, draws: Draws, row: Row, scale: float, error_bound: float) -> int:  # noqa: FBT001
    """Pick the largest draw. If draws without noise (Δ_a = 0) tie, the first one counts."""
    scores, top, sensitivities, widest = row
    best_low, best_high, picked, rival = -math.inf, -math.inf, UNRESOLVED, -math.inf
    atom, atom_pick = -math.inf, UNRESOLVED
    made = 0
    for octave in range(draws.octaves - 1, DOWN - 1, -1):
        if best_low > scale * widest * (LOG_2 * (1.0 + 2.0**-30)) * (octave + 1):
            break  # the rest is at most this much above the top score
        wanted = draws.total if octave == DOWN else draws.counts[octave]
        for i in range(made, wanted):
            a, rest, span = draw(draws, i, scores.size, fine)
            if a == UNSURE:
                return UNRESOLVED
            if sensitivities[a] == 0.0:
                if scores[a] > atom:
                    atom, atom_pick = scores[a], a
                continue
            spread = scale * sensitivities[a]
            shortfall = scores[a] - top
            reach = spread * largest_noise(octave, rest)
            if not shortfall + reach + 2.0**-30 * (reach - shortfall) <= best_low:  # otherwise: not the largest
                least, most = noise_bounds(octave, rest, span, fine)
                doubt = error_bound * (spread * (1.0 + abs(least)) - shortfall)
                low, high = shortfall + spread * least - doubt, shortfall + spread * most + doubt
                if low > best_low:
                    rival = max(rival, best_high)
                    best_low, best_high, picked = low, high, a
                else:
                    rival = max(rival, high)
        made = wanted
    level = atom - top
    doubt = -error_bound * level if level > -math.inf else 0.0
    if level - doubt > max(best_high, rival):
        return atom_pick
    return picked if best_low > max(rival, level + doubt) else UNRESOLVED


@compiled
def largest_noise(octave: int, rest: np.uint64) -> float:
    """Return an upper bound on a draw's noise, without a logarithm."""
    if octave == DOWN:
        return 0.0
    bound: float = LOG_2 * octave + FINE_LOGARITHMS[(HALF | (rest >> np.uint64(2))) >> np.uint64(53)]
    return bound


@compiled
def noise_bounds(octave: int, rest: np.uint64, span: np.uint64, fine: bool) -> tuple[float, float]:  # noqa: FBT001
    """Return bounds on a draw's noise ±(−log W), given that V lies in [rest, rest + span)/2⁶⁴."""
    if octave == DOWN:
        least, most = exponential_bounds(rest >> np.uint64(1), (span >> np.uint64(1)) + np.uint64(1), fine)
        return -most, -least
    half = HALF | (rest >> np.uint64(2))
    least, most = exponential_bounds(half, (span >> np.uint64(2)) + np.uint64(2), fine)
    return LOG_2 * octave + least, LOG_2 * octave + most


@inlined
def draw(draws: Draws, i: int, size: int, fine: bool) -> tuple[int, np.uint64, np.uint64]:  # noqa: FBT001
    """Return the candidate of draw i, or UNSURE, and (rest, span) such that V lies in [rest, rest + span)/2⁶⁴.

    With U_i in [u, u + 1)/2³², k · U_i · 2⁶⁴ lies within k · 2³² above k · u · 2³². With 64 more bits f, it lies
    within k/2³² ≤ 1 above k · u · 2³² + k · f/2³², and rounding the last term down adds another 1.
    """
    number = np.uint64(size)
    leading = (paired_word(draws.stream, draws.words + i // 2) >> np.uint64(32 * (i & 1))) & LOW
    product = leading * number
    a: int = np.int64(product >> np.uint64(32))  # type: ignore[assignment] # unsigned, it would make later results unsigned
    rest, span = product << np.uint64(32), number << np.uint64(32)
    if fine or size >= 2**31 or rest > np.uint64(0) - span:  # in the last case the candidate may not be certain
        further = candidate_word(draws.stream, i)
        added = (further >> np.uint64(32)) * number + (((further & LOW) * number) >> np.uint64(32))
        a += 1 if rest > ~added else 0  # the carry
        rest, span = rest + added, np.uint64(2)
        if rest > np.uint64(0) - span:
            a = UNSURE
    return a, rest, span


@compiled
def count_draws(word: np.uint64, law: Stopping, error_bound: float) -> int:
    """Return K, the smallest n such that U < Pr[K ≤ n], given that U lies in [word, word + 1)/2⁶⁴; or UNSURE.

    Pr[K = 1] is η(1−γ)/(γ^−η − 1), and Pr[K = n+1]/Pr[K = n] is (1−γ)(n+η)/(n+1). Terms are summed in units of γ^η
    · 2^(300 · shifts), because for large η the first ones underflow. Each term loses at most 2⁻⁴⁹ to rounding, and
    all of them lose 2⁻⁴² of the exponent η log(1/γ), the amplified error of a logarithm.
    """
    gamma, eta = law.gamma, law.eta
    if gamma == 1.0:
        return 1
    if eta == 1.0:
        return count_geometric_draws(word, law.rate, error_bound)
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
        doubt = error_bound + n * 2.0**-49 - exponent * 2.0**-42
        if uniform + doubt < reached:
            return n
        if not uniform - doubt > reached:
            return UNSURE
    raise OverflowError("random stream exhausted: a pick may take at most 2^33 draws")


@compiled
def count_geometric_draws(word: np.uint64, rate: float, error_bound: float) -> int:
    """Return K for η = 1: Pr[K > n] = (1−γ)^n, so K is ⌊−log(1 − U)/rate⌋ + 1."""
    size, error = draw_exponential(~word >> np.uint64(1), np.uint64(1))
    level = size / rate
    if level > MOST_DRAWS:
        raise OverflowError("random stream exhausted: a pick may take at most 2^33 draws")
    doubt = error / rate + level * error_bound
    least, most = np.floor(level - doubt), np.floor(level + doubt)
    return int(least) + 1 if least == most else UNSURE


@compiled_without_refcounts
def select_rows(
    first: int, last: int, table: Rows, law: Stopping, units: Units, space: Space, picks: IndexArray
) -> None:
    """Pick one candidate for each row of a block. The first words of two rows' streams are computed together."""
    widest = 0.0
    for row in range(first, last):
        second = (row - first) & 1
        if not second:
            load_pair(space.stream, units.nonces, row, min(row + 1, last - 1))
        seek_in_pair(space.stream, units.nonces, row, second)
        scores = row_of(table.scores, table.bounds, row)
        sensitivities = row_of(table.sensitivities, table.bounds, row)
        top, magnitude = row_extent(scores)
        load_next_row(row, last, table.scores, table.bounds)
        if not magnitude <= LARGEST:
            picks[row] = INVALID
            continue
        if row == first or table.sensitivities.starts[row] != table.sensitivities.starts[row - 1]:
            widest = row_extent(sensitivities)[0]
        picks[row] = pick(law, Row(scores, top, sensitivities, widest), space)
