"""The upper convex hull of the points (Δ_b, q_b + o_b), and tangents to it.

The GEM score needs, for each a, the largest (y_b − y_a) / (Δ_a + Δ_b) with y = q + o − tΔ. Adding t·x to the
plane's second coordinate is a shear, which preserves hulls and tangents: the quotient is a slope, less t, from the
point (−Δ_a, y_a − tΔ_a) to the points (Δ_b, q_b + o_b). So **one hull serves every t**. The outside point lies
left of the whole hull, so slopes along the hull rise and then fall, and a binary search finds the tangent.

Slopes are compared in floats and, where floats cannot decide, in pairs of floats. A comparison within the proven
error of both is reported as UNSURE, and :mod:`dpselect.exact` computes the row in fractions. An undecided
comparison must never be guessed: if sensitivities are many decades apart, choosing the wrong vertex for the
tangent can change a quotient by any factor.
"""

from dpselect.kernels.arrays import IndexArray, Points
from dpselect.kernels.compilation import compiled_without_refcounts
from dpselect.kernels.twofloat import TwoFloat, add, adds_exactly, multiply, two_difference

NO, YES, UNSURE = 0, 1, -1

PLAIN_DOUBT = 2.0**-48
"""A bound on the rounding error of the same in single floats: 8u for a lead, 4u for products and a difference."""

DOUBT = 2.0**-98
"""A bound on the rounding error of a difference of two products of leads and runs, relative to their sizes.

A lead of size s errs by at most 12u²s (a product 8u², two additions 4u² each, u = 2⁻⁵³). Its product with an exact
run errs by 8u² more, and the difference of two such products by 4u² of the larger: below 32u² = 2⁻¹⁰¹ in all.
"""

TINY = 2.0**-960
"""Products at least this large lose nothing to underflow, which costs at most a few times 2⁻¹⁰⁷⁴ < DOUBT · TINY.

The rounding error of such a product of two floats is itself a float.
"""


@compiled_without_refcounts
def lead(points: Points, t: float, b: int, a: int) -> TwoFloat:
    """Return y_b − y_a, where y = q + o − tΔ.

    Without a tilt the sign is exact, also with offsets: both differences are exact, and the error of a sum of two
    pairs is relative to its result. The lead itself is rounded.
    """
    high, low = two_difference(points.scores[b], points.scores[a])
    offset_high, offset_low = two_difference(points.offsets[b], points.offsets[a])
    high, low = add(high, low, offset_high, offset_low)
    if t == 0.0:
        return high, low
    width_high, width_low = two_difference(points.sensitivities[a], points.sensitivities[b])
    tilt_high, tilt_low = multiply(width_high, width_low, t, 0.0)
    return add(high, low, tilt_high, tilt_low)


@compiled_without_refcounts
def lead_size(points: Points, t: float, b: int, a: int) -> float:
    """Return |q_b − q_a| + |o_b − o_a| + |t(Δ_b − Δ_a)|, the scale of a lead's error; TINY is for underflow."""
    tilt = abs(t * (points.sensitivities[b] - points.sensitivities[a]))
    size: float = (
        abs(points.scores[b] - points.scores[a]) + abs(points.offsets[b] - points.offsets[a]) + tilt + TINY
    )
    return size


@compiled_without_refcounts
def is_single_float(points: Points, t: float, b: int, a: int) -> bool:
    """Return whether y_b − y_a is certainly a single float, computed without any rounding."""
    score = two_difference(points.scores[b], points.scores[a])
    offset = two_difference(points.offsets[b], points.offsets[a])
    exact = adds_exactly(score[0], score[1], offset[0], offset[1])
    if t != 0.0:
        total = add(score[0], score[1], offset[0], offset[1])
        width, rest = two_difference(points.sensitivities[a], points.sensitivities[b])
        tilt = multiply(width, rest, t, 0.0)
        exact &= rest == 0.0 and (abs(tilt[0]) > TINY or width == 0.0)
        exact &= adds_exactly(total[0], total[1], tilt[0], tilt[1])
    return exact and lead(points, t, b, a)[1] == 0.0


@compiled_without_refcounts
def plain_lead(points: Points, t: float, b: int, a: int) -> float:
    """Return y_b − y_a in single floats. Its error is below 8u times the lead's size."""
    tilt = t * (points.sensitivities[b] - points.sensitivities[a])
    lead: float = (points.scores[b] - points.scores[a]) + (points.offsets[b] - points.offsets[a]) - tilt
    return lead


