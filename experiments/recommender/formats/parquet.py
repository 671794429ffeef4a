"""A plain Parquet file with the columns user and item, and optionally rating and split (0 train, 1 test)."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.recommender.formats.errors import LARGEST_ID, refuse
from experiments.recommender.interactions import Batch

__all__ = ["read_parquet"]

ROWS = 1 << 20


def read_parquet(path: Path, *, users: int = LARGEST_ID, items: int = LARGEST_ID) -> Iterator[Batch]:
    """Yield the interactions, a million at a time.

    Args:
        path: The file.
        users: Ids of users must be below this.
        items: Ids of items must be below this.
    """
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            _check_columns(path, schema)
            columns = [name for name in ("user", "item", "rating", "split") if name in schema.names]
            row = 0
            for rows in file.iter_batches(ROWS, columns=columns):
                yield _batch(path, rows, row, users, items)
                row += rows.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        refuse(path, "", f"is not a complete Parquet file ({str(error).splitlines()[0]})")


def _check_columns(path: Path, schema: pa.Schema) -> None:
    for name in ("user", "item"):
        if name not in schema.names:
            refuse(path, f"column {name}", f"is missing; the file has {', '.join(schema.names) or 'no columns'}")
    for name in ("user", "item", "split"):
        if name in schema.names and not pa.types.is_integer(schema.field(name).type):
            refuse(path, f"column {name}", f"must be integers, got {schema.field(name).type}")
    if "rating" in schema.names:
        kind = schema.field("rating").type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            refuse(path, "column rating", f"must be numbers, got {kind}")


def _batch(path: Path, rows: pa.RecordBatch, first: int, users: int, items: int) -> Batch:
    for name in rows.schema.names:
        if rows.column(name).null_count:
            refuse(path, f"column {name}", "has missing values")
    values = {name: rows.column(name).to_numpy(zero_copy_only=False) for name in rows.schema.names}
    for name, limit in (("user", users), ("item", items), ("split", 2)):
        if name not in values:
            continue
        wrong = (values[name] < 0) | (values[name] >= limit)
        if wrong.any():
            position = int(wrong.argmax())
            refuse(
                path,
                f"column {name}, row {first + position + 1}",
                f"{values[name][position]} is out of range: values go from 0 to {limit - 1}",
            )
    return Batch(
        users=values["user"].astype(np.int32),
        items=values["item"].astype(np.int32),
        ratings=values["rating"].astype(np.float32) if "rating" in values else None,
        test=values["split"] == 1 if "split" in values else None,
    )
