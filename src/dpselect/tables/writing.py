"""Record batches as files: Parquet, CSV, JSON, JSON lines, Arrow IPC."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from dpselect.errors import OutputError

OUTPUT_FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".arrow": "arrow",
    ".feather": "arrow",
}

ROW_GROUP_BYTES = 1 << 25
"""How much of a Parquet row group is held in memory."""


def output_format(path: Path) -> str:
    """Return the format of a file to be written, from its name."""
    try:
        return OUTPUT_FORMATS[path.suffix.lower()]
    except KeyError:
        raise OutputError(f"output must end in one of {', '.join(OUTPUT_FORMATS)}, not {path.name!r}") from None


def check_output(path: Path) -> None:
    """Raise, before any work, if a file cannot be written: its format is unknown, or its folder is missing."""
    output_format(path)
    if not path.resolve().parent.is_dir():
        raise OutputError(f"output must go into a folder that exists: make the folder {str(path.parent)!r} first")


def write_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema, kind: str, file: IO[bytes]) -> None:
    """Write record batches in a format."""
    if kind == "parquet":
        # Units are all distinct, so a dictionary of them would save nothing, and takes longer than all else.
        with pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=schema.names[1:]) as parquet:
            for table in _row_groups(batches, schema):
                parquet.write_table(table)
    elif kind in {"arrow", "csv"}:
        options = {} if kind == "arrow" else {"write_options": pa.csv.WriteOptions(quoting_style="needed")}
        with (pa.ipc.new_file if kind == "arrow" else pa.csv.CSVWriter)(file, schema, **options) as writer:
            for batch in batches:
                writer.write_batch(batch)
    else:
        rows = (row for batch in batches for row in batch.to_pylist())
        lines = (json.dumps(row, ensure_ascii=False, default=_as_text).encode() for row in rows)
        if kind == "jsonl":
            file.writelines(line + b"\n" for line in lines)
        else:
            file.write(b"[")
            file.writelines((b",\n" if number else b"\n") + line for number, line in enumerate(lines))
            file.write(b"\n]\n")


def _row_groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield tables of several batches each: many small row groups are slow to write, and to read."""
    held, size = [], 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= ROW_GROUP_BYTES:
            yield pa.Table.from_batches(held, schema)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held, schema)


def _as_text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
