"""Tables with a row for each candidate, in any order: sorted and grouped.

Tables that fit are sorted in memory, others by DuckDB, which spills to disk. The order is the same. The result is
batches of lists, as from a table of units, with candidates in the order of their identifiers. So picks depend
neither on the order of rows nor on where batches end.
"""

import errno
import re
import tempfile
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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

    def interrupt(self) -> None:
        """Stop sorting, from another thread."""
        self._interrupted = True
        if self._connection is not None:
            self._connection.interrupt()

    def batches(self, columns: list[str], *, entries: int = BATCH_CANDIDATES) -> Generator[Located]:
        """Yield units in the order of their identifiers, each with its candidates in the order of theirs."""
        count = len(self._table.files)
        place = self._table.name if count <= 1 else f"{self._table.name} ({count} files)"
        rest: list[pa.RecordBatch] = []
        for rows in self._sorted(max(1, entries // (len(self._names) - 1))):
            [whole] = pa.Table.from_batches([*rest, rows]).combine_chunks().to_batches()
            ends = _run_ends(whole.column(0))
            last = int(ends[-2]) if len(ends) > 1 else 0  # the last unit may go on in the next batch
            rest = [whole.slice(last)]
            if last:
                yield Located(self._lists(whole.slice(0, last), ends[:-1]).select(columns), place, None)
        for whole in rest:
            yield Located(self._lists(whole, np.array([whole.num_rows])).select(columns), place, None)

    def _lists(self, rows: pa.RecordBatch, ends: IndexArray) -> pa.RecordBatch:
        bounds = from_numpy(np.insert(ends, 0, 0))
        arrays = [rows.column(0).take(from_numpy(ends - 1))]
        arrays += [pa.LargeListArray.from_arrays(bounds, column) for column in rows.columns[1:]]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _sorted(self, size: int) -> Iterator[pa.RecordBatch]:
        """Yield rows (unit, candidate, numbers…) by unit and candidate, nulls last, in batches of a size."""
        self.rows, self._interrupted = None, False
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
            yield from self._sorted_by_duckdb(chain(held, self._further_rows(read)), size)
        elif held:
            yield from sort_rows(held, size)

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
        try:
            yield from map(self._plain_rows, read)
        except Exception as error:
            self._failure = error  # DuckDB would report it in words of its own
            raise

    def _plain_rows(self, located: Located) -> pa.RecordBatch:
        columns = located.batch.columns
        if not self._has_units:
            columns.insert(0, from_numpy(np.zeros(located.batch.num_rows, dtype=np.int64)))
        arrays = [decoded(column).cast(self._row_schema.field(i).type) for i, column in enumerate(columns[:2])]
        for name, column in zip(self._names[2:], columns[2:], strict=True):
            arrays.append(from_numpy(as_floats(name, column, lambda row: located.locate(row, self._names[0]))))
        return pa.RecordBatch.from_arrays(arrays, schema=self._row_schema)

    def _sorted_by_duckdb(self, batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
        with from_extra("cli"):
            import duckdb  # noqa: PLC0415 - only for tables that do not fit
        rows = pa.RecordBatchReader.from_batches(self._row_schema, batches)
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
    """Return about how much memory a sort of rows takes: the rows, one column copied, ranks, keys and an order."""
    return 2 * int(rows.nbytes) + 32 * int(rows.num_rows)


def sort_rows(rows: list[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Yield rows by their first two columns, nulls last, in batches of a size; empty the list, to free memory.

    The two become one number, the rank of the unit and then that of the candidate: integers are sorted several
    times faster than pairs or text. Identifiers are fewer than 2³¹, so the number has at most 62 bits.
    """
    table = pa.Table.from_batches(rows)
    names, columns = table.column_names, table.columns
    rows.clear()
    del table
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(_ranked, columns[1])
        numbers = pool.map(pa.ChunkedArray.combine_chunks, columns[2:])
        columns[0], units, _ = _ranked(columns[0])
        columns[1], candidates, count = other.result()
    columns[2:] = numbers
    keys = units * count
    keys += candidates
    del units, candidates
    order = from_numpy(_order(keys))
    for first in range(0, len(order), size):
        places = order.slice(first, size)
        yield pa.RecordBatch.from_arrays([decoded(column.take(places)) for column in columns], names)


def _ranked(column: pa.ChunkedArray) -> tuple[pa.Array, IndexArray, int]:
    """Return a column in one piece, its entries as numbers of the same order, and how many there can be.

    Integers without large gaps are such numbers already. Of anything else it is the place among the sorted names.
    """
    if pa.types.is_integer(column.type) and not column.null_count:
        whole = column.combine_chunks()
        given = to_numpy(whole)
        low, span = given.min(), int(given.max()) - int(given.min()) + 1
        if span <= 4 * given.size:
            return whole, np.subtract(given, low, dtype=np.int64, casting="unsafe"), span  # wraps back, if unsigned
    encoded = column.dictionary_encode("encode").combine_chunks()
    order = pc.sort_indices(encoded.dictionary)  # nulls last
    places = np.empty(len(order), np.int64)
    places[to_numpy(order)] = np.arange(len(order))
    ranks = places[to_numpy(encoded.indices)]
    return pa.DictionaryArray.from_arrays(from_numpy(ranks), encoded.dictionary.take(order)), ranks, len(order) + 1


def _run_ends(units: pa.Array) -> IndexArray:
    """Return where each run of equal units ends. Nulls come last, and are one run."""
    known = len(units) - units.null_count
    ends = to_numpy(pc.run_end_encode(units.slice(0, known), run_end_type=pa.int64()).run_ends)
    return np.append(ends, len(units)) if units.null_count else ends


def _order(keys: IndexArray) -> IndexArray:
    """Return where the keys are in increasing order. Keys are not negative, and they are overwritten."""
    bits = keys.size.bit_length()
    if int(keys.max()) >= 1 << (63 - bits):
        return np.argsort(keys)
    # Numbers are sorted twice as fast as their order is found, so the place becomes the last part of the number.
    for first in range(0, keys.size, ROWS_AT_ONCE):
        part = keys[first : first + ROWS_AT_ONCE]
        part <<= bits
        part |= np.arange(first, first + part.size)
    with ThreadPoolExecutor(threads := thread_count()) as pool:
        list(pool.map(np.ndarray.sort, np.array_split(keys, threads)))
    keys.sort(kind="stable")  # which merges what is sorted
    keys &= (1 << bits) - 1
    return keys


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
