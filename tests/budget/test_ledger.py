"""A budget that cannot be overspent: not by crashes, races, retries, full disks or damaged files."""

import json
import math
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpselect as dps
from dpselect.budget import (
    BudgetError,
    BudgetExhaustedError,
    Ledger,
    LedgerError,
    ReleaseConflictError,
)
from dpselect.budget import ledger as module
from dpselect.budget.fingerprints import combine_hashes, hash_files
from dpselect.errors import DatabaseError
from dpselect.guarantees import SAME_DIRECTION

GEM = dps.GEM(epsilon=0.5)


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "budget.db") as ledger:
        ledger.add_population("readers", epsilon=1.0)
        yield ledger


def charge(ledger, name, mechanism=GEM, *, fingerprint="inputs", **settings):
    return ledger.charge("readers", name, mechanism, fingerprint=fingerprint, **settings)


def keys_of_releases(folder):
    return [path for path in folder.iterdir() if path.name != "fingerprints.key"]


def test_a_release_is_charged_once_and_always_has_the_same_key(ledger):
    first = charge(ledger, "spring", who="ann", what="a test")
    again = charge(ledger, "spring", who="bob")
    assert (first.charged, again.charged) == (True, False)
    assert first.key == again.key
    assert len(first.key) == 32
    assert charge(ledger, "summer").key != first.key
    statement = ledger.statement("readers")
    assert statement.epsilon_spent == 1.0
    assert next((r.name, r.who, r.what, r.mechanism) for r in statement.releases) == (
        "spring",
        "ann",
        "a test",
        "GEM(epsilon=0.5)",
    )
    assert statement.releases[0].guarantee == GEM.guarantee
    assert repr(first.key) not in repr(first)


def test_a_changed_epsilon_is_reported_as_such(ledger):
    charge(ledger, "spring")
    with pytest.raises(ReleaseConflictError, match=r"with ε = 0\.5, not 0\.25; use a new name"):
        charge(ledger, "spring", dps.GEM(epsilon=0.25), fingerprint="inputs and options")


def test_the_cap_is_never_exceeded_and_what_fits_exactly_fits(ledger):
    tenth = dps.NoisyMax(epsilon=0.1)
    for number in range(10):  # ten floats of 0.1 add up to more than 1 by 10⁻¹⁶
        charge(ledger, f"release {number}", tenth)
    with pytest.raises(BudgetExhaustedError, match=r"'eleventh' is refused.*would have spent ε = 1\.1.*cap is 1 "):
        charge(ledger, "eleventh", tenth)
    assert len(ledger.statement("readers").releases) == 10
    assert charge(ledger, "release 3", tenth).charged is False


def test_a_refused_release_leaves_neither_record_nor_key(ledger, tmp_path):
    with pytest.raises(BudgetExhaustedError):
        charge(ledger, "much", dps.GEM(epsilon=2.0))
    assert ledger.statement("readers").releases == ()
    assert keys_of_releases(tmp_path / "budget.db.keys") == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"fingerprint": "others"}, "other inputs, or by another version of dpselect"),
        ({"units_per_person": 2}, "another units per person"),
        ({}, "another mechanism"),
    ],
)
def test_a_name_belongs_to_one_release(ledger, change, what):
    charge(ledger, "spring")
    mechanism = GEM if change else dps.GEM(epsilon=0.5, beta=0.1)
    with pytest.raises(ReleaseConflictError, match=f"'spring' is refused.*with {what}; use a new name"):
        charge(ledger, "spring", mechanism, **change)
    assert len(ledger.statement("readers").releases) == 1


def test_a_person_behind_many_units_costs_more(ledger):
    with pytest.raises(BudgetExhaustedError):
        charge(ledger, "spring", units_per_person=3)
    charge(ledger, "spring", units_per_person=2)
    assert ledger.statement("readers").epsilon_spent == 1.0


