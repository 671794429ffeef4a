"""Tables as they are stored: in files, in a folder of Parquet files, or in memory.

:func:`open_table` is the only place that decides which. All are read in batches, so memory is that of a batch, and
every batch knows its place, so an error can name the file, the row group and the row.
"""

import hashlib
import os
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from copy import copy
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from dpselect.errors import MissingFileError, UnknownColumnError
from dpselect.tables.arrays import as_floats, from_numpy, is_number
from dpselect.tables.conversion import as_arrow, column_names
from dpselect.tables.csv_files import Csv
from dpselect.tables.formats import COMPRESSED, FORMATS, Format, Placed, Reader, cut_batches, plain_errors

AnyTable: TypeAlias = str | os.PathLike[str] | pa.Table | Any
"""A path, an Arrow table, or a data frame: pandas, polars, DuckDB, anything with the Arrow C stream interface."""

BATCH_CANDIDATES = 1 << 22
"""Entries in a batch, of all its list columns together: 32 MB of numbers."""


def open_table(
    table: AnyTable,
    format: Format | Csv | None = None,
    columns: Collection[str] | None = None,
    numbers: Collection[str] = (),
) -> "StoredTable":
    """Return a table, ready to be read: ``columns`` of a data frame, and ``numbers`` in CSV, where all is text."""
    if not isinstance(table, str | os.PathLike):
        held = as_arrow(table, columns)
        return StoredTable(None, lambda _: _read_memory(held), column_names(table))
    path = Path(table)
    csv = format if isinstance(format, Csv) else Csv()
    kind = _format_of(path, "csv" if isinstance(format, Csv) else None) if format in {None, csv} else format
    if kind not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, not {kind!r}")
    if path.is_dir() and kind != "parquet":
        raise ValueError(f"{path.name!r} is a folder: only Parquet may come in many files")
    return StoredTable(path, lambda files: FORMATS[kind][1](files, csv, numbers))


def _format_of(path: Path, otherwise: str | None) -> str:
    if path.is_dir():
        return "parquet"
    suffixes = [suffix for suffix in path.suffixes if suffix not in COMPRESSED]
    for name, (endings, _) in FORMATS.items():
        if suffixes and suffixes[-1].lower() in endings:
            return name
    if not path.exists():
        raise MissingFileError(path)
    if otherwise is None:
        raise ValueError(f"cannot tell the format of {path.name!r}: give it with --format csv, parquet or arrow")
    return otherwise


def _files_of(path: Path) -> list[Path]:
    """Return the file, or all Parquet files of a folder that are not hidden."""
    if not path.exists():
        raise MissingFileError(path)
    if not path.is_dir():
        return [path]
    files = sorted(
        p for p in path.rglob("*.parquet") if not any(part[0] in "._" for part in p.relative_to(path).parts)
    )
    if not files:
        raise ValueError(f"the folder {path.name!r} holds no Parquet files")
    return files


def _read_memory(table: pa.Table) -> Reader:
    digest = cache(lambda: hashlib.blake2b(content_of(table), digest_size=32).hexdigest())
    return Reader(
        table.schema,
        lambda columns, entries: iter([("the table", cut_batches(table.to_batches(), columns, entries))]),
        lambda: [["memory", digest()]],  # which stands for the contents in a fingerprint
        table.num_rows,
    )


def content_of(table: pa.Table) -> pa.Buffer:
    """Return everything a table holds, as an Arrow IPC stream that does not depend on its chunks."""
    whole = table.combine_chunks().replace_schema_metadata(None)
    with pa.BufferOutputStream() as stream:
        with pa.ipc.new_stream(stream, whole.schema) as writer:
            writer.write_table(whole)
        return stream.getvalue()


def check_column(names: Sequence[str], name: str, role: str, table: str = "the table") -> None:
    """Raise if a table has no column of a name, or two."""
    if name not in names:
        raise UnknownColumnError(name, role, table, names)
    if list(names).count(name) > 1:
        raise ValueError(f"ambiguous column {name!r}: {table} has {', '.join(map(repr, names))}")


