"""Tables as they are stored: CSV, Parquet, folders of Parquet, Arrow IPC, or an Arrow table in memory.

:func:`open_table` is the only place that decides which. All are read in batches, so memory is that of a batch, and
every batch knows its place, so an error can name the file, the row group and the row.
"""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from dpselect.tables.arrays import is_list
from dpselect.tables.csv_files import SAMPLE_BYTES, Csv, Dialect, not_utf8
from dpselect.tables.frames import as_arrow

__all__ = ["AnyTable", "Csv", "Format", "Located", "StoredTable", "open_table"]

Format: TypeAlias = Literal["csv", "parquet", "arrow"]

AnyTable: TypeAlias = str | os.PathLike[str] | pa.Table | Any
"""A path, an Arrow table, or a data frame: pandas, polars, DuckDB, anything with the Arrow C stream interface."""

BATCH_CANDIDATES = 1 << 23
"""Entries in a batch, of all its list columns together: 64 MB of numbers."""

FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
}

COMPRESSED = {".gz", ".zst", ".bz2", ".lz4"}
"""Endings of names that Arrow takes for compressed text."""


def open_table(
    table: AnyTable,
    format: Format | Csv | None = None,
    columns: Collection[str] | None = None,
    numbers: Collection[str] = (),
) -> "StoredTable":
    """Return a table, ready to be read.

    Args:
        table: A path to a file or to a folder of Parquet files, an Arrow table, or a data frame.
        format: The format of the file, by default what its name says; or how to read it if it is CSV.
        columns: The columns that will be read, if the table is a data frame; by default all.
        numbers: The columns that will be read as numbers, if the table is CSV, where all is text.
    """
    if not isinstance(table, str | os.PathLike):
        return MemoryTable(table, columns)
    path = Path(table)
    csv = format if isinstance(format, Csv) else Csv()
    kind = _format_of(path, "csv" if isinstance(format, Csv) else None) if format in {None, csv} else format
    if kind not in OPENERS:
        raise ValueError(f"format must be one of {', '.join(OPENERS)}, not {kind!r}")
    return CsvTable(path, csv, numbers) if kind == "csv" else OPENERS[kind](path)


def _format_of(path: Path, otherwise: Format | None = None) -> Format:
    if path.is_dir():
        return "parquet"
    suffixes = [suffix for suffix in path.suffixes if suffix not in COMPRESSED]
    if suffixes and suffixes[-1].lower() in FORMATS:
        return FORMATS[suffixes[-1].lower()]
    if not path.exists():
        raise ValueError(f"there is no file {str(path)!r}")
    if otherwise is not None:
        return otherwise
    raise ValueError(f"cannot tell the format of {path.name!r}: give it with --format csv, parquet or arrow")


class Located(NamedTuple):
    """A batch, and where it comes from."""

    batch: pa.RecordBatch
    place: str
    first: int | None
    """The number of its first row within ``place``; ``None`` if rows have been sorted."""

    def locate(self, row: int, unit: str) -> str:
        """Say where a row of the batch is: by its number, or by its unit if rows have been sorted."""
        if self.first is not None:
            return f"{self.place}, row {self.first + row}"
        identifier = self.batch.column(unit)[row].as_py()
        return f"{self.place}, " + (f"rows without {unit}" if identifier is None else f"{unit} {identifier!r}")


class Piece(NamedTuple):
    """A part of a table that can be skipped without reading it."""

    place: str
    rows: int | None
    read: Callable[[], Iterable[pa.RecordBatch]]