def test_many_releases_cost_less_where_a_delta_is_allowed(ledger):
    small = dps.NoisyMax(epsilon=0.1, noise="gumbel")
    ledger.add_population("writers", epsilon=4.0, delta=1e-6)
    for number in range(4):
        ledger.charge("writers", f"release {number}", small, fingerprint="inputs", units_per_person=50)
    spent = ledger.statement("writers").spent
    rho = 200 * 0.1**2 / 8
    assert spent.delta == 1e-6
    assert spent.epsilon < rho + 2 * math.sqrt(rho * math.log(1e6)) < 4 < 200 * 0.1


def test_with_a_delta_only_sums_are_charged_because_the_next_epsilon_may_depend_on_earlier_releases(ledger):
    # Loss distributions of six picks would give 2.97, but hold only for guarantees fixed before the first one.
    pick = dps.NoisyMax(epsilon=0.5, noise="gumbel")
    assert dps.accounting.total_guarantee([pick.guarantee] * 6, delta=1e-6).epsilon < 2.99
    ledger.add_population("writers", epsilon=2.99, delta=1e-6)
    for number in range(5):
        ledger.charge("writers", f"release {number}", pick, fingerprint="inputs")
    with pytest.raises(BudgetExhaustedError, match="would have spent ε = 3,"):
        ledger.charge("writers", "sixth", pick, fingerprint="inputs")


def test_exponential_noise_is_charged_like_laplace_noise(ledger):
    rho = 200 * (1.0 + math.expm1(-1.0))
    cap = rho + 2 * math.sqrt(rho * math.log(1e6))  # with ρ = ε·tanh(ε/2), 200 releases would cost more
    ledger.add_population("writers", epsilon=cap, delta=1e-6)
    ledger.charge("writers", "all", dps.NoisyMax(epsilon=1.0), fingerprint="inputs", units_per_person=200)
    spent = ledger.statement("writers").spent
    assert spent.rho == pytest.approx(rho)
    assert spent.delta == 1e-6
    with pytest.raises(BudgetExhaustedError):
        ledger.check(
            "writers", "more", dps.RandomizedResponse(epsilon=1.0), fingerprint="inputs", units_per_person=50
        )
    assert (
        dps.accounting.total_guarantee(
            [dps.RandomizedResponse(epsilon=1.0).guarantee] * 200, delta=1e-6, fixed_beforehand=False
        ).epsilon
        > cap
    )


def test_releases_of_older_versions_are_read_and_keep_the_rho_they_were_charged_with(ledger, monkeypatch):
    def old(release):
        values = values_now(release)
        place = module.COLUMNS.split(", ").index("guarantee")
        fields = json.loads(values[place])
        del fields["laplace_epsilon"]
        values[place] = json.dumps(fields | {"rho": 0.5 * math.tanh(0.25)}, sort_keys=True, ensure_ascii=False)
        return values

    values_now = module.values_of
    ledger.add_population("writers", epsilon=3.0, delta=1e-6)
    with monkeypatch.context() as patch:
        patch.setattr(module, "values_of", old)
        ledger.charge("writers", "before", GEM, fingerprint="inputs")
    ledger.charge("writers", "after", GEM, fingerprint="inputs")
    before, after = (release.guarantee for release in ledger.statement("writers").releases)
    assert (before.epsilon, before.laplace_epsilon, before.rho) == (0.5, 0.0, 0.5 * math.tanh(0.25))
    assert (after.epsilon, after.laplace_epsilon, after.rho) == (0.5, 0.5, GEM.guarantee.rho)
    assert not ledger.charge("writers", "before", GEM, fingerprint="inputs").charged
    spent = ledger.statement("writers").spent
    assert spent.rho == pytest.approx(before.rho + after.rho)


@given(parts=st.lists(st.integers(1, 20), min_size=1, max_size=6))
@settings(max_examples=20)
def test_the_cost_with_a_delta_depends_only_on_the_sum_of_rho(parts):
    def spent(sizes):
        guarantees = [replace(GEM.guarantee, epsilon=100.0, rho=size / 64) for size in sizes]
        return dps.accounting.total_guarantee(guarantees, delta=1e-6, fixed_beforehand=False).epsilon

    assert spent(parts) == pytest.approx(spent([sum(parts)]), rel=1e-9)


