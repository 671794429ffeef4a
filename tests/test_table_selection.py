"""From a table to named picks: any kind of frame, in and out, with the picks of a release."""

import datetime as dt
import threading
import uuid
from functools import partial

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from score_tables import KEY, LISTS, LONG, MECHANISM, expected, read

import dpselect as dps
from dpselect.budget import Ledger
from dpselect.errors import LayoutError
from dpselect.release import Charge, FreshKey, KeyFile, release

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
    "a record batch": (LONG_TABLE.to_batches()[0], pa.Table),
    "a stream of batches": (LONG_TABLE.to_reader(), pa.Table),
    "a stream": (Stream(LONG_TABLE), pa.Table),
    "a stream of views": (Stream(pl.DataFrame(LISTS)), pa.Table),
}


def named(picks):
    """Return the picks of a frame by user."""
    table = pa.table(picks) if not isinstance(picks, pd.DataFrame) else pa.Table.from_pandas(picks)
    assert table.column_names == ["user", "candidate"]
    return dict(zip(*table.to_pydict().values(), strict=True))


@pytest.mark.parametrize(("frame", "kind"), FRAMES.values(), ids=FRAMES)
def test_any_frame_gives_the_picks_of_a_release_in_a_frame_of_its_kind(frame, kind):
    picks = dps.select_table(frame, MECHANISM, randomness=KEY)
    assert isinstance(picks, kind)
    assert named(picks) == expected()


@pytest.mark.parametrize("form", ["pandas, categories", "pandas, Arrow types", "polars, categories"])
def test_columns_keep_their_types(form):
    frame, _ = FRAMES[form]
    picks = dps.select_table(frame, MECHANISM)
    assert list(picks.dtypes) == [frame["user"].dtype, frame["candidate"].dtype]


@pytest.fixture
def database():
    with duckdb.connect() as connection:
        connection.register("long_rows", LONG_TABLE)
        yield connection


def test_picks_of_a_duckdb_relation_can_be_queried_in_its_connection(database):
    picks = dps.select_table(database.sql("SELECT * FROM long_rows"), MECHANISM, randomness=KEY)
    assert named(picks) == expected()
    database.register("chosen", picks)
    assert database.sql("FROM chosen JOIN long_rows USING (user, candidate)").count("*").fetchall() == [(40,)]


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


def test_a_reader_ends_with_its_call_and_not_when_garbage_is_collected():
    """The collector may run while a lock is held that the end of a thread needs."""
    with pytest.raises(ValueError, match="user 'a': column 'score' is missing") as caught:
        dps.select_table({**GOOD, "score": [SECRET, None]}, MECHANISM)
    assert caught.tb is not None  # so that the frames of the call are still there
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("dpselect-reader")]


def test_columns_that_are_not_used_may_hold_anything():
    frame = pd.DataFrame({**GOOD, "note": [object(), 1]}, index=pd.Index([object(), 2]))
    assert len(dps.select_table(frame, MECHANISM)) == 1


def test_what_is_not_a_table_is_refused_with_what_to_pass():
    for table, message in [
        (3, "table must be a path, an Arrow table, or a data frame"),
        (
            pl.LazyFrame(GOOD).select(pl.col("user").cast(pl.Int64)),
            r"table\.collect\(\) raises InvalidOperationError",
        ),
        (pd.Series([1.0]), "table must be .*, not this Series"),
        (pl.Series([1.0]), "table must be .*, not this Series"),
        (pa.array([1.0]), "table must be"),
        ({"tea": 0.2}, "table must be"),
        ({**GOOD, "score": [SECRET, "high"]}, "column 'score' must hold values of one kind"),
    ]:
        with pytest.raises(ValueError, match=message):
            dps.select_table(table, MECHANISM)
    with pytest.raises(ValueError, match=r"write GEM\(epsilon=...\)"):
        dps.select_table(GOOD, dps.GEM)


@pytest.mark.parametrize("mechanism", [MECHANISM, dps.TopK(MECHANISM, 2)])
@pytest.mark.parametrize("values", [[1, 2, 2, 3], ["x", "y", "y", "z"]])
def test_candidates_in_a_dictionary_are_picked_by_what_they_stand_for(mechanism, values):
    lists = pa.ListArray.from_arrays([0, 2, 4], pa.array(values).dictionary_encode())
    plain = pa.ListArray.from_arrays([0, 2, 4], pa.array(values))
    numbers = {"score": [[1.0, 2.0], [2.0, 3.0]], "sensitivity": [[1.0, 1.0], [1.0, 1.0]]}
    picks = [
        dps.select_table(pa.table({"user": ["a", "b"], "candidate": each, **numbers}), mechanism, randomness=KEY)
        for each in (lists, plain)
    ]
    assert picks[0].equals(picks[1])


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


# --- A column for each candidate, frames to be computed, and users that are skipped -----------------------------

WIDE = {"user": ["zoe", "ann", "bob"], "tea": [0.5, 0.25, 4.0], "rum": [2, 1, 0], "ale": [0.75, 8.0, 0.5]}
NAMES = ["rum", "tea", "ale"]
ITEMS = {"candidate": ["ale", "gin", "rum", "tea"], "sensitivity": [0.25, 9.0, 0.5, 1.0]}


