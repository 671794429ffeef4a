"""The upper convex hull of the points (Δ_b, q_b + o_b), and tangents to it.

The GEM score asks, for each a, for the largest (y_b − y_a) / (Δ_a + Δ_b) with y = q + o − tΔ. Adding t·x
to the plane's second coordinate is a shear, which keeps hulls and tangents: the quotient is a slope, less
t, from the point (−Δ_a, y_a − tΔ_a) to the points (Δ_b, q_b + o_b). So **one hull serves every t**, and
because the outside point lies left of the whole hull, slopes along the hull rise and then fall: a binary
search finds the tangent.

Orientation tests run in floats and, where these cannot tell, in pairs of floats. What neither can decide beyond
its rounding errors they report as UNSURE. For probabilities any choice will do then: the points are collinear to
2⁻⁹⁶, and which of them carries the tangent changes the quotient by less than its final rounding. A sampler must
know, and asks.
"""

from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.kernels.compilation import borrowing, compiled
from dpselect.kernels.twofloat import TwoFloat, add, multiply, two_difference, two_sum

NO, YES, UNSURE = 0, 1, -1
PLAIN_DOUBT = 2.0**-48
"""What rounding can do to the same in single floats, u = 2⁻⁵³: 8u for a lead, 4u for products and a difference."""

DOUBT = 2.0**-98
"""What rounding can do to a difference of two products of leads and widths, relative to their sizes.

A lead of size s errs by at most 12u²s (a product 8u², two additions 4u² each, u = 2⁻⁵³), its product with an
exact width by 8u² more, the difference of two such products by 4u² of the larger: below 32u² = 2⁻¹⁰¹ in all.
"""


@borrowing
def lead(scores: FloatArray, offsets: FloatArray, sensitivities: FloatArray, t: float, b: int, a: int) -> TwoFloat:
    """Return y_b − y_a, where y = q + o − tΔ."""
    high, low = two_difference(scores[b], scores[a])
    offset_high, offset_low = two_difference(offsets[b], offsets[a])
    high, low = add(high, low, offset_high, offset_low)
    if t == 0.0:
        return high, low
    width_high, width_low = two_difference(sensitivities[a], sensitivities[b])
    tilt_high, tilt_low = multiply(width_high, width_low, t, 0.0)
    return add(high, low, tilt_high, tilt_low)


@borrowing
def lead_size(
    scores: FloatArray, offsets: FloatArray, sensitivities: FloatArray, t: float, b: int, a: int
) -> float:
    """Return |q_b − q_a| + |o_b − o_a| + |t(Δ_b − Δ_a)|, to which the error of a lead is relative."""
    tilt = abs(t * (sensitivities[b] - sensitivities[a]))
    size: float = abs(scores[b] - scores[a]) + abs(offsets[b] - offsets[a]) + tilt
    return size


@compiled
def larger_product(
    x: TwoFloat,
    y: TwoFloat,
    z: TwoFloat,
    w: TwoFloat,
    size: float,
    exact_leads: bool,  # noqa: FBT001
) -> int:
    """Decide x·y > z·w for leads x, z and widths y, w > 0; ``size`` bounds both products, leads by their sizes.

    Data with true ties must stay sure. They do where leads are exact (no tilt) and one of them is zero, or both
    are the same; and where all factors are single floats, because then their products are exact as pairs.
    """
    if exact_leads and x == z:
        difference = x[0] * add(y[0], y[1], -w[0], -w[1])[0]
        return YES if difference > 0.0 else NO
    left = multiply(x[0], x[1], y[0], y[1])
    right = multiply(z[0], z[1], w[0], w[1])
    difference = add(left[0], left[1], -right[0], -right[1])[0]
    exact = x[1] == 0.0 and y[1] == 0.0 and z[1] == 0.0 and w[1] == 0.0
    exact |= exact_leads and (x[0] == 0.0 or z[0] == 0.0)
    if exact or abs(difference) > DOUBT * size:
        return YES if difference > 0.0 else NO
    return UNSURE


@borrowing
def plain_lead(
    scores: FloatArray, offsets: FloatArray, sensitivities: FloatArray, t: float, b: int, a: int
) -> float:
    """Return y_b − y_a in single floats; it errs by less than 8u times the lead's size."""
    tilt = t * (sensitivities[b] - sensitivities[a])
    lead: float = (scores[b] - scores[a]) + (offsets[b] - offsets[a]) - tilt
    return lead