@compiled_without_refcounts
def steeper(points: Points, t: float, a: int, origin: float, b: int, c: int) -> int:
    """Decide whether the slope from (origin, y_a) to (Δ_c, y_c) exceeds the one to (Δ_b, y_b), given origin < Δ."""
    run_b, run_c = points.sensitivities[b] - origin, points.sensitivities[c] - origin
    size_b = lead_size(points, t, b, a)
    size_c = lead_size(points, t, c, a)
    size = size_c * run_b + size_b * run_c
    left = plain_lead(points, t, c, a) * run_b
    right = plain_lead(points, t, b, a) * run_c
    if abs(left - right) > PLAIN_DOUBT * size and size > TINY:
        return YES if left > right else NO
    return steeper_in_pairs(points, t, a, origin, b, c, size)


@compiled_without_refcounts
def steeper_in_pairs(points: Points, t: float, a: int, origin: float, b: int, c: int, size: float) -> int:
    """Decide the same in pairs of floats; ``size`` bounds both products of a lead and the other's run.

    Data with true ties must be decided. They are decided in two cases. Without a tilt, the signs of y_b − y_a, y_c
    − y_a and y_c − y_b are right, so a zero lead or two equal leads are recognised. With leads and runs that are
    single floats, their products are exact as pairs.
    """
    lead_b = lead(points, t, b, a)
    lead_c = lead(points, t, c, a)
    if t == 0.0:
        if lead_c[0] <= 0.0 <= lead_b[0]:
            return NO
        if lead_b[0] <= 0.0 <= lead_c[0]:
            return YES
        if lead(points, t, c, b)[0] == 0.0:  # then the shorter run is the steeper one
            return YES if (points.sensitivities[c] < points.sensitivities[b]) == (lead_c[0] > 0.0) else NO
    run_b, run_c = two_difference(points.sensitivities[b], origin), two_difference(points.sensitivities[c], origin)
    left = multiply(lead_c[0], lead_c[1], run_b[0], run_b[1])
    right = multiply(lead_b[0], lead_b[1], run_c[0], run_c[1])
    difference = add(left[0], left[1], -right[0], -right[1])[0]
    sure = size > TINY and abs(difference) > DOUBT * size
    if not sure and run_b[1] == 0.0 and run_c[1] == 0.0:
        sure = abs(left[0]) > TINY or lead_c[0] == 0.0
        sure &= abs(right[0]) > TINY or lead_b[0] == 0.0
        sure &= is_single_float(points, t, b, a)
        sure &= is_single_float(points, t, c, a)
    if not sure:
        return UNSURE
    return YES if difference > 0.0 else NO


@compiled_without_refcounts
def turns_right(points: Points, i: int, j: int, m: int) -> int:
    """Decide whether j lies strictly above the chord from i to m, given Δ_i < Δ_j < Δ_m."""
    return steeper(points, 0.0, i, points.sensitivities[i], m, j)


@compiled_without_refcounts
def upper_hull(points: Points, order: IndexArray, hull: IndexArray) -> tuple[int, bool]:
    """Fill ``hull`` with the vertices from left to right; return their number, and whether they are certain.

    This is Andrew's monotone chain over ``order``, the candidates sorted by sensitivity. Of candidates with equal
    sensitivity it keeps only the best.
    """
    size = 0
    sure = True
    for a in order:
        if size > 0 and points.sensitivities[a] == points.sensitivities[hull[size - 1]]:
            if lead(points, 0.0, a, hull[size - 1])[0] <= 0.0:
                continue
            size -= 1
        while size > 1:
            verdict = turns_right(points, hull[size - 2], hull[size - 1], a)
            sure &= verdict != UNSURE
            if verdict == YES:
                break
            size -= 1
        hull[size] = a
        size += 1
    return size, sure


@compiled_without_refcounts
def hull_tangent(points: Points, t: float, hull: IndexArray, size: int, a: int) -> tuple[int, bool]:
    """Return the vertex b with the largest (y_b − y_a) / (Δ_a + Δ_b), for Δ_a > 0, and whether it is certain."""
    low, high = 0, size - 1
    sure = True
    while low < high:
        middle = (low + high) // 2
        b, c = hull[middle], hull[middle + 1]
        verdict = steeper(points, t, a, -points.sensitivities[a], b, c)
        sure &= verdict != UNSURE
        if verdict == YES:
            low = middle + 1
        else:
            high = middle
    return hull[low], sure
