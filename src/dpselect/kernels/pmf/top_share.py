"""The pmf of top share: $p_a = s W_a/T + (1 − s) W_a f_a/M$, with f_a the part of candidate a inside the share."""

import math

from dpselect.kernels.arrays import FloatArray, IndexArray, Rows, Share
from dpselect.kernels.blocks import row_extent, row_of
from dpselect.kernels.compilation import compiled_without_refcounts
from dpselect.kernels.instructions import float_of_bits, ordered_bits, ordered_bits_of
from dpselect.kernels.weighted_draws import ABOVE, AT, UNIT, Urn, equal_sizes, fill_urn, odds_of, weight_of


@compiled_without_refcounts
def margin_of(scores: FloatArray, share: int, weights: IndexArray, equal: bool) -> float:  # noqa: FBT001
    """Return the least score that is not outside the best share, by bisection over all floats in their order."""
    top, magnitude = row_extent(scores)
    low, high = ordered_bits(-magnitude) - 1, ordered_bits(top)
    while high - low != 1:  # the difference of two floats' places may wrap around, but not to 1
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        if weight_of(scores, float_of_bits(ordered_bits_of(middle)), ABOVE, weights, equal) < share:
            high = middle
        else:
            low = middle
    return float_of_bits(ordered_bits_of(high))


@compiled_without_refcounts
def fill_rows(
    first: int,
    last: int,
    table: Rows,
    weighted: bool,  # noqa: FBT001
    share: Share,
    urn: Urn,
    pmf: FloatArray,
) -> None:
    """Fill the probabilities of a block of rows."""
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        sizes = fill_urn(row_of(table.offsets, table.bounds, row), urn) if weighted else equal_sizes(scores.size)
        odds = odds_of(share, sizes)
        margin = margin_of(scores, odds.share, urn.weights, sizes.equal)
        outside = math.exp(-odds.gap) / sizes.total
        inside = outside - math.expm1(-odds.gap) / odds.share
        spare = odds.share - weight_of(scores, margin, ABOVE, urn.weights, sizes.equal)
        part = spare / weight_of(scores, margin, AT, urn.weights, sizes.equal)
        between = outside + part * (inside - outside)
        for a in range(scores.size):
            unit = UNIT if sizes.equal else urn.weights[a]
            rate = inside if scores[a] > margin else between if scores[a] == margin else outside
            pmf[table.bounds[row] + a] = unit * rate
