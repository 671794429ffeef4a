"""From a table to named picks: any kind of frame, in and out, with the picks of a release."""

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from score_tables import KEY, LISTS, LONG, MECHANISM, expected, read

import dpselect as dps
from dpselect.budget import Ledger
from dpselect.release import Charge, KeyFile, release

LONG_TABLE = pa.Table.from_pylist(LONG)


class Stream:
    """A table that only has the Arrow C stream interface."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


FRAMES = {
    "columns": (LONG_TABLE.to_pydict(), dict),
    "pandas": (LONG_TABLE.to_pandas(), pd.DataFrame),
    "pandas, users as the index": (LONG_TABLE.to_pandas().set_index("user"), pd.DataFrame),
    "pandas, Arrow types": (LONG_TABLE.to_pandas(types_mapper=pd.ArrowDtype), pd.DataFrame),
    "pandas, categories": (
        LONG_TABLE.to_pandas().astype({"user": "category", "candidate": "category"}),
        pd.DataFrame,
    ),
    "pandas, shuffled": (LONG_TABLE.to_pandas().sample(frac=1, random_state=1), pd.DataFrame),
    "pandas, lists": (LISTS.to_pandas(), pd.DataFrame),
    "pandas, Arrow lists": (LISTS.to_pandas(types_mapper=pd.ArrowDtype), pd.DataFrame),
    "polars": (pl.DataFrame(LONG_TABLE), pl.DataFrame),
    "polars, categories": (pl.DataFrame(LONG_TABLE).cast({"user": pl.Categorical}), pl.DataFrame),
    "polars, lists": (pl.DataFrame(LISTS), pl.DataFrame),
    "Arrow": (LONG_TABLE, pa.Table),
    "Arrow, lists": (LISTS, pa.Table),
    "a record batch": (LONG_TABLE.to_batches()[0], pa.RecordBatch),
    "a chunked array": (LONG_TABLE.to_struct_array(), pa.ChunkedArray),
    "an array": (LONG_TABLE.to_struct_array().combine_chunks(), pa.StructArray),
    "a stream": (Stream(LONG_TABLE), pa.Table),
    "a stream of views": (Stream(pl.DataFrame(LISTS)), pa.Table),
}


def named(picks):
    """Return the picks of a frame by user."""
    if isinstance(picks, pa.Array | pa.ChunkedArray):
        rows = picks.to_pylist()
        assert all(list(row) == ["user", "candidate"] for row in rows)
        return {row["user"]: row["candidate"] for row in rows}
    table = pa.table(picks) if not isinstance(picks, pd.DataFrame) else pa.Table.from_pandas(picks)
    assert table.column_names == ["user", "candidate"]
    return dict(zip(*table.to_pydict().values(), strict=True))


@pytest.mark.parametrize(("frame", "kind"), FRAMES.values(), ids=FRAMES)
def test_any_frame_gives_the_picks_of_a_release_in_a_frame_of_its_kind(frame, kind):
    picks = dps.select_table(frame, MECHANISM, randomness=KEY)
    assert isinstance(picks, kind)
    assert named(picks) == expected()


def test_a_stream_of_batches_gives_one():
    picks = dps.select_table(LONG_TABLE.to_reader(), MECHANISM, randomness=KEY)
    assert isinstance(picks, pa.RecordBatchReader)
    assert named(picks.read_all()) == expected()


@pytest.mark.parametrize("form", ["pandas, categories", "pandas, Arrow types", "polars, categories"])
def test_columns_keep_their_types(form):
    frame, _ = FRAMES[form]
    picks = dps.select_table(frame, MECHANISM)
    assert list(picks.dtypes) == [frame["user"].dtype, frame["candidate"].dtype]


@pytest.fixture
def database():
    with duckdb.connect() as connection:
        connection.register("long_rows", LONG_TABLE)
        for name in ("frame", "picks", "table"):  # what our own variables may be called
            connection.execute(f'CREATE TABLE "{name}" AS SELECT 1 AS other')
        yield connection


def test_a_duckdb_relation_gives_one_that_can_be_joined_with_others_of_its_connection(database):
    picks = dps.select_table(database.sql("SELECT * FROM long_rows"), MECHANISM, randomness=KEY)
    assert isinstance(picks, duckdb.DuckDBPyRelation)
    assert named(picks) == expected()
    joined = picks.join(database.sql("SELECT DISTINCT user FROM long_rows"), "user")
    assert joined.count("*").fetchall() == [(40,)]
    names = [name for (name,) in database.sql("SHOW TABLES").fetchall()]
    assert sorted(names) == ["frame", "long_rows", "picks", "table"]


def test_paths_columns_constants_and_decimals_work(tmp_path, database):
    path = tmp_path / "t.csv"
    pa.csv.write_csv(LONG_TABLE, path)
    assert named(dps.select_table(path, MECHANISM, randomness=KEY)) == expected()
    other = LONG_TABLE.rename_columns(["who", "item", "points", "width"]).to_pandas()
    names = {"unit": "who", "candidate": "item", "score": "points", "sensitivity": "width"}
    picks = dps.select_table(other, MECHANISM, randomness=KEY, **names)
    assert picks.columns.tolist() == ["who", "item"]
    assert dict(zip(picks["who"], picks["item"], strict=True)) == expected()
    constant = LISTS.set_column(3, "sensitivity", pa.array([[0.5] * len(c.as_py()) for c in LISTS["candidate"]]))
    picks = dps.select_table(LONG_TABLE, MECHANISM, sensitivity=0.5, randomness=KEY)
    assert named(picks) == expected(constant)
    relation = database.sql("SELECT user, candidate, score, 0.5 AS sensitivity FROM long_rows")
    assert pa.types.is_decimal(pa.table(relation).schema.field("sensitivity").type)
    assert named(dps.select_table(relation, MECHANISM, randomness=KEY)) == expected(constant)
    lists = pa.table(
        database.sql(
            "SELECT user, list(candidate ORDER BY candidate) AS candidate, "
            "list(score ORDER BY candidate) AS score, "
            "list(0.5 ORDER BY candidate) AS sensitivity FROM long_rows GROUP BY user"
        )
    )
    assert named(dps.select_table(lists, MECHANISM, randomness=KEY)) == expected(constant)


@pytest.mark.parametrize(
    "make", [pa.table, pd.DataFrame, pl.DataFrame, dict], ids=["arrow", "pandas", "polars", "dict"]
)
def test_candidates_that_all_users_share_come_from_a_second_table(make):
    items = make({"candidate": [f"item {c:02}" for c in range(30)], "width": [(c + 1) / 16 for c in range(30)]})
    table = LONG_TABLE.drop_columns("sensitivity").to_pandas()
    picks = dps.select_table(table, MECHANISM, sensitivity="width", candidates=items, randomness=KEY)
    assert named(picks) == expected()
    scores = pd.DataFrame({"user": [1, 2], "score": [[9.0, 0.0], [0.0, 9.0]]})
    two = make({"candidate": ["tea", "rum"], "sensitivity": [0.1, 0.1]})
    picks = dps.select_table(scores, dps.GEM(50.0), candidate=None, candidates=two, randomness=KEY)
    assert picks.to_dict("list") == {"user": [1, 2], "candidate": ["tea", "rum"]}


@given(st.data())
def test_a_users_pick_depends_on_the_key_and_their_own_rows_alone(data):
    rows = data.draw(
        st.lists(
            st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(-9, 9)),
            min_size=1,
            unique_by=lambda r: r[:2],
        )
    )
    names = ["user", "candidate", "score"]
    table = pd.DataFrame(rows, columns=names)
    picks = dps.select_table(table, MECHANISM, sensitivity=1.0, randomness=KEY).set_index("user")["candidate"]
    user = data.draw(st.sampled_from(sorted(picks.index)))
    own = table[table["user"] == user].sort_values("candidate")
    place = MECHANISM.select(own["score"].to_numpy(), 1.0, randomness=dps.Randomness.keyed(KEY, [user]))
    assert picks[user] == own["candidate"].iloc[place]
    assert len(picks) == table["user"].nunique()


def test_randomness_is_fresh_seeded_or_a_key():
    first, second = (named(dps.select_table(LONG_TABLE, dps.Uniform())) for _ in range(2))
    assert first != second  # fails with probability 1e-24
    seeded = [dps.select_table(LONG_TABLE, MECHANISM, randomness=dps.Randomness.seeded(s)) for s in (1, 1, 2)]
    assert seeded[0] == seeded[1] != seeded[2]
    with pytest.raises(ValueError, match="randomness must be the key itself"):
        dps.select_table(LONG_TABLE, MECHANISM, randomness=dps.Randomness.keyed(KEY, [1]))
    with pytest.raises(ValueError, match="key must be 32 bytes"):
        dps.select_table(LONG_TABLE, MECHANISM, randomness=b"short")


SECRET = 0.123456789
GOOD = {"user": ["a", "a"], "candidate": ["x", "y"], "score": [SECRET, 0.5], "sensitivity": [1.0, 1.0]}
BAD = {
    "no column": ({**GOOD, "score": None}, "unknown column 'score'.*name it with score="),
    "mixed values": ({**GOOD, "score": [SECRET, "high"]}, "column 'score' must hold values of one kind"),
    "text for scores": ({**GOOD, "score": ["high", "low"]}, "column 'score' must hold numbers"),
    "a missing score": ({**GOOD, "score": [SECRET, None]}, "user 'a': column 'score' is missing"),
    "a negative sensitivity": ({**GOOD, "sensitivity": [1.0, -1.0]}, "user 'a': column 'sensitivity' must be ≥ 0"),
    "a candidate twice": (
        {**GOOD, "candidate": ["x", "x"]},
        "user 'a': column 'candidate' must name each candidate once",
    ),
    "users of another kind": ({**GOOD, "user": [1.5, 2.5]}, "column 'user' must hold integers, text or bytes"),
}


@pytest.mark.parametrize(("columns", "message"), BAD.values(), ids=BAD)
def test_bad_tables_are_refused_by_column_and_rule_without_a_score(columns, message):
    frame = pd.DataFrame({name: column for name, column in columns.items() if column is not None})
    with pytest.raises(ValueError, match=message) as caught:
        dps.select_table(frame, MECHANISM)
    assert "0.12" not in str(caught.value)


def test_columns_that_are_not_used_may_hold_anything():
    frame = pd.DataFrame({**GOOD, "note": [object(), 1]}, index=pd.Index([object(), 2]))
    assert len(dps.select_table(frame, MECHANISM)) == 1


def test_what_is_not_a_table_is_refused_with_what_to_pass():
    for table, message in [
        (3, "table must be a path, an Arrow table, or a data frame"),
        (pl.LazyFrame(GOOD), r"pass table.collect\(\)"),
        (pd.Series([1.0]), "table must be a DataFrame, not a Series"),
        (pl.Series([1.0]), "table must be a DataFrame, not a Series"),
        (pa.array([1.0]), "table must be"),
        ({"tea": 0.2}, "table must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            dps.select_table(table, MECHANISM)
    with pytest.raises(ValueError, match=r"write GEM\(epsilon=...\)"):
        dps.select_table(GOOD, dps.GEM)


def test_a_table_without_rows_gives_no_picks():
    assert dps.select_table(pl.DataFrame(LONG_TABLE.slice(0, 0)), MECHANISM).shape == (0, 2)
    assert dps.select_table(LISTS.to_batches()[0].slice(0, 0), MECHANISM).num_rows == 0


@pytest.mark.parametrize("kind", ["columns", "pandas", "polars"])
def test_a_table_without_users_gives_one_pick_or_one_list(kind):
    """The picks are those of ``select`` for the candidates in the order of their names."""
    scores, widths = {"rum": 0.5, "tea": 0.25, "gin": 0.75}, {"rum": 1.0, "tea": 0.5, "gin": 0.25}
    columns = {"candidate": [*scores], "score": [*scores.values()], "sensitivity": [*widths.values()]}
    table = {"columns": dict, "pandas": pd.DataFrame, "polars": pl.DataFrame}[kind](columns)
    names = sorted(scores)
    for mechanism in (MECHANISM, dps.TopK(dps.GEM(1.0), count=2)):
        keyed = dps.Randomness.keyed(KEY, [0])
        row = [[scores[name] for name in names]], [[widths[name] for name in names]]
        places = mechanism.select(*row, randomness=keyed).reshape(-1)
        picks = dps.select_table(table, mechanism, unit=None, randomness=KEY)
        assert type(picks) is type(table)
        assert list(picks["candidate"]) == [names[place] for place in places]
        assert "the whole table" not in picks
    with pytest.raises(ValueError, match="must have a row for each candidate, not lists, if there is no unit"):
        dps.select_table(LISTS, MECHANISM, unit=None)


# --- The same call as a release -----------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "budget.db") as ledger:
        ledger.add_population("readers", epsilon=5.0)
        yield ledger


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame], ids=["arrow", "pandas", "polars"])
def test_a_wrong_column_name_lists_the_columns_that_are_there(make):
    columns = {"reader": [1, 1], "candidate": ["a", "b"], "score": [1.0, 2.0], "width": [1.0, 1.0]}
    there = "the table has 'reader', 'candidate', 'score', 'width'"
    with pytest.raises(ValueError, match=f"unknown column 'user': {there}"):
        dps.select_table(make(columns), dps.GEM(1.0), sensitivity="width")
    items = make({"candidate": ["a", "b"], "delta": [1.0, 1.0]})
    with pytest.raises(ValueError, match=f"unknown column 'sensitivity': {there}"):
        dps.select_table(make(columns), dps.GEM(1.0), unit="reader", candidates=items)
    with pytest.raises(ValueError, match=r"unknown column 'candidate': (the table|candidates) has 'item', 'delta'"):
        dps.select_table(make(columns), dps.GEM(1.0), candidates=make({"item": ["a"], "delta": [1.0]}))


@pytest.mark.parametrize("form", ["pandas", "polars", "Arrow, lists"])
def test_a_release_of_a_frame_is_charged_once_and_gives_the_same_picks_again(form, ledger, tmp_path):
    frame, kind = FRAMES[form]
    charge = Charge(ledger, "readers", "spring")
    first = release(frame, MECHANISM, payment=charge)
    again = release(frame, MECHANISM, payment=charge)
    assert isinstance(first.picks, kind)
    assert named(first.picks) == named(again.picks)
    assert (first.receipt.charged, again.receipt.charged, again.receipt.epsilon_spent) == (True, False, 2.0)
    written = release(frame, MECHANISM, tmp_path / "picks.csv", payment=charge)
    assert not written.receipt.charged
    assert read(written.output) == named(first.picks)
    assert "score" not in repr(first.receipt)


def test_a_refused_release_of_a_frame_costs_nothing(ledger, key_file):
    bad = LONG_TABLE.to_pandas()
    bad.loc[3, "score"] = float("nan")
    with pytest.raises(ValueError, match="column 'score' is missing or not a number"):
        release(bad, MECHANISM, payment=Charge(ledger, "readers", "spring"))
    assert ledger.statement("readers").epsilon_spent == 0
    released = release(LONG_TABLE, MECHANISM, payment=KeyFile(key_file))
    assert named(released.picks) == expected()
    assert released.receipt is None
    with pytest.raises(ValueError, match="payment must"):
        release(LONG_TABLE, MECHANISM, payment=ledger)
