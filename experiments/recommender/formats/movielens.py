"""ratings.csv of MovieLens-20M (and 25M, 32M) and ratings.dat of MovieLens-1M (and 10M)."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from experiments.recommender.formats.errors import refuse
from experiments.recommender.interactions import Batch

__all__ = ["read_ratings_csv", "read_ratings_dat"]

HEADER = ("userId", "movieId", "rating", "timestamp")


def read_ratings_csv(path: Path) -> Iterator[Batch]:
    """Yield the ratings of a file whose first line is ``userId,movieId,rating,timestamp``."""
    with path.open(encoding="utf-8", errors="replace") as file:
        header = tuple(name.strip('"') for name in file.readline().strip().split(","))
    missing = [name for name in HEADER[:3] if name not in header]
    if missing:
        refuse(path, "line 1", f"the header has no column {missing[0]}; expected {','.join(HEADER)}")
    # Times are not used, and there are two forms of them, so read them as text.
    types = {"userId": pa.int32(), "movieId": pa.int32(), "rating": pa.float32(), "timestamp": pa.string()}
    yield from _stream(path, csv.ReadOptions(use_threads=False), ",", types, HEADER[:3], first_line=2)


def read_ratings_dat(path: Path) -> Iterator[Batch]:
    """Yield the ratings of a file of lines ``user::item::rating::time``."""
    # The reader's separator has one character, so "::" is two separators around an empty column.
    names = ["user", "1", "item", "2", "rating", "3", "time"]
    types = {"user": pa.int32(), "item": pa.int32(), "rating": pa.float32(), "time": pa.int64()}
    empty = dict.fromkeys(("1", "2", "3"), pa.string())
    options = csv.ReadOptions(use_threads=False, column_names=names)
    yield from _stream(path, options, ":", {**types, **empty}, ("user", "item", "rating"), first_line=1)


def _stream(
    path: Path,
    reading: csv.ReadOptions,
    separator: str,
    types: Mapping[str, pa.DataType],
    columns: tuple[str, str, str],
    *,
    first_line: int,
) -> Iterator[Batch]:
    line = first_line
    try:
        reader = csv.open_csv(
            path,
            read_options=reading,
            parse_options=csv.ParseOptions(delimiter=separator, quote_char='"' if separator == "," else False),
            convert_options=csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False),
        )
        for rows in reader:
            _check_separators(path, rows, line)
            users, items, ratings = (rows.column(name).to_numpy(zero_copy_only=False) for name in columns)
            bad = (users < 0) | (items < 0) | ~((ratings >= 0) & (ratings <= 5))
            if bad.any():
                refuse(path, f"line {line + int(bad.argmax())}", "ids must be 0 or more, ratings between 0 and 5")
            line += rows.num_rows
            yield Batch(users=users, items=items, ratings=ratings.astype(np.float32, copy=False))
    except pa.ArrowInvalid as error:
        refuse(path, *_explain(str(error), first_line, columns))


def _check_separators(path: Path, rows: pa.RecordBatch, line: int) -> None:
    for name in {"1", "2", "3"} & set(rows.schema.names):
        filled = pc.not_equal(rows.column(name), "").to_numpy(zero_copy_only=False)
        if filled.any():
            refuse(path, f"line {line + int(filled.argmax())}", "fields must be separated by “::”")


def _explain(message: str, first_line: int, columns: tuple[str, str, str]) -> tuple[str, str]:
    """Return place and problem, in this file's terms instead of the reader's."""
    if "Empty CSV file" in message:
        return "", "is empty"
    shape = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message)
    if shape:
        row, expected, found = map(int, shape.groups())
        # Every second column is empty: it lies between the two characters of a separator.
        fields = (expected + 1) // 2 if columns[0] == "user" else expected
        return f"line {row}", f"needs {fields} fields; is the file cut off? (the reader saw {found} columns)"
    value = re.search(r"column #(\d+)(?:: '([^']*)')?.*?Row #(\d+): CSV conversion error to (\w+)", message)
    if value:
        return f"line {value[3]}", f"{message.rsplit(':', maxsplit=1)[-1].strip()} where a {value[4]} was expected"
    return f"after line {first_line}", message
