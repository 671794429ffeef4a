"""The upper convex hull of the points (Δ_b, q_b + o_b), and tangents to it.

The GEM score asks, for each a, for the largest (y_b − y_a) / (Δ_a + Δ_b) with y = q + o − tΔ. Adding t·x
to the plane's second coordinate is a shear, which keeps hulls and tangents: the quotient is a slope, less
t, from the point (−Δ_a, y_a − tΔ_a) to the points (Δ_b, q_b + o_b). So **one hull serves every t**, and
because the outside point lies left of the whole hull, slopes along the hull rise and then fall: a binary
search finds the tangent.

Orientation tests run in pairs of floats, exact to about 2⁻¹⁰⁰ of the products compared. Three points they
misjudge are collinear to that precision, and which of them carries the tangent then changes the quotient
by less than its final rounding.
"""

from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.kernels.compilation import compiled
from dpselect.kernels.twofloat import TwoFloat, add, multiply, two_difference, two_sum


@compiled
def lead(
    scores: FloatArray, offsets: FloatArray, sensitivities: FloatArray, t: float, b: int, a: int
) -> TwoFloat:
    """Return y_b − y_a, where y = q + o − tΔ."""
    high, low = two_difference(scores[b], scores[a])
    offset_high, offset_low = two_difference(offsets[b], offsets[a])
    high, low = add(high, low, offset_high, offset_low)
    if t == 0.0:
        return high, low
    width_high, width_low = two_difference(sensitivities[a], sensitivities[b])
    tilt_high, tilt_low = multiply(width_high, width_low, t, 0.0)
    return add(high, low, tilt_high, tilt_low)


@compiled
def turns_right(
    scores: FloatArray, offsets: FloatArray, sensitivities: FloatArray, i: int, j: int, m: int
) -> bool:
    """Tell whether j lies strictly above the chord from i to m, given Δ_i < Δ_j < Δ_m."""
    rise_j = lead(scores, offsets, sensitivities, 0.0, j, i)
    rise_m = lead(scores, offsets, sensitivities, 0.0, m, i)
    run_j = two_difference(sensitivities[j], sensitivities[i])
    run_m = two_difference(sensitivities[m], sensitivities[i])
    above = multiply(rise_j[0], rise_j[1], run_m[0], run_m[1])
    chord = multiply(rise_m[0], rise_m[1], run_j[0], run_j[1])
    return add(above[0], above[1], -chord[0], -chord[1])[0] > 0.0


@compiled
def upper_hull(
    scores: FloatArray, offsets: FloatArray, sensitivities: FloatArray, order: IndexArray, hull: IndexArray
) -> int:
    """Fill ``hull`` with the vertices from left to right and return their number.

    Andrew's monotone chain over ``order``, the candidates by rising sensitivity. Of candidates with equal
    sensitivity only the best stays.
    """
    size = 0
    for a in order:
        if size > 0 and sensitivities[a] == sensitivities[hull[size - 1]]:
            if lead(scores, offsets, sensitivities, 0.0, a, hull[size - 1])[0] <= 0.0:
                continue
            size -= 1
        while size > 1 and not turns_right(scores, offsets, sensitivities, hull[size - 2], hull[size - 1], a):
            size -= 1
        hull[size] = a
        size += 1
    return size


@compiled
def steeper(
    scores: FloatArray, offsets: FloatArray, sensitivities: FloatArray, t: float, a: int, b: int, c: int
) -> bool:
    """Tell whether c gives a larger quotient for a than b does."""
    lead_b = lead(scores, offsets, sensitivities, t, b, a)
    lead_c = lead(scores, offsets, sensitivities, t, c, a)
    reach_b = two_sum(sensitivities[a], sensitivities[b])
    reach_c = two_sum(sensitivities[a], sensitivities[c])
    left = multiply(lead_c[0], lead_c[1], reach_b[0], reach_b[1])
    right = multiply(lead_b[0], lead_b[1], reach_c[0], reach_c[1])
    return add(left[0], left[1], -right[0], -right[1])[0] > 0.0


@compiled
def hull_tangent(
    scores: FloatArray,
    offsets: FloatArray,
    sensitivities: FloatArray,
    t: float,
    hull: IndexArray,
    size: int,
    a: int,
) -> int:
    """Return the vertex b with the largest (y_b − y_a) / (Δ_a + Δ_b), for Δ_a > 0."""
    low, high = 0, size - 1
    while low < high:
        middle = (low + high) // 2
        if steeper(scores, offsets, sensitivities, t, a, hull[middle], hull[middle + 1]):
            low = middle + 1
        else:
            high = middle
    vertex: int = hull[low]
    return vertex
