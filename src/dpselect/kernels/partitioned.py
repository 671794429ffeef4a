"""The parts of one selection over many tables: hulls that merge, and coins that each part decides on its own.

To compute a candidate's gap, a part needs only the vertices of the hull of all candidates (or the leader and the
largest sensitivity). Every candidate has a stream of its own. The first word is its coin, the second its priority;
of the candidates that pass, the one of the largest priority is picked. docs/theory/partitioned-selection.md has
the proof.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpselect.kernels.arrays import FloatArray, IndexArray, Units
from dpselect.kernels.chacha import new_stream, next_word, seek
from dpselect.kernels.coins import FAIL, UNSURE, bernoulli_exp
from dpselect.kernels.compilation import compiled, compiled_without_refcounts
from dpselect.kernels.gaps import FAR, LARGE
from dpselect.kernels.hull import NO, hull_tangent, lead, lead_size, turns_right


@compiled
def hull_points(scores: FloatArray, sensitivities: FloatArray, order: IndexArray, points: IndexArray) -> int:
    """Fill ``points`` with candidates that include all vertices of the upper hull; return their number.

    This is :func:`dpselect.kernels.hull.upper_hull`, except that it keeps every candidate that may be a vertex. It
    drops a point only if that point is certainly not above a chord between two others.
    """
    zeros = np.zeros(scores.size)
    size = 0
    for a in order:
        if size > 0 and sensitivities[a] == sensitivities[points[size - 1]]:
            if scores[a] <= scores[points[size - 1]]:
                continue
            size -= 1
        while size > 1 and turns_right(scores, zeros, sensitivities, points[size - 2], points[size - 1], a) == NO:
            size -= 1
        points[size] = a
        size += 1
    return size


@compiled
def toss_coins(
    first: int,
    last: int,
    pairwise: bool,  # noqa: FBT001
    scores: FloatArray,
    sensitivities: FloatArray,
    vertices: int,
    leader: int,
    widest: float,
    t: float,
    budget: float,
    units: Units,
    width: float,
    verdicts: NDArray[np.int8],
    priorities: NDArray[np.uint64],
) -> None:
    """Toss the coins of a block of candidates, and draw their priorities.

    The first ``vertices`` entries of ``scores`` and ``sensitivities`` are the vertices of the hull of all
    candidates, from left to right; candidate i of this part is at ``vertices`` + i. ``leader`` is the vertex of
    the largest q − tΔ. A verdict is PASS, FAIL, or UNSURE where floats cannot decide.
    """
    offsets = np.zeros(scores.size)
    hull = np.arange(vertices)
    stream = new_stream(units.key)
    for i in range(first, last):
        seek(stream, units.nonces, i)
        coin = next_word(stream)
        priorities[i] = next_word(stream)
        a = vertices + i
        gap, trusted = gap_to(scores, offsets, sensitivities, t, leader, a, pairwise, widest, budget)
        verdict = bernoulli_exp(coin, 1, gap, width) if trusted else UNSURE
        if pairwise and verdict != FAIL:  # the leader alone gives a lower bound on the gap
            if sensitivities[a] > 0.0:
                b, sure = hull_tangent(scores, offsets, sensitivities, t, hull, vertices, a)
                gap, trusted = gap_to(scores, offsets, sensitivities, t, b, a, pairwise, widest, budget)
                trusted &= sure
            elif scores[a] < scores[0]:  # vertex 0 is the best candidate of sensitivity zero
                gap, trusted = math.inf, True
            else:
                gap, trusted = gap_to(
                    scores, offsets, sensitivities, t, min(1, vertices - 1), a, pairwise, widest, budget
                )
            verdict = bernoulli_exp(coin, 1, gap, width) if trusted else UNSURE
        verdicts[i] = verdict


@compiled_without_refcounts
def gap_to(
    scores: FloatArray,
    offsets: FloatArray,
    sensitivities: FloatArray,
    t: float,
    b: int,
    a: int,
    pairwise: bool,  # noqa: FBT001
    widest: float,
    budget: float,
) -> tuple[float, bool]:
    """Return how far a trails b in units of the noise, and whether that is as precise as a gap must be."""
    reach = sensitivities[a] + sensitivities[b] if pairwise else widest
    distance = lead(scores, offsets, sensitivities, t, b, a)[0]
    if reach == 0.0:
        return (math.inf if distance > 0.0 else 0.0), True
    gap = max(0.0, distance / reach * budget)
    size = lead_size(scores, offsets, sensitivities, t, b, a) / reach * budget
    return gap, size < (LARGE if gap < FAR else LARGE * gap)
