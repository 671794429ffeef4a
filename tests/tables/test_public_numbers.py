"""Tables without sensitivities, and public weights: from every kind of table, with the default that suits them."""

import json

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from score_tables import read

import dpselect as dps
from dpselect.budget import Ledger
from dpselect.cli import main
from dpselect.engines.arrow import Layout, PickTransform
from dpselect.errors import LayoutError, UnknownColumnError
from dpselect.release import Charge, release

KEY = bytes(range(32))
MECHANISM = dps.TopShare(2.0, share=0.3)
ITEMS = [f"item {number}" for number in range(6)]
WEIGHTS = dict(zip(ITEMS, [0.5, 0.0, 3.0, 1.0, 0.25, 2.0], strict=True))
USERS = [f"user {number:02}" for number in range(30)]
SCORES = dict(zip(USERS, (np.random.default_rng(0).integers(0, 9, (30, 6)) / 8).tolist(), strict=True))
LISTS = pa.table(
    {
        "user": USERS,
        "candidate": [ITEMS] * len(USERS),
        "score": list(SCORES.values()),
        "weight": [list(WEIGHTS.values())] * len(USERS),
    }
)
LONG = pa.Table.from_pylist(
    [
        {"user": user, "candidate": item, "score": score, "weight": WEIGHTS[item]}
        for user, row in SCORES.items()
        for item, score in zip(ITEMS, row, strict=True)
    ]
)
SECOND = pa.table({"candidate": ITEMS, "weight": list(WEIGHTS.values())})


def expected(mechanism=MECHANISM, *, weights=True, widths=None):
    """Return the picks of each user's row alone."""
    public = {"weights": list(WEIGHTS.values())} if weights else {}
    return {
        user: ITEMS[mechanism.select(row, widths, randomness=dps.Randomness.keyed(KEY, user), **public)]
        for user, row in SCORES.items()
    }


def named(picks):
    table = picks if isinstance(picks, pa.Table) else pa.table(picks)
    return dict(zip(table["user"].to_pylist(), table["candidate"].to_pylist(), strict=True))


FORMS = {
    "long": (LONG, {}),
    "lists": (LISTS, {}),
    "pandas": (LONG.to_pandas(), {}),
    "polars": (pl.DataFrame(LONG), {}),
    "columns": (LONG.to_pydict(), {}),
    "second table": (LONG.drop_columns("weight"), {"candidates": SECOND}),
    "second table, lists": (LISTS.drop_columns("weight"), {"candidates": SECOND.to_pandas()}),
    "by position": (LISTS.drop_columns(["candidate", "weight"]), {"candidate": None, "candidates": SECOND}),
}


@pytest.mark.parametrize("form", FORMS)
def test_weights_reach_the_mechanism_and_no_sensitivities_are_needed(form):
    table, options = FORMS[form]
    assert named(dps.select_table(table, MECHANISM, weight="weight", randomness=KEY, **options)) == expected()


def test_a_record_batch_may_have_weights_and_no_sensitivities():
    [batch] = LISTS.to_batches()
    picks = PickTransform(MECHANISM, KEY, layout=Layout(weight="weight")).transform(batch)
    assert named(pa.table(picks)) == expected()
    without = PickTransform(MECHANISM, KEY, layout=Layout()).transform(batch)
    assert named(pa.table(without)) == expected(weights=False)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("second", [False, True], ids=["one table", "a second table"])
def test_the_command_line_takes_weights_and_a_share(suffix, second, tmp_path, key_file):
    writers = {"csv": pa.csv.write_csv, "parquet": pq.write_table}
    writers[suffix](LONG.drop_columns("weight") if second else LONG, tmp_path / f"t.{suffix}")
    writers[suffix](SECOND, tmp_path / f"items.{suffix}")
    options = ["--candidates", str(tmp_path / f"items.{suffix}")] if second else []
    command = [
        "select",
        str(tmp_path / f"t.{suffix}"),
        "--epsilon",
        "2",
        "--mechanism",
        "top-share",
        "--share",
        "0.3",
    ]
    rest = ["--weight", "weight", "--key-file", key_file, "-o", str(tmp_path / "p.csv")]
    assert main([*command, *options, *rest]) == 0
    assert read(tmp_path / "p.csv") == expected()


# --- The default -------------------------------------------------------------------------------------------------

WITH = LONG.append_column("sensitivity", pa.array([0.25] * len(LONG)))
DEFAULTS = {
    "no sensitivities": (LONG, {}, dps.TopShare(2.0), "there are no sensitivities, so each row must be about one"),
    "a column": (WITH, {}, dps.HeterogeneousNoisyMax(2.0), "there are sensitivities"),
    "a number": (LONG, {"sensitivity": 0.25}, dps.HeterogeneousNoisyMax(2.0), "there are sensitivities"),
    "a second table": (
        LONG,
        {"candidates": pa.table({"candidate": ITEMS, "sensitivity": [0.25] * 6})},
        dps.HeterogeneousNoisyMax(2.0),
        "there are sensitivities",
    ),
}


@pytest.mark.parametrize("case", DEFAULTS)
def test_a_table_without_sensitivities_gets_top_share_and_says_why(case):
    table, options, mechanism, reason = DEFAULTS[case]
    released = release(table, 2.0, layout=Layout(**options))
    assert released.mechanism == mechanism
    assert released.reason.startswith(reason)
    widths = 0.25 if mechanism.uses_sensitivities else None
    assert named(dps.select_table(table, 2.0, randomness=KEY, **options)) == expected(
        mechanism, weights=False, widths=widths
    )
    assert release(table, mechanism, layout=Layout(**options)).reason == ""