def write_parquet(table, folder):
    pq.write_table(pa.table(table), folder / "wide.parquet")
    return folder / "wide.parquet"


def write_csv(table, folder):
    pa.csv.write_csv(pa.table(table), folder / "wide.csv")
    return folder / "wide.csv"


KINDS = {
    "columns": lambda table, _: table,
    "pandas": lambda table, _: pd.DataFrame(table),
    "pandas, users as the index": lambda table, _: pd.DataFrame(table).set_index("user"),
    "polars": lambda table, _: pl.DataFrame(table),
    "lazy": lambda table, _: pl.LazyFrame(table),
    "Arrow": lambda table, _: pa.table(table),
    "Parquet": write_parquet,
    "CSV": write_csv,
}
every_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def columns_of(picks):
    """Return the columns of picks of any kind."""
    picks = picks.collect() if isinstance(picks, pl.LazyFrame) else picks
    if isinstance(picks, pd.DataFrame):
        return picks.astype(object).where(picks.notna(), None).to_dict("list")
    return picks if isinstance(picks, dict) else pa.table(picks).to_pydict()


@every_kind
def test_a_column_for_each_candidate_gives_the_picks_of_lists(make, tmp_path):
    lists = {"user": WIDE["user"], "candidate": [NAMES] * 3, "sensitivity": [[0.5, 1.0, 0.25]] * 3}
    lists["score"] = [list(row) for row in zip(*(WIDE[name] for name in NAMES), strict=True)]
    for mechanism in (MECHANISM, dps.TopK(MECHANISM, 2)):
        picks = dps.select_table(
            make(WIDE, tmp_path), mechanism, candidate_columns=NAMES, candidates=ITEMS, randomness=KEY
        )
        assert columns_of(picks) == dps.select_table(lists, mechanism, randomness=KEY)
    constant = lists | {"sensitivity": [[1.0] * 3] * 3}
    picks = dps.select_table(
        make(WIDE, tmp_path), MECHANISM, candidate_columns=NAMES, sensitivity=1.0, randomness=KEY
    )
    assert columns_of(picks) == dps.select_table(constant, MECHANISM, randomness=KEY)


@every_kind
def test_a_bad_value_of_a_column_for_each_candidate_names_its_row_user_and_column(make, tmp_path):
    bad = make(WIDE | {"tea": [SECRET, None, 4.0]}, tmp_path)
    call = partial(dps.select_table, bad, MECHANISM, candidate_columns=NAMES, candidates=ITEMS)
    with pytest.raises(ValueError, match="row 1, user 'ann': column 'tea' is missing or not a number"):
        call()
    found = columns_of(call(on_bad_unit="skip", randomness=KEY))
    assert found["problem"] == [None, "column 'tea' is missing or not a number", None]
    assert found["candidate"][1] is None
    good = {name: values[::2] for name, values in WIDE.items()} | {"tea": [SECRET, 4.0]}
    rest = dps.select_table(good, MECHANISM, candidate_columns=NAMES, candidates=ITEMS, randomness=KEY)
    assert found["candidate"][::2] == rest["candidate"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidate_columns": "tea"}, "candidate_columns must be a list of columns, not 'tea'"),
        ({"candidate_columns": ["tea", "tea"]}, "candidate_columns must be distinct"),
        ({"candidate_columns": ["user", "tea"]}, "candidate_columns must be distinct"),
        ({"unit": None}, "unit and candidate must have names.*number them, as in table.reset_index"),
        ({"sensitivity": {"tea": 1.0}}, 'must be one number.*candidates={"candidate"'),
        ({"candidate_columns": ["tea", "gin"]}, "unknown column 'gin'.*name it with candidate_columns="),
        ({"candidate_columns": ["tea", "note"]}, "column 'note' must hold numbers"),
        ({"candidate_columns": ["tea", "wide"]}, "column 'wide' must not hold integers beyond"),
        ({"sensitivity": "tea"}, "sensitivity must be one number or the name of a column, of candidates="),
        ({"sensitivity": None}, "sensitivity must be one number or the name of a column, of candidates="),
        (
            {"candidates": {"candidate": ["tea"], "sensitivity": [1.0]}, "sensitivity": None},
            "'sensitivity' is missing",
        ),
    ],
)
def test_what_does_not_go_with_a_column_for_each_candidate_is_refused(change, message):
    table = WIDE | {"note": ["a", "b", "c"], "wide": [1, 2, 2**60]}
    with pytest.raises(ValueError, match=message):
        dps.select_table(table, MECHANISM, **({"candidate_columns": NAMES, "sensitivity": 1.0} | change))


