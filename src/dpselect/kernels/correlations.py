"""Correlations of scores and sensitivities: entry points for blocks of rows, and the arithmetic."""

import math
from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import FloatArray, IndexArray, Table
from dpselect.kernels.blocks import row_of, widest_row
from dpselect.kernels.compilation import compiled
from dpselect.kernels.ranks import centred_ranks, rank_correlation, rank_covariance_sign


class Ranks(NamedTuple):
    """Centred ranks of sensitivities, and where those sensitivities start."""

    values: IndexArray
    start: int


@compiled
def sensitivity_ranks(table: Table, row: int, known: Ranks) -> Ranks:
    """Return the ranks of a row. If the known ranks belong to the same sensitivities, return those."""
    start = table.sensitivities.starts[row]
    if known.start == start and known.values.size == table.bounds[row + 1] - table.bounds[row]:
        return known
    return Ranks(centred_ranks(row_of(table.sensitivities, table.bounds, row)), start)


@compiled
def spearman_rows(first: int, last: int, table: Table, correlations: FloatArray) -> None:
    """Fill in Spearman's correlation for every row."""
    ranks = Ranks(np.empty(0, np.int64), -1)
    for row in range(first, last):
        ranks = sensitivity_ranks(table, row, ranks)
        score_ranks = centred_ranks(row_of(table.scores, table.bounds, row))
        correlations[row] = rank_correlation(score_ranks, ranks.values)


@compiled
def pearson_rows(first: int, last: int, table: Table, correlations: FloatArray) -> None:
    """Fill in Pearson's correlation for every row."""
    weights = np.ones(widest_row(first, last, table.bounds))
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        sensitivities = row_of(table.sensitivities, table.bounds, row)
        correlations[row] = correlate(scores, sensitivities, weights[: scores.size])


@compiled
def weighted_rows(first: int, last: int, table: Table, buckets: int, correlations: FloatArray) -> None:
    """Fill in the bucketed weighted correlation for every row."""
    weights = np.empty(widest_row(first, last, table.bounds))
    tops = np.empty(buckets)
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        sensitivities = row_of(table.sensitivities, table.bounds, row)
        fill_bucket_weights(scores, sensitivities, tops, weights[: scores.size])
        correlations[row] = correlate(scores, sensitivities, weights[: scores.size])


@compiled
def fill_bucket_weights(
    scores: FloatArray, sensitivities: FloatArray, tops: FloatArray, weights: FloatArray
) -> None:
    """Fill in Δ_a / (the largest Δ in a's bucket), or 1 if that is zero; ``tops`` has one entry for each bucket."""
    least = scores.min()
    spread = scores.max() - least
    tops[:] = 0.0
    for a in range(scores.size):
        bucket = bucket_of(scores[a] - least, spread, tops.size)
        tops[bucket] = max(tops[bucket], sensitivities[a])
    for a in range(scores.size):
        top = tops[bucket_of(scores[a] - least, spread, tops.size)]
        weights[a] = sensitivities[a] / top if top > 0.0 else 1.0


@compiled
def bucket_of(rise: float, spread: float, buckets: int) -> int:
    """Return which of the equal parts of [0, spread] a score lies in. The last part is closed."""
    return min(int(rise * buckets / spread), buckets - 1) if spread > 0.0 else 0


@compiled
def correlate(x: FloatArray, y: FloatArray, weights: FloatArray) -> float:
    """Return the weighted Pearson correlation; NaN if all x, or all y, of positive weight are equal.

    Numbers are measured from those of the heaviest candidate h: a difference of two floats has a relative error of
    at most u, however far they lie from zero. Let S be the weighted sum of squares about h, V the one about the
    mean, and W ≤ k w_h the total weight. Then w_h · mean² ≤ V, so S = V + W · mean² ≤ (1 + k) V. Cancellation
    therefore costs at most a factor √k. Dividing by the largest difference first keeps squares in range.
    """
    heaviest = np.argmax(weights)
    from_x, from_y = centre(x, x[heaviest], weights), centre(y, y[heaviest], weights)
    total, x_sum, y_sum = 0.0, 0.0, 0.0
    for a in range(x.size):
        total += weights[a]
        x_sum += weights[a] * from_x[a]
        y_sum += weights[a] * from_y[a]
    x_mean, y_mean = x_sum / total, y_sum / total
    xx, xy, yy = 0.0, 0.0, 0.0
    for a in range(x.size):
        dx, dy = from_x[a] - x_mean, from_y[a] - y_mean
        xx += weights[a] * dx * dx
        xy += weights[a] * dx * dy
        yy += weights[a] * dy * dy
    if not (xx > 0.0 and yy > 0.0):
        return math.nan
    return min(1.0, max(-1.0, xy / (math.sqrt(xx) * math.sqrt(yy))))


@compiled
def centre(values: FloatArray, middle: float, weights: FloatArray) -> FloatArray:
    """Return value − middle in units of the largest such difference of positive weight; NaN if that is zero."""
    differences = np.empty(values.size)
    widest = 0.0
    for a in range(values.size):
        differences[a] = values[a] - middle if weights[a] > 0.0 else 0.0
        widest = max(widest, abs(differences[a]))
    return differences / widest


@compiled
def correlation_signs(first: int, last: int, table: Table, positive: IndexArray) -> None:
    """Fill in, for every row, whether Spearman's correlation of scores and sensitivities is at least 0."""
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        sensitivities = row_of(table.sensitivities, table.bounds, row)
        positive[row] = rank_covariance_sign(scores, sensitivities) >= 0