@pytest.mark.parametrize(
    ("table", "line"),
    [
        (LONG, "--mechanism top-share: there are no sensitivities, so each row must be about one person\n"),
        (WITH, "--mechanism heterogeneous-rnm: there are sensitivities\n"),
    ],
    ids=["no sensitivities", "sensitivities"],
)
def test_the_command_line_says_which_mechanism_it_used_and_why(table, line, tmp_path, capsys):
    pq.write_table(table, tmp_path / "t.parquet")
    command = ["select", str(tmp_path / "t.parquet"), "--epsilon", "2"]
    assert main([*command, "-o", str(tmp_path / "p.csv")]) == 0
    assert capsys.readouterr().err.startswith(line)
    assert main([*command, "--count", "2", "-o", str(tmp_path / "lists.csv")]) == 0
    assert line in capsys.readouterr().err  # after a line on progress, if it took long
    assert main([*command, "--json", "-o", str(tmp_path / "again.csv")]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["mechanism"].startswith("TopShare" if "top-share" in line else "HeterogeneousNoisyMax")
    assert facts["reason"] in line


def test_a_column_of_sensitivities_is_asked_for_by_name_where_it_is_needed(tmp_path, capsys):
    with pytest.raises(UnknownColumnError, match="unknown column 'sensitivity': the table has 'user', 'candidate'"):
        dps.select_table(LONG, dps.GEM(1.0))
    with pytest.raises(UnknownColumnError, match="unknown column 'width'"):
        dps.select_table(LONG, MECHANISM, sensitivity="width")
    pq.write_table(LONG, tmp_path / "t.parquet")
    assert main(["select", str(tmp_path / "t.parquet"), "--epsilon", "2", "--mechanism", "gem"]) == 2
    said = capsys.readouterr().err
    assert "unknown column 'sensitivity': 't.parquet' has 'user'" in said
    assert "--mechanism top-share needs none" in said
    assert main(["select", str(tmp_path / "t.parquet"), "--epsilon", "2", "--mechanism", "krr", "-q"]) == 0


# --- What is refused ---------------------------------------------------------------------------------------------

BAD = {
    "negative": ([1.0, -1.0], "must be ≥ 0 for every candidate"),
    "missing": ([1.0, None], "is missing or not a number"),
    "not a number": ([1.0, float("nan")], "is missing or not a number"),
    "infinite": ([1.0, float("inf")], "must be finite"),
    "all zero": ([0.0, 0.0], "must be positive for at least one candidate of each row"),
}


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "budget.db") as ledger:
        ledger.add_population("readers", epsilon=5.0)
        yield ledger


@pytest.mark.parametrize("form", ["long", "lists", "second table"])
@pytest.mark.parametrize("case", BAD)
def test_bad_weights_are_refused_with_their_place_and_cost_nothing(case, form, ledger):
    weights, rule = BAD[case]
    names = {"user": ["ann", "ann", "bob", "bob"], "candidate": ["a", "b"] * 2, "score": [1.0, 2.0, 3.0, 4.0]}
    second = case != "all zero"  # of the user's two rows
    layout, place = Layout(weight="weight"), f"row {2 + second}, user 'bob'"
    table = pa.table(names | {"weight": [1.0, 1.0, *weights]})
    if form == "lists":
        lists = {name: [table[name].to_pylist()[i : i + 2] for i in (0, 2)] for name in table.column_names[1:]}
        table, place = pa.table({"user": ["ann", "bob"]} | lists), "row 1, user 'bob'"
    elif form == "second table":
        table, place = pa.table(names), f"row {0 + second}, user 'ann'"
        layout = Layout(weight="weight", candidates=pa.table({"candidate": ["a", "b"], "weight": weights}))
    with pytest.raises(ValueError, match=f"{place}: column 'weight' {rule}"):
        release(table, MECHANISM, layout=layout, payment=Charge(ledger, "readers", "spring"))
    assert ledger.statement("readers").epsilon_spent == 0
    if form != "second table":
        skipped = release(table, MECHANISM, layout=Layout(weight="weight", on_bad_unit="skip"))
        assert (skipped.picked, skipped.skipped) == (1, 1)


def test_weights_and_shares_go_with_mechanisms_that_take_them(tmp_path, capsys):
    with pytest.raises(LayoutError, match="weight must not be given: GEM takes no weights"):
        dps.select_table(WITH, dps.GEM(1.0), weight="weight")
    with pytest.raises(LayoutError, match="offset must not be given: TopShare takes no offsets"):
        release(LONG, MECHANISM, layout=Layout(offset="weight"))
    with pytest.raises(LayoutError, match="weight and score must be two columns"):
        Layout(weight="score")
    with pytest.raises(ValueError, match="both the table and the table of candidates have a column 'weight'"):
        dps.select_table(LONG, MECHANISM, weight="weight", candidates=SECOND)
    pq.write_table(WITH, tmp_path / "t.parquet")
    command = ["select", str(tmp_path / "t.parquet"), "--epsilon", "2"]
    assert main([*command, "--share", "0.5"]) == 2
    assert "has no field 'share' to set" in capsys.readouterr().err
    assert main([*command, "--mechanism", "top-share", "--share", "1.5"]) == 2
    assert "share must be" in capsys.readouterr().err
