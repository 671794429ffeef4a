"""Rows that list a candidate twice."""

import numpy as np
from numpy.typing import NDArray

from dpselect.kernels.arrays import IndexArray
from dpselect.kernels.compilation import compiled

SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ / golden ratio: neighbouring identifiers land far apart


@compiled
def rows_with_duplicates(
    first: int, last: int, identifiers: IndexArray, bounds: IndexArray, flags: NDArray[np.bool_]
) -> None:
    """Flag the rows of a block in which an identifier occurs twice.

    Rows with increasing identifiers take one pass. For the others a hash table with open addressing is used, at
    most half full. Its entries carry the number of their row, so the table is never cleared.
    """
    size = 0
    for row in range(first, last):
        size = max(size, bounds[row + 1] - bounds[row])
    bits = 1
    while 1 << bits < 2 * size:
        bits += 1
    shift, mask = np.uint64(64 - bits), (1 << bits) - 1
    table = np.empty(1 << bits, np.int64)
    stamps = np.full(1 << bits, -1, np.int64)
    for row in range(first, last):
        start, end = bounds[row], bounds[row + 1]
        own = identifiers[start:end]
        falls = 0
        for i in range(own.size - 1):
            falls += own[i] >= own[i + 1]  # a sum without an early exit: the compiler vectorises it
        flags[row] = False
        if not falls:
            continue
        for i in range(start, end):
            identifier = identifiers[i]
            place = np.int64((np.uint64(identifier) * SPREAD) >> shift)
            while stamps[place] == row and table[place] != identifier:
                place = (place + 1) & mask
            if stamps[place] == row:
                flags[row] = True
                break
            stamps[place] = row
            table[place] = identifier
