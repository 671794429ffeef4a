"""Plain list columns of Parquet files, copied out of their pages.

Arrow's reader spends three to five nanoseconds on a number in a list: it unpacks two levels for each, to find out
where lists start and what is missing. Where nothing is missing and numbers are stored as they are (encoding
``PLAIN``), it is enough to look at the runs that levels come in and to copy the numbers, which is several times
faster. That is what is done here, for lists of 64-bit numbers without nulls and empty lists. Anything else raises
:class:`Unusual`, and is for Arrow to read: nothing is guessed.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpselect import kernels
from dpselect.kernels.arrays import IndexArray

__all__ = ["Copies", "is_leaf"]

NUMBERS = {"DOUBLE": pa.float64(), "INT64": pa.int64()}
"""Physical types, and what Arrow makes of them if nothing else is said."""

CODECS = {"UNCOMPRESSED": None, "SNAPPY": "snappy", "ZSTD": "zstd"}

DATA_PAGE, DATA_PAGE_V2 = 0, 3
PLAIN, RLE = 0, 3


class Unusual(Exception):  # noqa: N818 - not an error
    """Something that is for Arrow to read."""


class Page(NamedTuple):
    """One page: how many numbers, their levels, and the numbers as bytes."""

    size: int
    repetitions: NDArray[np.uint8]
    definitions: NDArray[np.uint8]
    numbers: NDArray[np.uint8]


class Copies:
    """The row groups of a file, as far as their lists can be copied.

    Args:
        file: The Parquet file.
        content: The same, mapped into memory.
        columns: What to read; columns other than plain lists are read by Arrow.
        most: The largest number of entries, in all columns of a row group that can be, for which they are copied.
    """

    def __init__(self, file: Any, content: Any, columns: list[str], most: int) -> None:  # noqa: ANN401 - Arrow
        self._file, self._content, self._columns, self._most = file, content, columns, most
        self._kinds = {name: file.schema_arrow.field(name).type for name in columns}
        paths = [file.metadata.schema.column(i).path for i in range(file.metadata.num_columns)]
        leaves = {name: [i for i, path in enumerate(paths) if is_leaf(path, name)] for name in columns}
        self._leaves = {name: found[0] for name, found in leaves.items() if len(found) == 1}

    def batches(self, group: int, size: int) -> list[Any] | None:
        """Return a row group in batches of so many rows, or ``None`` if it is for Arrow to read."""
        try:
            whole = self._read(group)
        except Unusual:
            self._leaves = {}  # the next row groups will be like this one
            return None
        return [whole.slice(first, size) for first in range(0, whole.num_rows, size)]

    def _read(self, group: int) -> Any:  # noqa: ANN401 - an Arrow batch
        stored = self._file.metadata.row_group(group)
        plain = [name for name in self._leaves if self._is_plain(stored, name)]
        if not plain or not stored.num_rows:
            raise Unusual
        if sum(int(stored.column(self._leaves[name]).num_values) for name in plain) > self._most:
            raise Unusual
        others = [name for name in self._columns if name not in plain]
        read = self._file.read_row_group(group, others, use_threads=False).combine_chunks()
        found = {name: read.column(name) for name in others}
        for name in plain:
            i = self._leaves[name]
            column = self._file.metadata.schema.column(i)
            found[name] = read_lists(self._content, stored.column(i), column, self._kinds[name], stored.num_rows)
        schema = pa.schema([self._file.schema_arrow.field(name) for name in self._columns])
        batches = pa.Table.from_arrays([found[name] for name in self._columns], schema=schema).to_batches()
        if len(batches) != 1:
            raise Unusual
        return batches[0]

    def _is_plain(self, group: Any, name: str) -> bool:  # noqa: ANN401 - Parquet's metadata
        """Tell whether a column may be copied, by all that is known before its pages are read."""
        chunk = group.column(self._leaves[name])
        column, kind = self._file.metadata.schema.column(self._leaves[name]), self._kinds[name]
        return bool(
            (pa.types.is_list(kind) or pa.types.is_large_list(kind))
            and kind.value_type == NUMBERS.get(column.physical_type)
            and column.max_repetition_level == 1
            and 1 <= column.max_definition_level <= 3
            and chunk.compression in CODECS
            and not chunk.has_dictionary_page
            and set(chunk.encodings) <= {"PLAIN", "RLE"}
        )


def is_leaf(path: str, name: str) -> bool:
    """Tell whether what Parquet stores under a path may belong to a column; a dot can be a part of its name."""
    return path == name or path.startswith(f"{name}.")


def read_lists(file: Any, chunk: Any, column: Any, kind: Any, rows: int) -> Any:  # noqa: ANN401 - Arrow
    """Return a column of a row group as an Arrow array.

    Args:
        file: The file, mapped into memory.
        chunk: The metadata of the column in the row group.
        column: The column's schema.
        kind: The array's type.
        rows: How many rows the row group has.

    Raises:
        Unusual: If something is missing, empty, of another form, or wrong.
    """
    count = int(chunk.num_values)
    if pa.types.is_list(kind) and count >= 2**31:
        raise Unusual
    numbers = pa.allocate_buffer(8 * count)
    target = np.frombuffer(numbers, np.uint8)
    starts = np.empty(rows + 1, np.int64)
    done = lists = 0
    for page in _pages(file, chunk):
        if done + page.size > count or page.numbers.size != 8 * page.size:
            raise Unusual
        found = _starts(page, column, done, starts[lists:rows])
        target[8 * done : 8 * (done + page.size)] = page.numbers
        done += page.size
        lists += found
    if done != count or lists != rows or (rows and starts[0] != 0):
        raise Unusual
    starts[rows] = count
    values = pa.Array.from_buffers(kind.value_type, count, [None, numbers])
    if pa.types.is_large_list(kind):
        return pa.LargeListArray.from_arrays(pa.array(starts), values, type=kind)
    return pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), values, type=kind)


def _starts(page: Page, column: Any, first: int, starts: IndexArray) -> int:  # noqa: ANN401 - a schema
    """Write where the lists of a page start, and return how many do."""
    most = int(column.max_definition_level)
    if not kernels.levels.are_all(page.definitions, most.bit_length(), page.size, most):
        raise Unusual
    found = kernels.levels.find_starts(page.repetitions, page.size, first, starts)
    if found == kernels.levels.MALFORMED:
        raise Unusual
    return found


def _pages(file: Any, chunk: Any) -> Iterator[Page]:  # noqa: ANN401 - Arrow
    """Yield the pages of a column of a row group."""
    start, size = int(chunk.data_page_offset), int(chunk.total_compressed_size)
    if start + size > file.size():
        raise Unusual
    file.seek(start)
    content = np.frombuffer(file.read_buffer(size), np.uint8)
    place, left = 0, int(chunk.num_values)
    while left > 0:
        fields = np.full((kernels.levels.FIELDS, kernels.levels.FIELDS), -1, np.int64)
        length = kernels.levels.read_header(content[place:], fields)
        header = fields.tolist()
        stored = header[0][3]
        place += length
        if length == kernels.levels.MALFORMED or not 0 <= stored <= size - place:
            raise Unusual
        page = _page(header, content[place : place + stored], CODECS[chunk.compression])
        place += stored
        left -= page.size
        yield page


def _page(header: list[list[int]], content: NDArray[np.uint8], codec: str | None) -> Page:
    """Return a page; the numbers of fields are those of Parquet's format."""
    kind, size = header[0][1], header[0][2]
    if kind == DATA_PAGE:
        [_, count, numbers, definitions, repetitions, *_] = header[5]
        if count < 0 or (numbers, definitions, repetitions) != (PLAIN, RLE, RLE):
            raise Unusual
        whole = _unpacked(content, codec, size)
        levels, place = _prefixed(whole, 0)
        other_levels, place = _prefixed(whole, place)
        return Page(count, levels, other_levels, whole[place:])
    [_, count, _, _, numbers, second, first, packed, *_] = header[8]
    start = first + second
    if kind != DATA_PAGE_V2 or numbers != PLAIN or min(count, first, second) < 0 or start > content.size:
        raise Unusual
    rest = _unpacked(content[start:], codec if packed else None, size - start)
    return Page(count, content[:first], content[first:start], rest)


def _unpacked(content: NDArray[np.uint8], codec: str | None, size: int) -> NDArray[np.uint8]:
    if codec is None:
        return content
    if size < 0:
        raise Unusual
    return np.frombuffer(pa.decompress(pa.py_buffer(content), size, codec), np.uint8)


def _prefixed(whole: NDArray[np.uint8], place: int) -> tuple[NDArray[np.uint8], int]:
    """Return levels that come after their length, and where they end."""
    start = place + 4
    end = start + int.from_bytes(whole[place:start].tobytes(), "little")
    if end > whole.size:
        raise Unusual
    return whole[start:end], end