def test_a_mechanism_without_a_guarantee_cannot_be_charged(ledger):
    with pytest.raises(BudgetError, match="NaiveHeterogeneousNoisyMax has no guarantee"):
        charge(ledger, "spring", dps.unsafe.NaiveHeterogeneousNoisyMax(epsilon=0.1))


def test_releases_with_a_weaker_neighbour_relation_than_the_cap_are_refused(ledger):
    monotone = dps.NoisyMax(epsilon=0.25, monotone=True)
    with pytest.raises(BudgetError, match=r"'spring' is refused: the cap of 'readers' is for scores within"):
        charge(ledger, "spring", monotone)
    with pytest.raises(BudgetError, match="is refused: the cap"):
        ledger.check("readers", "spring", monotone, fingerprint="inputs")
    charge(ledger, "any", dps.RandomizedResponse(epsilon=0.25))  # guarantees more
    ledger.add_population("counts", epsilon=1.0, neighbours=SAME_DIRECTION)
    for name, mechanism in (("a", monotone), ("b", dps.GEM(epsilon=0.25)), ("c", monotone)):
        ledger.charge("counts", name, mechanism, fingerprint="inputs")
    assert ledger.statement("counts").neighbours == ledger.statement("counts").spent.neighbours == SAME_DIRECTION
    ledger.add_population("people", epsilon=1.0, neighbours="one person more or less")
    with pytest.raises(BudgetError, match=r"but the guarantee of .* is for"):
        ledger.charge("people", "a", GEM, fingerprint="inputs")
    with pytest.raises(BudgetError, match="already exists, with a cap of ε = 1, δ = 0 for scores within"):
        ledger.add_population("readers", epsilon=1.0, neighbours=SAME_DIRECTION)


def test_a_release_is_checked_without_being_charged(ledger):
    assert ledger.check("readers", "spring", GEM, fingerprint="inputs") is None
    assert ledger.statement("readers").releases == ()
    charge(ledger, "spring")
    assert ledger.check("readers", "spring", GEM, fingerprint="inputs").name == "spring"
    with pytest.raises(BudgetExhaustedError):
        ledger.check("readers", "summer", dps.GEM(epsilon=0.6), fingerprint="inputs")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ledger: charge(ledger, ""), "release must be a non-empty text"),
        (lambda ledger: charge(ledger, "a", fingerprint=""), "fingerprint must be a non-empty text"),
        (lambda ledger: charge(ledger, "a", units_per_person=0), "units_per_person must be"),
        (lambda ledger: ledger.statement("nobody"), "there is no population 'nobody'"),
        (lambda ledger: ledger.add_population("", epsilon=1), "name must be a non-empty text"),
        (lambda ledger: ledger.add_population("a", epsilon=0), "epsilon must be positive"),
        (lambda ledger: ledger.add_population("a", epsilon=1, delta=1), "delta must be < 1"),
        (lambda ledger: ledger.add_population("a", epsilon=1, delta=1.5), "delta must be between 0 and 1"),
        (
            lambda ledger: ledger.add_population("a", epsilon=1, neighbours=""),
            "neighbours must be a non-empty text",
        ),
        (lambda ledger: ledger.add_population("readers", epsilon=2), "already exists, with a cap of ε = 1"),
        (lambda _: Ledger.open("postgresql://localhost/x"), "needs a directory for its keys"),
    ],
)
def test_bad_arguments_are_refused(ledger, call, message):
    with pytest.raises(ValueError, match=message):
        call(ledger)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://127.0.0.1:1/db?user=u&password=SECRET",
        "postgresql://u:SECRET@127.0.0.1:1/db",
        "postgresql://u:pa/SECRET@127.0.0.1:1/db",
        "postgresql://u:1/SECRET@127.0.0.1:1/db",
        "postgresql://u:p@SECRET@127.0.0.1:1/db",
        "postgresql://u:pa%SECRET@127.0.0.1:1/db",
        "postgresql://u:SECRET?@127.0.0.1:x/db",
    ],
)
def test_no_part_of_a_password_gets_into_a_message(url, tmp_path):
    pytest.importorskip("psycopg")
    with pytest.raises(DatabaseError) as caught:
        Ledger.open(url, keys=tmp_path)
    assert "SECRET" not in str(caught.value)
    assert "127.0.0.1/db" in str(caught.value) or "cannot be read" in str(caught.value)


