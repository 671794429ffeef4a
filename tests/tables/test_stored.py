"""Stored tables: one way to open them, for every kind of storage."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from score_tables import FORMS, LISTS, LONG, SETTINGS, write

from dpselect.cli import main
from dpselect.tables.stored import open_table


def rows_of(table, columns, **settings):
    return pa.Table.from_batches([located.batch for located in table.batches(columns, **settings)]).to_pylist()


@pytest.mark.parametrize("form", ["long parquet", "long arrow", "lists parquet", "folder", "lists arrow", "stream"])
@pytest.mark.parametrize("entries", [1, 17, 10**6])
def test_batches_hold_all_rows_in_order(form, entries, tmp_path):
    table = open_table(write(tmp_path / "in" / FORMS[form], form))
    whole = LONG if form.startswith("long") else LISTS.to_pylist()
    wanted = [{name: row[name] for name in ("score", "user")} for row in whole]
    batches = list(table.batches(["score", "user"], entries=entries))
    assert [row for located in batches for row in located.batch.to_pylist()] == wanted
    assert all(located.batch.num_rows for located in batches)
    assert table.rows in (None, len(whole))


def test_a_batch_says_where_its_rows_are(tmp_path):
    pq.write_table(LISTS, tmp_path / "t.parquet", row_group_size=15)
    table = open_table(tmp_path / "t.parquet")
    places = [(located.place, located.first) for located in table.batches(["user"], entries=10)]
    groups = [(0, 0), (0, 8), (1, 0), (1, 8), (2, 0)]  # of 15, 15 and 10 rows, in batches of up to 10
    assert places == [(f"t.parquet, row group {group}", first) for group, first in groups]


def test_a_located_batch_shows_no_value(tmp_path):
    table = pa.table({"user": ["ann"], "score": [0.123456789]})
    pq.write_table(table, tmp_path / "t.parquet")
    [located] = open_table(tmp_path / "t.parquet").batches(["user", "score"])
    assert repr(located) == "Located(1 rows, 't.parquet, row group 0', first=0)"
    assert "0.12" not in f"{located} {[located]}"


@pytest.mark.parametrize("name", ["a.b", "a.list.element", 'a"b', "a"])
def test_columns_may_have_any_name(name, tmp_path):
    table = pa.table({"user": [1, 2], name: [[1.0, 2.0], [3.0]], "a.b.c": [5, 6]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert rows_of(open_table(tmp_path / "t.parquet"), [name], entries=1) == table.select([name]).to_pylist()


def test_a_csv_file_is_opened_once_for_its_header_and_once_for_each_pass(tmp_path, monkeypatch):
    opened = []
    genuine = pa.input_stream

    def count(path, *arguments, **settings):
        opened.append(path)
        return genuine(path, *arguments, **settings)

    monkeypatch.setattr(pa, "input_stream", count)
    path = write(tmp_path / "t.csv", "csv")
    assert main(["select", path, *SETTINGS, "-o", str(tmp_path / "p.csv"), "-q"]) == 0
    assert opened == [path] * 2


def test_a_table_that_changes_is_noticed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    table = open_table(path)
    table.check_unchanged()
    path.write_text("a,b\n1,3\n")
    with pytest.raises(ValueError, match=r"'t\.csv' has changed while it was read"):
        table.check_unchanged()
    (tmp_path / "folder").mkdir()
    pq.write_table(LISTS, tmp_path / "folder" / "a.parquet")
    folder = open_table(tmp_path / "folder")
    pq.write_table(LISTS, tmp_path / "folder" / "b.parquet")
    with pytest.raises(ValueError, match="'folder' has changed"):
        folder.check_unchanged()


def test_the_contents_of_a_table_in_memory_decide_its_fingerprint():
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})
    chunked = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    noted = table.replace_schema_metadata({"note": "x"})
    same = [open_table(t).read_options() for t in (table, chunked, noted)]
    assert same[0] == same[1] == same[2]
    others = [table.slice(1), table.rename_columns(["a", "c"]), table.set_column(0, "a", pa.array([1, 2, 4]))]
    assert all(open_table(other).read_options() != same[0] for other in others)
