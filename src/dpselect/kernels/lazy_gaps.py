"""The candidates of a row as samplers see them: how far each trails the leader, in units of the noise.

For noisy max a gap is a difference times a rate, computed when it is needed. For GEM it is rate · max_b (y_b −
y_a)/(Δ_a + Δ_b), which takes a pass over the row. Any single b gives a lower bound on the gap, and so an upper
bound on the probability of passing. Most coins already fail against the bound from the leader, the b of the
largest y. Only for the others is the maximum taken over all b. Most rows need one or two such passes and no
sorting; a row that would need many uses the hull instead.

Floats suffice. With scores taken relative to the first one, y_b − y_a errs by at most ``error`` = 8u(max|q_b −
q_0| + |t| max Δ), u = 2⁻⁵³. A gap therefore errs by at most rate · error/(Δ_a + min Δ) plus 4u of itself.
"""

import math
from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import FloatArray
from dpselect.kernels.compilation import compiled_without_refcounts, in_numpy, inlined
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
"""The largest absolute error of a gap. With the relative error it stays within the 2⁻⁴² that samplers need."""

MARGIN = 1.0 - 2.0**-40
"""A factor that keeps a rounded lower bound below the exact one."""


class LazyGaps(NamedTuple):
    """Candidates with their gaps, (top − values[a]) · rate. If ``lazy``, values are y and gaps are GEM's."""

    values: FloatArray
    top: float
    rate: float
    lazy: bool
    sensitivities: FloatArray
    """This field and the following ones are used only if ``lazy``."""
    leader_sensitivity: float
    narrowest: float
    """The smallest sensitivity."""
    error: float
    """A bound on the error of y_b − y_a."""


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


@in_numpy(fill_heights)
def _fill_heights(
    scores: FloatArray, sensitivities: FloatArray, t: float, heights: FloatArray
) -> tuple[float, float, float, float]:
    shifted = scores - scores[0]
    heights[:] = shifted - t * sensitivities
    leader = heights.argmax()
    error = 2.0**-50 * (np.abs(shifted).max() + abs(t) * sensitivities.max())
    return heights[leader], sensitivities[leader], sensitivities.min(), error


@inlined
def block_of(gaps: LazyGaps, first: int) -> LazyGaps:
    """Return the BLOCK candidates from index ``first`` on, or fewer at the end of the row."""
    values, top, rate, lazy, sensitivities, leader_sensitivity, narrowest, error = gaps
    values, sensitivities = values[first : first + BLOCK], sensitivities[first : first + BLOCK]
    return LazyGaps(values, top, rate, lazy, sensitivities, leader_sensitivity, narrowest, error)


@compiled_without_refcounts
def gap_bound(gaps: LazyGaps, a: int) -> float:
    """Return a candidate's gap, or a lower bound on it if the gaps are lazy."""
    gap: float = (gaps.top - gaps.values[a]) * gaps.rate
    if gaps.lazy:
        slack = gaps.error * gaps.rate / (2.0 * gaps.narrowest)
        gap = gap / (gaps.sensitivities[a] + gaps.leader_sensitivity) * MARGIN - slack
    return gap


@compiled_without_refcounts
def exact_gap(gaps: LazyGaps, a: int) -> float:
    """Return a candidate's lazy gap, within 2⁻⁴² if it is below FAR; NaN if floats cannot determine it.

    Quotients are computed only in blocks where one exceeds the largest so far. A product, which is faster, shows
    that.
    """
    height, sensitivity = gaps.values[a], gaps.sensitivities[a]
    steepest = float_bits((gaps.top - height) / (sensitivity + gaps.leader_sensitivity))
    for first in range(0, gaps.values.size, BLOCK):
        block = block_of(gaps, first)
        values, others = block.values, block.sensitivities
        slope, excess = float_of_bits(steepest), np.int64(0)
        for b in range(values.size):
            excess = max(excess, float_bits((values[b] - height) - slope * (sensitivity + others[b])))
        if excess > 0:
            for b in range(values.size):
                steepest = max(steepest, float_bits((values[b] - height) / (sensitivity + others[b])))
    gap = gaps.rate * float_of_bits(steepest)
    error = gaps.rate * gaps.error / (sensitivity + gaps.narrowest)
    return gap if error < PRECISE or gap - error > FAR else math.nan


@in_numpy(exact_gap)
def _exact_gap(gaps: LazyGaps, a: int) -> float:
    height, sensitivity = gaps.values[a], gaps.sensitivities[a]
    gap = gaps.rate * max(0.0, ((gaps.values - height) / (gaps.sensitivities + sensitivity)).max())
    error = gaps.rate * gaps.error / (sensitivity + gaps.narrowest)
    return gap if error < PRECISE or gap - error > FAR else math.nan
