"""Long tables are sorted in memory or by DuckDB, in the same order, and the sort can be interrupted."""

import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from score_tables import LONG, SETTINGS

import dpselect as dps
from dpselect.cli import main
from dpselect.engines.local import read_ahead
from dpselect.tables import sorting
from dpselect.tables.layout import Layout
from dpselect.tables.sorting import SortedUnits, _in_order, _spelled, memory_bytes
from dpselect.tables.stored import open_table

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
identifiers = st.sampled_from(
    [
        (st.integers(-(2**63), 2**63 - 1), pa.int64()),
        (st.integers(2**64 - 3, 2**64 - 1), pa.uint64()),
        (st.integers(-3, 3), pa.int8()),
        (texts, pa.string()),
        (st.integers(-9, 20).map(str), pa.string()),
        (st.sampled_from(["7", "07", "+7", "-0", "0", "10", "9"]), pa.string()),
        (texts, pa.large_string()),
        (texts, pa.dictionary(pa.int32(), pa.string())),
        (st.binary(max_size=3), pa.binary()),
    ]
)


@given(st.data(), identifiers, identifiers)
@settings(suppress_health_check=list(HealthCheck), max_examples=90)
def test_a_sort_in_memory_gives_what_duckdb_gives(data, unit, candidate):
    row = st.tuples(st.none() | unit[0], st.none() | candidate[0], st.integers(-5, 5))
    rows = data.draw(st.lists(row, min_size=1, max_size=8))
    columns = zip(*rows, strict=True)
    kinds = (unit[1], candidate[1], pa.int16())
    arrays = [pa.array(column).cast(kind) if pa.types.is_dictionary(kind) else pa.array(column, kind)
              for column, kind in zip(columns, kinds, strict=True)]  # fmt: skip
    table = pa.table(arrays, names=["user", "candidate", "score"]).slice(data.draw(st.integers(0, len(rows) - 1)))
    layout = Layout(sensitivity=1.0)
    found = []
    for needed in (0, 2**60):
        with patch("dpselect.tables.sorting.needed_bytes", lambda _, needed=needed: needed):
            source = SortedUnits(open_table(table), layout)
            whole = pa.Table.from_batches([located.batch for located in source.batches(layout.columns, entries=4)])
        units = [(row["user"], row["candidate"]) for row in whole.to_pylist()]
        numbers = [sorted(row) for row in whole["score"].to_pylist()]  # rows of one name may be in any order
        found.append((whole.schema, units, numbers))
    assert found[0] == found[1]


@pytest.mark.parametrize("needed", [0, 2**60], ids=["in memory", "by DuckDB"])
@pytest.mark.parametrize("name", [int, str], ids=["integers", "text"])
def test_batches_hold_whole_units(name, needed, monkeypatch):
    monkeypatch.setattr("dpselect.tables.sorting.needed_bytes", lambda _: needed)
    sizes = [1, 9, 2, 2, 1, 7, 3]
    users = [name(user) for user, size in enumerate(sizes) for _ in range(size)]
    rows = {"user": users, "candidate": list(range(25)), "score": list(range(25))}
    mixed = pa.table({column: [values[7 * i % 25] for i in range(25)] for column, values in rows.items()})
    source = SortedUnits(open_table(mixed), Layout(sensitivity=1.0))
    batches = [located.batch for located in source.batches(["user", "candidate", "score"], entries=8)]
    whole = pa.Table.from_batches(batches)
    assert whole["user"].to_pylist() == [name(user) for user in range(7)]
    assert [row for rows in whole["candidate"].to_pylist() for row in rows] == list(range(25))
    assert whole["score"].to_pylist() == whole["candidate"].to_pylist()
    assert len(batches) > 3


@pytest.mark.parametrize("needed", [0, 2**60], ids=["in memory", "by DuckDB"])
@pytest.mark.parametrize(
    "batches",
    [[["10", "9", "100"], ["007", "x", "9"]], [["2", "10"], ["1", "20"]], [["3", "1"], [None, "2"]]],
    ids=["then other text", "then more integers", "then a missing one"],
)
def test_text_that_spells_integers_has_the_order_of_text(batches, needed, monkeypatch):
    monkeypatch.setattr("dpselect.tables.sorting.needed_bytes", lambda _: needed)
    users = pa.chunked_array(batches, pa.string())
    numbers = pa.array(range(len(users)))
    table = pa.table({"user": users, "candidate": numbers, "score": numbers})
    source = SortedUnits(open_table(table), Layout(sensitivity=1.0))
    whole = pa.Table.from_batches([located.batch for located in source.batches(["user", "candidate"])])
    rows = {user: [] for user in sorted(users.to_pylist(), key=lambda user: (user is None, user))}
    for user, number in zip(users.to_pylist(), numbers.to_pylist(), strict=True):
        rows[user].append(number)
    assert whole["user"].type == pa.string()
    assert dict(zip(whole["user"].to_pylist(), whole["candidate"].to_pylist(), strict=True)) == rows
    assert whole["user"].to_pylist() == list(rows)


