"""Lists for tables: the same from arrays, Arrow batches, frames, files and the command line."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from score_tables import KEY, LISTS, LONG

import dpselect as dps
from dpselect.budget import Ledger
from dpselect.cli import main
from dpselect.engines.arrow import Layout, PickTransform
from dpselect.release import Charge, release

LONG_TABLE = pa.Table.from_pylist(LONG)
TOP = dps.TopK(dps.HeterogeneousNoisyMax(2.0), count=3, short_rows="pad")


def row_by_row(top=TOP, key=KEY):
    """Return (user, rank, candidate) of every pick, by calling the list for each user."""
    rows = []
    for unit in LISTS.to_pylist():
        keyed = dps.Randomness.keyed(key, [unit["user"]])
        picks = top.select([unit["score"]], [unit["sensitivity"]], randomness=keyed)[0]
        rows += [(unit["user"], rank, unit["candidate"][p]) for rank, p in enumerate(picks.tolist(), 1) if p >= 0]
    return rows


def triples(table):
    return list(zip(*(table[name].to_pylist() for name in ("user", "rank", "candidate")), strict=True))


@pytest.mark.parametrize("table", [LONG_TABLE, LISTS], ids=["long", "lists"])
def test_a_table_gives_the_lists_of_its_rows(table):
    assert triples(dps.select_table(table, TOP, randomness=KEY)) == row_by_row()
    frame = dps.select_table(table.to_pandas(), TOP, randomness=KEY)
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist() == ["user", "rank", "candidate"]
    assert list(frame.itertuples(index=False, name=None)) == row_by_row()


def test_positions_and_shared_candidates_make_lists():
    scores = np.random.default_rng(0).normal(size=(5, 6))
    table = pa.table({"user": range(5), "score": scores.tolist()})
    items = pa.table({"candidate": list("abcdef"), "sensitivity": np.linspace(0.1, 1.0, 6)})
    top = dps.TopK(dps.GEM(1.0), count=4)
    keyed = dps.Randomness.keyed(KEY, np.arange(5))
    expected = top.select(scores, np.linspace(0.1, 1.0, 6), randomness=keyed)
    picks = dps.select_table(table, top, candidate=None, candidates=items, randomness=KEY)
    assert picks["candidate"].to_pylist() == [list("abcdef")[p] for p in expected.reshape(-1)]


def test_short_and_bad_units_are_refused_or_skipped():
    refusing = dps.TopK(dps.GEM(1.0), count=3)
    with pytest.raises(ValueError, match="column 'score' must hold at least 3 candidates, for a list of 3"):
        dps.select_table(LISTS, refusing)
    transform = PickTransform(refusing, KEY, layout=Layout(on_bad_unit="skip"))
    [batch] = LISTS.to_batches()
    rows = transform.rows(transform.transform(batch)).to_pylist()
    long_enough = {unit["user"] for unit in LISTS.to_pylist() if len(unit["score"]) >= 3}
    assert {row["user"] for row in rows if row["problem"] is None} == long_enough
    skipped = [row for row in rows if row["problem"] is not None]
    assert len(skipped) == 40 - len(long_enough)
    assert all(row["rank"] is None is row["candidate"] for row in skipped)
    assert len(rows) == 3 * len(long_enough) + len(skipped)
    with pytest.raises(ValueError, match="no column may be called 'rank'"):
        PickTransform(refusing, KEY, layout=Layout(unit="rank"))


def test_the_command_line_writes_ranks_and_charges_the_list_once(tmp_path, capsys, key_file):
    pa.csv.write_csv(LONG_TABLE, tmp_path / "t.csv")
    command = ["select", str(tmp_path / "t.csv"), "--epsilon", "6", "--count", "3", "--short-rows", "pad", "--json"]
    assert main([*command, "--key-file", str(key_file), "-o", str(tmp_path / "p.parquet")]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["epsilon"], facts["units"], facts["picked"]) == (6.0, 40, 40)
    assert triples(pq.read_table(tmp_path / "p.parquet")) == row_by_row()
    with Ledger.create(tmp_path / "budget.db") as ledger:
        ledger.add_population("readers", epsilon=7.0)
    paid = [*command, "--budget", str(tmp_path / "budget.db"), "--population", "readers", "--release", "lists"]
    for _ in range(2):
        assert main([*paid, "-o", str(tmp_path / "q.csv")]) == 0
        assert json.loads(capsys.readouterr().out)["epsilon_spent"] == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--count", "0"], "--count: must be a whole number, at least 1, got '0'"),
        (["--count", "1.5"], "--count: must be a whole number, at least 1, got '1.5'"),
        (["--count", "9"], "must hold at least 9 candidates, for a list of 9"),
        (["--short-rows", "pad"], "--short-rows goes with --count"),
    ],
)
def test_the_command_line_refuses_bad_counts_and_leaves_nothing_behind(options, message, tmp_path, capsys):
    pa.csv.write_csv(LONG_TABLE, tmp_path / "t.csv")
    try:
        code = main(["select", str(tmp_path / "t.csv"), "--epsilon", "1", *options, "-o", str(tmp_path / "p.csv")])
    except SystemExit as stop:
        code = stop.code
    assert code in {2, 3}
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_release_of_lists_is_charged_once_and_gives_the_same_lists_again(tmp_path):
    with Ledger.create(tmp_path / "budget.db") as ledger:
        ledger.add_population("readers", epsilon=10.0)
        charge = Charge(ledger, "readers", "spring")
        first, again = (release(LONG_TABLE, TOP, payment=charge) for _ in range(2))
    assert first.picks.equals(again.picks)
    assert (first.receipt.charged, again.receipt.charged, again.receipt.epsilon_spent) == (True, False, 6.0)
