"""Long tables, a row for each candidate, in any order: sorted and grouped by DuckDB, which spills to disk.

What comes out are the same batches of lists as from a table of units, candidates in the order of their identifiers,
so that picks depend neither on the order of rows nor on where batches end.
"""

import errno
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dpselect.engines.layout import check_column, is_identifier, is_number
from dpselect.engines.sources import BATCH_CANDIDATES, ArrowSource, Located, ParquetSource, Source
from dpselect.extras import from_extra

__all__ = ["LongSource", "csv_delimiter", "open_csv", "read_table"]

MEMORY = "1GB"

PARQUET_ROWS = 1 << 18
"""Rows of a Parquet file that are handed to DuckDB at once."""


def csv_delimiter(path: Path) -> str:
    """Return what stands between fields, as the name of a file says."""
    return "\t" if ".tsv" in path.suffixes else ","


def open_csv(path: Path, columns: list[str] | None = None) -> Any:  # noqa: ANN401 - an Arrow reader
    """Return a reader of a CSV file that leaves everything as text: no identifier loses its zeros to a guess.

    Raises:
        ValueError: If the file is not CSV, now or while it is read. The message shows nothing of the file.
    """
    told = f"{path.name!r} cannot be read as CSV with a line of column names"

    def refuse(row: Any) -> str:  # noqa: ANN401 - Arrow's InvalidRow
        nonlocal told
        where = f"line {row.number}" if row.number else "a line"
        told = f"{path.name!r}: {where} has {row.actual_columns} fields where {row.expected_columns} are expected"
        return "error"

    def batches(reader: Any) -> Iterator[Any]:  # noqa: ANN401 - an Arrow reader
        try:
            with reader:
                yield from reader
        except pa.ArrowException:  # it may quote what it cannot read
            raise ValueError(told) from None

    delimiter = csv_delimiter(path)
    try:
        with pa.input_stream(str(path)) as head:
            lenient = pa.csv.ParseOptions(delimiter=delimiter, invalid_row_handler=lambda _: "skip")
            names = pa.csv.open_csv(head, parse_options=lenient).schema.names
        reader = pa.csv.open_csv(
            pa.input_stream(str(path)),
            read_options=pa.csv.ReadOptions(block_size=1 << 22),
            parse_options=pa.csv.ParseOptions(delimiter=delimiter, invalid_row_handler=refuse),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=columns or names,
                strings_can_be_null=True,
                null_values=[""],
                quoted_strings_can_be_null=True,
            ),
        )
    except pa.ArrowException:
        raise ValueError(told) from None
    return pa.RecordBatchReader.from_batches(reader.schema, batches(reader))


def read_table(path: Path, kind: str) -> Any:  # noqa: ANN401 - an Arrow table
    """Return a whole, small table, such as one of candidates; all of CSV is text but what reads as numbers."""
    if kind == "csv":
        reader = open_csv(path)
        return pa.Table.from_batches(list(reader), reader.schema)
    source = ParquetSource([path]) if kind == "parquet" else ArrowSource(path)
    parts = [located.batch for located in source.batches(source.schema.names)]
    return pa.Table.from_batches(parts, source.schema)


