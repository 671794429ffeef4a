"""Tables with a row for each candidate, in any order: sorted and grouped.

Tables that fit are sorted in memory, others by DuckDB, which spills to disk. The order is the same. The result is
batches of lists, as from a table of units, with candidates in the order of their identifiers. So picks depend
neither on the order of rows nor on where batches end.
"""

import errno
import re
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpselect.extras import from_extra
from dpselect.kernels.arrays import IndexArray
from dpselect.parallel import thread_count
from dpselect.progress import Step
from dpselect.tables.arrays import as_floats, decoded, from_numpy, to_numpy
from dpselect.tables.layout import ONE, Layout
from dpselect.tables.stored import BATCH_CANDIDATES, Located, StoredTable

MEMORY = "1GB"

ROWS_AT_ONCE = 1 << 18
"""Rows that are read at once."""

Grouped: TypeAlias = tuple[pa.Array, IndexArray, list[pa.Array]]
"""Units, where the rows of each end, and the columns of these rows."""


def memory_bytes(memory: str) -> int:
    """Return the number of bytes that a text such as ``"1GB"`` means."""
    found = re.fullmatch(r"\s*([0-9]+\.?[0-9]*)\s*(?:([KMGT])(I?))?B\s*", str(memory).upper())
    if found is None or not float(found[1]):
        raise ValueError(f"memory must be a size such as 500MB or 2GB, not {memory!r}")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** " KMGT".index(found[2] or " "))


