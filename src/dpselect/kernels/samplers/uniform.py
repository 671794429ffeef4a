"""Uniform random choice."""

from dpselect.kernels.arrays import IndexArray, Rows, Units
from dpselect.kernels.chacha import StreamState, seek
from dpselect.kernels.coins import draw_below
from dpselect.kernels.compilation import compiled_without_refcounts


@compiled_without_refcounts
def select_rows(first: int, last: int, table: Rows, units: Units, stream: StreamState, picks: IndexArray) -> None:
    """Pick a candidate of every row uniformly."""
    for row in range(first, last):
        seek(stream, units.nonces, row)
        picks[row] = draw_below(stream, table.bounds[row + 1] - table.bounds[row])