def test_adding_a_population_again_changes_nothing(ledger):
    charge(ledger, "spring")
    ledger.add_population("readers", epsilon=1.0)
    assert len(ledger.statement("readers").releases) == 1
    assert ledger.populations() == ["readers"]


def test_fingerprints_depend_on_contents_and_settings(tmp_path):
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b").write_bytes(b"one")
    (tmp_path / "c").write_bytes(b"two")
    a, b, c = (tmp_path / name for name in "abc")
    inputs = (([a, c], {"x": 1}), ([b, c], {"x": 1}), ([a, c], {"x": 2}), ([c, a], {"x": 1}), ([a], {"x": 1}))
    first, same, *others = (combine_hashes(hash_files(files), settings) for files, settings in inputs)
    assert first == same
    assert len({first, *others}) == 4


# --- Keys -----------------------------------------------------------------------------------------------------


def test_keys_are_apart_from_the_ledger_and_private(ledger, tmp_path):
    paid = charge(ledger, "spring")
    folder = tmp_path / "budget.db.keys"
    [path] = keys_of_releases(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "budget.db").stat().st_mode & 0o777 == 0o600
    content = (tmp_path / "budget.db").read_bytes()
    assert paid.key not in content
    assert paid.key.hex().encode() not in content
    path.chmod(0o640)
    with pytest.raises(ValueError, match="readable by its owner only"):
        charge(ledger, "spring")
    path.chmod(0o600)
    path.write_text(path.read_text().replace(paid.key.hex()[:2], "zz", 1))
    with pytest.raises(ValueError, match="is damaged"):
        charge(ledger, "spring")
    path.unlink()
    with pytest.raises(ValueError, match="without it no release can be recognised or computed again"):
        charge(ledger, "spring")


def test_the_ledger_holds_fingerprints_under_a_secret_that_is_kept_with_the_keys(ledger, tmp_path):
    guess = combine_hashes([], {"score": 0.5})
    charge(ledger, "spring", fingerprint=guess)
    with Ledger.create(tmp_path / "other.db") as other:
        other.add_population("readers", epsilon=1.0)
        charge(other, "spring", fingerprint=guess)
        shown = {book.statement("readers").releases[0].fingerprint for book in (ledger, other)}
    assert len(shown) == 2
    assert guess not in shown
    for name in ("budget.db", "other.db"):
        assert guess.encode() not in (tmp_path / name).read_bytes()
    secret = tmp_path / "budget.db.keys" / "fingerprints.key"
    assert secret.stat().st_mode & 0o777 == 0o600
    before = secret.read_bytes()
    Ledger.create(tmp_path / "budget.db").close()
    assert secret.read_bytes() == before
    secret.unlink()
    with pytest.raises(ValueError, match="without it no release can be recognised"):
        charge(ledger, "spring", fingerprint=guess)


def test_a_key_that_was_used_before_the_charge_is_stored_by_it(ledger, tmp_path):
    key = bytes(range(32))
    assert keys_of_releases(tmp_path / "budget.db.keys") == []
    paid = charge(ledger, "spring", key=key)
    assert paid.key == key == ledger.keys.get(paid.key_id)
    assert charge(ledger, "spring", key=bytes(32)).key == key
    assert len(keys_of_releases(tmp_path / "budget.db.keys")) == 1