class LongSource:
    """A long table in CSV, Parquet or Arrow IPC files, as a source of lists."""

    units_are_distinct = True

    def __init__(
        self,
        files: list[Path],
        kind: str,
        *,
        unit: str,
        candidate: str,
        numbers: list[str],
        scratch: Path | None = None,
        memory: str = MEMORY,
        batch_candidates: int = BATCH_CANDIDATES,
    ) -> None:
        self.files = files
        self._kind = kind
        self._unit, self._candidate, self._numbers = unit, candidate, numbers
        self._scratch, self._memory = scratch, memory
        self._size = max(1, batch_candidates // (1 + len(numbers)))
        self._read = 0
        self._total: int | None = None
        self._failure: Exception | None = None
        stored = self._stored_schema()
        for name in (unit, candidate, *numbers):
            check_column(stored.names, name)
        for name in (unit, candidate):
            if not is_identifier(stored.field(name).type):
                kind_found = stored.field(name).type
                raise ValueError(f"column {name!r} must hold integers, text or bytes, not {kind_found}")
        for name in numbers:
            if kind != "csv" and not is_number(stored.field(name).type):
                raise ValueError(f"column {name!r} must hold numbers, not {stored.field(name).type}")
        kinds = {name: _plain(stored.field(name).type) for name in (unit, candidate)}
        lists = [(candidate, pa.large_list(kinds[candidate]))]
        lists += [(name, pa.large_list(pa.float64())) for name in numbers]
        self.schema = pa.schema([(unit, kinds[unit]), *lists])

    def _stored_schema(self) -> Any:  # noqa: ANN401 - an Arrow schema
        if self._kind == "csv":
            with open_csv(self.files[0]) as reader:
                return reader.schema
        return (ParquetSource(self.files) if self._kind == "parquet" else ArrowSource(self.files[0])).schema

    @property
    def total(self) -> int | None:
        """How many rows, that is candidates, there are: known once DuckDB has seen them all."""
        return self._total

    def batches(self, columns: list[str], skip: int = 0) -> Iterator[Located]:
        """Yield units in the order of their identifiers, each with its candidates in the order of theirs."""
        place = (
            self.files[0].name if len(self.files) == 1 else f"{self.files[0].parent.name} ({len(self.files)} files)"
        )
        rest = None
        for rows in self._sorted():
            self._total = self._read or None
            table = pa.Table.from_batches([rows] if rest is None else [rest, rows]).combine_chunks()
            whole = table.to_batches()[0] if len(table) else None
            if whole is None:
                continue
            ends = _run_ends(whole.column(0))
            last = int(ends[-2]) if len(ends) > 1 else 0  # the last unit may go on in the next batch
            rest = whole.slice(last)
            if last:
                yield from _skipping(self._lists(whole.slice(0, last), ends[:-1], columns), place, skip)
                skip = max(0, skip - (len(ends) - 1))
        if rest is not None and rest.num_rows:
            yield from _skipping(self._lists(rest, np.array([rest.num_rows]), columns), place, skip)

    def _lists(self, rows: Any, ends: Any, columns: list[str]) -> Any:  # noqa: ANN401 - Arrow, NumPy
        bounds = pa.array(np.insert(ends, 0, 0), pa.int64())
        arrays = [rows.column(0).take(pa.array(ends - 1))]
        arrays += [pa.LargeListArray.from_arrays(bounds, column) for column in rows.columns[1:]]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema).select(columns)

    def _sorted(self) -> Iterator[Any]:
        """Yield rows (unit, candidate, numbers…) by unit and candidate."""
        duckdb = _duckdb()
        with tempfile.TemporaryDirectory(prefix="dpselect-sort-", dir=self._scratch) as directory:
            settings = {
                "memory_limit": self._memory,
                "temp_directory": directory,
                "preserve_insertion_order": False,
            }
            connection = duckdb.connect(":memory:", config=settings)
            rows = None
            try:
                rows, table = self._relation(connection)  # the rows must live until all are sorted
                unit, candidate, *numbers = map(_quoted, (self._unit, self._candidate, *self._numbers))
                casts = ", ".join(f"try_cast({name} AS DOUBLE) AS {name}" for name in numbers)
                query = f"SELECT {unit}, {candidate}, {casts} FROM {table} ORDER BY {unit} NULLS LAST, {candidate}"  # noqa: S608 - quoted names
                relation = connection.sql(query)
                read = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch  # by version
                for batch in read(self._size):
                    arrays = [_as(c, kind) for c, kind in zip(batch.columns, self._kinds, strict=True)]
                    yield pa.RecordBatch.from_arrays(arrays, names=self.schema.names)
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                if self._failure is not None:
                    raise self._failure from None
                raise _explained(error, self.files[0].name, self._memory) from None
            finally:
                connection.close()
                del rows

    @property
    def _kinds(self) -> list[Any]:
        return [self.schema.field(0).type, *(self.schema.field(n).type.value_type for n in self.schema.names[1:])]

    def _relation(self, connection: Any) -> tuple[Any, str]:  # noqa: ANN401 - whatever holds the rows
        """Return what must be kept alive, and the name of the table in SQL.

        DuckDB is given rows and no paths: it would read ``*``, ``?`` and ``[`` in them as patterns for other
        files, and ``user=zoe/`` as a column.
        """
        names = [self._unit, self._candidate, *self._numbers]
        if self._kind == "csv":
            reader = open_csv(self.files[0], names)
            batches, schema = iter(reader), reader.schema
        else:
            source: Source = (
                ParquetSource(self.files, batch_candidates=PARQUET_ROWS)
                if self._kind == "parquet"
                else ArrowSource(self.files[0])
            )
            batches = (located.batch.select(names) for located in source.batches(names))
            schema = pa.schema([source.schema.field(name) for name in names])
        self._read = 0
        counted = pa.RecordBatchReader.from_batches(schema, self._counting(batches))
        connection.register("long_table", counted)
        return counted, "long_table"

    def _counting(self, batches: Iterator[Any]) -> Iterator[Any]:
        try:
            for batch in batches:
                self._read += batch.num_rows
                yield batch
        except Exception as error:
            self._failure = error  # DuckDB would tell it in words of its own
            raise


def _skipping(batch: Any, place: str, skip: int) -> Iterator[Located]:  # noqa: ANN401 - an Arrow batch
    if skip < batch.num_rows:
        yield Located(batch.slice(skip), place, None)


def _run_ends(units: Any) -> Any:  # noqa: ANN401 - Arrow, NumPy
    """Return where each run of equal units ends; nulls are equal to each other."""
    ends = pc.run_end_encode(units, run_end_type=pa.int64()).run_ends
    return ends.to_numpy(zero_copy_only=False)


def _plain(kind: Any) -> Any:  # noqa: ANN401 - Arrow types
    """Return the type that an identifier has once DuckDB has sorted it."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) else kind


def _as(array: Any, kind: Any) -> Any:  # noqa: ANN401 - Arrow
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if array.type == kind else array.cast(kind)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _duckdb() -> Any:  # noqa: ANN401 - a module
    with from_extra("cli"):
        import duckdb  # noqa: PLC0415 - only for long tables, which it sorts
    return duckdb


def _explained(error: Exception, name: str, memory: str) -> Exception:
    """Return an error without what DuckDB quotes of the data."""
    told = str(error)
    if "No space left" in told or "max_temp_directory_size" in told:
        return OSError(errno.ENOSPC, "No space left on the device for sorting", name)
    if "Out of Memory" in told:
        return ValueError(f"sorting {name!r} needs more than {memory} of memory: give it more with --memory")
    if isinstance(error, OSError) and error.errno is not None:
        return error
    return ValueError(f"{name!r} cannot be read or sorted ({type(error).__name__})")
