"""Releases from Python are paid for and published in the same way as on the command line."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from score_tables import LISTS, LONG, MECHANISM, expected, read

import dpselect as dps
from dpselect.budget import BudgetExhaustedError, Ledger, ReleaseConflictError
from dpselect.engines.arrow import Layout
from dpselect.mechanisms.partitioned import PartitionedSelection
from dpselect.progress import Step
from dpselect.release import (
    Charge,
    KeyFile,
    KeyReuseError,
    release_choice,
    release_one,
    release_picks,
    write_pmf,
)
from dpselect.tables.layout import LayoutError, UnknownColumnError

LONG_TABLE = pa.Table.from_pylist(LONG)


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "budget.db") as ledger:
        ledger.add_population("readers", epsilon=5.0)
        yield ledger


@pytest.fixture
def key(key_file):
    return KeyFile(key_file)


@pytest.mark.parametrize("table", [LISTS, LONG_TABLE, LISTS.to_reader()], ids=["lists", "long", "stream"])
def test_a_table_in_memory_gives_the_picks_of_a_file(table, tmp_path, key):
    released = release_picks(table, MECHANISM, tmp_path / "picks.parquet", payment=key)
    assert read(released.output) == expected()
    assert (released.units, released.picked, released.skipped, released.resumed) == (40, 40, 0, 0)
    assert released.receipt is None
    assert "score" not in repr(released)


def test_a_release_is_charged_once_and_gives_the_same_picks_again(tmp_path, ledger):
    charge = Charge(ledger, "readers", "spring", what="a test")
    first = release_picks(LISTS, MECHANISM, tmp_path / "a.csv", payment=charge)
    again = release_picks(LISTS.combine_chunks(), MECHANISM, str(tmp_path / "b.csv"), payment=charge)
    assert (first.receipt.charged, first.receipt.epsilon_spent, first.receipt.epsilon_cap) == (True, 2.0, 5.0)
    assert (again.receipt.charged, again.receipt.epsilon_spent) == (False, 2.0)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    [stored] = ledger.statement("readers").releases
    assert read(tmp_path / "a.csv") == expected(key=ledger.keys.get(stored.key_id))
    with pytest.raises(ReleaseConflictError, match="another fingerprint"):
        release_picks(LISTS.slice(1), MECHANISM, tmp_path / "c.csv", payment=charge)
    with pytest.raises(BudgetExhaustedError):
        release_picks(LISTS, dps.GEM(epsilon=4.0), tmp_path / "c.csv", payment=Charge(ledger, "readers", "summer"))
    assert not list(tmp_path.glob("*c.csv*"))


def test_bad_input_costs_nothing_and_leaves_nothing(tmp_path, ledger):
    scores = LISTS["score"].to_pylist()
    scores[30][0] = float("inf")
    bad = LISTS.set_column(2, "score", pa.array(scores))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match="row group 0, row 30: column 'score' must be finite"):
        release_picks(bad, MECHANISM, tmp_path / "p.csv", payment=Charge(ledger, "readers", "spring"))
    assert sorted(tmp_path.rglob("*")) == before
    assert ledger.statement("readers").epsilon_spent == 0


def test_an_interrupted_call_goes_on_where_it_stopped(tmp_path, ledger):
    charge, steps = Charge(ledger, "readers", "spring"), []

    def stop(step):
        steps.append(step)
        if step.done >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release_picks(LISTS, MECHANISM, tmp_path / "p.csv", payment=charge, batch_candidates=16, progress=stop)
    assert steps[0] == Step(0, 40, "users")
    assert ledger.statement("readers").epsilon_spent == 0
    assert not (tmp_path / "p.csv").exists()
    released = release_picks(LISTS, MECHANISM, tmp_path / "p.csv", payment=charge, batch_candidates=16)
    assert 20 <= released.resumed < 40
    assert released.receipt.charged
    [stored] = ledger.statement("readers").releases
    assert read(tmp_path / "p.csv") == expected(key=ledger.keys.get(stored.key_id))
    assert len(list((tmp_path / "budget.db.keys").iterdir())) == 2


def test_a_candidates_table_may_be_a_path_or_in_memory(tmp_path, key_file):
    items = pa.table({"candidate": [f"item {c:02}" for c in range(30)], "width": [(c + 1) / 16 for c in range(30)]})
    pq.write_table(items, tmp_path / "items.parquet")
    layout = Layout(sensitivity="width")
    ways = [
        {"layout": layout, "candidates": items},
        {"layout": layout, "candidates": tmp_path / "items.parquet"},
        {"layout": Layout(sensitivity="width", candidates=items)},
    ]
    for way in ways:
        Path(key_file + ".used").unlink(missing_ok=True)
        release_picks(LISTS, MECHANISM, tmp_path / "p.csv", payment=KeyFile(key_file), **way)
        assert read(tmp_path / "p.csv") == expected()
    wider = items.set_column(1, "width", pa.array(np.full(30, 2.0)))
    with pytest.raises(KeyReuseError):
        release_picks(
            LISTS, MECHANISM, tmp_path / "p.csv", layout=layout, candidates=wider, payment=KeyFile(key_file)
        )


def test_one_pick_is_returned_and_written_and_paid_for(tmp_path, ledger):
    table = pa.table({"candidate": range(50), "score": np.arange(50.0), "sensitivity": np.full(50, 0.5)})
    charge = Charge(ledger, "readers", "winner")
    first = release_one(table, MECHANISM, tmp_path / "one.json", payment=charge)
    again = release_one(table, MECHANISM, payment=charge)
    assert (first.pick, first.candidates, first.receipt.charged) == (again.pick, 50, True)
    assert (again.receipt.charged, again.output) == (False, None)
    assert json.loads((tmp_path / "one.json").read_text()) == [{"candidate": first.pick}]
    [stored] = ledger.statement("readers").releases
    selection = PartitionedSelection(MECHANISM, ledger.keys.get(stored.key_id))
    summary = selection.summarize(np.arange(50.0), 0.5)
    assert selection.decide(selection.contend(summary, range(50), np.arange(50.0), 0.5)) == first.pick


def test_a_choice_is_paid_for_like_picks(ledger):
    charge = Charge(ledger, "readers", "choice")
    runs = [release_choice(LONG_TABLE, 1.0, 0.001, cap=1.0, payment=charge, progress=False) for _ in range(3)]
    assert [run.receipt.charged for run in runs] == [True, False, False]
    assert len({run.tuned.mechanism for run in runs}) == 1
    with pytest.raises(LayoutError, match="must be 'raise' for tuning"):
        release_choice(LISTS, 1.0, 0.5, cap=1.0, layout=Layout(on_bad_unit="skip"))


def test_probabilities_are_those_of_the_mechanism(tmp_path):
    write_pmf(LONG_TABLE, MECHANISM, tmp_path / "p.parquet")
    found = {row["user"]: row["probability"] for row in pq.read_table(tmp_path / "p.parquet").to_pylist()}
    for row in LISTS.to_pylist():
        assert found[row["user"]] == MECHANISM.pmf(row["score"], row["sensitivity"]).tolist()


def test_an_unfit_argument_is_named_with_the_argument_to_pass(tmp_path):
    output = tmp_path / "p.csv"
    with pytest.raises(UnknownColumnError, match=r"unknown column 'who': the table has .*; name it with unit="):
        release_picks(LISTS, MECHANISM, output, layout=Layout(unit="who"))
    with pytest.raises(LayoutError, match="candidates by position need lists of scores"):
        release_picks(LONG_TABLE, MECHANISM, output, layout=Layout(candidate=None))
    with pytest.raises(ValueError, match=r"table must be a path, an Arrow table, or a data frame .*, not int"):
        release_picks(7, MECHANISM, output)
    with pytest.raises(ValueError, match="output must end in one of"):
        release_picks(LISTS, MECHANISM, tmp_path / "p.xlsx")
    with pytest.raises(ValueError, match="format must be one of csv, parquet, arrow, not 'excel'"):
        release_picks(output, MECHANISM, output, format="excel")
    with pytest.raises(LayoutError, match="takes no positions or offsets"):
        release_one(LONG_TABLE, MECHANISM, layout=Layout(offset="x"))
    assert not list(tmp_path.iterdir())


def test_a_fresh_key_is_taken_for_every_call(tmp_path, key_file):
    ways = {"a.csv": None, "b.csv": None, "c.csv": KeyFile(key_file)}
    for name, payment in ways.items():
        release_picks(LISTS, dps.Uniform(), tmp_path / name, payment=payment)
    assert len({(tmp_path / name).read_bytes() for name in ways}) == 3  # fails with probability 6e-25
