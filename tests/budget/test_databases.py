"""The same budget in PostgreSQL: the same records, crashes and races."""

import json

import pytest
from postgres import postgres_server
from processes import run_program

import dpselect as dps
from dpselect.budget import BudgetExhaustedError, Ledger, LedgerError, ReleaseConflictError
from dpselect.cli import main
from dpselect.errors import DatabaseError

GEM = dps.GEM(epsilon=0.5)

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def server():
    with postgres_server() as url:
        yield url


@pytest.fixture
def database(server):
    """Return the URL of a server that holds no ledger."""
    import psycopg  # noqa: PLC0415 - an extra

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS releases, populations, ledger")
    return server


def test_a_release_is_charged_once_within_the_cap_and_bound_to_its_inputs(database, tmp_path):
    with pytest.raises(LedgerError, match="not a budget"):
        Ledger.open(database, keys=tmp_path)
    with Ledger.create(database, keys=tmp_path / "keys") as ledger:
        ledger.add_population("readers", epsilon=1.0)
        first = ledger.charge("readers", "spring", GEM, fingerprint="inputs", what="ε ≤ 1 %s ?")
    with Ledger.open(database, keys=tmp_path / "keys") as ledger:
        again = ledger.charge("readers", "spring", GEM, fingerprint="inputs")
        assert (first.charged, again.charged, first.key == again.key) == (True, False, True)
        with pytest.raises(ReleaseConflictError):
            ledger.charge("readers", "spring", GEM, fingerprint="others")
        with pytest.raises(BudgetExhaustedError):
            ledger.charge("readers", "summer", dps.GEM(epsilon=0.6), fingerprint="inputs")
        [release] = ledger.statement("readers").releases
        assert (release.name, release.what, release.guarantee) == ("spring", "ε ≤ 1 %s ?", GEM.guarantee)
        ledger._database.execute("UPDATE releases SET name = 'x'")
        with pytest.raises(LedgerError, match="checksums"):
            ledger.statement("readers")


def test_killed_chargers_leave_no_unpaid_release(database, tmp_path):
    (tmp_path / "picks").mkdir()
    happened = run_program("chargers.py", "kill", database, tmp_path / "keys", tmp_path / "picks", 2, 60)
    assert happened["unpaid"] > 3, happened
    assert happened["paid"] + happened["published"] > 3, happened


@pytest.mark.parametrize(("victim", "kills"), [("charger", 100), ("server", 100)])
def test_killing_either_side_within_a_write_leaves_a_whole_chain_and_no_half_charge(
    victim, kills, database, tmp_path
):
    """The server's own process may be killed too: then the server restarts and recovers from its log."""
    happened = run_program("killings.py", database, tmp_path / "keys", 3, kills, victim)
    assert happened[victim] == happened["kills"] == kills
    assert 0 < happened["under way and made"] < kills, happened


def test_one_of_eight_processes_that_charge_one_release_pays_and_all_get_its_key(database, tmp_path):
    assert run_program("chargers.py", "share", database, tmp_path / "keys", 10)["payers"] == [1] * 10


def test_exactly_one_of_four_wins_the_last_epsilon(database, tmp_path):
    assert run_program("chargers.py", "race", database, tmp_path / "keys", 10)["wins"] == [1] * 10


def test_the_command_line_pays_from_it(database, tmp_path, capsys):
    (tmp_path / "scores.csv").write_text("user,candidate,score\nann,a,0.5\nann,b,0.25\n")
    place = ["--keys", str(tmp_path / "keys"), "--json"]
    assert main(["budget", "create", database, "--population", "readers", "--epsilon", "1", *place]) == 0
    command = ["select", str(tmp_path / "scores.csv"), "--epsilon", "0.75", "--sensitivity", "1", *place]
    command += ["--budget", database, "--population", "readers", "-o", str(tmp_path / "picks.csv")]
    capsys.readouterr()
    for charged in (True, False):
        assert main([*command, "--release", "spring"]) == 0
        assert json.loads(capsys.readouterr().out)["charged"] is charged
    assert main([*command, "--release", "summer"]) == 4


def test_an_unreachable_server_is_named_without_its_password(tmp_path):
    url = f"postgresql://tester:secret@/postgres?host={tmp_path}"
    with pytest.raises(DatabaseError, match="cannot be used") as caught:
        Ledger.open(url, keys=tmp_path)
    assert "secret" not in str(caught.value)