@borrowing
def turns_right(scores: FloatArray, offsets: FloatArray, sensitivities: FloatArray, i: int, j: int, m: int) -> int:
    """Decide whether j lies strictly above the chord from i to m, given Δ_i < Δ_j < Δ_m."""
    size_j = lead_size(scores, offsets, sensitivities, 0.0, j, i)
    size_m = lead_size(scores, offsets, sensitivities, 0.0, m, i)
    width_j, width_m = sensitivities[j] - sensitivities[i], sensitivities[m] - sensitivities[i]
    size = size_j * width_m + size_m * width_j
    above = plain_lead(scores, offsets, sensitivities, 0.0, j, i) * width_m
    chord = plain_lead(scores, offsets, sensitivities, 0.0, m, i) * width_j
    if abs(above - chord) > PLAIN_DOUBT * size:
        return YES if above > chord else NO
    rise_j = lead(scores, offsets, sensitivities, 0.0, j, i)
    rise_m = lead(scores, offsets, sensitivities, 0.0, m, i)
    run_j = two_difference(sensitivities[j], sensitivities[i])
    run_m = two_difference(sensitivities[m], sensitivities[i])
    return larger_product(rise_j, run_m, rise_m, run_j, size, True)  # noqa: FBT003


@borrowing
def upper_hull(
    scores: FloatArray, offsets: FloatArray, sensitivities: FloatArray, order: IndexArray, hull: IndexArray
) -> tuple[int, bool]:
    """Fill ``hull`` with the vertices from left to right; return their number, and whether all is sure.

    Andrew's monotone chain over ``order``, the candidates by rising sensitivity. Of candidates with equal
    sensitivity only the best stays.
    """
    size = 0
    sure = True
    for a in order:
        if size > 0 and sensitivities[a] == sensitivities[hull[size - 1]]:
            if lead(scores, offsets, sensitivities, 0.0, a, hull[size - 1])[0] <= 0.0:
                continue
            size -= 1
        while size > 1:
            verdict = turns_right(scores, offsets, sensitivities, hull[size - 2], hull[size - 1], a)
            sure &= verdict != UNSURE
            if verdict == YES:
                break
            size -= 1
        hull[size] = a
        size += 1
    return size, sure


@borrowing
def steeper(
    scores: FloatArray, offsets: FloatArray, sensitivities: FloatArray, t: float, a: int, b: int, c: int
) -> int:
    """Decide whether c gives a larger quotient for a than b does."""
    size_b = lead_size(scores, offsets, sensitivities, t, b, a)
    size_c = lead_size(scores, offsets, sensitivities, t, c, a)
    width_b, width_c = sensitivities[a] + sensitivities[b], sensitivities[a] + sensitivities[c]
    size = size_c * width_b + size_b * width_c
    left = plain_lead(scores, offsets, sensitivities, t, c, a) * width_b
    right = plain_lead(scores, offsets, sensitivities, t, b, a) * width_c
    if abs(left - right) > PLAIN_DOUBT * size:
        return YES if left > right else NO
    lead_b = lead(scores, offsets, sensitivities, t, b, a)
    lead_c = lead(scores, offsets, sensitivities, t, c, a)
    reach_b = two_sum(sensitivities[a], sensitivities[b])
    reach_c = two_sum(sensitivities[a], sensitivities[c])
    return larger_product(lead_c, reach_b, lead_b, reach_c, size, t == 0.0)


@borrowing
def hull_tangent(
    scores: FloatArray,
    offsets: FloatArray,
    sensitivities: FloatArray,
    t: float,
    hull: IndexArray,
    size: int,
    a: int,
) -> tuple[int, bool]:
    """Return the vertex b with the largest (y_b − y_a) / (Δ_a + Δ_b), for Δ_a > 0, and whether it is sure."""
    low, high = 0, size - 1
    sure = True
    while low < high:
        middle = (low + high) // 2
        verdict = steeper(scores, offsets, sensitivities, t, a, hull[middle], hull[middle + 1])
        sure &= verdict != UNSURE
        if verdict == YES:
            low = middle + 1
        else:
            high = middle
    return hull[low], sure
