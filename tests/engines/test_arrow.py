"""Picks for record batches are those of the mechanism in every layout; bad units are named and never guessed."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpselect as dps
from dpselect.engines.arrow import Layout, PickTransform
from dpselect.errors import BadUnitsError
from dpselect.tables.units import read_units

KEY = bytes(range(32))
MECHANISM = dps.GEM(epsilon=2.0)
SECRET = 0.123456789  # a score that no message may show


def table(sizes, seed=0, kind=pa.list_):
    rng = np.random.default_rng(seed)
    units = [f"user {i}" for i in range(len(sizes))]
    names = [[f"item {c}" for c in rng.permutation(50)[:n]] for n in sizes]
    scores = [(rng.integers(-64, 64, n) / 32).tolist() for n in sizes]
    widths = [(rng.integers(1, 48, n) / 16).tolist() for n in sizes]
    columns = {
        "user": units,
        "candidate": pa.array(names, kind(pa.string())),
        "score": pa.array(scores, kind(pa.float64())),
        "sensitivity": pa.array(widths, kind(pa.float64())),
    }
    return pa.RecordBatch.from_pydict(columns)


def one_by_one(batch, mechanism=MECHANISM):
    """Return the picks of a batch by calling the mechanism for each row."""
    picks = {}
    for row in batch.to_pylist():
        randomness = dps.Randomness.keyed(KEY, [row["user"]])
        pick = mechanism.select([row["score"]], [row["sensitivity"]], randomness=randomness)
        picks[row["user"]] = row["candidate"][pick[0]]
    return picks


def as_dict(picks):
    return dict(zip(*picks.select([0, 1]).to_pydict().values(), strict=True))


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
@pytest.mark.parametrize(
    "mechanism",
    [MECHANISM, dps.HeterogeneousNoisyMax(epsilon=3.0), dps.NoisyMax(epsilon=3.0), dps.CombinedGEM(epsilon=3.0)],
)
def test_picks_are_those_of_the_mechanism_row_by_row(kind, mechanism):
    batch = table([3, 1, 20, 7] * 10, kind=kind)
    selector = PickTransform(mechanism, KEY, layout=Layout())
    assert as_dict(selector.transform(batch)) == one_by_one(batch, mechanism)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.randoms(use_true_random=False), st.integers(1, 5))
@settings(max_examples=30)
def test_neither_order_nor_batches_change_a_pick(sizes, random, pieces):
    batch = table(sizes)
    selector = pickle.loads(pickle.dumps(PickTransform(MECHANISM, KEY, layout=Layout())))  # noqa: S301 - our own
    expected = one_by_one(batch)
    order = list(range(len(sizes)))
    random.shuffle(order)
    shuffled = batch.take(pa.array(order))
    step = -(-len(sizes) // pieces)
    parts = [shuffled.slice(first, step) for first in range(0, len(sizes), step)]
    found = {}
    for picks in selector(parts):
        found |= as_dict(picks)
    assert found == expected


def test_lists_of_fixed_size_narrow_numbers_and_integers_are_read():
    batch = table([4] * 8)
    fixed = batch.set_column(2, "score", batch.column("score").cast(pa.list_(pa.float64(), 4)))
    narrow = batch.set_column(2, "score", batch.column("score").cast(pa.list_(pa.float32())))
    expected = one_by_one(batch)
    for other in (fixed, narrow):
        assert as_dict(PickTransform(MECHANISM, KEY, layout=Layout()).transform(other)) == expected
    whole = batch.set_column(2, "score", pa.array([[1, 2, 3, 4]] * 8))
    floats = batch.set_column(2, "score", pa.array([[1.0, 2.0, 3.0, 4.0]] * 8))
    selector = PickTransform(MECHANISM, KEY, layout=Layout())
    assert selector.transform(whole) == selector.transform(floats)


def test_list_columns_are_not_copied():
    batch = table([5] * 4).slice(1, 2)
    rows = read_units(batch, Layout(sensitivity="sensitivity"))
    address = batch.column("score").values.buffers()[1].address
    assert rows.scores[0].__array_interface__["data"][0] == address + 5 * 8
    assert rows.sensitivities[0].__array_interface__["data"][0] > 0


def test_sensitivities_come_from_the_table_a_second_table_or_a_constant():
    batch = table([6] * 20)
    public = {f"item {c}": (c + 1) / 16 for c in range(50)}
    joined = pa.table({"candidate": list(public), "width": list(public.values())})
    own = [[public[name] for name in row] for row in batch.column("candidate").to_pylist()]
    inside = batch.set_column(3, "sensitivity", pa.array(own))
    by_table = PickTransform(MECHANISM, KEY, layout=Layout(sensitivity="width", candidates=joined))
    assert as_dict(pickle.loads(pickle.dumps(by_table)).transform(batch)) == one_by_one(inside)  # noqa: S301
    constant = batch.set_column(3, "sensitivity", pa.array([[0.5] * 6] * 20))
    assert as_dict(PickTransform(MECHANISM, KEY, layout=Layout(sensitivity=0.5)).transform(batch)) == one_by_one(
        constant
    )


@pytest.mark.parametrize("position", [True, False], ids=["by position", "by name"])
def test_the_second_table_may_have_a_dictionary_of_identifiers(position):
    batch = table([6] * 20).set_column(1, "candidate", pa.array([list("abcdef")] * 20)).drop_columns("sensitivity")
    names = pa.array(list("abcdef"))
    widths = [0.5, 1.0, 0.25, 2.0, 1.0, 0.125]
    plain, encoded = (
        Layout(
            candidate=None if position else "candidate",
            candidates=pa.table({"candidate": identifiers, "sensitivity": widths}),
        )
        for identifiers in (names, names.dictionary_encode())
    )
    expected = PickTransform(MECHANISM, KEY, layout=plain).transform(batch)
    assert PickTransform(MECHANISM, KEY, layout=encoded).transform(batch).equals(expected)


def test_candidates_known_by_position_are_named_by_the_second_table():
    batch = table([6] * 20).drop_columns(["candidate", "sensitivity"])
    candidates = pa.table({"candidate": list("abcdef"), "width": [0.5, 1.0, 0.25, 2.0, 1.0, 0.125]})
    widths = pa.array([candidates["width"].to_pylist()] * 20)
    full = batch.append_column("candidate", pa.array([list("abcdef")] * 20)).append_column("sensitivity", widths)
    layout = Layout(candidate=None, sensitivity="width", candidates=candidates)
    assert as_dict(PickTransform(MECHANISM, KEY, layout=layout).transform(batch)) == one_by_one(full)
    positions = PickTransform(MECHANISM, KEY, layout=Layout(candidate=None)).transform(full)
    names = {unit: "abcdef"[place] for unit, place in as_dict(positions).items()}
    assert names == one_by_one(full)


def test_offsets_reach_the_mechanism():
    batch = table([6] * 40)
    numbers = pa.array([[0.0, 99.0, 0.0, 0.0, 0.0, 0.0]] * 40)
    picks = PickTransform(dps.NoisyMax(epsilon=9.0), KEY, layout=Layout(offset="offset")).transform(
        batch.append_column("offset", numbers)
    )
    assert list(as_dict(picks).values()) == [row[1] for row in batch.column("candidate").to_pylist()]


def test_units_may_be_integers_and_address_their_own_streams():
    batch = table([5] * 30)
    numbers = batch.set_column(0, "user", pa.array(range(-10, 20), pa.int32()))
    picks = PickTransform(MECHANISM, KEY, layout=Layout()).transform(numbers)
    wide = numbers.set_column(0, "user", numbers.column("user").cast(pa.int64()))
    assert picks["candidate"].to_pylist() == list(one_by_one(wide).values())
    encoded = batch.set_column(0, "user", batch.column("user").dictionary_encode())
    assert PickTransform(MECHANISM, KEY, layout=Layout()).transform(encoded)["candidate"].to_pylist() == list(
        one_by_one(batch).values()
    )


# --- Bad input --------------------------------------------------------------------------------------------

GOOD = {"user": "u", "candidate": ["a", "b"], "score": [SECRET, 2.0], "sensitivity": [1.0, 0.5]}
BAD = {
    "no unit": ({"user": None}, "'user' is missing"),
    "no scores": ({"score": None}, "'score' is missing"),
    "empty group": ({"candidate": [], "score": [], "sensitivity": []}, "'score' must hold at least one candidate"),
    "lengths": ({"sensitivity": [1.0]}, "'sensitivity' must have as many entries as 'score'"),
    "names": ({"candidate": ["a"]}, "'candidate' must have as many entries as 'score'"),
    "duplicates": ({"candidate": ["a", "a"]}, "'candidate' must name each candidate once"),
    "nameless": ({"candidate": ["a", None]}, "'candidate' has a candidate without an identifier"),
    "NaN score": ({"score": [SECRET, float("nan")]}, "'score' is missing or not a number"),
    "null score": ({"score": [SECRET, None]}, "'score' is missing or not a number"),
    "infinite score": ({"score": [SECRET, float("inf")]}, "'score' must be finite"),
    "huge score": ({"score": [SECRET, 1e200]}, "'score' must be finite"),
    "missing sensitivity": ({"sensitivity": [1.0, None]}, "'sensitivity' is missing or not a number"),
    "negative sensitivity": ({"sensitivity": [1.0, -1.0]}, "'sensitivity' must be ≥ 0"),
    "tiny sensitivity": ({"sensitivity": [1.0, 1e-200]}, "'sensitivity' must be zero or at least 2^-300"),
    "infinite sensitivity": ({"sensitivity": [1.0, float("inf")]}, "'sensitivity' must be finite"),
}
SCHEMA = pa.schema(
    [("user", pa.string()), ("candidate", pa.list_(pa.string()))]
    + [(name, pa.list_(pa.float64())) for name in ("score", "sensitivity")]
)


def mixed(change):
    rows = [GOOD | {"user": f"good {i}"} for i in range(3)]
    return pa.RecordBatch.from_pylist([rows[0], GOOD | change, *rows[1:]], schema=SCHEMA)


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_a_bad_unit_is_refused_by_column_rule_and_row_and_no_score_is_shown(change, message):
    with pytest.raises(BadUnitsError, match=r"row 1: column ") as caught:
        PickTransform(MECHANISM, KEY, layout=Layout()).transform(mixed(change))
    assert message in str(caught.value)
    assert "0.12" not in str(caught.value)
    assert caught.value.row == 1


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_a_bad_unit_can_be_skipped_without_changing_other_picks(change, message):
    layout = Layout(on_bad_unit="skip")
    picks = PickTransform(MECHANISM, KEY, layout=layout).transform(mixed(change)).to_pylist()
    expected = one_by_one(mixed({}).filter(pa.array([True, False, True, True])))
    assert picks[1]["candidate"] is None
    assert message in picks[1]["problem"]
    assert {row["user"]: row["candidate"] for row in picks if row["problem"] is None} == expected


def test_a_batch_of_bad_units_only_gives_no_picks():
    batch = mixed({"score": None}).slice(1, 1)
    picks = PickTransform(MECHANISM, KEY, layout=Layout(on_bad_unit="skip")).transform(batch).to_pylist()
    assert picks == [{"user": "u", "candidate": None, "problem": "column 'score' is missing"}]
    empty = PickTransform(MECHANISM, KEY, layout=Layout()).transform(batch.slice(0, 0))
    assert empty.num_rows == 0
    assert empty.schema == pa.schema([("user", pa.string()), ("candidate", pa.string())])


def test_a_candidate_that_the_second_table_lacks_has_no_sensitivity():
    candidates = pa.table({"candidate": ["a"], "width": [1.0]})
    layout = Layout(sensitivity="width", candidates=candidates)
    with pytest.raises(BadUnitsError, match=r"'width' is missing or not a number.*4 bad units"):
        PickTransform(MECHANISM, KEY, layout=layout).transform(mixed({}))
    positions = Layout(candidate=None, sensitivity="width", candidates=candidates)
    with pytest.raises(BadUnitsError, match="'score' must have an entry for each candidate"):
        PickTransform(MECHANISM, KEY, layout=positions).transform(mixed({}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"on_bad_unit": "drop"}, "on_bad_unit must be 'raise' or 'skip'"),
        ({"sensitivity": -1.0}, "sensitivity must be ≥ 0"),
        ({"sensitivity": float("nan")}, "sensitivity must be finite"),
        (
            {"candidates": pa.table({"item": [1]})},
            "unknown column 'candidate': candidates has 'item'; name it with candidate=",
        ),
        ({"candidates": pa.table({"candidate": [1, 1]})}, "candidates must have distinct identifiers"),
        ({"candidates": pa.table({"candidate": [1, None]})}, "candidates must have distinct identifiers"),
    ],
)
def test_a_bad_layout_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Layout(**change)


def test_a_second_table_that_is_not_open_is_refused():
    transform = PickTransform(MECHANISM, KEY, layout=Layout(candidates={"candidate": [1]}))
    with pytest.raises(ValueError, match="candidates must be an Arrow table here"):
        transform.transform(table([3]))


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("rating", [1.0] * 4, "unknown column 'score'"),
        ("score", [1.0] * 4, "'score' must hold a list for each unit, not double"),
        ("score", [["x"]] * 4, "'score' must hold lists of numbers, not of string"),
        ("user", [1.5] * 4, "'user' must hold integers, text or bytes, not double"),
        ("candidate", [[1.5]] * 4, "'candidate' must hold lists of integers, text or bytes, not of double"),
    ],
)
def test_columns_of_the_wrong_name_or_type_are_refused(column, values, message):
    place = {"rating": 2, "score": 2, "user": 0, "candidate": 1}[column]
    batch = mixed({}).set_column(place, column, pa.array(values))
    with pytest.raises(ValueError, match=message):
        PickTransform(MECHANISM, KEY, layout=Layout()).transform(batch)


def test_identifiers_of_two_types_cannot_be_joined():
    layout = Layout(sensitivity="width", candidates=pa.table({"candidate": ["one"], "width": [1.0]}))
    batch = mixed({}).set_column(1, "candidate", pa.array([[1, 2]] * 4))
    with pytest.raises(ValueError, match="'candidate' must have one type in both tables"):
        PickTransform(MECHANISM, KEY, layout=layout).transform(batch)


@pytest.mark.parametrize("skip", ["raise", "skip"])
@pytest.mark.parametrize("names", [["1", "01", "2"], ["2", "0", "-0"]])
def test_identifiers_that_differ_only_before_they_get_the_type_of_the_others_are_refused(names, skip):
    candidates = pa.table({"candidate": names, "width": [1.0, 2.0, 3.0]})
    layout = Layout(sensitivity="width", candidates=candidates, on_bad_unit=skip)
    batch = mixed({}).set_column(1, "candidate", pa.array([[1, 2]] * 4))
    with pytest.raises(
        ValueError, match="distinct identifiers in column 'candidate': some differ as string but are the same int64"
    ):
        PickTransform(MECHANISM, KEY, layout=layout).transform(batch)
    as_text = mixed({}).set_column(1, "candidate", pa.array([names[:2]] * 4))  # as text they are two
    assert PickTransform(MECHANISM, KEY, layout=layout).transform(as_text).num_rows == 4


def test_integers_that_floats_cannot_hold_are_refused_without_being_shown():
    batch = mixed({}).set_column(2, "score", pa.array([[2**53 + 1, 1]] * 4))
    with pytest.raises(ValueError, match=r"'score' must not hold integers beyond 2\^53"):
        PickTransform(MECHANISM, KEY, layout=Layout()).transform(batch)


@pytest.mark.parametrize("column", ["score", "sensitivity"])
def test_only_units_with_numbers_that_floats_would_round_are_skipped(column):
    numbers = pa.array([[1, 2], [1, 2**62], [3, 1], [1, 1]])
    batch = mixed({}).set_column(2 if column == "score" else 3, column, numbers)
    picks = PickTransform(MECHANISM, KEY, layout=Layout(on_bad_unit="skip")).transform(batch).to_pylist()
    assert [row["problem"] is None for row in picks] == [True, False, True, True]
    assert f"column {column!r} must not hold integers beyond 2^53" in picks[1]["problem"]


def test_a_candidate_that_a_dictionary_holds_twice_is_one_candidate():
    names = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 2], pa.int32()), ["a", "b", "a"])
    lists = pa.ListArray.from_arrays([0, 2, 4], names)
    columns = {"user": [1, 2], "candidate": lists, "score": [[1.0, 2.0]] * 2}
    layout = Layout(sensitivity=1.0, on_bad_unit="skip")
    batch = pa.RecordBatch.from_pydict(columns)
    assert PickTransform(MECHANISM, KEY, layout=layout).transform(batch)["problem"].null_count == 2
    repeated = pa.ListArray.from_arrays([0, 2, 4], names.take(pa.array([0, 3, 0, 1])))  # a and a, then a and b
    batch = pa.RecordBatch.from_pydict(columns | {"candidate": repeated})
    problems = PickTransform(MECHANISM, KEY, layout=layout).transform(batch)["problem"].to_pylist()
    assert problems == ["column 'candidate' must name each candidate once", None]
    missing = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 2], pa.int32()), pa.array(["a", "b", None]))
    batch = pa.RecordBatch.from_pydict(columns | {"candidate": pa.ListArray.from_arrays([0, 2, 4], missing)})
    problems = PickTransform(MECHANISM, KEY, layout=layout).transform(batch)["problem"].to_pylist()
    assert problems == [None, "column 'candidate' has a candidate without an identifier"]


def test_a_unit_with_two_rows_is_refused_within_a_batch_and_across_batches():
    batch = table([3] * 6)
    selector = PickTransform(MECHANISM, KEY, layout=Layout())
    repeated = batch.column("user")[1].as_py()
    with pytest.raises(ValueError, match=f"'user' must name each unit once: {repeated!r} has two rows"):
        selector.transform(batch.take(pa.array([0, 1, 2, 1])))
    with pytest.raises(ValueError, match="'user' must name each unit once"):
        list(selector([batch.slice(0, 4), batch.slice(3, 3)]))


def test_a_key_of_another_length_is_refused():
    with pytest.raises(ValueError, match="key must be 32 bytes"):
        PickTransform(MECHANISM, b"short", layout=Layout())
    assert "00010203" not in repr(PickTransform(MECHANISM, KEY, layout=Layout()))
    assert repr(KEY) not in repr(PickTransform(MECHANISM, KEY, layout=Layout()))


@given(st.lists(st.lists(st.integers(-3, 5), min_size=1, max_size=9), min_size=1, max_size=20))
def test_rows_that_name_a_candidate_twice_are_found(rows):
    batch = pa.RecordBatch.from_pydict(
        {
            "user": list(range(len(rows))),
            "candidate": rows,
            "score": [[1.0] * len(row) for row in rows],
        }
    )
    picks = PickTransform(dps.Uniform(), KEY, layout=Layout(sensitivity=1.0, on_bad_unit="skip")).transform(batch)
    found = [problem is not None for problem in picks["problem"].to_pylist()]
    assert found == [len(set(row)) < len(row) for row in rows]
