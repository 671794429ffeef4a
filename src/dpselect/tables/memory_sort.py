"""Sorting rows in memory, by unit and candidate: the order that DuckDB gives, for tables that fit."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpselect.kernels.arrays import IndexArray
from dpselect.tables.arrays import decoded, from_numpy, to_numpy

__all__ = ["can_sort", "memory_bytes", "needed_bytes", "sort_rows"]

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


def sort_rows(table: pa.Table) -> pa.RecordBatch | None:
    """Return rows (unit, candidate, numbers) by unit and candidate, or ``None`` if a unit or candidate is null."""
    unit, candidate = (_combined(table.column(i)) for i in (0, 1))
    if unit.null_count or candidate.null_count:
        return None
    order = _order(_ranks(unit), _ranks(candidate))
    arrays = [unit, candidate]
    for column in table.columns[2:]:
        values = np.concatenate([to_numpy(chunk).astype(np.float64, copy=False) for chunk in column.chunks])
        # Missing numbers have become NaN, which says the same.
        arrays.append(from_numpy(values if order is None else values[order]))
    if order is not None:
        places = from_numpy(order)
        arrays[:2] = [array.take(places) for array in arrays[:2]]
    return pa.RecordBatch.from_arrays(arrays, table.column_names)


def _combined(column: pa.ChunkedArray) -> pa.Array:
    plain = pa.chunked_array([decoded(chunk) for chunk in column.chunks]) if column.num_chunks else column
    whole = plain.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _ranks(identifiers: pa.Array) -> NDArray[np.uint64]:
    """Return numbers from 0 that are in the order of the identifiers."""
    if pa.types.is_integer(identifiers.type):
        numbers = to_numpy(identifiers)
        least = numbers.min()
        # In 64-bit arithmetic modulo 2^64 the difference is right for any integers.
        return np.asarray(numbers.astype(np.uint64) - least.astype(np.uint64))
    encoded = identifiers.dictionary_encode()
    ranks = np.empty(len(encoded.dictionary), dtype=np.uint64)
    ranks[to_numpy(pc.sort_indices(encoded.dictionary))] = np.arange(len(ranks), dtype=np.uint64)
    return np.asarray(ranks[to_numpy(encoded.indices)])


def _order(units: NDArray[np.uint64], candidates: NDArray[np.uint64]) -> IndexArray | None:
    """Return the order of rows by unit and candidate, or ``None`` if they are in order."""
    width = int(candidates.max()) + 1
    if (int(units.max()) + 1) * width < 2**64:
        keys = units * np.uint64(width) + candidates
        return None if (keys[1:] >= keys[:-1]).all() else np.argsort(keys)
    return np.lexsort((candidates, units))
