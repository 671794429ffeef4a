"""Tables with a row for each candidate, in any order: sorted and grouped.

Tables that fit are sorted in memory, others by DuckDB, which spills to disk. The order is the same. The result is
batches of lists, as from a table of units, with candidates in the order of their identifiers. So picks depend
neither on the order of rows nor on where batches end.
"""

import errno
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpselect.extras import from_extra
from dpselect.kernels.arrays import IndexArray
from dpselect.progress import Step
from dpselect.tables.arrays import decoded, from_numpy, to_numpy
from dpselect.tables.layout import Layout
from dpselect.tables.memory_sort import can_sort, memory_bytes, needed_bytes, sort_rows
from dpselect.tables.stored import BATCH_CANDIDATES, Located, StoredTable

__all__ = ["SortedUnits"]

MEMORY = "1GB"

ROWS_AT_ONCE = 1 << 18
"""Rows that are handed to DuckDB at once."""


class SortedUnits:
    """The units of a table with a row for each candidate, in the order of their identifiers."""

    units_are_distinct = True

    def __init__(
        self,
        table: StoredTable,
        layout: Layout,
        *,
        scratch: Path | None = None,
        memory: str = MEMORY,
        batch_candidates: int = BATCH_CANDIDATES,
    ) -> None:
        layout.check_long_schema(table.schema, units=True, are_text=table.is_text, table=table.label)
        self._table, self._scratch, self._memory = table, scratch, memory
        self._limit = memory_bytes(memory)
        unit, candidate = layout.unit, layout.pick_name
        self._names = [unit, candidate, *(name for name in layout.columns if name not in {unit, candidate})]
        self._size = max(1, batch_candidates // (len(self._names) - 1))
        self._read = 0
        self.rows: int | None = None
        """How many rows there are: known once all are read."""
        self._failure: Exception | None = None
        self._connection: Any = None
        self._interrupted = False
        kinds = [_plain(table.schema.field(name).type) for name in (unit, candidate)]
        self._kinds = [*kinds, *[pa.float64()] * (len(self._names) - 2)]
        lists = [(name, pa.large_list(kind)) for name, kind in zip(self._names, self._kinds, strict=True)]
        self.schema = pa.schema([(unit, kinds[0]), *lists[1:]])

    @property
    def waiting(self) -> Step:
        """What happens before the first batch: rows are read, and then sorted."""
        if self.rows is None:
            return Step(self._read, self._table.rows, "rows", phase="reading")
        return Step(self.rows, None, "rows", phase="sorting")

    def interrupt(self) -> None:
        """Stop sorting, from another thread."""
        self._interrupted = True
        if self._connection is not None:
            self._connection.interrupt()

    def batches(self, columns: list[str], *, skip: int = 0) -> Iterator[Located]:
        """Yield units in the order of their identifiers, each with its candidates in the order of theirs."""
        count = len(self._table.files)
        place = self._table.name if count <= 1 else f"{self._table.name} ({count} files)"
        rest = None
        for rows in self._sorted():
            table = pa.Table.from_batches([rows] if rest is None else [rest, rows]).combine_chunks()
            if not len(table):
                continue
            whole = table.to_batches()[0]
            ends = _run_ends(whole.column(0))
            last = int(ends[-2]) if len(ends) > 1 else 0  # the last unit may go on in the next batch
            rest = whole.slice(last)
            if last:
                yield from _skipping(self._lists(whole.slice(0, last), ends[:-1], columns), place, skip)
                skip = max(0, skip - (len(ends) - 1))
        if rest is not None and rest.num_rows:
            yield from _skipping(self._lists(rest, np.array([rest.num_rows]), columns), place, skip)

    def _lists(self, rows: pa.RecordBatch, ends: IndexArray, columns: list[str]) -> pa.RecordBatch:
        bounds = from_numpy(np.insert(ends, 0, 0))
        arrays = [rows.column(0).take(from_numpy(ends - 1))]
        arrays += [pa.LargeListArray.from_arrays(bounds, column) for column in rows.columns[1:]]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema).select(columns)

    def _sorted(self) -> Iterator[pa.RecordBatch]:
        """Yield rows (unit, candidate, numbers…) by unit and candidate."""
        self._read, self.rows, self._interrupted = 0, None, False
        schema = pa.schema([self._table.schema.field(name) for name in self._names])
        rows = self._counted()
        held: list[pa.RecordBatch] = []
        if not self._table.is_text and can_sort(schema.types):
            used = 0
            for batch in rows:
                held.append(batch)
                used += needed_bytes(batch)
                if used > self._limit:
                    break
            else:
                whole = sort_rows(held) if self.rows else None
                if whole is not None:
                    for first in range(0, whole.num_rows, self._size):
                        yield self._plain(whole.slice(first, self._size))
                    return
        yield from self._sorted_by_duckdb(pa.RecordBatchReader.from_batches(schema, chain(held, rows)))

    def _plain(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [_as(column, kind) for column, kind in zip(rows.columns, self._kinds, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=self.schema.names)

    def _sorted_by_duckdb(self, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        duckdb = _duckdb()
        with tempfile.TemporaryDirectory(prefix="dpselect-sort-", dir=self._scratch) as directory:
            settings = {
                "memory_limit": self._memory,
                "temp_directory": directory,
                "preserve_insertion_order": False,
            }
            self._connection = connection = duckdb.connect(":memory:", config=settings)
            try:
                # DuckDB gets rows and no paths: it would read `*`, `?` and `[` in them as patterns for other files,
                # and `user=zoe/` as a column.
                connection.register("long_table", rows)
                unit, candidate, *numbers = map(_quoted, self._names)
                casts = ", ".join(f"try_cast({name} AS DOUBLE) AS {name}" for name in numbers)
                query = (
                    f"SELECT {unit}, {candidate}, {casts} FROM long_table ORDER BY {unit} NULLS LAST, {candidate}"  # noqa: S608 - quoted names
                )
                relation = connection.sql(query)
                read = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch  # by version
                yield from map(self._plain, read(self._size))
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                if self._failure is not None:
                    raise self._failure from None
                raise _explained(error, self._table.name, self._memory) from None
            finally:
                self._connection = None
                connection.close()
                del rows  # which had to live until all were sorted

    def _counted(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the table, and count them."""
        try:
            for located in self._table.batches(self._names, entries=ROWS_AT_ONCE):
                if self._interrupted:
                    raise InterruptedError  # noqa: TRY301 - like any other failure to read
                self._read += located.batch.num_rows
                yield located.batch
            self.rows = self._read
        except Exception as error:
            self._failure = error  # DuckDB would report it in words of its own
            raise


def _skipping(batch: pa.RecordBatch, place: str, skip: int) -> Iterator[Located]:
    if skip < batch.num_rows:
        yield Located(batch.slice(skip), place, None)


def _run_ends(units: pa.Array) -> IndexArray:
    """Return where each run of equal units ends; nulls are equal to each other."""
    return to_numpy(pc.run_end_encode(units, run_end_type=pa.int64()).run_ends)


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type that an identifier has once DuckDB has sorted it."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) else kind


def _as(array: pa.Array, kind: pa.DataType) -> pa.Array:
    plain = decoded(array)
    return plain if plain.type == kind else plain.cast(kind)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _duckdb() -> ModuleType:
    with from_extra("cli"):
        import duckdb  # noqa: PLC0415 - only for tables that must be sorted
    return duckdb


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
