"""Pearson's and the weighted correlation of scores and sensitivities; Spearman's is the library's."""

import math

import numpy as np

from experiments.arrays import FloatArray

__all__ = ["pearson", "weighted"]


def pearson(scores: FloatArray, sensitivities: FloatArray) -> float:
    """Return Pearson's correlation of one row; NaN if all scores, or all sensitivities, are equal.

    Example:
        >>> round(pearson(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 4.0])), 3)
        0.866
    """
    return _correlate(scores, sensitivities, np.ones(scores.size))


def weighted(scores: FloatArray, sensitivities: FloatArray, *, buckets: int = 5) -> float:
    """Return the bucketed weighted correlation of one row.

    Among candidates with similar scores, the most sensitive one gets the largest noise. So the range of the scores
    is cut into equal buckets, half-open except for the last, and candidate a has the weight Δ_a/M_a, where M_a is
    the largest Δ in a's bucket. In a bucket whose sensitivities are all zero the weight is 1, the limit of small
    equal sensitivities. The result is NaN if all scores, or all sensitivities, of positive weight are equal.

    Example:
        >>> scores, sensitivities = np.array([1.0, 1.0, 1.0, 0.0]), np.array([0.1, 0.1, 2.0, 1.0])
        >>> round(pearson(scores, sensitivities), 3)
        -0.147
        >>> round(weighted(scores, sensitivities), 3)  # the third outweighs the first two
        0.723

    References:
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025, appendix.
    """
    rises = scores - scores.min()
    if not rises.max() > 0:
        return math.nan
    places = np.minimum((rises * buckets / rises.max()).astype(np.int64), buckets - 1)
    tops = np.zeros(buckets)
    np.maximum.at(tops, places, sensitivities)
    largest = tops[places]
    weights = np.divide(sensitivities, largest, out=np.ones(scores.size), where=largest > 0)
    return _correlate(scores, sensitivities, weights)


def _correlate(x: FloatArray, y: FloatArray, weights: FloatArray) -> float:
    counted = weights > 0
    x, y, weights = x[counted], y[counted], weights[counted]
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    dx, dy = (values - np.average(values, weights=weights) for values in (x, y))
    xx, xy, yy = (float(np.sum(weights * left * right)) for left, right in ((dx, dx), (dx, dy), (dy, dy)))
    return xy / math.sqrt(xx * yy)
