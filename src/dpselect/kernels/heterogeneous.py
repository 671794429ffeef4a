"""Rows of the heterogeneous noisy max: heights in units of the largest noise, and each candidate's share of it.

A candidate's *height* is (q_a + o_a − tΔ_a) · ε/L + n_a, with L = max_a (Δ_a + max_{b≠a} Δ_b) and n_a its neutral
offset. Its *share* is c_a = (Δ_a + max_{b≠a} Δ_b)/L. The pick is the largest of height + share · Z.

Only differences of heights matter, so the leader's score is subtracted first, and nothing is lost for scores of any
magnitude. Heights within 128 of the highest err by at most 2⁻⁴² (docs/theory/exact-sampling.md), and gaps in units
of a candidate's own noise by at most twice that for each of two heights. Samplers therefore use a width of WIDER
times the usual one.
"""

import math
from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import FloatArray, IndexArray, Table
from dpselect.kernels.blocks import row_extent, row_of
from dpselect.kernels.compilation import compiled, compiled_without_refcounts
from dpselect.kernels.gaps import fill_global_gaps
from dpselect.kernels.instructions import MAGNITUDE, float_of_bits, ordered_bits, ordered_bits_of
from dpselect.kernels.neutral import Room, fill_means, fill_neutral, new_room

WIDER = 4.0


class Rule(NamedTuple):
    """The public parameters of the law."""

    noise: int
    epsilon: float
    neutral: bool
    plain: bool
    """Whether there are no public offsets and no tilts."""
    tilts: FloatArray
    """One for each row."""


class PublicRow(NamedTuple):
    """What is public about a row, with room to compute it, and the heights."""

    shares: FloatArray
    """c_a."""
    inverses: FloatArray
    """1/c_a."""
    offsets: FloatArray
    """n_a."""
    limits: FloatArray
    """L, and the smallest share."""
    known: IndexArray
    """Where the sensitivities start that all this was computed from, and their number."""
    room: Room
    heights: FloatArray


@compiled
def new_public_row(size: int) -> PublicRow:
    """Return room for rows of up to ``size`` candidates."""
    known = np.full(2, -1)
    return PublicRow(np.empty(size), np.empty(size), np.empty(size), np.empty(2), known, new_room(), np.empty(size))


@compiled_without_refcounts
def fill_public_row(rule: Rule, table: Table, row: int, public: PublicRow) -> tuple[float, float]:
    """Fill shares and neutral offsets, unless the row before had the same sensitivities; return the limits."""
    sensitivities = row_of(table.sensitivities, table.bounds, row)
    start, size = table.sensitivities.starts[row], sensitivities.size
    if public.known[0] != start or public.known[1] != size:
        public.known[0], public.known[1] = start, size
        shares, offsets = public.shares[:size], public.offsets[:size]
        largest, least = fill_means(sensitivities, shares)
        public.limits[0], public.limits[1] = largest, least
        for a in range(size):
            public.inverses[a] = 1.0 / shares[a]
        if rule.neutral:
            fill_neutral(rule.noise, shares, least, public.room, offsets)
        else:
            offsets[:] = 0.0
    return public.limits[0], public.limits[1]


@compiled_without_refcounts
def fill_plain_heights(scores: FloatArray, top: float, rate: float, public: PublicRow) -> float:
    """Fill heights without offsets and tilt; return the highest."""
    heights, offsets = public.heights, public.offsets
    highest = -MAGNITUDE
    for a in range(scores.size):
        height = (scores[a] - top) * rate + offsets[a]
        heights[a] = height
        highest = max(highest, ordered_bits(height))
    return float_of_bits(ordered_bits_of(highest))


@compiled_without_refcounts
def fill_heights(rule: Rule, table: Table, row: int, largest: float, public: PublicRow) -> tuple[float, bool]:
    """Fill heights with offsets and tilt, in pairs of floats; return the highest, and whether they can be trusted.

    If L is zero, the scores are public: heights are 0 for the best candidates and −∞ for all others.
    """
    scores = row_of(table.scores, table.bounds, row)
    sensitivities = row_of(table.sensitivities, table.bounds, row)
    extra = row_of(table.public, table.bounds, row)
    heights = public.heights[: scores.size]
    budget = 0.5 * rule.epsilon * (row_extent(sensitivities)[0] / largest) if largest > 0.0 else 1.0
    trusted = fill_global_gaps(scores, extra, sensitivities, rule.tilts[row], budget, heights)
    highest = -math.inf
    for a in range(scores.size):
        heights[a] = public.offsets[a] - 2.0 * heights[a]
        highest = max(highest, heights[a])
    return highest, trusted