class SortedUnits:
    """The units of a table with a row for each candidate, in the order of their identifiers.

    ``scratch`` is the folder for sorting (by default the system's own), ``memory`` what sorting may take.
    """

    def __init__(
        self, table: StoredTable, layout: Layout, *, scratch: Path | None = None, memory: str = MEMORY
    ) -> None:
        self._table, self._scratch, self._memory = table, scratch, memory
        self._limit = memory_bytes(memory)
        self._has_units = layout.unit is not None
        stored = table.schema if self._has_units else table.schema.append(pa.field(ONE, pa.int64()))
        unit, candidate = layout.unit_name, layout.pick_name
        self._names = [unit, candidate, *(name for name in layout.columns if name not in {unit, candidate})]
        named = [_plain(stored.field(name).type) for name in (unit, candidate)]
        kinds = [*named, *[pa.float64()] * (len(self._names) - 2)]
        self._row_schema = pa.schema(list(zip(self._names, kinds, strict=True)))
        lists = [(field.name, pa.large_list(field.type)) for field in self._row_schema]
        self.schema = pa.schema([self._row_schema.field(0), *lists[1:]])
        self.rows: int | None = None
        """How many rows there are: known once all are read."""
        self.waiting: Step | None = None
        """How far the work before the first batch has come: rows are read, and then sorted."""
        self._failure: Exception | None = None
        self._connection: Any = None
        self._interrupted = False
        self._may_spell: list[bool] = []
        """Whether all units, and all candidates, read so far are integers or spell them."""

    def interrupt(self) -> None:
        """Stop sorting, from another thread."""
        self._interrupted = True
        if self._connection is not None:
            self._connection.interrupt()

    def batches(self, columns: list[str], *, entries: int = BATCH_CANDIDATES) -> Generator[Located]:
        """Yield units in the order of their identifiers, each with its candidates in the order of theirs."""
        count = len(self._table.files)
        place = self._table.name if count <= 1 else f"{self._table.name} ({count} files)"
        for units, ends, rows in self._sorted(max(1, entries // (len(self._names) - 1))):
            bounds = from_numpy(np.insert(ends, 0, 0))
            lists = [pa.LargeListArray.from_arrays(bounds, column) for column in rows]
            batch = pa.RecordBatch.from_arrays([units, *lists], schema=self.schema)
            yield Located(batch.select(columns), place, None)

    def _sorted(self, size: int) -> Iterator[Grouped]:
        """Yield units by name, with their candidates by name, nulls last, in batches of about ``size`` rows."""
        self.rows, self._interrupted, self._may_spell = None, False, [True, True]
        read, used = self._read(), 0
        made: list[Future[pa.RecordBatch]] = []
        with ThreadPoolExecutor(1) as pool:  # it makes numbers of one batch while the next is read
            for located in read:
                made.append(pool.submit(self._plain_rows, located))
                if len(made) > 1:
                    used += needed_bytes(made[-2].result())
                if used > self._limit:
                    break
        held = [future.result() for future in made]
        made.clear()
        if held and used + needed_bytes(held[-1]) > self._limit:
            yield from _grouped(self._sorted_by_duckdb(chain(held, self._further_rows(read)), size))
        elif held:
            yield from sort_rows(held, self._row_schema, size)

    def _read(self) -> Iterator[Located]:
        """Yield the batches of the table, and count their rows."""
        read = 0
        for located in self._table.batches(self._names[not self._has_units :], entries=ROWS_AT_ONCE):
            if self._interrupted:
                raise InterruptedError
            read += located.batch.num_rows
            self.waiting = Step(read, self._table.rows, "rows", phase="reading")
            yield located
        self.rows, self.waiting = read, Step(read, None, "rows", phase="sorting")

    def _further_rows(self, read: Iterator[Located]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are not held, for DuckDB."""
        self._may_spell = [False, False]  # it would sort integers no faster than text
        try:
            yield from map(self._plain_rows, read)
        except Exception as error:
            self._failure = error  # DuckDB would report it in words of its own
            raise

    def _plain_rows(self, located: Located) -> pa.RecordBatch:
        columns = located.batch.columns
        if not self._has_units:
            columns.insert(0, from_numpy(np.zeros(located.batch.num_rows, dtype=np.int64)))
        arrays = []
        for i, kind in enumerate(self._row_schema.types[:2]):
            names = decoded(columns[i]).cast(kind)
            arrays.append(_spelled(names) if self._may_spell[i] else names)
            self._may_spell[i] = pa.types.is_integer(arrays[i].type)
        for name, column in zip(self._names[2:], columns[2:], strict=True):
            arrays.append(from_numpy(as_floats(name, column, lambda row: located.locate(row, self._names[0]))))
        return pa.RecordBatch.from_arrays(arrays, self._names)

    def _sorted_by_duckdb(self, batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
        with from_extra("cli"):
            import duckdb  # noqa: PLC0415 - only for tables that do not fit
        whole = (batch.cast(self._row_schema) for batch in batches)
        rows = pa.RecordBatchReader.from_batches(self._row_schema, whole)
        with tempfile.TemporaryDirectory(prefix="dpselect-sort-", dir=self._scratch) as directory:
            self._connection = connection = duckdb.connect(
                ":memory:",
                config={
                    "memory_limit": self._memory,
                    "temp_directory": directory,
                    "preserve_insertion_order": False,
                },
            )
            try:
                # DuckDB gets rows and no paths: it would read `*`, `?` and `[` in them as patterns for other files,
                # and `user=zoe/` as a column.
                connection.register("long_table", rows)
                unit, candidate = ('"' + name.replace('"', '""') + '"' for name in self._names[:2])
                relation = connection.sql(f"FROM long_table ORDER BY {unit} NULLS LAST, {candidate} NULLS LAST")
                read = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch  # by version
                for batch in read(size):
                    yield batch.cast(self._row_schema)
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                if self._failure is not None:
                    raise self._failure from None
                raise _explained(error, self._table.name, self._memory) from None
            finally:
                self._connection = None
                connection.close()
                del rows  # which had to live until all were sorted


def needed_bytes(rows: pa.RecordBatch) -> int:
    """Return about how much memory a sort takes: rows, a copy of one column, keys, their order, and ranked names.

    Names that hardly repeat may take twice as much.
    """
    ranked = sum(_compact(pa.chunked_array([column])) is None for column in rows.columns[:2])
    return 2 * int(rows.nbytes) + 32 * (1 + ranked) * int(rows.num_rows)


class Ranks(NamedTuple):
    """A column as numbers of the same order."""

    parts: Iterator[IndexArray]
    bits: int
    """How many bits the numbers need."""
    names: Callable[[IndexArray], pa.Array]
    """Turns numbers back into entries of the column."""


def sort_rows(rows: list[pa.RecordBatch], schema: pa.Schema, size: int) -> Iterator[Grouped]:
    """Yield units as :class:`SortedUnits` does; empty the list, to free memory.

    Unit and candidate become one number, the rank of the unit and then that of the candidate: integers are sorted
    several times faster than pairs or text, and sorted ranks tell the names. Each has at most 31 bits.
    """
    if len({tuple(batch.schema.types) for batch in rows}) > 1:
        rows[:] = [batch.cast(schema) for batch in rows]
    columns = pa.Table.from_batches(rows).columns
    keys = np.zeros(len(columns[0]), np.int64)
    rows.clear()
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(_ranked, columns.pop(1), schema.field(1).type)
        unit, candidate = _ranked(columns.pop(0), schema.field(0).type), other.result()
    for ranks, shift in ((unit, candidate.bits), (candidate, 0)):
        filled = 0
        for part in ranks.parts:
            keys[filled : filled + part.size] |= part << shift
            filled += part.size
    numbers = [columns.pop(0).combine_chunks() for _ in schema.names[2:]]
    keys, order, below = _in_order(keys)
    first = 0
    while first < keys.size:
        last = _end_of_units(keys, first, size, below + candidate.bits)
        part = keys[first:last] >> below
        places = from_numpy(keys[first:last] & ((1 << below) - 1) if order is None else order[first:last])
        units = part >> candidate.bits
        ends = np.append(np.flatnonzero(units[1:] != units[:-1]) + 1, units.size)
        names = candidate.names(part & ((1 << candidate.bits) - 1))
        yield unit.names(units[ends - 1]), ends, [names, *(column.take(places) for column in numbers)]
        first = last


def _spelled(names: pa.Array) -> pa.Array:
    """Return text as the integers that it spells, which are ranked faster; any other names as they are.

    Text of digits alone, and of no more than the integers have, is what Arrow writes for them: not "007" or "+7".
    """
    if names.null_count or not (len(names) and pa.types.is_string(names.type)):
        return names
    try:
        integers = names.cast(pa.int64())
    except pa.ArrowInvalid:
        return names
    _, bounds, text = names.buffers()
    first, last = np.frombuffer(bounds, np.int32)[[names.offset, names.offset + len(names)]]
    numbers, text = to_numpy(integers), np.frombuffer(text, np.uint8)[first:last]
    digits = numbers.size + sum(np.count_nonzero(numbers >= 10**n) for n in range(1, len(str(numbers.max()))))
    return integers if text.size == digits and text.min() >= ord("0") and text.max() <= ord("9") else names


def _ranked(column: pa.ChunkedArray, kind: pa.DataType) -> Ranks:
    """Return a column's ranks, in the order that its entries have as ``kind``.

    Integers without large gaps are such numbers already. Of anything else it is the place among the sorted names.
    """
    if compact := _compact(column):
        given, low, span = compact
        parts = (np.subtract(part, low, dtype=np.int64, casting="unsafe") for part in given)  # wraps back
        if kind == column.type:
            return Ranks(parts, span.bit_length(), lambda ranks: from_numpy(ranks.astype(low.dtype) + low))
        seen = np.zeros(span + 1, np.bool_)
        for part in given:
            seen[part - low] = True
        codes = np.flatnonzero(seen)
        return _ranked_by_name(from_numpy(codes + low).cast(kind), codes, parts)
    whole = column.dictionary_encode("encode").combine_chunks()
    names, indices = whole.dictionary.cast(kind), to_numpy(whole.indices)
    parts = (indices[first : first + ROWS_AT_ONCE] for first in range(0, indices.size, ROWS_AT_ONCE))
    return _ranked_by_name(names, np.arange(len(names)), parts)


def _compact(column: pa.ChunkedArray) -> tuple[list[NDArray[Any]], Any, int] | None:
    """Return integers without large gaps, the least of them and their span; ``None`` for any other column."""
    if column.null_count or not pa.types.is_integer(column.type):
        return None
    given = [to_numpy(chunk) for chunk in column.chunks if len(chunk)]
    low, high = min(part.min() for part in given), max(part.max() for part in given)
    span = int(high) - int(low)
    return (given, low, span) if span < min(4 * len(column), 1 << 31) else None


def _ranked_by_name(names: pa.Array, codes: IndexArray, parts: Iterator[IndexArray]) -> Ranks:
    """Return the ranks of entries given by codes, one for each name, in the order of names."""
    order = pc.sort_indices(names)  # nulls last
    ordered, places = names.take(order), np.empty(int(codes[-1]) + 1, np.int32)
    places[codes[to_numpy(order)]] = np.arange(len(order))
    ranks = (places[part].astype(np.int64) for part in parts)  # at its end, it holds neither column nor places
    return Ranks(ranks, len(order).bit_length(), lambda ranks: ordered.take(from_numpy(ranks)))


def _in_order(keys: IndexArray) -> tuple[IndexArray, IndexArray | None, int]:
    """Return keys in increasing order, and where each was; keys are not negative, and they are overwritten.

    Numbers are sorted twice as fast as their order is found. If there is room, each key is therefore followed by
    its place, in as many bits as are returned, and no order is.
    """
    bits = keys.size.bit_length()
    if int(keys.max()) >= 1 << (63 - bits):
        order = np.argsort(keys)
        return keys[order], order, 0
    for first in range(0, keys.size, ROWS_AT_ONCE):
        part = keys[first : first + ROWS_AT_ONCE]
        part <<= bits
        part |= np.arange(first, first + part.size)
    with ThreadPoolExecutor(threads := thread_count()) as pool:
        list(pool.map(np.ndarray.sort, np.array_split(keys, threads)))
    keys.sort(kind="stable")  # which merges what is sorted
    return keys, None, bits


def _end_of_units(keys: IndexArray, first: int, size: int, below: int) -> int:
    """Return where a batch of about ``size`` sorted keys ends, after a unit; units are above ``below`` bits."""
    if first + size >= keys.size:
        return keys.size
    unit = int(keys[first + size]) >> below << below
    start = first + int(np.searchsorted(keys[first:], unit))
    return start if start > first else first + int(np.searchsorted(keys[first:], unit + (1 << below) - 1, "right"))


def _grouped(batches: Iterator[pa.RecordBatch]) -> Iterator[Grouped]:
    """Yield the units of sorted rows; nulls come last, and are one unit."""
    rest: list[pa.RecordBatch] = []
    for rows in batches:
        [whole] = pa.Table.from_batches([*rest, rows]).combine_chunks().to_batches()
        units = whole.column(0)
        known = units.slice(0, len(units) - units.null_count)
        ends = to_numpy(pc.run_end_encode(known, run_end_type=pa.int64()).run_ends)
        if units.null_count:
            ends = np.append(ends, len(units))
        last = int(ends[-2]) if len(ends) > 1 else 0  # the last unit may go on in the next batch
        rest = [whole.slice(last)]
        if last:
            columns = [column.slice(0, last) for column in whole.columns[1:]]
            yield units.take(from_numpy(ends[:-1] - 1)), ends[:-1], columns
    for whole in rest:
        yield whole.column(0).slice(0, 1), np.array([whole.num_rows]), whole.columns[1:]


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type that an identifier has once DuckDB has sorted it."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) else kind


def _explained(error: Exception, name: str, memory: str) -> Exception:
    """Return an error without what DuckDB quotes of the data."""
    words = str(error)
    if "No space left" in words or "max_temp_directory_size" in words:
        return OSError(errno.ENOSPC, "No space left on the device for sorting", name)
    if "Out of Memory" in words:
        return ValueError(f"sorting {name!r} needs more than {memory} of memory: give it more with --memory")
    if isinstance(error, OSError) and error.errno is not None:
        return error
    return ValueError(f"{name!r} cannot be read or sorted ({type(error).__name__})")