class StoredTable(ABC):
    """A table that can be read in batches, in the same order every time."""

    name: str
    label: str
    """What messages call it: the name in quotes, or "the table"."""
    files: list[Path]
    schema: pa.Schema
    rows: int | None = None
    """How many rows it has, if that is known before they are read."""
    is_text: ClassVar[bool] = False
    """Whether all columns are text, which may hold numbers."""

    @abstractmethod
    def _pieces(self, columns: list[str], entries: int) -> Iterator[Piece]:
        """Yield the parts of the table, to be read in batches of about that many entries."""

    @abstractmethod
    def state(self) -> list[list[str | int]]:
        """Return what tells whether the table is still the one that was opened."""

    @abstractmethod
    def readings(self) -> list[list[str]]:
        """Return how each file is read: format, delimiter, compression. The same bytes may be another table."""

    def batches(self, columns: list[str], *, entries: int = BATCH_CANDIDATES, skip: int = 0) -> Iterator[Located]:
        """Yield batches with the columns asked for, of about that many entries, without the first ``skip`` rows."""
        with _plain_errors(self.name):
            for piece in self._pieces(columns, entries):
                if piece.rows is not None and skip >= piece.rows:
                    skip -= piece.rows
                    continue
                first = 0
                for batch in piece.read():
                    if skip < batch.num_rows:
                        yield Located(batch.select(columns).slice(skip), piece.place, first + skip)
                    skip = max(0, skip - batch.num_rows)
                    first += batch.num_rows

    def read(self, columns: list[str]) -> pa.Table:
        """Return whole columns, of a small table."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_batches([located.batch for located in self.batches(columns)], schema)

    def check_unchanged(self) -> None:
        """Raise if the table is no longer what was opened: what was fingerprinted may not be what was read."""
        if self.state() != self._opened:
            raise ValueError(f"{self.label} has changed while it was read; run again when nothing writes to it")

    @cached_property
    def _opened(self) -> list[list[str | int]]:
        return self.state()


class FileTable(StoredTable):
    """A table in one file, or in a folder of Parquet files."""

    kind: ClassVar[Format]

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name, self.label = path.name, repr(path.name)
        self.files = _files_of(path, self.kind)
        self._opened  # noqa: B018 - before anything is read
        with _plain_errors(path.name):
            self.schema = self._read_schema()

    @abstractmethod
    def _read_schema(self) -> pa.Schema:
        """Return the columns and their types."""

    def state(self) -> list[list[str | int]]:
        """Return what changes whenever a file is written to or exchanged: times can be set back, but not ctime."""
        found: list[list[str | int]] = []
        for path in _files_of(self._path, self.kind):
            stat = path.stat()
            times = [stat.st_mtime_ns, stat.st_ctime_ns]
            found.append([str(path.resolve()), stat.st_dev, stat.st_ino, stat.st_size, *times])
        return found

    def readings(self) -> list[list[str]]:
        """Return the format of each file."""
        return [[self.kind] for _ in self.files]


def _files_of(path: Path, kind: Format) -> list[Path]:
    if not path.exists():
        raise ValueError(f"there is no file {str(path)!r}")
    if not path.is_dir():
        return [path]
    if kind != "parquet":
        raise ValueError(f"{path.name!r} is a folder: only Parquet may come in many files")
    files = sorted(
        p for p in path.rglob("*.parquet") if not any(part[0] in "._" for part in p.relative_to(path).parts)
    )
    if not files:
        raise ValueError(f"the folder {path.name!r} holds no Parquet files")
    return files


class CsvTable(FileTable):
    """A CSV file. Everything stays text, so no identifier loses its zeros to a guess."""

    kind = "csv"
    is_text = True

    def __init__(self, path: Path, csv: Csv | None = None, numbers: Collection[str] = ()) -> None:
        self._csv, self._numbers = csv or Csv(), numbers
        super().__init__(path)

    def readings(self) -> list[list[str]]:
        """Return the format, the delimiter and the compression, and what else is unusual."""
        compression = self._path.suffix if self._path.suffix in COMPRESSED else ""
        return [[self.kind, self._dialect.delimiter, compression, *self._dialect.reading()]]

    def _read_schema(self) -> pa.Schema:
        with pa.input_stream(str(self._path)) as file:
            sample = bytes(file.read(SAMPLE_BYTES))
        self._dialect = Dialect.of(sample, self._path, self._csv, self._numbers)
        try:
            return pa.schema([(name, pa.string()) for name in self._dialect.column_names(sample)])
        except pa.ArrowException as error:
            raise ValueError(self._explain(error)) from None

    def _explain(self, error: Exception) -> str:
        """Say what is wrong, without the error's words: they may quote what cannot be read."""
        if isinstance(error, UnicodeError) or "UTF8" in str(error):
            encoding = self._dialect.encoding
            return not_utf8(self.name) if encoding == "utf-8" else f"{self.name!r} is not {encoding} text"
        return f"{self.name!r} cannot be read as CSV with a line of column names"

    def _pieces(self, columns: list[str], entries: int) -> Iterator[Piece]:  # noqa: ARG002 - CSV is cut by bytes
        yield Piece(self.name, None, lambda: self._read(columns))

    def _read(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        problem = ""

        def refuse(row: pa.csv.InvalidRow) -> str:
            nonlocal problem
            where = f"line {row.number}" if row.number else "a line"
            problem = (
                f"{self.name!r}: {where} has {row.actual_columns} fields where {row.expected_columns} are expected"
            )
            return "error"

        try:
            with pa.csv.open_csv(
                pa.input_stream(str(self._path)),
                read_options=pa.csv.ReadOptions(block_size=1 << 22, encoding=self._dialect.encoding),
                parse_options=pa.csv.ParseOptions(delimiter=self._dialect.delimiter, invalid_row_handler=refuse),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(self.schema.names, pa.string()),
                    include_columns=columns,
                    strings_can_be_null=True,
                    null_values=[""],
                    quoted_strings_can_be_null=True,
                ),
            ) as reader:
                for batch in reader:
                    arrays = [
                        self._dialect.numbers(column) if name in self._numbers else column
                        for name, column in zip(columns, batch.columns, strict=True)
                    ]
                    yield pa.RecordBatch.from_arrays(arrays, columns)
        except (pa.ArrowException, UnicodeError) as error:
            raise ValueError(problem or self._explain(error)) from None


