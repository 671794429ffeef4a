"""Rows of the heterogeneous noisy max: heights in units of the largest noise, and each candidate's share of it.

A candidate's *height* is (q_a + o_a − tΔ_a) · ε/L + n_a, with L = max_a (Δ_a + max_{b≠a} Δ_b) and n_a its neutral
offset. Its *share* is c_a = (Δ_a + max_{b≠a} Δ_b)/L. The pick is the largest of height + share · Z.

Only differences of heights matter, so scores are taken relative to one of them. That is the first score, as long as
all scores are within NEAR units of it; otherwise it is the best score. Heights within 128 of the highest then err
by at most 2⁻⁴² (docs/theory/exact-sampling.md), and gaps in units of a candidate's own noise by at most four times
that. Samplers therefore use WIDER times the usual width.
"""

from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import FloatArray, IndexArray, Table
from dpselect.kernels.blocks import row_of
from dpselect.kernels.compilation import compiled, compiled_without_refcounts
from dpselect.kernels.gaps import fill_global_gaps
from dpselect.kernels.instructions import MAGNITUDE, float_bits, float_of_bits, ordered_bits, ordered_bits_of
from dpselect.kernels.neutral import Room, Widths, fill_neutral, new_room, widths_of

WIDER = 4.0
NEAR = 256.0
NO_WIDTHS = Widths(0.0, 0.0, 0.0, 1.0, equal=True)
"""Before the first row."""


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
    """What is public about a row, and room to compute it."""

    offsets: FloatArray
    """n_a."""
    known: IndexArray
    """Where the sensitivities start that the offsets were computed from, and their number."""
    levels: FloatArray
    """Room for scores with offsets and tilt."""
    room: Room


class Heights(NamedTuple):
    """The heights (values[a] − origin) · rate + offsets[a], and the sensitivities, which give the shares."""

    values: FloatArray
    origin: float
    rate: float
    offsets: FloatArray
    sensitivities: FloatArray
    widths: Widths


@compiled
def new_public_row(size: int) -> PublicRow:
    """Return room for rows of up to ``size`` candidates."""
    return PublicRow(np.empty(size), np.full(2, -1), np.empty(size), new_room())


@compiled_without_refcounts
def height_of(heights: Heights, a: int) -> float:
    """Return a candidate's height."""
    height: float = (heights.values[a] - heights.origin) * heights.rate + heights.offsets[a]
    return height


@compiled_without_refcounts
def share_of(widths: Widths, sensitivity: float) -> float:
    """Return c = (Δ + largest other Δ)/L."""
    return (sensitivity + (widths.widest if sensitivity < widths.widest else widths.second)) / widths.largest


@compiled_without_refcounts
def fill_offsets(rule: Rule, table: Table, row: int, known: Widths, public: PublicRow) -> Widths:
    """Fill neutral offsets, unless the row before had the same sensitivities, whose widths are ``known``."""
    sensitivities = row_of(table.sensitivities, table.bounds, row)
    start, size = table.sensitivities.starts[row], sensitivities.size
    if public.known[0] == start and public.known[1] == size:
        return known
    public.known[0], public.known[1] = start, size
    widths = widths_of(sensitivities)
    if rule.neutral:
        fill_neutral(rule.noise, sensitivities, widths, public.room, public.offsets[:size])
    else:
        public.offsets[:size] = 0.0
    return widths


@compiled_without_refcounts
def highest_of(heights: Heights) -> tuple[float, float, float]:
    """Return the largest height, the largest magnitude of a value, and the farthest value from the origin."""
    values, origin, rate, offsets = heights.values, heights.origin, heights.rate, heights.offsets
    highest, magnitude, farthest = -MAGNITUDE, np.int64(0), np.int64(0)
    for a in range(values.size):
        distance = values[a] - origin
        highest = max(highest, ordered_bits(distance * rate + offsets[a]))
        magnitude = max(magnitude, float_bits(values[a]) & MAGNITUDE)
        farthest = max(farthest, float_bits(distance) & MAGNITUDE)
    return float_of_bits(ordered_bits_of(highest)), float_of_bits(magnitude), float_of_bits(farthest)


@compiled_without_refcounts
def fill_levels(rule: Rule, table: Table, row: int, widths: Widths, public: PublicRow) -> bool:
    """Fill scores with offsets and tilt, in units of the largest noise. Return whether they can be trusted.

    If all sensitivities are zero, the scores are public: the best candidates get 0 and all others −∞.
    """
    scores = row_of(table.scores, table.bounds, row)
    sensitivities = row_of(table.sensitivities, table.bounds, row)
    levels = public.levels[: scores.size]
    # Half the gaps: those up to 128, twice as many as usual, must be as precise as the samplers need.
    budget = 0.5 * rule.epsilon * (widths.widest / widths.largest) if widths.largest > 0.0 else 1.0
    extra = row_of(table.public, table.bounds, row)
    trusted = fill_global_gaps(scores, extra, sensitivities, rule.tilts[row], budget, levels)
    for a in range(levels.size):
        levels[a] *= -2.0
    return trusted
