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


class Order(NamedTuple):
    """The candidates sorted by sensitivity, and where those sensitivities start."""

    candidates: IndexArray
    start: int


@compiled
def no_order() -> Order:
    """Return an empty order, which matches no row."""
    return Order(np.empty(0, np.int64), -1)


@compiled
def sensitivity_order(table: Rows, row: int, known: Order) -> Order:
    """Return the order of a row. If the known order is for the same sensitivities, return that."""
    start = table.sensitivities.starts[row]
    if known.start == start and known.candidates.size == table.bounds[row + 1] - table.bounds[row]:
        return known
    return Order(np.argsort(row_of(table.sensitivities, table.bounds, row)), start)


@compiled
def fill_pairwise_rows(
    rows: IndexArray, places: IndexArray, table: Rows, numbers: PublicNumbers, gaps: FloatArray, trusted: FlagArray
) -> None:
    """Fill gaps by pairwise normalisation. Rows that share their sensitivities are sorted once."""
    hull = np.empty(widest_row(0, rows.size, places), np.int64)
    order = no_order()
    for i in range(rows.size):
        row = rows[i]
        target = gaps[places[i] : places[i + 1]]
        order = sensitivity_order(table, row, order)
        trusted[i] = fill_pairwise_gaps(
            points_of(table, row), order.candidates, numbers.tilts[row], numbers.rate, hull, target
        )