class ParquetTable(FileTable):
    """One or many Parquet files, read by Arrow, one row group after the other."""

    kind = "parquet"

    def _read_schema(self) -> pa.Schema:
        self.rows = 0
        schemas = []
        for path in self.files:
            with _plain_errors(path.name):
                stored = pq.read_metadata(path)
                schemas.append(stored.schema.to_arrow_schema())
            self.rows += int(stored.num_rows)
            if not schemas[-1].equals(schemas[0]):
                raise ValueError(f"{path.name!r} has other columns than {self.files[0].name!r}")
        return schemas[0]

    def _pieces(self, columns: list[str], entries: int) -> Iterator[Piece]:
        for path in self.files:
            with _plain_errors(path.name), pq.ParquetFile(path, memory_map=True, pre_buffer=False) as file:
                for group in range(file.num_row_groups):
                    stored = file.metadata.row_group(group)
                    size = self._batch_rows(stored, columns, entries)
                    read = lambda g=group, s=size, f=file: f.iter_batches(s, [g], columns)  # noqa: E731
                    yield Piece(f"{path.name}, row group {group}", stored.num_rows, read)

    def _batch_rows(self, group: pq.RowGroupMetaData, columns: list[str], entries: int) -> int:
        lists = [name for name in columns if is_list(self.schema.field(name).type)]
        chunks = (group.column(i) for i in range(group.num_columns))
        # Parquet stores a list under a path that starts with the column's name, which may itself hold dots.
        found = sum(int(c.num_values) for c in chunks if any(c.path_in_schema.startswith(f"{n}.") for n in lists))
        rows = int(group.num_rows)
        most = max(1, min(rows, entries * rows // max(1, rows, found)))
        return max(1, -(-rows // -(-rows // most)) if rows else 1)  # as few batches as that allows, of one size


class ArrowTable(FileTable):
    """An Arrow IPC file or stream, mapped into memory and not copied."""

    kind = "arrow"

    @contextmanager
    def _reader(self) -> Iterator[pa.RecordBatchReader]:
        with pa.memory_map(str(self._path)) as file:
            try:
                reader = pa.ipc.open_file(file)
            except pa.ArrowInvalid:
                file.seek(0)
                reader = pa.ipc.open_stream(file)
            with reader:
                yield reader

    def _read_schema(self) -> pa.Schema:
        with self._reader() as reader:
            return reader.schema

    def _pieces(self, columns: list[str], entries: int) -> Iterator[Piece]:
        with self._reader() as reader:
            count = getattr(reader, "num_record_batches", None)
            stored = reader if count is None else map(reader.get_batch, range(count))
            yield from _cut(self.name, stored, columns, entries)


class MemoryTable(StoredTable):
    """An Arrow table in memory, which nothing can change."""

    def __init__(self, table: AnyTable, columns: Collection[str] | None = None) -> None:
        self._table = as_arrow(table, columns)
        self.name, self.label, self.files = "the table", "the table", []
        self.schema, self.rows = self._table.schema, self._table.num_rows

    def state(self) -> list[list[str | int]]:
        """Return a hash of the contents."""
        return [["memory", self._digest]]

    def readings(self) -> list[list[str]]:
        """Return a hash of the contents, which stands for them in a fingerprint."""
        return [["memory", self._digest]]

    @cached_property
    def _digest(self) -> str:
        return hashlib.blake2b(self.content(), digest_size=32).hexdigest()

    def content(self) -> pa.Buffer:
        """Return everything the table holds, as an Arrow IPC stream that does not depend on its chunks."""
        table = self._table.combine_chunks().replace_schema_metadata(None)
        with pa.BufferOutputStream() as stream:
            with pa.ipc.new_stream(stream, table.schema) as writer:
                writer.write_table(table)
            return stream.getvalue()

    def _pieces(self, columns: list[str], entries: int) -> Iterator[Piece]:
        yield from _cut(self.name, self._table.to_batches(), columns, entries)


OPENERS: dict[str, Callable[[Path], StoredTable]] = {
    "csv": CsvTable,
    "parquet": ParquetTable,
    "arrow": ArrowTable,
}


def _cut(name: str, stored: Iterable[pa.RecordBatch], columns: list[str], entries: int) -> Iterator[Piece]:
    """Yield the batches that Arrow has in memory, cut where they hold too many entries."""
    for number, whole in enumerate(stored):
        batch = whole.select(columns)
        rows = int(batch.num_rows)
        found = sum(len(column.flatten()) for column in batch.columns if is_list(column.type))
        size = max(1, entries * rows // max(1, rows, found))
        parts = [batch.slice(first, size) for first in range(0, rows, size)]
        yield Piece(f"{name}, row group {number}", rows, parts.__iter__)


@contextmanager
def _plain_errors(name: str) -> Iterator[None]:
    """Turn Arrow's errors, which may quote what they could not read, into one that only names the file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{name!r} cannot be read: it is damaged, or of another format") from None
