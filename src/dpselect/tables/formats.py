"""The formats of files: how each is opened and read.

To add a format, write a function from the files to a :class:`Reader` and give it a line in :data:`FORMATS`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from dpselect.tables.arrays import is_list
from dpselect.tables.csv_files import SAMPLE_BYTES, Csv, not_utf8

Format: TypeAlias = Literal["csv", "parquet", "arrow"]

COMPRESSED = {".gz", ".zst", ".bz2", ".lz4"}
"""Endings of names that Arrow takes for compressed text."""

Placed: TypeAlias = tuple[str, Iterable[pa.RecordBatch]]
"""A place, a file or a row group of it, and its batches."""


class Reader(NamedTuple):
    """What files hold, and how to read it."""

    schema: pa.Schema
    read: Callable[[list[str], int], Iterator[Placed]]
    """Yields the columns asked for, in batches of about that many entries."""
    read_options: Callable[[], list[list[str]]]
    """How each file is read: format, delimiter, compression. The same bytes may be another table."""
    rows: int | None = None
    is_text: bool = False


def open_csv(files: list[Path], csv: Csv, numbers: Collection[str]) -> Reader:
    """Open a CSV file. Everything stays text, so no identifier loses its zeros to a guess."""
    [path] = files
    with pa.input_stream(str(path)) as file:
        sample = bytes(file.read(SAMPLE_BYTES))
    dialect = csv.recognised(sample, path, numbers)
    try:
        names = dialect.column_names(sample)
    except pa.ArrowException as error:
        raise ValueError(_explain(error, path.name, dialect)) from None

    def read(columns: list[str]) -> Iterator[pa.RecordBatch]:
        problem = ""

        def refuse(row: pa.csv.InvalidRow) -> str:
            nonlocal problem
            where = f"line {row.number}" if row.number else "a line"
            problem = (
                f"{path.name!r}: {where} has {row.actual_columns} fields where {row.expected_columns} are expected"
            )
            return "error"

        try:
            with pa.csv.open_csv(
                pa.input_stream(str(path)),
                read_options=pa.csv.ReadOptions(block_size=1 << 22, encoding=dialect.encoding),
                parse_options=pa.csv.ParseOptions(delimiter=dialect.delimiter, invalid_row_handler=refuse),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    include_columns=columns,
                    strings_can_be_null=True,
                    null_values=[""],
                    quoted_strings_can_be_null=True,
                ),
            ) as reader:
                for batch in reader:
                    arrays = [
                        dialect.numbers(column) if name in numbers else column
                        for name, column in zip(columns, batch.columns, strict=True)
                    ]
                    yield pa.RecordBatch.from_arrays(arrays, columns)
        except (pa.ArrowException, UnicodeError) as error:
            raise ValueError(problem or _explain(error, path.name, dialect)) from None

    compression = path.suffix if path.suffix in COMPRESSED else ""
    options = ["csv", dialect.delimiter or "", compression]
    if (dialect.encoding, dialect.decimal) != ("utf-8", "."):
        options += [dialect.encoding or "", dialect.decimal]
    schema = pa.schema([(name, pa.string()) for name in names])
    # CSV is cut by bytes, whatever the number of entries.
    return Reader(schema, lambda columns, _: iter([(path.name, read(columns))]), lambda: [options], is_text=True)


def _explain(error: Exception, name: str, dialect: Csv) -> str:
    """Say what is wrong, without the error's words: they may quote what cannot be read."""
    if isinstance(error, UnicodeError) or "UTF8" in str(error):
        return not_utf8(name) if dialect.encoding == "utf-8" else f"{name!r} is not {dialect.encoding} text"
    return f"{name!r} cannot be read as CSV with a line of column names"


def open_parquet(files: list[Path], csv: Csv, numbers: Collection[str]) -> Reader:  # noqa: ARG001 - for CSV
    """Open one or many Parquet files, to be read one row group after the other."""
    found = []
    for path in files:
        with plain_errors(path.name):
            found.append(pq.read_metadata(path))
            if not found[-1].schema.to_arrow_schema().equals(found[0].schema.to_arrow_schema()):
                raise ValueError(f"{path.name!r} has other columns than {files[0].name!r}")
    schema = found[0].schema.to_arrow_schema()

    def read(columns: list[str], entries: int) -> Iterator[Placed]:
        lists = tuple(f"{name}." for name in columns if is_list(schema.field(name).type))
        for path in files:
            with plain_errors(path.name), pq.ParquetFile(path, memory_map=True, pre_buffer=False) as file:
                for group in range(file.num_row_groups):
                    size = _batch_rows(file.metadata.row_group(group), lists, entries)
                    yield f"{path.name}, row group {group}", file.iter_batches(size, [group], columns)

    return Reader(schema, read, lambda: [["parquet"]] * len(files), sum(int(stored.num_rows) for stored in found))


def _batch_rows(group: pq.RowGroupMetaData, lists: tuple[str, ...], entries: int) -> int:
    """Return the rows of a batch: batches of a row group are as few as ``entries`` allows, and of one size."""
    chunks = (group.column(i) for i in range(group.num_columns))
    # Parquet stores a list under a path that starts with the column's name, which may itself hold dots.
    found = sum(int(chunk.num_values) for chunk in chunks if chunk.path_in_schema.startswith(lists))
    rows = int(group.num_rows)
    most = max(1, min(rows, entries * rows // max(1, rows, found)))
    return -(-rows // -(-rows // most)) if rows else 1


def open_arrow(files: list[Path], csv: Csv, numbers: Collection[str]) -> Reader:  # noqa: ARG001 - for CSV
    """Open an Arrow IPC file or stream, mapped into memory and not copied."""
    [path] = files

    def opened() -> pa.RecordBatchReader:
        try:
            return pa.ipc.open_file(pa.memory_map(str(path)))
        except pa.ArrowInvalid:
            return pa.ipc.open_stream(pa.memory_map(str(path)))

    def read(columns: list[str], entries: int) -> Iterator[Placed]:
        with opened() as reader:
            count = getattr(reader, "num_record_batches", None)
            stored = reader if count is None else map(reader.get_batch, range(count))
            yield path.name, cut_batches(stored, columns, entries)

    with opened() as reader:
        return Reader(reader.schema, read, lambda: [["arrow"]])


def cut_batches(stored: Iterable[pa.RecordBatch], columns: list[str], entries: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches that Arrow has in memory, cut where they hold too many entries."""
    for whole in stored:
        batch = whole.select(columns)
        rows = int(batch.num_rows)
        found = sum(len(column.flatten()) for column in batch.columns if is_list(column.type))
        size = max(1, entries * rows // max(1, rows, found))
        yield from (batch.slice(first, size) for first in range(0, rows, size))


@contextmanager
def plain_errors(name: str) -> Iterator[None]:
    """Turn Arrow's errors, which may quote what they could not read, into one that only names the file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{name!r} cannot be read: it is damaged, or of another format") from None


FORMATS: dict[str, tuple[Collection[str], Callable[[list[Path], Csv, Collection[str]], Reader]]] = {
    "csv": ({".csv", ".tsv", ".txt"}, open_csv),
    "parquet": ({".parquet", ".pq"}, open_parquet),
    "arrow": ({".arrow", ".arrows", ".feather", ".ipc"}, open_arrow),
}
"""The endings of each format's names, and the function that opens its files."""