def test_the_key_of_another_release_is_refused_whoever_it_is_about(ledger, tmp_path):
    key = bytes(range(32))
    charge(ledger, "spring", key=key)
    ledger.add_population("writers", epsilon=1.0)
    for population in ("readers", "writers"):
        with pytest.raises(ReleaseConflictError, match="'summer' is refused: its key is that of another release"):
            ledger.charge(population, "summer", GEM, fingerprint="inputs", key=key)
    assert ledger.statement("writers").releases == ()
    assert not charge(ledger, "spring", key=key).charged  # its own
    assert len(keys_of_releases(tmp_path / "budget.db.keys")) == 1
    for folder in keys_of_releases(tmp_path / "budget.db.keys"):
        folder.unlink()  # a lost key is nobody's obstacle
    assert charge(ledger, "summer", key=bytes(32)).charged


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), "0" * 32], ids=["none", "31", "33", "text"])
def test_a_key_that_could_not_be_used_is_not_charged(ledger, tmp_path, key):
    with pytest.raises(ValueError, match="key must be 32 bytes"):
        charge(ledger, "spring", key=key)
    assert ledger.statement("readers").releases == ()
    assert keys_of_releases(tmp_path / "budget.db.keys") == []


# --- What a name stands for ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class NewerGEM(dps.GEM):
    """The same mechanism in a later version, which has one more field."""

    novelty: float = 0.0


NewerGEM.__name__ = "GEM"


def test_a_new_field_does_not_make_a_paid_release_another_one(ledger):
    charge(ledger, "spring")
    assert not charge(ledger, "spring", NewerGEM(epsilon=0.5)).charged
    with pytest.raises(ReleaseConflictError, match="another mechanism"):
        charge(ledger, "spring", NewerGEM(epsilon=0.5, novelty=1.0))


def test_a_known_statement_is_not_checked_again_unless_something_was_charged_since(ledger, monkeypatch):
    charge(ledger, "spring", dps.GEM(epsilon=0.25))
    known, verified = ledger.statement("readers"), []
    genuine = module.checksum
    monkeypatch.setattr(module, "checksum", lambda *values: verified.append(values) or genuine(*values))
    paid = charge(ledger, "summer", dps.GEM(epsilon=0.25), known=known)
    assert len(verified) == 1  # the new record's own
    assert paid.statement == ledger.statement("readers")
    verified.clear()
    with pytest.raises(BudgetExhaustedError):
        charge(ledger, "autumn", dps.GEM(epsilon=0.75), known=known)  # an outdated one
    assert len(verified) == 3


# --- Full disks, damaged and foreign files ----------------------------------------------------------------------


def test_a_full_disk_refuses_the_charge_and_loses_nothing(ledger, tmp_path):
    charge(ledger, "spring")
    ledger._database.execute("PRAGMA max_page_count = 1")  # no room for another page
    with pytest.raises(DatabaseError, match="database or disk is full"):
        charge(ledger, "x" * 20_000)
    assert [r.name for r in ledger.statement("readers").releases] == ["spring"]
    assert len(keys_of_releases(tmp_path / "budget.db.keys")) == 1
    with Ledger.open(tmp_path / "budget.db") as other:
        assert charge(other, "x" * 20_000).charged


def test_a_limit_on_file_sizes_refuses_the_charge_and_loses_nothing(ledger, tmp_path):
    charge(ledger, "spring")
    script = (
        "import sys, dpselect as dps; from dpselect.budget import Ledger\n"
        "with Ledger.open(sys.argv[1]) as ledger:\n"
        "    ledger.charge('readers', 'x' * 50_000, dps.GEM(epsilon=0.5), fingerprint='inputs')"
    )

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (34_000, 34_000))

    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script, str(tmp_path / "budget.db")],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=small_files,
    )
    assert done.returncode == 1
    assert "cannot be used: " in done.stderr
    assert [r.name for r in ledger.statement("readers").releases] == ["spring"]


