"""Rows of a table inside kernels: slices, extents, and the check that a pmf sums to 1."""

import math

import numpy as np

from dpselect.kernels.arrays import ALL_GAPS_NEEDED, INVALID, LARGEST, Column, FloatArray, IndexArray, Points, Rows
from dpselect.kernels.compilation import compiled_without_refcounts, in_numpy, inlined
from dpselect.kernels.instructions import MAGNITUDE, float_bits, float_of_bits, load_ahead, ordered_bits_of
from dpselect.kernels.twofloat import add

MOST_AHEAD = 1 << 11
"""Candidates of a row that are loaded ahead: 16 KB."""


@inlined
def row_of(column: Column, bounds: IndexArray, row: int) -> FloatArray:
    """Return the slice of a column that belongs to a row."""
    start = column.starts[row]
    return column.values[start : start + bounds[row + 1] - bounds[row]]


@inlined
def load_next_row(row: int, last: int, column: Column, bounds: IndexArray) -> None:
    """Let the processor load the next row, or the start of a long one, while it works on this one."""
    if row + 1 < last:
        start = column.starts[row + 1]
        load_ahead(column.values, start, start + min(bounds[row + 2] - bounds[row + 1], MOST_AHEAD))


@inlined
def points_of(table: Rows, row: int) -> Points:
    """Return the candidates of a row."""
    return Points(
        row_of(table.scores, table.bounds, row),
        row_of(table.offsets, table.bounds, row),
        row_of(table.sensitivities, table.bounds, row),
    )


@compiled_without_refcounts
def widest_row(first: int, last: int, bounds: IndexArray) -> int:
    """Return the number of candidates in the longest row of the block."""
    size = 0
    for row in range(first, last):
        size = max(size, bounds[row + 1] - bounds[row])
    return size


@compiled_without_refcounts
def row_extent(values: FloatArray) -> tuple[float, float]:
    """Return the largest value and the largest magnitude (infinite or NaN if any value is)."""
    top, largest = -MAGNITUDE, np.int64(0)
    for i in range(values.size):
        bits = float_bits(values[i])
        top = max(top, ordered_bits_of(bits))
        largest = max(largest, bits & MAGNITUDE)
    return float_of_bits(ordered_bits_of(top)), float_of_bits(largest)


@in_numpy(row_extent)
def _row_extent(values: FloatArray) -> tuple[float, float]:
    return values.max(), np.abs(values).max()


@compiled_without_refcounts
def largest_magnitude(values: FloatArray) -> float:
    """Return the largest magnitude (infinite or NaN if any value is)."""
    return row_extent(values)[1]


@in_numpy(largest_magnitude, small=1 << 24)
def _largest_magnitude(values: FloatArray) -> float:
    return float(max(values.max(), -values.min()))


@compiled_without_refcounts
def largest_miss(first: int, last: int, bounds: IndexArray, pmf: FloatArray) -> float:
    """Return the largest distance of a row's total probability from 1 (infinite for NaN or negative entries)."""
    worst = 0.0
    for row in range(first, last):
        high, low = -1.0, 0.0
        for a in range(bounds[row], bounds[row + 1]):
            if not pmf[a] >= 0.0:
                return math.inf
            high, low = add(high, low, pmf[a], 0.0)
        worst = max(worst, abs(high + low))
    return worst


@compiled_without_refcounts
def mark_rows(first: int, last: int, table: Rows, picks: IndexArray) -> None:
    """Mark each row as INVALID if a score is not finite or too large, and as ALL_GAPS_NEEDED otherwise."""
    for row in range(first, last):
        magnitude = row_extent(row_of(table.scores, table.bounds, row))[1]
        picks[row] = ALL_GAPS_NEEDED if magnitude <= LARGEST else INVALID
