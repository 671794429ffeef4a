"""What stands in front of the numbers of a Parquet page: its header, and the levels that tell where lists start.

A header is a structure in Thrift's compact protocol. Levels are small integers, one for each value, in Parquet's
hybrid of run lengths and bit packing: a run has a header, a whole number of variable length; if that is odd,
header >> 1 groups of eight values follow, bit by bit from the lowest on; if it is even, one value that occurs
header >> 1 times. Whatever is malformed is told, and nothing outside the arrays is read.
"""

import numpy as np
from numpy.typing import NDArray

from dpselect.kernels.arrays import IndexArray
from dpselect.kernels.compilation import compiled

MALFORMED = -1


TRUE, FALSE, BYTE, LONG, DOUBLE, BINARY, STRUCT = 1, 2, 3, 6, 7, 8, 12
"""Kinds of fields; 4, 5 and 6 are integers. Lists, sets and maps do not occur in pages' headers."""

DEEPEST = 4
FIELDS = 16


@compiled
def read_header(data: NDArray[np.uint8], fields: IndexArray) -> int:
    """Write the integers and truth values of a page's header, and return how many bytes it takes.

    Field i of the structure in field s of the header goes to ``fields[s, i]``, its own to ``fields[0, i]``; others
    stay as they are. ``MALFORMED`` is returned for what cannot be read.
    """
    parents, numbers = np.zeros(DEEPEST + 1, np.int64), np.zeros(DEEPEST + 1, np.int64)
    depth = position = 0
    while position < data.size:
        step, kind = int(data[position]) >> 4, int(data[position]) & 15
        position += 1
        if kind == 0:  # the end of a structure
            if depth == 0:
                return position
            depth -= 1
            continue
        if step:
            numbers[depth] += step
        else:
            folded, position = whole_number(data, position)
            numbers[depth] = (folded >> 1) ^ -(folded & 1)
        value = int(kind == TRUE)
        if kind == BYTE:
            position += 1
        elif BYTE < kind <= LONG:
            folded, position = whole_number(data, position)
            value = (folded >> 1) ^ -(folded & 1)
        elif kind == DOUBLE:
            position += 8
        elif kind == BINARY:
            size, position = whole_number(data, position)
            position += size
        elif kind == STRUCT:
            if depth == DEEPEST:
                return MALFORMED
            depth += 1
            parents[depth], numbers[depth] = numbers[depth - 1], 0
            continue
        elif kind > FALSE:
            return MALFORMED
        if position < 0 or position > data.size:
            return MALFORMED
        if depth < 2 and kind in (TRUE, FALSE, 4, 5, LONG):
            parent, number = parents[depth], numbers[depth]
            if 0 <= parent < FIELDS and 0 <= number < FIELDS:
                fields[parent, number] = value
    return MALFORMED


@compiled
def whole_number(data: NDArray[np.uint8], position: int) -> tuple[int, int]:
    """Return a whole number of variable length, and where it ends: beyond the data if it has no end there."""
    number = 0
    for shift in range(0, 63, 7):
        if position >= data.size:
            break
        byte = int(data[position])
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, position
    return 0, data.size + 1


@compiled
def are_all(levels: NDArray[np.uint8], width: int, count: int, value: int) -> bool:
    """Tell whether ``count`` levels of at most eight bits are all the same given value."""
    position = seen = 0
    while seen < count:
        header, position = whole_number(levels, position)
        runs = header >> 1
        if header < 2:  # malformed, or a run of nothing
            return False
        if header & 1:
            if runs > levels.size or position + runs * width > levels.size:
                return False
            values = min(8 * runs, count - seen)
            for bit in range(values * width):
                stored = (np.int64(levels[position + (bit >> 3)]) >> (bit & 7)) & 1
                if stored != (value >> (bit % width)) & 1:
                    return False
            position += runs * width
            seen += values
        else:
            if position >= levels.size or levels[position] != value:
                return False
            position += 1
            seen += min(runs, count - seen)
    return True


@compiled
def find_starts(levels: NDArray[np.uint8], count: int, first: int, starts: IndexArray) -> int:
    """Write ``first`` plus the place of every 0 among ``count`` levels of one bit; return how many there are.

    ``MALFORMED`` is returned for levels that cannot be read, and where there is not enough space.
    """
    position = seen = found = 0
    while seen < count:
        header, position = whole_number(levels, position)
        runs = header >> 1
        if header < 2:
            return MALFORMED
        if header & 1:
            if runs > levels.size or position + runs > levels.size:
                return MALFORMED
            values = min(8 * runs, count - seen)
            for i in range(values):
                if not (np.int64(levels[position + (i >> 3)]) >> (i & 7)) & 1:
                    if found >= starts.size:
                        return MALFORMED
                    starts[found] = first + seen + i
                    found += 1
            position += runs
        else:
            values = min(runs, count - seen)
            if position >= levels.size or levels[position] > 1:
                return MALFORMED
            if levels[position] == 0:
                if found + values > starts.size:
                    return MALFORMED
                for i in range(values):
                    starts[found + i] = first + seen + i
                found += values
            position += 1
        seen += values
    return found