spellings = st.integers(-(10**19), 10**19).map(str) | st.text("0123456789+-x. _１", max_size=4)


@given(st.lists(spellings, min_size=1, max_size=4), st.integers(0, 3), st.integers(1, 4))
def test_text_counts_as_integers_only_if_they_are_written_like_that(words, first, count):
    names = pa.array(words).slice(min(first, len(words) - 1), count)
    found = _spelled(names)
    assert found.cast(pa.string()).equals(names)
    words = names.to_pylist()
    plain = all(word.isascii() and word.isdecimal() and word == str(int(word)) for word in words)
    assert (found.type == pa.int64()) == (plain and max(map(int, words)) < 2**63)


NAMES = {
    "integers": lambda place, _: place // 10,
    "integers with gaps": lambda _, number: number,
    "text of integers": lambda place, _: (place // 10).astype(str),
    "text of integers with some gaps": lambda place, number: (number % (3 * place.size)).astype(str),
    "text of integers with large gaps": lambda _, number: number.astype(str),
    "then other text": lambda place, _: np.append(place[:-1].astype(str), "x"),
    "text that repeats": lambda place, _: np.char.add("user", (place // 10).astype(str)),
    "text of its own": lambda place, _: np.char.add("user" * 8, place.astype(str)),
}


@pytest.mark.parametrize("names", NAMES)
def test_a_sort_takes_the_memory_that_it_is_said_to_take(names):
    """Names that hardly repeat take more, for a hash table that is mostly empty."""
    n, generator = 300_000, np.random.default_rng(0)
    order = generator.permutation(n)
    columns = [
        pa.array(NAMES[names](np.arange(n), generator.integers(10**15, size=n))).take(pa.array(order))
        for _ in range(2)
    ]
    table = pa.table([*columns, generator.random(n)], names=["user", "candidate", "score"])
    source = SortedUnits(open_table(table), Layout(sensitivity=1.0))
    asked, estimate = [], sorting.needed_bytes
    pool, kept = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        with patch("dpselect.tables.sorting.needed_bytes", lambda rows: asked.append(estimate(rows)) or asked[-1]):
            rows = sum(located.batch.num_rows for located in source.batches(["user", "candidate", "score"]))
        taken = tracemalloc.get_traced_memory()[1] + pool.max_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(kept)
    assert rows == len(set(columns[0].to_pylist()))
    assert 0.4 * sum(asked) < taken < (1.2 if rows < n / 5 else 4) * sum(asked)


@given(
    st.lists(st.integers(0, 2**62), min_size=1, max_size=8) | st.lists(st.integers(0, 5), min_size=1, max_size=8)
)
def test_keys_of_any_size_are_put_in_order(keys):
    ordered, order, below = _in_order(np.array(keys))
    places = ordered & ((1 << below) - 1) if order is None else order
    assert sorted(places) == list(range(len(keys)))
    assert [keys[place] for place in places] == sorted(keys) == (ordered >> below).tolist()


@pytest.mark.parametrize(
    ("column", "message"),
    [("user", "t.parquet, row group 0, row 3: column 'user' is missing"), ("candidate", "without an identifier")],
)
def test_rows_of_parquet_without_a_name_are_reported(column, message, tmp_path, capsys):
    rows = [row | ({column: None} if number == 3 else {}) for number, row in enumerate(LONG)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    assert main(["select", str(tmp_path / "t.parquet"), *SETTINGS, "-o", str(tmp_path / "p.csv")]) == 3
    assert message in capsys.readouterr().err


LARGE = {
    "int64": pa.array([1, 2**62, 2**62 + 1]),
    "uint64": pa.array([1, 2**63, 1], pa.uint64()),
    "decimals": pa.array([Decimal(1), Decimal(2**62), Decimal(1)]),
    "fractions": pa.array([Decimal(1), Decimal(2**60) + Decimal("0.25"), Decimal(1)]),
    "the first that is rounded": pa.array([2**53, -(2**53) - 1, 1]),
}


@pytest.mark.parametrize("needed", [0, 2**60], ids=["in memory", "by DuckDB"])
@pytest.mark.parametrize("column", ["score", "sensitivity"])
@pytest.mark.parametrize("numbers", LARGE.values(), ids=LARGE)
def test_a_number_that_floats_would_round_is_refused_with_its_row(numbers, column, needed, monkeypatch):
    monkeypatch.setattr("dpselect.tables.sorting.needed_bytes", lambda _: needed)
    columns = {"user": [1, 1, 2], "candidate": [1, 2, 1], "score": [0.0] * 3, "sensitivity": [1.0] * 3}
    table = pa.table(columns | {column: numbers})
    with pytest.raises(ValueError, match=rf"row 1, user 1: column '{column}' must not hold integers beyond 2\^53"):
        dps.select_table(table, dps.GEM(1.0))


@pytest.mark.parametrize("number", [f"{2**62 + 1}", f" -{2**53 + 1} ", f"{2**60}.25"])
def test_a_number_in_text_that_floats_would_round_is_refused_with_its_row(number, tmp_path):
    (tmp_path / "t.csv").write_text(f"user,candidate,score,sensitivity\nann,a,1,1\nann,b,{number},1\n")
    with pytest.raises(
        ValueError, match=r"t\.csv, row 1, user 'ann': column 'score' must not hold integers beyond 2\^53"
    ):
        dps.select_table(tmp_path / "t.csv", dps.GEM(1.0))


@pytest.mark.parametrize("number", [f"{2**62 + 1}", 2**62 + 1])
def test_a_public_number_that_floats_would_round_is_refused_with_its_row(number):
    items = {"candidate": ["a", "b"], "sensitivity": [type(number)(1), number]}
    table = {"user": ["ann", "ann"], "candidate": ["a", "b"], "score": [1.0, 2.0]}
    with pytest.raises(ValueError, match=r"row 1: column 'sensitivity' must not hold integers beyond 2\^53"):
        dps.select_table(table, dps.GEM(1.0), candidates=items)


@pytest.mark.parametrize("number", ["1_000", "1e5_0", "+-1", "0x1p3", "1d", "٣"])
def test_what_only_some_parsers_take_for_a_number_is_refused_everywhere(number, tmp_path):
    (tmp_path / "t.csv").write_text(f"user,candidate,score,sensitivity\nann,a,1,1\nann,b,{number},1\n")
    with pytest.raises(ValueError, match="user 'ann': column 'score' is missing or not a number"):
        dps.select_table(tmp_path / "t.csv", dps.GEM(1.0))
    (tmp_path / "items.csv").write_text(f"candidate,sensitivity\na,1\nb,{number}\n")
    table = {"user": ["ann", "ann"], "candidate": ["a", "b"], "score": [1.0, 2.0]}
    with pytest.raises(ValueError, match="column 'sensitivity' is missing or not a number"):
        dps.select_table(table, dps.GEM(1.0), candidates=tmp_path / "items.csv")


@pytest.mark.parametrize("number", ["+1", " 1 ", "1.", ".5", "1e300", "1E+5", f"{2**53}", "123456789e10"])
def test_numbers_that_every_parser_reads_alike_are_read(number, tmp_path):
    (tmp_path / "t.csv").write_text(f"user,candidate,score,sensitivity\nann,a,{number},1\nann,b,x,1\n")
    source = SortedUnits(open_table(tmp_path / "t.csv"), Layout())
    [located] = source.batches(["score"])
    assert located.batch["score"][0].as_py()[0] == float(number)
    assert np.isnan(located.batch["score"][0].as_py()[1])


def test_sizes_have_decimal_and_binary_units():
    sizes = {"1B": 1, "2 kb": 2000, "1.5MB": 1_500_000, "1GiB": 2**30, "3TB": 3 * 10**12}
    assert {text: memory_bytes(text) for text in sizes} == sizes


def slow_table():
    """Return a table that takes ten minutes to read."""
    table = open_table(pa.Table.from_pylist(LONG))
    at_once = table.batches

    def batches(columns, *, entries):
        for _ in range(6000):
            yield from at_once(columns, entries=entries)
            time.sleep(0.1)

    table.batches = batches
    return table


@pytest.mark.parametrize("needed", [0, 2**60], ids=["in memory", "by DuckDB"])
def test_a_sort_ends_early_when_nothing_more_is_wanted(needed, monkeypatch):
    monkeypatch.setattr("dpselect.tables.sorting.needed_bytes", lambda _: needed)
    source = SortedUnits(slow_table(), Layout())
    seen = []

    def look(step):
        seen.append(step)
        if len(seen) == 3:
            raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        next(read_ahead(source, Layout().columns, progress=look))
    assert time.monotonic() - started < 120  # three looks and a second on a busy machine; not ten minutes
    assert {step.phase for step in seen} == {"reading"}
    assert seen[-1].done > 0


def test_an_interrupt_may_come_while_the_reading_thread_starts(monkeypatch):
    source, threads = SortedUnits(slow_table(), Layout()), []

    def run(read):
        with pytest.raises(InterruptedError):
            read()

    class Interrupted(ThreadPoolExecutor):
        def submit(self, read):
            threads.append(threading.Thread(target=run, args=[read]))
            threads[0].start()
            while source.waiting is None:
                time.sleep(0.001)
            raise KeyboardInterrupt  # the pool does not know the thread

    monkeypatch.setattr("dpselect.engines.local.ThreadPoolExecutor", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(read_ahead(source, Layout().columns))
    threads[0].join(120)
    assert not threads[0].is_alive()


def test_a_source_is_read_whole_after_it_was_interrupted():
    source = SortedUnits(open_table(pa.Table.from_pylist(LONG)), Layout())
    source.interrupt()
    assert sum(located.batch.num_rows for located in source.batches(["user"])) == 40
