"""Releases from Python are paid for and published in the same way as on the command line."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from score_tables import LISTS, LONG, MECHANISM, expected, read

import dpselect as dps
from dpselect.budget import BudgetExhaustedError, Ledger, ReleaseConflictError
from dpselect.engines.arrow import Layout
from dpselect.engines.local import LocalTables
from dpselect.errors import LayoutError, UnknownColumnError
from dpselect.progress import Step
from dpselect.release import (
    Charge,
    FreshKey,
    KeyFile,
    KeyReuseError,
    Limits,
    OutputExistsError,
    release,
)

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
    released = release(table, MECHANISM, tmp_path / "picks.parquet", payment=key)
    assert read(released.output) == expected()
    assert (released.units, released.picked, released.skipped) == (40, 40, 0)
    assert released.receipt is None
    assert "score" not in repr(released)


def test_a_release_is_charged_once_and_gives_the_same_picks_again(tmp_path, ledger):
    charge = Charge(ledger, "readers", "spring", what="a test")
    first = release(LISTS, MECHANISM, tmp_path / "a.csv", payment=charge)
    again = release(LISTS.combine_chunks(), MECHANISM, str(tmp_path / "b.csv"), payment=charge)
    assert (first.receipt.charged, first.receipt.epsilon_spent, first.receipt.epsilon_cap) == (True, 2.0, 5.0)
    assert (again.receipt.charged, again.receipt.epsilon_spent) == (False, 2.0)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    [stored] = ledger.statement("readers").releases
    assert read(tmp_path / "a.csv") == expected(key=ledger.keys.get(stored.key_id))
    with pytest.raises(ReleaseConflictError, match="other inputs"):
        release(LISTS.slice(1), MECHANISM, tmp_path / "c.csv", payment=charge)
    with pytest.raises(BudgetExhaustedError):
        release(LISTS, dps.GEM(epsilon=4.0), tmp_path / "c.csv", payment=Charge(ledger, "readers", "summer"))
    assert not list(tmp_path.glob("*c.csv*"))


def test_bad_input_costs_nothing_and_leaves_nothing(tmp_path, ledger):
    scores = LISTS["score"].to_pylist()
    scores[30][0] = float("inf")
    bad = LISTS.set_column(2, "score", pa.array(scores))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match="the table, row 30, user '030': column 'score' must be finite"):
        release(bad, MECHANISM, tmp_path / "p.csv", payment=Charge(ledger, "readers", "spring"))
    assert sorted(tmp_path.rglob("*")) == before
    assert ledger.statement("readers").epsilon_spent == 0


@pytest.mark.parametrize("way", ["ledger", "key file", "fresh key"])
@pytest.mark.parametrize("changed", ["scores.parquet", "items.parquet"])
def test_inputs_that_change_during_a_release_are_not_published_however_it_is_paid_for(
    way, changed, tmp_path, ledger, key_file
):
    payments = {
        "ledger": Charge(ledger, "readers", "spring"),
        "key file": KeyFile(key_file),
        "fresh key": FreshKey(),
    }
    pq.write_table(LISTS, tmp_path / "scores.parquet")
    items = pa.table({"candidate": [f"item {c:02}" for c in range(30)], "width": [(c + 1) / 16 for c in range(30)]})
    pq.write_table(items, tmp_path / "items.parquet")
    layout = Layout(sensitivity="width", candidates=tmp_path / "items.parquet")
    before = sorted(tmp_path.rglob("*"))

    def touch(_step):
        content = (tmp_path / changed).read_bytes()
        (tmp_path / changed).write_bytes(content)

    arguments = tmp_path / "scores.parquet", MECHANISM, tmp_path / "p.csv"
    with pytest.raises(ValueError, match=f"'{changed}' has changed while it was read"):
        release(*arguments, layout=layout, payment=payments[way], progress=touch)
    assert sorted(tmp_path.rglob("*")) == before  # no picks, no record of the key, no key of a release
    assert ledger.statement("readers").epsilon_spent == 0
    assert release(*arguments, layout=layout, payment=payments[way]).units == 40


def test_an_interrupted_call_leaves_nothing_and_the_next_one_pays_once(tmp_path, ledger):
    charge, steps = Charge(ledger, "readers", "spring"), []
    before = sorted(tmp_path.rglob("*"))

    def stop(step):
        steps.append(step)
        if step.done >= 20:
            raise KeyboardInterrupt

    few = Limits(batch_candidates=16)
    with pytest.raises(KeyboardInterrupt):
        release(LISTS, MECHANISM, tmp_path / "p.csv", payment=charge, limits=few, progress=stop)
    assert steps[0] == Step(0, 40, "users")
    assert ledger.statement("readers").epsilon_spent == 0
    assert sorted(tmp_path.rglob("*")) == before
    released = release(LISTS, MECHANISM, tmp_path / "p.csv", payment=charge, limits=few)
    assert released.receipt.charged
    [stored] = ledger.statement("readers").releases
    assert read(tmp_path / "p.csv") == expected(key=ledger.keys.get(stored.key_id))
    assert len(list((tmp_path / "budget.db.keys").iterdir())) == 2


def test_the_ledger_is_verified_once_for_a_release(tmp_path, ledger, monkeypatch):
    charge = Charge(ledger, "readers", "spring")
    release(LISTS, MECHANISM, payment=charge)
    reads, genuine = [], ledger._database.execute

    def execute(statement, *parameters):
        reads.append(statement.startswith("SELECT name"))
        return genuine(statement, *parameters)

    monkeypatch.setattr(ledger._database, "execute", execute)
    for number, payment in enumerate((charge, Charge(ledger, "readers", "summer"))):
        reads.clear()
        release(LISTS, MECHANISM, tmp_path / f"{number}.csv", payment=payment)
        assert sum(reads) == 1


def test_a_candidates_table_may_be_a_path_or_in_memory(tmp_path, key_file):
    items = pa.table({"candidate": [f"item {c:02}" for c in range(30)], "width": [(c + 1) / 16 for c in range(30)]})
    pq.write_table(items, tmp_path / "items.parquet")
    ways = [
        items,
        tmp_path / "items.parquet",
        items.to_pydict(),
    ]
    for way in ways:
        Path(key_file + ".used").unlink(missing_ok=True)
        release(
            LISTS,
            MECHANISM,
            tmp_path / "p.csv",
            payment=KeyFile(key_file),
            layout=Layout(sensitivity="width", candidates=way),
        )
        assert read(tmp_path / "p.csv") == expected()
    wider = items.set_column(1, "width", pa.array(np.full(30, 2.0)))
    layout = Layout(sensitivity="width", candidates=wider)
    with pytest.raises(KeyReuseError):
        release(LISTS, MECHANISM, tmp_path / "p.csv", layout=layout, payment=KeyFile(key_file))


WHOLE = pa.table({"candidate": range(50), "score": np.arange(50.0) / 25, "sensitivity": np.full(50, 0.5)})


def test_one_pick_out_of_a_whole_table_is_returned_and_written_and_paid_for(tmp_path, ledger):
    layout, charge = Layout(unit=None), Charge(ledger, "readers", "winner")
    shuffled = WHOLE.take(np.random.default_rng(1).permutation(50))
    first = release(shuffled, MECHANISM, tmp_path / "one.arrow", layout=layout, payment=charge)
    again = release(shuffled, MECHANISM, layout=layout, payment=charge)
    assert (first.units, first.receipt.charged, again.receipt.charged, again.output) == (1, True, False, None)
    assert pa.ipc.open_file(tmp_path / "one.arrow").read_all().to_pylist() == again.picks.to_pylist()
    [stored] = ledger.statement("readers").releases
    keyed = dps.Randomness.keyed(ledger.keys.get(stored.key_id), [0])
    [place] = MECHANISM.select(np.arange(50.0)[None] / 25, 0.5, randomness=keyed)
    assert again.picks["candidate"].to_pylist() == [place]


def test_one_pick_that_an_earlier_version_has_paid_for_is_not_computed_in_another_way(ledger, monkeypatch):
    """Earlier versions drew it in two passes, with other noise: the same name would be a second, unpaid release."""
    charge, genuine = Charge(ledger, "readers", "winner"), LocalTables._settings
    with monkeypatch.context() as patch:
        patch.setattr(LocalTables, "_settings", lambda tables: genuine(tables) | {"unit": "user"})  # as they had it
        release(WHOLE, MECHANISM, layout=Layout(unit=None), payment=charge)
    with pytest.raises(ReleaseConflictError, match="other inputs"):
        release(WHOLE, MECHANISM, layout=Layout(unit=None), payment=charge)


def test_an_unfit_argument_is_named_with_the_argument_to_pass(tmp_path):
    output = tmp_path / "p.csv"
    with pytest.raises(UnknownColumnError, match=r"unknown column 'who': the table has .*; name it with unit="):
        release(LISTS, MECHANISM, output, layout=Layout(unit="who"))
    with pytest.raises(LayoutError, match="candidates by position need lists of scores"):
        release(LONG_TABLE, MECHANISM, output, layout=Layout(candidate=None))
    with pytest.raises(ValueError, match=r"table must be a path, an Arrow table, or a data frame .*, not this int"):
        release(7, MECHANISM, output)
    with pytest.raises(ValueError, match="output must end in one of"):
        release(LISTS, MECHANISM, tmp_path / "p.xlsx")
    with pytest.raises(ValueError, match="format must be one of csv, parquet, arrow, not 'excel'"):
        release(output, MECHANISM, output, layout=Layout(format="excel"))
    with pytest.raises(LayoutError, match="must be 'raise' if there is no unit"):
        Layout(unit=None, on_bad_unit="skip")
    assert not list(tmp_path.iterdir())


def test_a_column_of_yours_may_have_the_name_of_one_that_is_sometimes_added(tmp_path):
    table = LONG_TABLE.rename_columns({"candidate": "problem"})
    output = tmp_path / "p.arrow"
    release(table, MECHANISM, output, layout=Layout(candidate="problem"))
    rows = pa.ipc.open_file(output).read_all().to_pylist()
    assert len(rows) == 40
    assert all(list(row) == ["user", "problem"] for row in rows)


def test_a_fresh_key_is_taken_for_every_call(tmp_path, key_file):
    ways = {"a.csv": None, "b.csv": None, "c.csv": KeyFile(key_file)}
    for name, payment in ways.items():
        release(LISTS, dps.Uniform(), tmp_path / name, payment=payment)
    assert len({(tmp_path / name).read_bytes() for name in ways}) == 3  # fails with probability 6e-25


def test_arguments_are_checked_before_the_table_is_opened(tmp_path):
    missing = tmp_path / "no such table.csv"
    with pytest.raises(ValueError, match="payment must be a Charge, a KeyFile or a FreshKey, got str"):
        release(missing, MECHANISM, payment="card")
    with pytest.raises(ValueError, match=r"must end in|folder"):
        release(missing, MECHANISM, tmp_path / "no such folder" / "p.csv")


def test_a_release_says_how_many_got_a_pick_and_how_long_it_took():
    scores = LISTS["score"].to_pylist()
    scores[3][0] = None
    bad, started = LISTS.set_column(2, "score", pa.array(scores)), time.monotonic()
    released = release(bad, MECHANISM, layout=Layout(on_bad_unit="skip"))
    assert 0 < released.seconds <= time.monotonic() - started
    assert (released.units, released.skipped, released.picked) == (40, 1, 39)
    assert (len(released.picks), released.picks["candidate"].null_count) == (40, 1)


def test_a_fresh_key_replaces_an_output_only_if_you_say_so(tmp_path):
    output = tmp_path / "p.csv"
    release(LISTS, MECHANISM, output)
    with pytest.raises(
        OutputExistsError, match=r"costs ε = 2 again. payment=FreshKey\(overwrite=True\) replaces it"
    ):
        release(LISTS, MECHANISM, output)
    release(LISTS, MECHANISM, output, payment=FreshKey(overwrite=True))

    def publish(_step):
        (tmp_path / "q.csv").write_text("theirs")

    with pytest.raises(OutputExistsError):  # another process was faster
        release(LISTS, MECHANISM, tmp_path / "q.csv", progress=publish)
    assert (tmp_path / "q.csv").read_text() == "theirs"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.csv", "q.csv"]


def test_a_new_field_does_not_use_a_key_file_up(key_file):
    payment = KeyFile(key_file)
    release(LISTS, dps.GEM(epsilon=1.0), payment=payment)
    release(LISTS, NewerGEM(epsilon=1.0), payment=payment)
    with pytest.raises(KeyReuseError):
        release(LISTS, NewerGEM(epsilon=1.0, novelty=1.0), payment=payment)


@dataclass(frozen=True, kw_only=True)
class NewerGEM(dps.GEM):
    """The same mechanism in a later version, which has one more field."""

    novelty: float = 0.0


NewerGEM.__name__ = "GEM"
