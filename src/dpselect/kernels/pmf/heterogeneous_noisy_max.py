"""The pmf of the heterogeneous noisy max: the largest of height + share · Z, with shares between 1/2 and 1."""

import numpy as np

from dpselect.kernels.arrays import FlagArray, FloatArray, Table
from dpselect.kernels.blocks import row_extent, row_of, widest_row
from dpselect.kernels.compilation import compiled
from dpselect.kernels.heterogeneous import (
    Rule,
    fill_heights,
    fill_plain_heights,
    fill_public_row,
    new_public_row,
)
from dpselect.kernels.pmf.integrands import EXPONENTIAL
from dpselect.kernels.pmf.noisy_argmax import ONCE, fill_largest_noisy_pmf
from dpselect.kernels.pmf.permute_and_flip import fill as fill_of_equal_noise


@compiled
def fill(noise: int, heights: FloatArray, shares: FloatArray, pmf: FloatArray) -> None:
    """Fill the probabilities of one row. Heights of −∞ are never picked."""
    top, magnitude = row_extent(heights)
    if not magnitude < np.inf:
        for a in range(heights.size):
            pmf[a] = 1.0 if heights[a] == top else 0.0
        pmf /= pmf.sum()
    elif noise == EXPONENTIAL and shares.min() == 1.0:
        for a in range(heights.size):
            pmf[a] = top - heights[a]
        fill_of_equal_noise(pmf, pmf)
    else:
        fill_largest_noisy_pmf(noise, heights, shares, ONCE, 1.0, 1.0, pmf)


@compiled
def fill_rows(first: int, last: int, table: Table, rule: Rule, pmf: FloatArray, trusted: FlagArray) -> None:
    """Fill the probabilities of each row of a block whose heights can be trusted, and say which those are."""
    public = new_public_row(widest_row(first, last, table.bounds))
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        largest, _ = fill_public_row(rule, table, row, public)
        trusted[row - first] = True
        if rule.plain and largest > 0.0:
            fill_plain_heights(scores, row_extent(scores)[0], rule.epsilon / largest, public)
        else:
            trusted[row - first] = fill_heights(rule, table, row, largest, public)[1]
        if trusted[row - first]:
            size = scores.size
            target = pmf[table.bounds[row] : table.bounds[row + 1]]
            fill(rule.noise, public.heights[:size], public.shares[:size], target)


@compiled
def fill_offsets(table: Table, rule: Rule, row: int, offsets: FloatArray) -> None:
    """Fill the neutral offsets n_a of one row, for the sampler in exact arithmetic."""
    public = new_public_row(offsets.size)
    fill_public_row(rule, table, row, public)
    offsets[:] = public.offsets[: offsets.size]
