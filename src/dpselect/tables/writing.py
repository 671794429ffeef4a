"""Record batches as files: Parquet, CSV, Arrow IPC."""

from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from dpselect.errors import OutputError

OUTPUT_FORMATS = {".parquet": "parquet", ".csv": "csv", ".arrow": "arrow", ".feather": "arrow"}


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
    # Units are all distinct, so a dictionary of them would save nothing, and takes longer than all else.
    makers: dict[str, tuple[Any, dict[str, Any]]] = {
        "parquet": (pq.ParquetWriter, {"compression": "zstd", "use_dictionary": schema.names[1:]}),
        "arrow": (pa.ipc.new_file, {}),
        "csv": (pa.csv.CSVWriter, {"write_options": pa.csv.WriteOptions(quoting_style="needed")}),
    }
    make, options = makers[kind]
    with make(file, schema, **options) as writer:
        for batch in batches:
            writer.write_batch(batch)
