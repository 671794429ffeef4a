"""GEM gaps on demand: a lower bound for everybody, the gap itself only for candidates that might pass.

A candidate's gap is budget · max_b (y_b − y_a)/(Δ_a + Δ_b). Any single b bounds it from below, and so bounds the
probability to pass from above: most coins fail already against the bound that the b of the largest y gives. For
the others the maximum is taken over all b. For most rows that is a pass or two, without sorting; a row that would
need many is left to the hull.

Floats suffice. With scores taken relative to the first one, y_b − y_a errs by at most
``error`` = 8u(max|q_b − q_0| + |t| max Δ), u = 2⁻⁵³, so a gap by budget · error/(Δ_a + min Δ) and 4u of itself.
"""

import math
from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import FloatArray
from dpselect.kernels.compilation import borrowing, compiled
from dpselect.kernels.gaps import FAR
from dpselect.kernels.instructions import (
    MAGNITUDE,
    float_bits,
    float_of_bits,
    ordered_bits,
)

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
def new_oracle(
    scores: FloatArray,
    sensitivities: FloatArray,
    t: float,
    budget: float,
    negative_bounds: FloatArray,
) -> GapOracle:
    """Fill minus the lower bounds on the gaps; return what computes the gaps themselves."""
    heights = negative_bounds  # first y, then the bound computed from it
    origin = scores[0]
    farthest, widest, narrowest, highest = np.int64(0), np.int64(0), MAGNITUDE, -MAGNITUDE
    for a in range(scores.size):
        shifted = scores[a] - origin
        heights[a] = shifted - t * sensitivities[a]
        farthest = max(farthest, float_bits(shifted) & MAGNITUDE)
        widest = max(widest, float_bits(sensitivities[a]))
        narrowest = min(narrowest, float_bits(sensitivities[a]))
        highest = max(highest, ordered_bits(heights[a]))
    leader = 0
    while ordered_bits(heights[leader]) != highest:
        leader += 1
    error = 2.0**-50 * (float_of_bits(farthest) + abs(t) * float_of_bits(widest))
    narrow = float_of_bits(narrowest)
    slack = error / (2.0 * narrow)
    top, width = heights[leader], sensitivities[leader]
    for a in range(scores.size):
        negative_bounds[a] = (slack - (top - heights[a]) / (sensitivities[a] + width) * MARGIN) * budget
    return GapOracle(LAZY, scores, sensitivities, t, budget, error, narrow)


@borrowing
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