def test_columns_of_a_pivoted_frame_may_have_numbers_for_names_and_be_empty():
    long = pd.DataFrame({"user": ["ann", "ann", "bob"], "item": [7, 8, 7], "score": [1.0, 9.0, 2.0]})
    wide = long.pivot(index="user", columns="item", values="score").fillna(0.0).assign(other=None)
    items = {"candidate": [8, 7], "sensitivity": [0.1, 0.1]}
    picks = dps.select_table(wide, dps.GEM(90.0), candidate_columns=[7, 8], candidates=items)
    assert picks.to_dict("list") == {"user": ["ann", "bob"], "candidate": ["8", "7"]}
    picks = dps.select_table(wide, MECHANISM, candidate_columns=[7, "other"], sensitivity=1.0, on_bad_unit="skip")
    assert set(picks["problem"]) == {"column 'other' is missing or not a number"}
    with pytest.raises(
        LayoutError, match="name it with candidate=, or all columns of candidates with candidate_columns="
    ):
        dps.select_table(wide, MECHANISM, sensitivity=1.0)


def test_a_lazy_frame_is_computed_once_and_only_its_columns():
    calls = []
    frame = pl.LazyFrame(LONG_TABLE).with_columns(other=pl.lit(1)).map_batches(lambda rows: calls.append(1) or rows)
    picks = dps.select_table(frame, MECHANISM, randomness=KEY)
    assert isinstance(picks, pl.LazyFrame)
    assert named(picks.collect()) == expected()
    assert len(calls) == 1
    assert read_back(release(frame, MECHANISM, payment=FreshKey()).picks) == sorted(expected())


def read_back(picks):
    return sorted(picks.collect()["user"].to_list())


@pytest.mark.parametrize("kind", [int, str])
def test_skipped_users_stay_in_the_frame_and_columns_keep_their_types(kind):
    rows = {"user": [1, 1, 2, 2], "candidate": [3, 4, 3, 4], "score": [SECRET, 1.0, float("nan"), 2.0]}
    frame = pd.DataFrame(rows).astype({"user": kind, "candidate": kind})
    picks = dps.select_table(frame, MECHANISM, sensitivity=1.0, on_bad_unit="skip")
    assert picks["user"].dtype == frame["user"].dtype
    assert picks["candidate"].iloc[0] in {kind(3), kind(4)}
    assert (picks["candidate"].isna() == [False, True]).all()
    assert str(picks["candidate"].dtype) == ("Int64" if kind is int else str(frame["candidate"].dtype))
    assert picks["problem"].iloc[1] == "column 'score' is missing or not a number"
    clean = dps.select_table(frame[:2], MECHANISM, sensitivity=1.0, on_bad_unit="skip")
    assert clean["candidate"].dtype == frame["candidate"].dtype


MOMENTS = [dt.datetime(2026, 1, day) for day in (2, 3)]  # noqa: DTZ001 - as tables have them
ODD = {
    "floats": ([1.0, 2.0], 'astype\\("Int64"\\) in pandas or cast\\(pl.Int64\\) in polars'),
    "timestamps": (MOMENTS, "astype\\(str\\) in pandas or cast\\(pl.String\\) in polars"),
    "dates": ([moment.date() for moment in MOMENTS], "astype\\(str\\) in pandas"),
    "UUIDs": ([uuid.UUID(int=1), uuid.UUID(int=2)], "astype\\(str\\) in pandas|with_columns\\(pl.Series"),
    "truth values": ([True, False], "astype\\(str\\) in pandas"),
}


@pytest.mark.parametrize("column", ["user", "candidate"])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
@pytest.mark.parametrize(("values", "hint"), ODD.values(), ids=ODD)
def test_identifiers_of_another_kind_are_refused_with_what_to_type(values, hint, make, column):
    table = {"user": [1, 1], "candidate": [1, 2], "score": [0.5, SECRET]} | {column: values}
    with pytest.raises(ValueError, match=hint):
        dps.select_table(make(table), MECHANISM, sensitivity=1.0)
    frame = pd.DataFrame(table)
    typed = "Int64" if isinstance(values[0], float) else str
    picks = dps.select_table(frame.astype({column: typed}), MECHANISM, sensitivity=1.0)
    assert set(picks[column]) <= set(frame[column].astype(typed))
    objects = pl.DataFrame(table)
    if objects[column].dtype == pl.Object:
        text = objects.with_columns(pl.Series(column, [str(value) for value in objects[column]]))
        assert dps.select_table(text, MECHANISM, sensitivity=1.0).height


@every_kind
@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("score", None, "is missing or not a number"),
        ("sensitivity", -1.0, "must be ≥ 0"),
        ("candidate", "x", "once"),
    ],
)
def test_a_bad_row_is_named_by_its_number_and_its_user_in_every_kind_of_table(make, column, value, rule, tmp_path):
    table = {
        "user": ["b", "a", "b", "a"],
        "candidate": ["x", "x", "y", "y"],
        "score": [SECRET] * 4,
        "sensitivity": [1.0] * 4,
    }
    table[column] = [*table[column][:2], value, table[column][3]]
    with pytest.raises(ValueError, match=f"row 2, user 'b': column '{column}' .*{rule}") as caught:
        dps.select_table(make(table, tmp_path), MECHANISM)
    assert "0.12" not in str(caught.value)
