"""The rank correlation of scores and sensitivities, for blocks of rows."""

from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import FloatArray, IndexArray, Rows
from dpselect.kernels.blocks import row_of
from dpselect.kernels.compilation import compiled
from dpselect.kernels.ranks import centred_ranks, rank_correlation, rank_covariance_sign


class Ranks(NamedTuple):
    """Centred ranks of sensitivities, and where those sensitivities start."""

    values: IndexArray
    start: int


@compiled
def sensitivity_ranks(table: Rows, row: int, known: Ranks) -> Ranks:
    """Return the ranks of a row. If the known ranks belong to the same sensitivities, return those."""
    start = table.sensitivities.starts[row]
    if known.start == start and known.values.size == table.bounds[row + 1] - table.bounds[row]:
        return known
    return Ranks(centred_ranks(row_of(table.sensitivities, table.bounds, row)), start)


@compiled
def spearman_rows(first: int, last: int, table: Rows, correlations: FloatArray) -> None:
    """Fill in Spearman's correlation for every row."""
    ranks = Ranks(np.empty(0, np.int64), -1)
    for row in range(first, last):
        ranks = sensitivity_ranks(table, row, ranks)
        score_ranks = centred_ranks(row_of(table.scores, table.bounds, row))
        correlations[row] = rank_correlation(score_ranks, ranks.values)


@compiled
def correlation_signs(first: int, last: int, table: Rows, positive: IndexArray) -> None:
    """Fill in, for every row, whether Spearman's correlation of scores and sensitivities is at least 0."""
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        sensitivities = row_of(table.sensitivities, table.bounds, row)
        positive[row] = rank_covariance_sign(scores, sensitivities) >= 0
