"""Long tables are sorted in memory or by DuckDB, in the same order, and the sort can be interrupted."""

import time
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from score_tables import LONG, SETTINGS

from dpselect.cli import main
from dpselect.tables.layout import Layout
from dpselect.tables.memory_sort import memory_bytes
from dpselect.tables.sorting import SortedUnits
from dpselect.tables.sources import prefetched
from dpselect.tables.stored import MemoryTable

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
identifiers = st.sampled_from(
    [
        (st.integers(-(2**63), 2**63 - 1), pa.int64()),
        (st.integers(2**64 - 3, 2**64 - 1), pa.uint64()),
        (st.integers(-3, 3), pa.int8()),
        (texts, pa.string()),
        (texts, pa.large_string()),
        (texts, pa.dictionary(pa.int32(), pa.string())),
        (st.binary(max_size=3), pa.binary()),
    ]
)


@given(st.data(), identifiers, identifiers)
@settings(suppress_health_check=list(HealthCheck), max_examples=60)
def test_a_sort_in_memory_gives_what_duckdb_gives(data, unit, candidate):
    rows = data.draw(st.lists(st.tuples(unit[0], candidate[0], st.integers(-5, 5)), min_size=1, max_size=8))
    columns = zip(*rows, strict=True)
    kinds = (unit[1], candidate[1], pa.int16())
    arrays = [pa.array(column).cast(kind) if pa.types.is_dictionary(kind) else pa.array(column, kind)
              for column, kind in zip(columns, kinds, strict=True)]  # fmt: skip
    table = pa.table(arrays, names=["user", "candidate", "score"])
    layout = Layout(sensitivity=1.0)
    found = []
    for fits in (True, False):
        with patch("dpselect.tables.sorting.can_sort", lambda _, fits=fits: fits):
            source = SortedUnits(MemoryTable(table), layout, batch_candidates=4)
            whole = pa.Table.from_batches([located.batch for located in source.batches(layout.columns)])
        units = [(row["user"], row["candidate"]) for row in whole.to_pylist()]
        numbers = [sorted(row) for row in whole["score"].to_pylist()]  # rows of one name may be in any order
        found.append((whole.schema, units, numbers))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("column", "message"),
    [("user", "rows without user: column 'user' is missing"), ("candidate", "without an identifier")],
)
def test_rows_of_parquet_without_a_name_are_reported(column, message, tmp_path, capsys):
    rows = [row | ({column: None} if number == 3 else {}) for number, row in enumerate(LONG)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    assert main(["select", str(tmp_path / "t.parquet"), *SETTINGS, "-o", str(tmp_path / "p.csv")]) == 3
    assert message in capsys.readouterr().err


def test_sizes_have_decimal_and_binary_units():
    sizes = {"1B": 1, "2 kb": 2000, "1.5MB": 1_500_000, "1GiB": 2**30, "3TB": 3 * 10**12}
    assert {text: memory_bytes(text) for text in sizes} == sizes


class Slow(MemoryTable):
    """A table that takes ten minutes to read."""

    def batches(self, columns, *, entries=0, skip=0):
        for _ in range(6000):
            yield from super().batches(columns, entries=entries, skip=skip)
            time.sleep(0.1)


@pytest.mark.parametrize("fits", [True, False], ids=["in memory", "by DuckDB"])
def test_a_sort_ends_early_when_nothing_more_is_wanted(fits, monkeypatch):
    monkeypatch.setattr("dpselect.tables.sorting.can_sort", lambda _: fits)
    source = SortedUnits(Slow(pa.Table.from_pylist(LONG)), Layout())
    seen = []

    def look():
        seen.append(source.waiting)
        if len(seen) == 3:
            raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        next(prefetched(source.batches(Layout().columns), interrupt=source.interrupt, waiting=look))
    assert time.monotonic() - started < 120  # three looks and a second on a busy machine; not ten minutes
    assert {step.phase for step in seen} == {"reading"}
    assert seen[-1].done > 0


def test_a_source_is_read_whole_after_it_was_interrupted():
    source = SortedUnits(MemoryTable(pa.Table.from_pylist(LONG)), Layout())
    source.interrupt()
    assert sum(located.batch.num_rows for located in source.batches(["user"])) == 40
