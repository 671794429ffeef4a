"""The candidates of a row as samplers see them: how far each trails the leader, in units of the noise.

For noisy max that is a difference times a rate, formed when it is looked at. For GEM a gap is
rate · max_b (y_b − y_a)/(Δ_a + Δ_b), which takes a pass over the row. Any single b bounds it from below, and so
bounds the probability to pass from above: most coins fail already against the bound that the leader gives, the b
of the largest y. Only for the others the maximum is taken over all b. For most rows that is a pass or two, without
sorting; a row that would need many is left to the hull.

Floats suffice. With scores taken relative to the first one, y_b − y_a errs by at most
``error`` = 8u(max|q_b − q_0| + |t| max Δ), u = 2⁻⁵³, so a gap by rate · error/(Δ_a + min Δ) and 4u of itself.
"""

import math
from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import FloatArray
from dpselect.kernels.compilation import compiled_without_refcounts, inlined
from dpselect.kernels.gaps import FAR
from dpselect.kernels.instructions import (
    BLOCK,
    MAGNITUDE,
    first_reaching,
    float_bits,
    float_of_bits,
    ordered_bits,
    ordered_bits_of,
)

KNOWN, LAZY = False, True

PRECISE = 2.0**-43
"""The largest error of a gap; with its relative one it stays within the 2⁻⁴² that samplers allow for."""

MARGIN = 1.0 - 2.0**-40
"""Makes up for the rounding of a lower bound."""


class LazyGaps(NamedTuple):
    """Candidates with their gaps: (top − values[a]) · rate; if ``lazy``, values are y, and gaps are GEM's."""

    values: FloatArray
    top: float
    rate: float
    lazy: bool
    sensitivities: FloatArray
    """These and what follows only matter to a lazy lineup."""
    width: float
    """The leader's sensitivity."""
    narrowest: float
    """The smallest sensitivity."""
    error: float
    """What y_b − y_a may be off by."""


@compiled_without_refcounts
def fill_heights(
    scores: FloatArray, sensitivities: FloatArray, t: float, heights: FloatArray
) -> tuple[float, float, float, float]:
    """Fill y; return the largest, that candidate's sensitivity, the smallest sensitivity, and ``error``."""
    origin = scores[0]
    farthest, widest, narrowest, highest = np.int64(0), np.int64(0), MAGNITUDE, -MAGNITUDE
    for a in range(scores.size):
        shifted = scores[a] - origin
        heights[a] = shifted - t * sensitivities[a]
        farthest = max(farthest, float_bits(shifted) & MAGNITUDE)
        widest = max(widest, float_bits(sensitivities[a]))
        narrowest = min(narrowest, float_bits(sensitivities[a]))
        highest = max(highest, ordered_bits(heights[a]))
    top = float_of_bits(ordered_bits_of(highest))
    error = 2.0**-50 * (float_of_bits(farthest) + abs(t) * float_of_bits(widest))
    return top, sensitivities[first_reaching(heights, top)], float_of_bits(narrowest), error


@inlined
def block_of(lineup: LazyGaps, first: int) -> LazyGaps:
    """Return the BLOCK candidates from number ``first`` on, or as many as there are."""
    values, top, rate, lazy, sensitivities, width, narrowest, error = lineup
    values, sensitivities = values[first : first + BLOCK], sensitivities[first : first + BLOCK]
    return LazyGaps(values, top, rate, lazy, sensitivities, width, narrowest, error)


@compiled_without_refcounts
def gap_bound(lineup: LazyGaps, a: int) -> float:
    """Return a candidate's gap or, if the lineup is lazy, a lower bound on it."""
    gap: float = (lineup.top - lineup.values[a]) * lineup.rate
    if lineup.lazy:
        slack = lineup.error * lineup.rate / (2.0 * lineup.narrowest)
        gap = gap / (lineup.sensitivities[a] + lineup.width) * MARGIN - slack
    return gap


@compiled_without_refcounts
def exact_gap(lineup: LazyGaps, a: int) -> float:
    """Return the gap of a candidate of a lazy lineup, within 2⁻⁴² if it is below FAR; NaN if floats cannot tell.

    A quotient is computed only in blocks where one exceeds the largest so far, which a product tells, and faster.
    """
    height, width = lineup.values[a], lineup.sensitivities[a]
    steepest = float_bits((lineup.top - height) / (width + lineup.width))
    for first in range(0, lineup.values.size, BLOCK):
        block = block_of(lineup, first)
        values, widths = block.values, block.sensitivities
        slope, excess = float_of_bits(steepest), np.int64(0)
        for b in range(values.size):
            excess = max(excess, float_bits((values[b] - height) - slope * (width + widths[b])))
        if excess > 0:
            for b in range(values.size):
                steepest = max(steepest, float_bits((values[b] - height) / (width + widths[b])))
    gap = lineup.rate * float_of_bits(steepest)
    error = lineup.rate * lineup.error / (width + lineup.narrowest)
    return gap if error < PRECISE or gap - error > FAR else math.nan