class Located(NamedTuple):
    """A batch, and where it comes from."""

    batch: pa.RecordBatch
    place: str
    first: int | None
    """The number of its first row within ``place``; ``None`` if rows have been sorted."""

    def __repr__(self) -> str:
        # Scores are private.
        return f"Located({self.batch.num_rows} rows, {self.place!r}, first={self.first})"

    def locate(self, row: int, unit: str) -> str:
        """Say where a row of the batch is: by its number, from 0, unless rows have been sorted, and by its unit."""
        place = self.place if self.first is None else f"{self.place}, row {self.first + row}"
        known = unit in self.batch.schema.names and self.batch.column(unit)[row].is_valid
        return f"{place}, {unit} {self.batch.column(unit)[row].as_py()!r}" if known else place


class StoredTable:
    """A table that can be read in batches, in the same order every time.

    It has what its :class:`~dpselect.tables.formats.Reader` has, and also the name of the file or folder, a
    ``label`` for messages, its files (none if it is in memory) and the names of all columns.
    """

    waiting = None
    """Nothing has to be done before the first batch."""

    def __init__(
        self, path: Path | None, open_files: Callable[[list[Path]], Reader], column_names: list[str] | None = None
    ) -> None:
        self._path = path
        self.name = "the table" if path is None else path.name
        self.label = "the table" if path is None else repr(path.name)
        self.files = [] if path is None else _files_of(path)
        self._opened = self._state()  # before anything is read
        with plain_errors(self.name):
            self.schema, self._read, self.read_options, self.rows, self.is_text = open_files(self.files)
        self.column_names = column_names or self.schema.names

    def batches(self, columns: list[str], *, entries: int = BATCH_CANDIDATES) -> Generator[Located]:
        """Yield batches with the columns asked for, of about that many entries."""
        with plain_errors(self.name):
            for place, batches in self._read(columns, entries):
                first = 0
                for batch in batches:
                    if batch.num_rows:
                        yield Located(batch.select(columns), place, first)
                    first += batch.num_rows

    def gathered(self, unit: str, candidate: str, score: str, columns: Sequence[str]) -> "StoredTable":
        """Return the same table with lists of candidates and scores in place of a column for each candidate."""
        for name in (unit, *columns):
            check_column(self.column_names, name, "unit" if name == unit else "candidate_columns", self.label)
        for name in columns:
            kind = self.schema.field(name).type
            if not (self.is_text or is_number(kind) or pa.types.is_null(kind)):
                raise ValueError(f"column {name!r} must hold numbers, not {kind}")

        def lists(batch: pa.RecordBatch, place: str) -> pa.RecordBatch:
            rows, size = batch.num_rows, len(columns)
            scores = np.empty((rows, size))
            for i, name in enumerate(columns):
                scores[:, i] = as_floats(name, batch.column(name), lambda _: place)
            ends = from_numpy(np.arange(0, rows * size + 1, size))
            names = pa.array(columns, pa.string()).take(from_numpy(np.tile(np.arange(size), rows)))
            made = [pa.LargeListArray.from_arrays(ends, flat) for flat in (names, from_numpy(scores.reshape(-1)))]
            return pa.RecordBatch.from_arrays([batch.column(unit), *made], schema=schema)

        def read(_: list[str], entries: int) -> Iterator[Placed]:
            for place, batches in self._read([unit, *columns], max(1, entries // len(columns))):
                yield place, (lists(batch, place) for batch in batches)

        kinds = [(candidate, pa.large_list(pa.string())), (score, pa.large_list(pa.float64()))]
        schema = pa.schema([self.schema.field(unit), *kinds])
        wide = copy(self)
        vars(wide).update(schema=schema, column_names=schema.names, _read=read, is_text=False)
        wide.read_options = lambda: [[*options, "wide", *columns] for options in self.read_options()]
        return wide

    def interrupt(self) -> None:
        """Do nothing: a batch is read at once."""

    def read(self, columns: list[str]) -> pa.Table:
        """Return whole columns, of a small table."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_batches([located.batch for located in self.batches(columns)], schema)

    def _state(self) -> list[tuple[object, ...]]:
        """Return what changes whenever a file is written to or exchanged: times can be set back, but not ctime."""
        state = attrgetter("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
        files = [] if self._path is None else _files_of(self._path)
        return [(path.resolve(), *state(path.stat())) for path in files]

    def check_unchanged(self) -> None:
        """Raise if the table is no longer what was opened: what was fingerprinted may not be what was read."""
        if self._state() != self._opened:
            raise ValueError(f"{self.label} has changed while it was read; run again when nothing writes to it")
