"""Sorting rows in memory, by unit and candidate: the order that DuckDB gives, for tables that fit."""

import re
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpselect.kernels.arrays import IndexArray
from dpselect.tables.arrays import decoded, from_numpy, to_numpy

__all__ = ["can_sort", "memory_bytes", "needed_bytes", "sort_rows"]

BLOCK = 1 << 16
"""Rows that fit a processor's cache."""

MOST_GAPS = 4
"""Integers with more gaps than this for each row are ranked like text."""

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def memory_bytes(memory: str) -> int:
    """Return the number of bytes that a text such as ``"1GB"`` means."""
    found = re.fullmatch(r"\s*([0-9]+\.?[0-9]*)\s*([KMGT]?I?)B\s*", str(memory).upper())
    if found is None or found[2] not in UNITS or not float(found[1]):
        raise ValueError(f"memory must be a size such as 500MB or 2GB, not {memory!r}")
    return int(float(found[1]) * UNITS[found[2]])


def can_sort(kinds: list[pa.DataType]) -> bool:
    """Tell whether rows of these types (unit, candidate, numbers) can be sorted here, with DuckDB's results.

    Text and decimals become floating-point numbers by rules of DuckDB's own, so those are left to it.
    """
    return all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds[2:])


def needed_bytes(rows: pa.RecordBatch) -> int:
    """Return about how much memory the sort of rows takes: the rows, their sorted copy, keys and an order."""
    return 2 * int(rows.nbytes) + 24 * int(rows.num_rows)


def sort_rows(rows: list[pa.RecordBatch]) -> pa.RecordBatch | None:
    """Return rows (unit, candidate, numbers) by unit and candidate, or ``None`` if a unit or candidate is null.

    The list is emptied unless the result is ``None``, so that columns can be freed one by one.
    """
    table = pa.Table.from_batches(rows)
    if any(table.column(i).null_count for i in (0, 1)):
        return None
    names, columns = table.column_names, table.columns
    rows.clear()
    del table
    units, candidates = _Identifiers(columns.pop(0)), _Identifiers(columns.pop(0))
    order = _sort(units, candidates)
    arrays = [units.names(), candidates.names()]
    while columns:
        # Missing numbers become NaN, which says the same.
        parts = [to_numpy(chunk).astype(np.float64, copy=False) for chunk in columns.pop(0).chunks]
        values = np.concatenate(parts)
        arrays.append(from_numpy(values if order is None else values.take(order)))
    return pa.RecordBatch.from_arrays(arrays, names)


class _Identifiers:
    """A column of identifiers as ranks: numbers from 0 in the order of the identifiers."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        plain = pa.chunked_array([decoded(chunk) for chunk in column.chunks])
        self._kind = plain.type
        self._names: pa.Array | None = None
        self.ranks = np.empty(len(plain), dtype=np.uint64)
        if pa.types.is_integer(self._kind):
            ends = pc.min_max(plain)
            least, most = ends["min"].as_py(), ends["max"].as_py()
            if most - least < MOST_GAPS * len(plain):
                self._least, self.count = np.uint64(least % 2**64), most - least + 1
                # Differences are right in arithmetic modulo 2⁶⁴, whatever the sign.
                self._fill(to_numpy(chunk).astype(np.int64, copy=False).view(np.uint64) for chunk in plain.chunks)
                self.ranks -= self._least
                return
        encoded = plain.dictionary_encode()
        names = encoded.chunk(0).dictionary
        order = pc.sort_indices(names)
        self._names, self.count = names.take(order), len(names)
        places = np.empty(len(names), dtype=np.uint64)
        places[to_numpy(order)] = np.arange(len(names), dtype=np.uint64)
        self._fill(places[to_numpy(chunk.indices)] for chunk in encoded.chunks)

    def _fill(self, parts: Iterable[NDArray[np.uint64]]) -> None:
        first = 0
        for part in parts:
            self.ranks[first : first + part.size] = part
            first += part.size

    def names(self) -> pa.Array:
        """Return the identifiers that have the ranks, and forget the ranks."""
        if self._names is not None:
            return self._names.take(from_numpy(self.ranks))
        self.ranks += self._least
        return from_numpy(self.ranks.view(np.int64).astype(self._kind.to_pandas_dtype(), copy=False))


def _sort(units: _Identifiers, candidates: _Identifiers) -> IndexArray | None:
    """Sort the ranks, and return the places where the rows were; ``None`` if they are in order.

    NumPy sorts numbers several times faster than it finds their order. So unit, candidate and place become one
    number, if 64 bits are enough. All is done in place: fresh memory costs more than arithmetic.
    """
    rows = len(units.ranks)
    order: IndexArray | None = None
    bits = [int(number).bit_length() for number in (units.count, candidates.count, rows)]
    if sum(bits) > 64:
        order = np.lexsort((candidates.ranks, units.ranks))
        units.ranks, candidates.ranks = units.ranks[order], candidates.ranks[order]
        return order
    _, candidate_bits, place_bits = map(np.uint64, bits)
    keys = units.ranks
    keys <<= candidate_bits
    keys |= candidates.ranks
    if (keys[1:] < keys[:-1]).any():
        keys <<= place_bits
        for first in range(0, rows, BLOCK):
            block = keys[first : first + BLOCK]
            block |= np.arange(first, first + block.size, dtype=np.uint64)
        keys.sort()
        order = (keys & ((np.uint64(1) << place_bits) - np.uint64(1))).view(np.int64)
        keys >>= place_bits
        np.bitwise_and(keys, (np.uint64(1) << candidate_bits) - np.uint64(1), out=candidates.ranks)
    keys >>= candidate_bits
    return order
