"""Tables of units in files: Parquet, folders of Parquet, Arrow IPC; read in batches, so memory is a batch's.

A source yields *located* batches, so that an error can name the file, the row group and the row. CSV files and
other long tables (a row for each candidate) become lists in :mod:`dpselect.engines.grouping`.
"""

import queue
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from dpselect.engines.layout import is_list
from dpselect.engines.pages import Copies, is_leaf

__all__ = ["ArrowSource", "Located", "ParquetSource", "Source", "prefetched", "table_files", "table_format"]

BATCH_CANDIDATES = 1 << 23
"""Entries in a batch, of all its list columns together: 64 MB of numbers."""

MOST_COPIED = 2
"""Batches in a row group that is copied whole: 128 MB of numbers, what Spark makes them by default."""

FORMATS = {
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


class Located(NamedTuple):
    """A batch, and where it is from."""

    batch: Any
    place: str
    first: int | None
    """The row it starts with, counted within ``place``; ``None`` if rows have been sorted."""

    def locate(self, row: int, unit: str) -> str:
        """Say where a row of the batch is: by its number, or by its unit if rows have been sorted."""
        if self.first is not None:
            return f"{self.place}, row {self.first + row}"
        identifier = self.batch.column(unit)[row].as_py()
        return f"{self.place}, " + (f"rows without {unit}" if identifier is None else f"{unit} {identifier!r}")


class Source(Protocol):
    """A table of units that can be read in batches, in the same order every time."""

    files: list[Path]
    schema: Any
    units_are_distinct: bool
    """Whether no unit can occur twice, by construction."""

    @property
    def total(self) -> int | None:
        """How many rows the files have, as far as that is known by now."""

    def batches(self, columns: list[str], skip: int = 0) -> Iterator[Located]:
        """Yield batches with the columns asked for, without the first ``skip`` units."""


def table_format(path: Path, named: str | None = None) -> str:
    """Return the format of a table: the one named, or what the file's name says."""
    if named:
        return named
    if path.is_dir():
        return "parquet"
    suffixes = [suffix for suffix in path.suffixes if suffix not in COMPRESSED]
    if suffixes and suffixes[-1].lower() in FORMATS:
        return FORMATS[suffixes[-1].lower()]
    if not path.exists():
        raise ValueError(f"there is no file {str(path)!r}")
    raise ValueError(f"cannot tell the format of {path.name!r}: name it, as csv, parquet or arrow")


def table_files(path: Path, kind: str) -> list[Path]:
    """Return the files of a table, which may be a folder of Parquet files."""
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


class ParquetSource:
    """List columns in one or many Parquet files.

    Row groups whose lists are plain numbers are copied (:mod:`dpselect.engines.pages`) if they are not too large
    for that; Arrow reads all others.
    """

    units_are_distinct = False

    def __init__(self, files: list[Path], *, batch_candidates: int = BATCH_CANDIDATES) -> None:
        self.files = files
        self._batch_candidates = batch_candidates
        self._rows = 0
        for path in files:
            with _plain_errors(path):
                stored = pq.read_metadata(path)
                schema = stored.schema.to_arrow_schema()
            self._rows += int(stored.num_rows)
            if path == files[0]:
                self.schema = schema
            elif not schema.equals(self.schema):
                raise ValueError(f"{path.name!r} has other columns than {files[0].name!r}")

    @property
    def total(self) -> int | None:
        """How many rows the files have."""
        return self._rows

    def batches(self, columns: list[str], skip: int = 0) -> Iterator[Located]:
        """Yield the batches of one row group after the other."""
        for path in self.files:
            with (
                _plain_errors(path),
                pq.ParquetFile(path, memory_map=True, pre_buffer=False) as file,
                pa.memory_map(str(path)) as content,
            ):
                copies = Copies(file, content, columns, MOST_COPIED * self._batch_candidates)
                for group in range(file.num_row_groups):
                    rows = file.metadata.row_group(group).num_rows
                    if skip >= rows:
                        skip -= rows
                        continue
                    first = 0
                    size = self._batch_rows(file.metadata.row_group(group), columns)
                    for batch in copies.batches(group, size) or file.iter_batches(size, [group], columns):
                        if skip < batch.num_rows:
                            part = batch.select(columns).slice(skip)
                            yield Located(part, f"{path.name}, row group {group}", first + skip)
                        skip = max(0, skip - batch.num_rows)
                        first += batch.num_rows

    def _batch_rows(self, group: Any, columns: list[str]) -> int:  # noqa: ANN401 - Parquet's metadata
        lists = [name for name in columns if is_list(self.schema.field(name).type)]
        chunks = (group.column(i) for i in range(group.num_columns))
        entries = sum(int(c.num_values) for c in chunks if any(is_leaf(c.path_in_schema, n) for n in lists))
        rows = int(group.num_rows)
        most = max(1, min(rows, self._batch_candidates * rows // max(rows, entries)))
        return -(-rows // -(-rows // most))  # as few batches as that allows, of about the same size


class ArrowSource:
    """List columns in an Arrow IPC file or stream, mapped into memory and not copied."""

    units_are_distinct = False

    def __init__(self, path: Path, *, batch_candidates: int = BATCH_CANDIDATES) -> None:
        self.files = [path]
        self._batch_candidates = batch_candidates
        with _plain_errors(path), self._open() as reader:
            self.schema = reader.schema

    @property
    def total(self) -> int | None:
        """Unknown before everything is read."""
        return None

    def _open(self) -> Any:  # noqa: ANN401 - an Arrow reader
        file = pa.memory_map(str(self.files[0]))
        try:
            return pa.ipc.open_file(file)
        except pa.ArrowInvalid:
            file.seek(0)
            return pa.ipc.open_stream(file)

    def batches(self, columns: list[str], skip: int = 0) -> Iterator[Located]:
        """Yield the batches of the file, cut where they hold too many candidates."""
        path = self.files[0]
        with _plain_errors(path), self._open() as reader:
            count = getattr(reader, "num_record_batches", None)
            stored: Iterable[Any] = reader if count is None else map(reader.get_batch, range(count))
            for number, whole in enumerate(stored):
                batch = whole.select(columns)
                rows = self._batch_rows(batch)
                start = min(skip, batch.num_rows)
                skip -= start
                for first in range(start, batch.num_rows, rows):
                    part = batch.slice(first, min(rows, batch.num_rows - first))
                    yield Located(part, f"{path.name}, row group {number}", first)

    def _batch_rows(self, batch: Any) -> int:  # noqa: ANN401 - an Arrow batch
        entries = sum(len(column.flatten()) for column in batch.columns if is_list(column.type))
        rows = int(batch.num_rows)
        return max(1, self._batch_candidates * rows // max(1, rows, entries))


class _plain_errors:  # noqa: N801 - used like a function
    """Turns Arrow's errors, which may quote what they could not read, into ones that name the file only."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, pa.ArrowException) or (isinstance(error, OSError) and error.errno is None):
            raise ValueError(f"{self._path.name!r} cannot be read: it is damaged, or of another format") from None


Item = TypeVar("Item")


def prefetched(items: Iterable[Item], depth: int = 2) -> Iterator[Item]:
    """Yield the items, made in a thread of their own a few ahead, so that reading and picking overlap."""
    made: queue.Queue[tuple[bool, Any]] = queue.Queue(depth)
    stop = threading.Event()

    def put(entry: tuple[bool, Any]) -> None:
        while not stop.is_set():
            try:
                made.put(entry, timeout=0.1)
            except queue.Full:
                continue
            return

    def make() -> None:
        try:
            for item in items:
                put((True, item))
                if stop.is_set():
                    return
            put((False, None))
        except BaseException as error:
            put((False, error))

    thread = threading.Thread(target=make, name="dpselect-reader", daemon=True)
    thread.start()
    try:
        while True:
            more, item = made.get()
            if not more:
                if item is not None:
                    raise item
                return
            yield item
    finally:
        stop.set()
        thread.join()
