"""The gaps of selected rows, by each normalisation; :mod:`dpselect.kernels.gaps` has the formulas.

All loops have the same signature. The gaps of row ``rows[i]`` go to ``gaps[places[i]:places[i + 1]]``;
``trusted[i]`` says whether they are as precise as the samplers need.
"""

from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import FlagArray, FloatArray, IndexArray, Rows
from dpselect.kernels.blocks import points_of, row_of, widest_row
from dpselect.kernels.compilation import compiled
from dpselect.kernels.gaps import fill_global_gaps, fill_pairwise_gaps, fill_plain_gaps


class PublicNumbers(NamedTuple):
    """The public parameters of a normalisation."""

    rate: float
    tilts: FloatArray
    """One for each row."""


@compiled
def fill_plain_rows(
    rows: IndexArray, places: IndexArray, table: Rows, numbers: PublicNumbers, gaps: FloatArray, trusted: FlagArray
) -> None:
    """Fill gaps by global normalisation, without offsets and tilt."""
    for i in range(rows.size):
        scores = row_of(table.scores, table.bounds, rows[i])
        sensitivities = row_of(table.sensitivities, table.bounds, rows[i])
        trusted[i] = fill_plain_gaps(scores, sensitivities, numbers.rate, gaps[places[i] : places[i + 1]])


@compiled
def fill_global_rows(
    rows: IndexArray, places: IndexArray, table: Rows, numbers: PublicNumbers, gaps: FloatArray, trusted: FlagArray
) -> None:
    """Fill gaps by global normalisation."""
    for i in range(rows.size):
        row = rows[i]
        target = gaps[places[i] : places[i + 1]]
        trusted[i] = fill_global_gaps(points_of(table, row), numbers.tilts[row], numbers.rate, target)


@compiled
def fill_pairwise_rows(
    rows: IndexArray, places: IndexArray, table: Rows, numbers: PublicNumbers, gaps: FloatArray, trusted: FlagArray
) -> None:
    """Fill gaps by pairwise normalisation. Rows that share their sensitivities are sorted once."""
    hull = np.empty(widest_row(0, rows.size, places), np.int64)
    order, start = np.empty(0, np.int64), -1
    for i in range(rows.size):
        row = rows[i]
        points = points_of(table, row)
        if table.sensitivities.starts[row] != start or points.scores.size != order.size:
            order, start = np.argsort(points.sensitivities), table.sensitivities.starts[row]
        target = gaps[places[i] : places[i + 1]]
        trusted[i] = fill_pairwise_gaps(points, order, numbers.tilts[row], numbers.rate, hull, target)