def test_a_missing_foreign_or_empty_file_is_not_a_budget(tmp_path):
    with pytest.raises(DatabaseError, match="there is no budget"):
        Ledger.open(tmp_path / "typo.db")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "text").write_bytes(b"a letter, not a database " * 100)
    (tmp_path / "empty").write_bytes(b"")
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE songs (name TEXT)")
    other.close()
    for name, message in (("text", "not a database"), ("empty", "not a budget"), ("other", "another program")):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(DatabaseError, match=message):
            Ledger.open(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    for name in ("text", "other"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(DatabaseError):
            Ledger.create(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before


def test_a_ledger_of_another_version_is_refused(ledger, tmp_path):
    ledger._database.execute("UPDATE ledger SET value = 'dpselect budget 2'")
    with pytest.raises(LedgerError, match="another version"):
        Ledger.open(tmp_path / "budget.db")


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM releases WHERE number = 1",
        "DELETE FROM releases WHERE number = 0",
        "UPDATE releases SET guarantee = replace(guarantee, '0.25', '0.025') WHERE number = 1",
        "UPDATE releases SET name = 'x' WHERE number = 0",
        "UPDATE populations SET epsilon = 100.0",
        "UPDATE populations SET neighbours = 'any two score vectors'",
        "UPDATE populations SET releases = 1",
    ],
)
def test_records_changed_by_others_are_detected(ledger, statement):
    quarter = dps.GEM(epsilon=0.25)
    charge(ledger, "spring", quarter)
    charge(ledger, "summer", quarter)
    ledger._database.execute(statement)
    with pytest.raises(LedgerError, match="do not match their checksums"):
        charge(ledger, "autumn", quarter)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a ledger with three releases, and its bytes."""
    path = tmp_path_factory.mktemp("whole") / "budget.db"
    with Ledger.create(path) as ledger:
        ledger.add_population("readers", epsilon=1.0)
        for name in ("spring", "summer"):
            charge(ledger, name, dps.GEM(epsilon=0.25))
        return path, path.read_bytes(), ledger.statement("readers")


@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), cut=st.booleans())
@settings(max_examples=150)
def test_a_damaged_file_is_refused_or_read_correctly_and_never_charged_wrongly(whole, place, bit, cut):
    path, content, statement = whole
    at = int(place * len(content))
    changed = content[:at] if cut else content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]
    with tempfile.TemporaryDirectory() as folder:
        damaged = Path(folder) / "budget.db"
        shutil.copytree(f"{path}.keys", f"{damaged}.keys")
        damaged.write_bytes(changed)
        try:
            with Ledger.open(damaged) as ledger:
                found = ledger.statement("readers")
                paid = charge(ledger, "spring", dps.GEM(epsilon=0.25))
        except DatabaseError:
            return
        except BudgetError as error:  # the population's own name was hit
            assert "there is no population" in str(error)  # noqa: PT017
            return
        assert (found, paid.charged) == (statement, False)


@pytest.mark.parametrize("page", [0, 1, 2])
def test_a_ledger_with_a_damaged_page_asks_for_a_backup_and_not_for_a_new_ledger(ledger, tmp_path, page):
    charge(ledger, "spring")
    content = bytearray((tmp_path / "budget.db").read_bytes())
    content[4096 * page : 4096 * page + 200] = bytes(200)
    (tmp_path / "damaged.db").write_bytes(content)
    shutil.copytree(tmp_path / "budget.db.keys", tmp_path / "damaged.db.keys")
    with (
        pytest.raises(DatabaseError, match="restore it from a backup"),
        Ledger.open(tmp_path / "damaged.db") as found,
    ):
        found.statement("readers")


def test_a_ledger_is_made_with_the_folders_above_it_and_one_without_its_tables_is_refused(tmp_path):
    path = tmp_path / "above" / "budget.db"
    Ledger.create(path).close()
    with closing(sqlite3.connect(path)) as database:
        for table in ("releases", "populations", "ledger"):
            database.execute(f"DROP TABLE {table}")
        database.execute("CREATE TABLE other (name TEXT)")
        database.commit()
    with pytest.raises(LedgerError, match="not a budget, or not a complete one"):
        Ledger.open(path)
