"""combined_data_1.txt to combined_data_4.txt of the Netflix Prize: ``film:``, then ``user,rating,date`` lines."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments.recommender.formats.errors import refuse
from experiments.recommender.interactions import Batch

__all__ = ["read_netflix"]

FILES = tuple(f"combined_data_{number}.txt" for number in range(1, 5))
CHUNK = 1 << 24
"""The number of bytes read at once: about 600,000 ratings."""


def read_netflix(folder: Path, *, chunk: int = CHUNK) -> Iterator[Batch]:
    """Yield the ratings of all four files, 10⁸ rows, in pieces of ``chunk`` bytes."""
    for name in FILES:
        yield from _read(folder / name, chunk)


def _read(path: Path, chunk: int) -> Iterator[Batch]:
    film: int | None = None
    line, rest = 1, b""
    with path.open("rb") as file:
        while piece := file.read(chunk):
            whole, newline, tail = (rest + piece).rpartition(b"\n")
            rest = tail
            if newline:
                batch, film = _parse(path, whole, line, film)
                line += whole.count(b"\n") + 1
                yield batch
    if rest:
        batch, film = _parse(path, rest, line, film)
        yield batch
    if film is None:
        refuse(path, "", "is empty")


def _parse(path: Path, text: bytes, first_line: int, film: int | None) -> tuple[Batch, int | None]:
    try:
        content = text.decode("ascii")
    except UnicodeDecodeError as error:
        place = first_line + text.count(b"\n", 0, error.start)
        refuse(path, f"line {place}", "is not plain text")
    lines = pc.utf8_rtrim_whitespace(pc.split_pattern(pa.array([content]), "\n").flatten())
    is_film = pc.match_substring_regex(lines, r"^\d{1,9}:$")
    is_rating = pc.match_substring_regex(lines, r"^\d{1,9},[1-5],\d{4}-\d\d-\d\d$")
    wrong = pc.invert(pc.or_(is_film, is_rating)).to_numpy(zero_copy_only=False)
    if wrong.any():
        place = first_line + int(wrong.argmax())
        refuse(path, f"line {place}", "expected “film:” or “user,rating from 1 to 5,date”; is the file cut off?")
    films = pc.utf8_rtrim(pc.if_else(is_film, lines, None), ":").cast(pa.int32())
    films = pc.fill_null_forward(pa.concat_arrays([pa.array([film], pa.int32()), films])).slice(1)
    items = films.filter(is_rating)
    if items.null_count:
        refuse(path, f"line {first_line}", "ratings before the first “film:” line")
    fields = pc.split_pattern(lines.filter(is_rating), ",").flatten()
    users = fields.take(pa.array(np.arange(0, len(fields), 3))).cast(pa.int32())
    ratings = fields.take(pa.array(np.arange(1, len(fields), 3))).cast(pa.float32())
    batch = Batch(users=users.to_numpy(), items=items.to_numpy(), ratings=ratings.to_numpy())
    return batch, films[-1].as_py()
