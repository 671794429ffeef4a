"""The normalisations in fractions; see :mod:`dpselect.kernels.gaps`. ``None`` is an infinite gap."""

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from dpselect.kernels.arrays import FloatArray

Gaps: TypeAlias = list[Fraction | None]


def global_gaps(scores: FloatArray, offsets: FloatArray, sensitivities: FloatArray, t: float, rate: float) -> Gaps:
    """Return gaps over the largest sensitivity."""
    values = _tilted(scores, offsets, sensitivities, t)
    top = max(values)
    widest = Fraction(sensitivities.max())
    if widest == 0:
        return [Fraction(0) if value == top else None for value in values]
    return [(top - value) * Fraction(rate) / widest for value in values]


def pairwise_gaps(
    scores: FloatArray, offsets: FloatArray, sensitivities: FloatArray, t: float, rate: float
) -> Gaps:
    """Return gaps of GEM scores, by tangents to the upper hull."""
    heights = _tilted(scores, offsets, sensitivities, t)
    widths = [Fraction(sensitivity) for sensitivity in sensitivities]
    hull = upper_hull(widths, heights)
    best_public = max((y for y, width in zip(heights, widths, strict=True) if width == 0), default=None)
    gaps: Gaps = []
    for height, width in zip(heights, widths, strict=True):
        if width == 0 and height != best_public:
            gaps.append(None)
        else:
            gaps.append(pairwise_gap(height, width, hull) * Fraction(rate))
    return gaps


def pairwise_gap(height: Fraction, width: Fraction, hull: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    """Return the unscaled gap of one candidate to a hull. A candidate of width zero must be a vertex."""
    low, high = 0, len(hull) - 1
    if width == 0:  # the point is the hull's first vertex, and from there the next one is the steepest
        low = high = min(1, high)
    while low < high:
        middle = (low + high) // 2
        if _slope(height, width, hull[middle + 1]) > _slope(height, width, hull[middle]):
            low = middle + 1
        else:
            high = middle
    if width + hull[low][0] == 0:
        return Fraction(0)
    return max(Fraction(0), _slope(height, width, hull[low]))


def _tilted(scores: FloatArray, offsets: FloatArray, sensitivities: FloatArray, t: float) -> Sequence[Fraction]:
    columns = zip(scores, offsets, sensitivities, strict=True)
    return [Fraction(q) + Fraction(o) - Fraction(t) * Fraction(d) for q, o, d in columns]


def upper_hull(widths: Sequence[Fraction], heights: Sequence[Fraction]) -> list[tuple[Fraction, Fraction]]:
    """Return the vertices of the upper hull, from left to right."""
    hull: list[tuple[Fraction, Fraction]] = []
    for x, y in sorted(zip(widths, heights, strict=True)):
        if hull and hull[-1][0] == x:
            hull.pop()  # sorted: the later of two equal widths is at least as high
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (x - x0) > (y - y0) * (x1 - x0):
                break
            hull.pop()
        hull.append((x, y))
    return hull


def _slope(height: Fraction, width: Fraction, vertex: tuple[Fraction, Fraction]) -> Fraction:
    return (vertex[1] - height) / (vertex[0] + width)
