"""Two normalisations: how far each candidate trails the leader, in units of the noise.

Noisy max and GEM add noise of scale one to a transformed score and report the largest.
Only differences of transformed scores matter, so each function here fills ``gaps`` with (largest transformed
score) − (transformed score of a) ≥ 0; infinity means "never picked".

With q the scores, o public offsets, Δ the sensitivities and y_a = q_a + o_a − tΔ_a:

- global:      (rate / max Δ) · y_a
- pairwise:    rate · min_b (y_a − y_b) / (Δ_a + Δ_b)      (the GEM score)

Differences are formed in pairs of floats *before* anything is scaled. Scores near 1e15 that differ in their last
bit, or sensitivities twelve decades apart, therefore lose nothing.

Each function returns whether its gaps can be *trusted*. They can if every gap below FAR = 64 has an absolute error
of at most 2⁻⁴², and every other gap a relative error of at most 2⁻⁴². A gap's relative error is below 8u (a few
roundings, u = 2⁻⁵³), so its absolute error is at most 2⁻⁴⁴ below FAR. Cancelling leads add an absolute error of
16u² times their size, counted twice because the leader is found with the same error. This error stays below 2⁻⁴⁴
while the size, in units of the noise, is below LARGE = 2⁵⁶, or below LARGE times the gap for gaps beyond FAR.
"""

import math

from dpselect.kernels.arrays import FloatArray, IndexArray, Points
from dpselect.kernels.blocks import row_extent
from dpselect.kernels.compilation import compiled, compiled_without_refcounts
from dpselect.kernels.hull import hull_tangent, lead, lead_size, upper_hull

FAR = 64.0
LARGE = 2.0**56


@compiled
def fill_plain_gaps(scores: FloatArray, sensitivities: FloatArray, rate: float, gaps: FloatArray) -> bool:
    """Fill gaps of scores over the largest sensitivity. If that is zero, all gaps are zero or infinite."""
    top, widest = row_extent(scores)[0], row_extent(sensitivities)[0]
    for a in range(scores.size):
        distance = top - scores[a]
        if widest > 0.0:
            gaps[a] = distance / widest * rate
        else:
            gaps[a] = 0.0 if distance == 0.0 else math.inf
    return True


@compiled_without_refcounts
def fill_global_gaps(points: Points, t: float, rate: float, gaps: FloatArray) -> bool:
    """Fill gaps of the tilted scores over the largest sensitivity. If that is zero, all gaps are zero or infinite.

    With a tilt, each change of leader may be wrong by a rounding error, and these errors could add up. Gaps are
    therefore trusted only if no candidate is computed to be ahead of the final leader.
    """
    leader = 0
    widest = points.sensitivities[0]
    for a in range(1, points.scores.size):
        widest = max(widest, points.sensitivities[a])
        if lead(points, t, a, leader)[0] > 0.0:
            leader = a
    trusted = True
    for a in range(points.scores.size):
        distance = lead(points, t, leader, a)[0]
        trusted &= distance >= 0.0
        if widest > 0.0:
            gaps[a] = max(0.0, distance / widest * rate)
            size = lead_size(points, t, leader, a) / widest * rate
            trusted &= size < (LARGE if gaps[a] < FAR else LARGE * gaps[a])
        else:
            gaps[a] = 0.0 if distance == 0.0 else math.inf
    return trusted


@compiled_without_refcounts
def fill_pairwise_gaps(
    points: Points, order: IndexArray, t: float, rate: float, hull: IndexArray, gaps: FloatArray
) -> bool:
    """Fill rate · max_b (y_b − y_a) / (Δ_a + Δ_b), the negative GEM score, in O(k log k).

    The largest quotient is the steepest slope from an outside point to the candidates, so it is attained on their
    upper hull (:mod:`dpselect.kernels.hull`). ``order`` sorts the candidates by sensitivity; ``hull`` has room for
    k indices. Scores of sensitivity zero are public, so they are compared directly: the lower of two gets an
    infinite gap.
    """
    size, trusted = upper_hull(points, order, hull)
    first = hull[0]
    for a in range(points.scores.size):
        b = a
        if points.sensitivities[a] > 0.0:
            b, sure = hull_tangent(points, t, hull, size, a)
            trusted &= sure
        elif lead(points, 0.0, first, a)[0] > 0.0:
            gaps[a] = math.inf  # sensitivity zero, and below `first`, the best such candidate
            continue
        elif size > 1:  # a coincides with `first`; the next vertex is by construction the steepest from there
            b = hull[1]
        gaps[a] = 0.0
        reach = points.sensitivities[a] + points.sensitivities[b]
        if b != a and reach > 0.0:
            gap = lead(points, t, b, a)[0] / reach * rate
            gaps[a] = max(0.0, gap)
            lead_error = lead_size(points, t, b, a) / reach * rate
            trusted &= lead_error < (LARGE if gap < FAR else LARGE * gap)
    return trusted
