"""The order of numbers within rows: places, ranks and sums of their products. NumPy's own sort is the fastest."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from dpselect.candidates import Batch
from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.parallel import cut_rows, over_rows

BLOCK = 1 << 16
"""The number of candidates ranked at once. Their work arrays fit into the processor's cache."""


def sorted_places(values: FloatArray, bounds: IndexArray) -> IndexArray:
    """Return the places of all values, row by row, and rising within a row, ``values[bounds[r]:bounds[r + 1]]``."""
    sizes = np.diff(bounds)
    if (sizes == sizes[0]).all():
        order = values.reshape(sizes.size, -1).argsort(axis=1)
        order += bounds[:-1, None]
        return order.reshape(-1)
    return np.concatenate([first + values[first:last].argsort() for first, last in pairwise(bounds.tolist())])


def centred_ranks(values: FloatArray, bounds: IndexArray) -> IndexArray:
    """Return 2·rank − (k + 1), for ranks 1 … k in each row with ties averaged: integers that sum to zero."""
    order = sorted_places(values, bounds)
    rising = values.take(order)
    starts = np.ones(values.size, dtype=np.bool_)
    np.not_equal(rising[1:], rising[:-1], out=starts[1:])
    starts[bounds[:-1]] = True
    firsts = np.flatnonzero(starts)  # of equal values
    ends = np.append(firsts[1:], values.size)
    sums = firsts + ends  # one more than twice the mean of the places first … end − 1
    ranks = np.empty(values.size, dtype=np.int64)
    ranks[order] = sums if sums.size == values.size else np.repeat(sums, ends - firsts)
    ranks -= np.repeat(bounds[:-1] + bounds[1:], np.diff(bounds))
    return ranks


def rank_covariances(x: IndexArray, y: IndexArray, starts: IndexArray) -> FloatArray:
    """Return Σ x y of each row's centred ranks. It is rounded once, so its sign is exact.

    The sum is taken as high·2³² + low, because one word of 64 bits could overflow beyond two million ranks.
    """
    products = x * y
    high, low = np.add.reduceat(products >> 32, starts), np.add.reduceat(products & 0xFFFFFFFF, starts)
    total: FloatArray = (high + (low >> 32)) * 2.0**32 + (low & 0xFFFFFFFF)
    return total


def over_ranks(batch: Batch, work: Callable[[IndexArray, IndexArray, IndexArray], FloatArray]) -> FloatArray:
    """Return ``work(ranks of scores, ranks of sensitivities, starts of rows)`` of blocks of rows, in one array."""
    found = np.empty(batch.rows)

    def fill(first: int, last: int) -> None:
        for begin, end in cut_rows(batch.table.bounds, BLOCK, first, last):
            block = batch.rows_between(begin, end)
            table, bounds = block.table, block.table.bounds
            x, y = (centred_ranks(block.spread(column), bounds) for column in (table.scores, table.sensitivities))
            found[begin:end] = work(x, y, bounds[:-1])

    if batch.rows:
        over_rows(batch.table.bounds, fill, seconds=3e-8)
    return found
