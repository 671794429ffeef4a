"""Lists copied out of Parquet pages are those that Arrow reads, and what is unusual is left to Arrow."""

import io
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.engines.pages import Copies
from dpselect.engines.sources import ParquetSource
from dpselect.kernels import levels

# --- Levels ------------------------------------------------------------------------------------------------


def varint(number):
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def encode(pieces, width):
    """Return levels from pieces: ("run", value, times), or ("packed", values), eight or a multiple of them."""
    out = b""
    for kind, value, times in pieces:
        if kind == "run":
            out += varint(times << 1) + bytes([value])
        else:
            bits = sum(v << (width * i) for i, v in enumerate(value))
            out += varint(len(value) // 8 << 1 | 1) + bits.to_bytes(len(value) * width // 8, "little")
    return np.frombuffer(out, np.uint8)


def decoded(pieces):
    return [v for kind, value, times in pieces for v in ([value] * times if kind == "run" else value)]


def pieces_of(width):
    value = st.integers(0, 2**width - 1)
    run = st.tuples(st.just("run"), value, st.integers(1, 300))
    eights = st.integers(1, 3).flatmap(lambda n: st.lists(value, min_size=8 * n, max_size=8 * n))
    return st.lists(st.one_of(run, st.tuples(st.just("packed"), eights, st.none())), min_size=1, max_size=6)


@given(pieces=pieces_of(1), short=st.integers(0, 7), first=st.integers(0, 1000))
def test_starts_of_lists_are_the_places_of_zeros(pieces, short, first):
    values = decoded(pieces)
    values = values[: max(1, len(values) - short)]  # the last group may be filled up
    starts = np.full(len(values), -7, np.int64)
    found = levels.find_starts(encode(pieces, 1), len(values), first, starts)
    expected = [first + i for i, value in enumerate(values) if value == 0]
    assert starts[:found].tolist() == expected
    if expected:
        assert levels.find_starts(encode(pieces, 1), len(values), first, starts[: found - 1]) == levels.MALFORMED


@given(data=st.data(), width=st.integers(1, 3))
def test_levels_are_all_the_same_or_not(data, width):
    most = data.draw(st.integers(0, 2**width - 1))
    same = st.sampled_from([[("run", most, 40)], [("packed", [most] * 16, None)]])
    pieces = data.draw(st.one_of(pieces_of(width), same))
    values = decoded(pieces)
    assert levels.are_all(encode(pieces, width), width, len(values), most) == all(v == most for v in values)


@given(data=st.binary(max_size=40), count=st.integers(1, 200))
def test_whatever_is_no_level_is_refused_and_nothing_else_is_touched(data, count):
    array = np.frombuffer(data, np.uint8)
    starts = np.full(count + 1, -7, np.int64)
    found = levels.find_starts(array, count, 0, starts[:count])
    assert levels.MALFORMED <= found <= count
    assert starts[count] == -7
    levels.are_all(array, 2, count, 3)
    fields = np.full((levels.FIELDS, levels.FIELDS), -1, np.int64)
    assert levels.MALFORMED <= levels.read_header(array, fields) <= array.size


@pytest.mark.parametrize("data", [b"\xff" * 12, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00", b"\x01", b"\x00\x00"])
def test_levels_without_end_are_refused(data):
    array = np.frombuffer(data, np.uint8)
    starts = np.empty(10, np.int64)
    huge = levels.find_starts(array, 10, 0, starts)
    assert huge in (levels.MALFORMED, 10)  # 10: a run of very many zeros, of which ten are asked for


# --- Columns -----------------------------------------------------------------------------------------------

NUMBERS = {
    "float64": (pa.float64(), st.floats(width=64, allow_nan=False)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float32": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
}


@st.composite
def tables(draw):
    """Draw a table of lists, options for writing it, and whether its lists can be copied."""
    number, values = NUMBERS[draw(st.sampled_from(list(NUMBERS)))]
    usual = draw(st.booleans())
    some = st.lists(values, min_size=1, max_size=20)
    row = some if usual else st.one_of(some, st.none(), st.lists(st.one_of(values, st.none()), max_size=5))
    rows = draw(st.lists(row, min_size=1, max_size=60))
    nullable = not usual or draw(st.booleans())
    make = draw(st.sampled_from([pa.list_, pa.large_list]))
    kind = make(pa.field("item", number, nullable=nullable))
    column = pa.array(rows, kind)
    schema = pa.schema([pa.field("user", pa.string()), pa.field("score", kind, nullable=nullable)])
    table = pa.table([pa.array([f"u{i}" for i in range(len(rows))]), column], schema=schema)
    options = {
        "compression": draw(st.sampled_from(["none", "snappy", "zstd", "gzip", "lz4"])),
        "use_dictionary": draw(st.sampled_from([False, ["user"], ["score"]])),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
        "data_page_size": draw(st.sampled_from([1, 64, 500, 1 << 20])),
        "write_batch_size": draw(st.sampled_from([1, 7, 1024])),
        "row_group_size": draw(st.sampled_from([1, 9, 100])),
        "use_compliant_nested_type": draw(st.booleans()),
        "write_statistics": draw(st.booleans()),
    }
    complete = all(row and None not in row for row in rows)
    plain = number in (pa.float64(), pa.int64()) and options["use_dictionary"] != ["score"]
    return table, options, complete and plain and options["compression"] in ("none", "snappy", "zstd")


@given(drawn=tables())
@settings(max_examples=150, deadline=None)
def test_what_is_copied_is_what_arrow_reads_and_all_that_can_be_copied_is(drawn):
    table, options, copied = drawn
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        pq.write_table(table, path, **options)
        with pq.ParquetFile(path) as file, pa.memory_map(str(path)) as content:
            copies = Copies(file, content, ["score", "user"], 1 << 20)
            groups = [copies.batches(group, 4) for group in range(file.num_row_groups)]
            read = [file.read_row_group(group, columns=["score", "user"]) for group in range(file.num_row_groups)]
        if copied:
            assert None not in groups
        for batches, whole in zip(groups, read, strict=True):
            if batches is not None:
                found = pa.Table.from_batches(batches)
                found.validate(full=True)
                assert found.equals(whole.select(["score", "user"]))
                assert all(batch.num_rows <= 4 for batch in batches)
        source = ParquetSource([path], batch_candidates=64)
        assert source.total == len(table)
        stored = pa.Table.from_batches([located.batch for located in source.batches(["user", "score"])])
        assert stored.equals(pq.read_table(path))
        skipped = [located.batch for located in source.batches(["user"], skip=len(table) // 2)]
        assert [u for batch in skipped for u in batch["user"].to_pylist()] == [
            f"u{i}" for i in range(len(table) // 2, len(table))
        ]


def test_row_groups_that_are_too_large_are_read_in_batches_by_arrow(tmp_path):
    table = pa.table({"user": range(40), "score": [[1.0, 2.0, 3.0]] * 40})
    pq.write_table(table, tmp_path / "t.parquet", use_dictionary=False)
    with pq.ParquetFile(tmp_path / "t.parquet") as file, pa.memory_map(str(tmp_path / "t.parquet")) as content:
        assert Copies(file, content, ["score"], 119).batches(0, 40) is None
        assert Copies(file, content, ["score"], 120).batches(0, 40) is not None


@pytest.mark.parametrize("name", ["score.x", "score"])
def test_columns_with_dots_in_their_names_are_not_mixed_up(name, tmp_path):
    table = pa.table({"score": [[1.0], [2.0]], "score.x": [[3.0], [4.0]], "user": [1, 2]})
    pq.write_table(table, tmp_path / "t.parquet", use_dictionary=False)
    [located] = ParquetSource([tmp_path / "t.parquet"]).batches([name])
    assert located.batch.to_pydict() == {name: table[name].to_pylist()}


@given(places=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=3))
@settings(max_examples=300, deadline=None)
def test_a_damaged_file_is_read_as_arrow_reads_it_or_not_at_all(places):
    stream = io.BytesIO()
    rows = [[float(i + j) for j in range(1 + i % 7)] for i in range(50)]
    table = pa.table({"score": rows})
    pq.write_table(table, stream, use_dictionary=False, compression="none", data_page_size=256, write_batch_size=16)
    content = bytearray(stream.getvalue())
    pages = pq.read_metadata(stream).row_group(0).column(0).total_compressed_size
    for place, value in places:
        content[4 + int(place * pages)] = value  # after the magic bytes; what stands after the pages stays
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        path.write_bytes(content)
        with pq.ParquetFile(path) as file, pa.memory_map(str(path)) as mapped:
            batches = Copies(file, mapped, ["score"], 1 << 20).batches(0, 1000)
            try:
                arrow = file.read_row_group(0)
            except (pa.ArrowException, OSError):
                return
        if batches is not None:
            found = pa.Table.from_batches(batches).column("score").combine_chunks()
            read = arrow.column("score").combine_chunks()
            assert found.offsets.equals(read.offsets)
            bits = [np.asarray(lists.values).view(np.int64).tolist() for lists in (found, read)]
            assert bits[0] == bits[1]
