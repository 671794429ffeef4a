"""Writing results in the formats that people want them in."""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

__all__ = ["OUTPUT_FORMATS", "copy_to_stdout", "output_format", "write_rows"]

OUTPUT_FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".arrow": "arrow",
    ".feather": "arrow",
}


ROW_GROUP_BYTES = 1 << 25
"""How much is held in memory for a row group of Parquet."""


def output_format(path: Path) -> str:
    """Return the format of a file to be written, from its name."""
    try:
        return OUTPUT_FORMATS[path.suffix.lower()]
    except KeyError:
        raise ValueError(f"output must end in one of {', '.join(OUTPUT_FORMATS)}, not {path.name!r}") from None


def write_rows(batches: Iterable[Any], schema: Any, kind: str, file: IO[bytes]) -> None:  # noqa: ANN401 - Arrow
    """Write record batches in a format; lists become text in CSV."""
    if kind == "parquet":
        # Units are all distinct, so a dictionary of them would be for nothing, and takes longer than all else.
        nested = any(pa.types.is_nested(field.type) for field in schema)
        repeating = True if nested else schema.names[1:]
        with pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=repeating) as parquet:
            for table in _row_groups(batches, schema):
                parquet.write_table(table)
    elif kind == "arrow":
        with pa.ipc.new_file(file, schema) as arrow:
            for batch in batches:
                arrow.write_batch(batch)
    elif kind == "csv":
        with pa.csv.CSVWriter(file, schema, write_options=pa.csv.WriteOptions(quoting_style="needed")) as table:
            for batch in batches:
                table.write_batch(batch)
    else:
        _write_json(batches, kind, file)


def _row_groups(batches: Iterable[Any], schema: Any) -> Iterator[Any]:  # noqa: ANN401 - Arrow
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


def _write_json(batches: Iterable[Any], kind: str, file: IO[bytes]) -> None:
    first = True
    if kind == "json":
        file.write(b"[")
    for batch in batches:
        for row in batch.to_pylist():
            line = json.dumps(row, ensure_ascii=False, default=_as_text).encode()
            if kind == "json":
                file.write((b"\n" if first else b",\n") + line)
            else:
                file.write(line + b"\n")
            first = False
    if kind == "json":
        file.write(b"\n]\n")


def _as_text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def copy_to_stdout(path: Path) -> None:
    """Copy a finished file to the standard output."""
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
