"""GEM gaps on demand: a lower bound for everybody, the gap itself only for candidates that might pass.

A candidate's gap is budget · max_b (y_b − y_a)/(Δ_a + Δ_b). Any single b bounds it from below, and so bounds the
probability to pass from above: most coins fail already against the bound that two well chosen b give. For the
others the maximum is taken over all b. For most rows that is a pass or two, without sorting; a row that would
need many is left to the hull.

Floats suffice. With scores taken relative to the first one, y_b − y_a errs by at most
``error`` = 8u(max|q_b − q_0| + |t| max Δ), u = 2⁻⁵³, so a gap by budget · error/(Δ_a + min Δ) and 4u of itself.
"""

import math
from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import FloatArray
from dpselect.kernels.compilation import compiled
from dpselect.kernels.gaps import FAR
from dpselect.kernels.instructions import float_bits, float_of_bits

KNOWN, LAZY = False, True

PRECISE = 2.0**-43
"""The largest error of a gap; with its relative one it stays within the 2⁻⁴² that samplers allow for."""

MARGIN = 1.0 - 2.0**-40
"""Makes up for the rounding of a lower bound."""


class GapOracle(NamedTuple):
    """What it takes to compute the gap of one candidate of a row."""

    lazy: bool
    """Whether known gaps are only lower bounds, so that a candidate who passes must be asked for here."""
    scores: FloatArray
    sensitivities: FloatArray
    t: float
    budget: float
    error: float
    narrowest: float


@compiled
def no_oracle() -> GapOracle:
    """Return the oracle of a row whose gaps are all known."""
    return GapOracle(KNOWN, np.empty(0), np.empty(0), 0.0, 0.0, 0.0, 0.0)


@compiled
def new_oracle(
    scores: FloatArray,
    sensitivities: FloatArray,
    t: float,
    budget: float,
    negative_bounds: FloatArray,
) -> GapOracle:
    """Fill minus the lower bounds on the gaps; return what computes the gaps themselves.

    The two b are the candidate of the largest y, and that of the largest y − sΔ for a slope s typical of the
    row: vertices of the upper hull, where all maxima are attained.
    """
    origin = scores[0]
    farthest, widest, narrowest = np.int64(0), np.int64(0), np.int64(0x7FFFFFFFFFFFFFFF)
    heights = negative_bounds  # first y, then the bound computed from it
    for a in range(scores.size):
        shifted = scores[a] - origin
        heights[a] = shifted - t * sensitivities[a]
        farthest = max(farthest, float_bits(abs(shifted)))
        widest = max(widest, float_bits(sensitivities[a]))
        narrowest = min(narrowest, float_bits(sensitivities[a]))
    error = 2.0**-50 * (float_of_bits(farthest) + abs(t) * float_of_bits(widest))
    highest = argmax_less(heights, sensitivities, 0.0)
    slope = (heights[highest] - heights.mean()) / (float_of_bits(widest) + float_of_bits(narrowest))
    steepest = argmax_less(heights, sensitivities, slope)
    y_first, width_first = heights[highest], sensitivities[highest]
    y_second, width_second = heights[steepest], sensitivities[steepest]
    for a in range(scores.size):
        first = (y_first - heights[a]) / (sensitivities[a] + width_first)
        second = (y_second - heights[a]) / (sensitivities[a] + width_second)
        bound = max(second, first)
        slack = error / (sensitivities[a] + float_of_bits(narrowest))
        negative_bounds[a] = (slack - bound * MARGIN) * budget
    return GapOracle(LAZY, scores, sensitivities, t, budget, error, float_of_bits(narrowest))


@compiled
def argmax_less(heights: FloatArray, sensitivities: FloatArray, slope: float) -> int:
    """Return the candidate of the largest y − slope · Δ, or nearly so: it only has to be a good choice."""
    best, chosen = -math.inf, 0
    for a in range(heights.size):
        value = heights[a] - slope * sensitivities[a]
        if value > best:
            best, chosen = value, a
    return chosen


@compiled
def exact_gap(oracle: GapOracle, a: int) -> float:
    """Return the gap of a candidate, within 2⁻⁴² if it is below FAR; NaN if floats cannot tell."""
    scores, sensitivities, t = oracle.scores, oracle.sensitivities, oracle.t
    origin, width = scores[0], sensitivities[a]
    height = (scores[a] - origin) - t * width
    largest = np.int64(0)  # a's quotient with itself
    for b in range(scores.size):
        lead = ((scores[b] - origin) - t * sensitivities[b]) - height
        largest = max(largest, float_bits(lead / (width + sensitivities[b])))
    gap = oracle.budget * float_of_bits(largest)
    error = oracle.budget * oracle.error / (width + oracle.narrowest)
    return gap if error < PRECISE or gap - error > FAR else math.nan
