"""The pmf of the heterogeneous noisy max: the largest of height + share · Z, with shares between 1/2 and 1."""

import numpy as np

from dpselect.kernels.arrays import Column, FlagArray, FloatArray, Rows
from dpselect.kernels.blocks import row_extent, row_of, widest_row
from dpselect.kernels.compilation import compiled
from dpselect.kernels.heterogeneous import LawParameters, fill_levels
from dpselect.kernels.pmf import permute_and_flip, similar_scales
from dpselect.kernels.shares import extremes_of, share_of


@compiled
def fill(heights: FloatArray, shares: FloatArray, pmf: FloatArray) -> None:
    """Fill the probabilities of one row. If a height is −∞, all scores are public and the best are picked."""
    top, magnitude = row_extent(heights)
    if not magnitude < np.inf:
        ties = (heights == top).sum()
        for a in range(heights.size):
            pmf[a] = 1.0 / ties if heights[a] == top else 0.0
    elif shares.min() == 1.0:
        for a in range(heights.size):
            pmf[a] = top - heights[a]
        permute_and_flip.fill(pmf, pmf)
    else:
        similar_scales.fill(heights, top, shares, pmf)


@compiled
def fill_rows(
    first: int, last: int, table: Rows, law: LawParameters, neutral: Column, pmf: FloatArray, trusted: FlagArray
) -> None:
    """Fill the probabilities of each row of a block whose heights can be trusted, and say which those are."""
    size = widest_row(first, last, table.bounds)
    heights, shares = np.empty(size), np.empty(size)
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        sensitivities = row_of(table.sensitivities, table.bounds, row)
        offsets = row_of(neutral, table.bounds, row)
        levels = heights[: scores.size]
        extremes = extremes_of(sensitivities)
        plain = law.plain and extremes.largest > 0.0
        trusted[row] = plain or fill_levels(law, table, row, extremes, levels)
        if trusted[row]:
            best, rate = row_extent(scores)[0], law.epsilon / extremes.largest
            for a in range(scores.size):
                level = (scores[a] - best) * rate if plain else levels[a]
                levels[a] = level if extremes.equal else level + offsets[a]
                shares[a] = share_of(extremes, sensitivities[a]) if extremes.largest > 0.0 else 1.0
            target = pmf[table.bounds[row] : table.bounds[row + 1]]
            fill(levels, shares[: scores.size], target)
