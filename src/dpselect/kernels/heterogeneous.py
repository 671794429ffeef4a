"""Rows of the heterogeneous noisy max: heights in units of the largest noise, and each candidate's share of it.

A candidate's *height* is (q_a + o_a − tΔ_a) · ε/L + n_a, with L = max_a (Δ_a + max_{b≠a} Δ_b) and n_a its neutral
offset. Its *share* is c_a = (Δ_a + max_{b≠a} Δ_b)/L. The pick is the largest of height + share · Z.

Only differences of heights matter, so scores are taken relative to one of them. That is the first score, as long as
all scores are within NEAR units of it; otherwise it is the best score. Heights within 128 of the highest then err
by at most 2⁻⁴² (docs/theory/exact-sampling.md), and gaps in units of a candidate's own noise by at most four times
that. Samplers therefore use WIDER times the usual error bound.
"""

from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import FlagArray, FloatArray, IndexArray, Rows
from dpselect.kernels.blocks import points_of, row_of
from dpselect.kernels.compilation import compiled_without_refcounts, in_numpy
from dpselect.kernels.gaps import fill_global_gaps
from dpselect.kernels.instructions import MAGNITUDE, float_bits, float_of_bits, ordered_bits, ordered_bits_of
from dpselect.kernels.neutral import Room, fill_neutral, neutral_offsets
from dpselect.kernels.shares import Extremes, extremes_of

WIDER = 4.0
NEAR = 256.0


class LawParameters(NamedTuple):
    """The public parameters of the law."""

    epsilon: float
    plain: bool
    """Whether there are no public offsets and no tilts."""
    tilts: FloatArray
    """One for each row."""


class Heights(NamedTuple):
    """The heights (values[a] − origin) · rate + offsets[a], and the sensitivities, which give the shares."""

    values: FloatArray
    origin: float
    rate: float
    offsets: FloatArray
    sensitivities: FloatArray
    extremes: Extremes


@compiled_without_refcounts
def height_of(heights: Heights, a: int) -> float:
    """Return a candidate's height."""
    height: float = (heights.values[a] - heights.origin) * heights.rate + heights.offsets[a]
    return height


@compiled_without_refcounts
def same_sensitivities(table: Rows, row: int, other: int) -> bool:
    """Return whether two rows share their sensitivities."""
    sizes_agree = table.bounds[row + 1] - table.bounds[row] == table.bounds[other + 1] - table.bounds[other]
    return bool(sizes_agree and table.sensitivities.starts[row] == table.sensitivities.starts[other])


@compiled_without_refcounts
def fill_offset_rows(
    first: int, last: int, table: Rows, room: Room, values: FloatArray, starts: IndexArray
) -> None:
    """Fill neutral offsets, once for rows that share sensitivities; row r's start at ``values[starts[r]]``."""
    used = 0
    for row in range(first, last):
        if row > first and same_sensitivities(table, row, row - 1):
            starts[row] = starts[row - 1]
            continue
        sensitivities = row_of(table.sensitivities, table.bounds, row)
        starts[row] = used
        used += sensitivities.size
        fill_neutral(sensitivities, extremes_of(sensitivities), room, values[starts[row] : used])


@in_numpy(fill_offset_rows, small=1 << 20)
def _fill_offset_rows(
    first: int,
    last: int,
    table: Rows,
    room: Room,  # noqa: ARG001 - of the kernel
    values: FloatArray,
    starts: IndexArray,
) -> None:
    sizes, origins = np.diff(table.bounds[first : last + 1]), table.sensitivities.starts[first:last]
    new = np.append(True, (sizes[1:] != sizes[:-1]) | (origins[1:] != origins[:-1]))
    ends = np.cumsum(np.where(new, sizes, 0))
    starts[first:last] = np.maximum.accumulate(np.where(new, ends - sizes, 0))
    for size in np.unique(sizes):
        rows, places = np.flatnonzero(new & (sizes == size)), np.arange(size)
        for some in np.array_split(rows, 1 + rows.size // 128):  # whose work arrays fit into the processor's cache
            widths = table.sensitivities.values[origins[some][:, None] + places]
            values[starts[first + some][:, None] + places] = neutral_offsets(widths)


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
def fill_equal_rows(
    places: IndexArray, table: Rows, law: LawParameters, gaps: FloatArray, trusted: FlagArray
) -> None:
    """Fill the gaps of rows of equal shares: how far each candidate trails the highest, in units of the noise."""
    for row in range(trusted.size):
        target = gaps[places[row] : places[row + 1]]
        extremes = extremes_of(row_of(table.sensitivities, table.bounds, row))
        trusted[row] = fill_levels(law, table, row, extremes, target)
        for a in range(target.size):
            target[a] = -target[a]


@compiled_without_refcounts
def fill_levels(law: LawParameters, table: Rows, row: int, extremes: Extremes, levels: FloatArray) -> bool:
    """Fill scores with offsets and tilt, in units of the largest noise. Return whether they can be trusted.

    If all sensitivities are zero, the scores are public: the best candidates get 0 and all others −∞.
    """
    # Half the gaps: those up to 128, twice as many as usual, must be as precise as the samplers need.
    rate = 0.5 * law.epsilon * (extremes.widest / extremes.largest) if extremes.largest > 0.0 else 1.0
    trusted = fill_global_gaps(points_of(table, row), law.tilts[row], rate, levels)
    for a in range(levels.size):
        levels[a] *= -2.0
    return trusted
