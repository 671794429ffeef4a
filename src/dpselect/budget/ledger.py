"""The ledger: populations with a cap, and the releases about them."""

import dataclasses
import getpass
import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import dpselect.parameters as check
from dpselect.budget.amounts import price_of
from dpselect.budget.databases import Database, Postgres, open_sqlite
from dpselect.budget.keys import KeyStore
from dpselect.budget.records import (
    COLUMNS,
    Guaranteed,
    Release,
    Statement,
    checksum,
    find_paid,
    recorded,
    refuse_excess,
    release_of,
    total_of,
    values_of,
)
from dpselect.errors import BudgetError, DatabaseError, LedgerError, ReleaseConflictError
from dpselect.guarantees import WITHIN_SENSITIVITIES
from dpselect.randomness import STREAM_FORMAT, Randomness

FORMAT = "dpselect budget 1"

TABLES = (
    "CREATE TABLE IF NOT EXISTS ledger (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS populations (
        name TEXT PRIMARY KEY, epsilon DOUBLE PRECISION NOT NULL, delta DOUBLE PRECISION NOT NULL,
        neighbours TEXT NOT NULL, made TEXT NOT NULL, releases INTEGER NOT NULL, head TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS releases (
        population TEXT NOT NULL REFERENCES populations (name), number INTEGER NOT NULL, name TEXT NOT NULL,
        fingerprint TEXT NOT NULL, mechanism TEXT NOT NULL, guarantee TEXT NOT NULL,
        units_per_person INTEGER NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL, made TEXT NOT NULL,
        key_id TEXT NOT NULL, head TEXT NOT NULL,
        PRIMARY KEY (population, number), UNIQUE (population, name))""",
)


class Ledger:
    """The budgets of populations, in a SQLite file or a PostgreSQL database.

    The ε of all releases about one population add up. If the cap allows a δ, the sum of their ρ, converted to ε,
    is used where it is smaller. This also holds if each release is chosen after seeing earlier ones: a ledger is a
    privacy filter (docs/theory/accounting.md). A release is one pick for each unit, charged once. That is right if
    a person's data move the scores of one unit only. If they move several, say m, pass the number as
    ``units_per_person``: picks cost m times their ε and ρ. What is one result for all units, such as a choice of
    a mechanism, is at distance m, and costs m times its ε but up to m² times its ρ.

    Privacy:
        The ledger never holds a release that would exceed the cap, despite crashes and concurrent charges. It
        cannot stop a release that is not charged. Every ε is read as the decimal that was typed, and the sum is
        exact: ten releases of 0.1 fill a cap of 1, and then even the smallest further release is refused. The
        privacy loss computed from the floats is at most $1 + 2⁻⁵²$ times the cap (docs/theory/accounting.md).

    Cost:
        A charge is one transaction and takes milliseconds. It reads all releases of the population and checks
        their chain of checksums, so a damaged ledger is detected before it is used.

    Example:
        See :mod:`dpselect.budget`.

    References:
        docs/decisions/0008-charge-before-release.md
    """

    def __init__(self, database: Database, keys: KeyStore) -> None:
        self._database = database
        self.keys = keys

    @classmethod
    def create(cls, location: str | Path, *, keys: str | Path | None = None) -> Self:
        """Create a ledger, or open an existing one: a file, or a URL such as ``postgresql://host/name``.

        Keys are stored in ``keys``. The default for a file is a directory beside it whose name ends in ``.keys``.

        Args:
            location: A path, or a URL of PostgreSQL.
            keys: The directory for keys.
        """
        return cls._open(location, keys, create=True)

    @classmethod
    def open(cls, location: str | Path, *, keys: str | Path | None = None) -> Self:
        """Open an existing ledger. A mistyped name must not create an empty one.

        Args:
            location: A path, or a URL of PostgreSQL.
            keys: The directory for keys.
        """
        return cls._open(location, keys, create=False)

    @classmethod
    def _open(cls, location: str | Path, keys: str | Path | None, *, create: bool) -> Self:
        if str(location).startswith(("postgresql://", "postgres://")):
            if keys is None:
                raise LedgerError("a budget in PostgreSQL needs a directory for its keys: pass keys= (or --keys)")
            database: Database = Postgres(str(location))
        else:
            path = Path(location)
            keys = keys or path.with_name(path.name + ".keys")
            database = open_sqlite(path, create=create)
        ledger = cls(database, KeyStore(Path(keys)))
        try:
            ledger._prepare(create=create)
        except BaseException:
            ledger.close()
            raise
        return ledger

    def _prepare(self, *, create: bool) -> None:
        if create:
            self.keys.make_secret()
            with self._database.transaction():
                for statement in TABLES:
                    self._database.execute(statement)
                self._database.execute(
                    "INSERT INTO ledger (name, value) VALUES ('format', ?) ON CONFLICT (name) DO NOTHING", FORMAT
                )
        try:
            rows = self._database.execute("SELECT value FROM ledger WHERE name = 'format'")
        except DatabaseError as error:
            if str(error).endswith("from a backup"):  # it is damaged; otherwise it has no such table
                raise
            raise LedgerError(
                "this is not a budget, or not a complete one: create one with `dpselect budget create`"
            ) from None
        if rows != [(FORMAT,)]:
            raise LedgerError("another version of dpselect made this budget: use that version, or create a new one")

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- Populations ---------------------------------------------------------------------------------------

    def add_population(
        self, name: str, *, epsilon: float, delta: float = 0.0, neighbours: str = WITHIN_SENSITIVITIES
    ) -> None:
        """Add a population with a cap. Adding it again with the same cap changes nothing.

        ``neighbours`` is the neighbour relation of the cap, in the words of :attr:`dpselect.Guarantee.neighbours`.
        Releases with a weaker relation, such as scores that all move in one direction, are refused.

        Args:
            name: The name of the population.
            epsilon: The cap on its ε.
            delta: The δ that may be used to convert ρ to ε; 0 for sums of ε only.
            neighbours: The neighbour relation of the cap.
        """
        if not isinstance(name, str) or not name:
            raise ValueError("name must be a non-empty text")
        cap = check.positive("epsilon", epsilon)
        share = check.between("delta", delta, 0, 1)
        if share == 1:
            raise ValueError("delta must be < 1: a δ of 1 guarantees nothing")
        if not isinstance(neighbours, str) or not neighbours:
            raise ValueError("neighbours must be a non-empty text that says which datasets are neighbours")
        head = checksum("", [name, cap, share, neighbours])
        with self._database.transaction():
            self._database.execute(
                "INSERT INTO populations (name, epsilon, delta, neighbours, made, releases, head) "
                "VALUES (?, ?, ?, ?, ?, 0, ?) ON CONFLICT (name) DO NOTHING",
                *(name, cap, share, neighbours, _now(), head),
            )
            [stored] = self._database.execute(
                "SELECT epsilon, delta, neighbours FROM populations WHERE name = ?", name
            )
        if stored != (cap, share, neighbours):
            raise BudgetError(
                f"{name!r} already exists, with a cap of ε = {stored[0]:g}, δ = {stored[1]:g} for {stored[2]}"
            )

    def populations(self) -> list[str]:
        """Return the names of all populations."""
        return [name for (name,) in self._database.execute("SELECT name FROM populations ORDER BY name")]

    def statement(self, population: str) -> Statement:
        """Return the releases about a population, their cost, and the cap.

        Args:
            population: The name of the population.
        """
        with self._database.transaction():
            return self._read(population, "")

    # --- Releases ------------------------------------------------------------------------------------------

    def charge(
        self,
        population: str,
        release: str,
        mechanism: Guaranteed,
        *,
        fingerprint: str,
        units_per_person: int = 1,
        who: str | None = None,
        what: str = "",
        key: bytes | None = None,
        known: Statement | None = None,
    ) -> Release:
        """Pay for a release and return its key. A release already paid for with the same inputs costs nothing.

        Args:
            population: The population whose data are used.
            release: A name of your choice for the release, such as a date. The same name means the same release.
            mechanism: The mechanism, whose guarantee is charged. What has no ``select`` counts as one result for
                all units.
            fingerprint: A text that identifies the inputs, such as a hash of the files that are read. The
                ledger stores a hash of it, keyed with a secret that is kept with the keys.
            units_per_person: The number of units whose scores one person's data can move.
            who: The person who releases; by default the user of this process.
            what: The purpose, in words.
            key: The key of picks computed but not yet released; by default a fresh one. If the release was paid for
                before, *its* key is returned. The key of another release is refused.
            known: A statement that you have read. If nothing was charged since, its records are not checked again.

        Raises:
            BudgetExhaustedError: If it would exceed the cap.
            ReleaseConflictError: If the name belongs to a release with other inputs or another mechanism, or if the
                key belongs to another release.
        """
        if key is not None:
            Randomness.keyed(key, [0])  # refuses a key that no release could be computed with
        asked = self._ask(release, mechanism, fingerprint, units_per_person, who, what)
        with self._database.transaction():
            statement = self._read(population, self._database.lock_rows, known)
            paid = find_paid(statement, asked)
            if paid is None:
                refuse_excess(statement, asked)
                self._refuse_used(key, asked)
                paid, statement = self._pay(statement, asked, key)
        return dataclasses.replace(paid, key=self.keys.get(paid.key_id), statement=statement)

    def _refuse_used(self, key: bytes | None, asked: Release) -> None:
        """Refuse a key of another release, about any population: both would have the same noise."""
        if key is None:
            return
        for (identifier,) in self._database.execute("SELECT key_id FROM releases"):
            if self.keys.holds(identifier, key):
                raise ReleaseConflictError(
                    f"{asked.name!r} is refused: its key is that of another release, and the same noise must not "
                    "be used twice; draw a new key, or leave it out"
                )

    def _pay(self, statement: Statement, asked: Release, key: bytes | None) -> tuple[Release, Statement]:
        """Record a release. Only the caller that pays stores a key, however many run at once."""
        stored = self.keys.new(key)  # on disk before the transaction ends
        paid = dataclasses.replace(asked, key_id=stored, charged=True)
        try:
            return paid, self._write(statement, paid)
        except BaseException:
            # Rolled back, so nothing uses the key. A failed commit may have taken effect; then the key must stay.
            self.keys.forget(stored)
            raise

    def check(
        self,
        population: str,
        release: str,
        mechanism: Guaranteed,
        *,
        fingerprint: str,
        units_per_person: int = 1,
        known: Statement | None = None,
    ) -> Release | None:
        """Raise if a release would be refused now; return it if it is already paid for. Charges nothing."""
        asked = self._ask(release, mechanism, fingerprint, units_per_person, "", "")
        statement = known or self.statement(population)
        paid = find_paid(statement, asked)
        if paid is None:
            refuse_excess(statement, asked)
        return paid

    def _ask(
        self,
        release: str,
        mechanism: Guaranteed,
        fingerprint: str,
        units_per_person: int,
        who: str | None,
        what: str,
    ) -> Release:
        for name, value in (("release", release), ("fingerprint", fingerprint)):
            if not isinstance(value, str) or not value:
                raise ValueError(f"{name} must be a non-empty text")
        if not mechanism.guarantee.is_private:
            raise BudgetError(f"{release!r} is refused: {type(mechanism).__name__} has no guarantee")
        units = check.count("units_per_person", units_per_person)
        # Without the secret, what the ledger stores cannot confirm guesses of the inputs.
        secret = self.keys.secret()
        keyed = hashlib.blake2b(fingerprint.encode(), key=secret, digest_size=16, person=b"dpselect inputs")
        return Release(
            name=release,
            fingerprint=f"{keyed.hexdigest()} {STREAM_FORMAT}",
            mechanism=recorded(mechanism, units),
            guarantee=price_of(mechanism),
            units_per_person=units,
            who=getpass.getuser() if who is None else who,
            what=what,
            made=_now(),
            key_id="",
        )

    def _read(self, population: str, lock: str, known: Statement | None = None) -> Statement:
        """Return the verified state of a population; ``lock`` makes other charges wait."""
        query = "SELECT epsilon, delta, neighbours, releases, head FROM populations WHERE name = ?"
        rows = self._database.execute(query + lock, population)
        if not rows:
            raise BudgetError(
                f"there is no population {population!r} in this budget: add it with `dpselect budget create`"
            )
        [(epsilon, delta, neighbours, count, last)] = rows
        if known is not None and (known.population, known.head) == (population, last):
            return known
        query = f"SELECT {COLUMNS}, head FROM releases WHERE population = ? ORDER BY number"  # noqa: S608 - a constant
        head = checksum("", [population, epsilon, delta, neighbours])
        releases = []
        for *values, stored in self._database.execute(query, population):
            head = checksum(head, values)
            if head != stored:
                break
            releases.append(release_of(values))
        if head != last or len(releases) != count:
            raise LedgerError(
                f"the records of {population!r} are damaged: they do not match their checksums; "
                "restore the budget from a backup"
            )
        return Statement(
            population=population,
            epsilon_cap=epsilon,
            delta_cap=delta,
            neighbours=neighbours,
            spent=total_of(releases, delta),
            releases=tuple(releases),
            head=head,
        )

    def _write(self, statement: Statement, release: Release) -> Statement:
        """Record a release, and return the state of the population with it."""
        values = values_of(release)
        number = len(statement.releases)
        head = checksum(statement.head, values)
        marks = ", ".join("?" * (len(values) + 3))
        self._database.execute(
            f"INSERT INTO releases (population, number, {COLUMNS}, head) VALUES ({marks})",  # noqa: S608 - constants
            *(statement.population, number, *values, head),
        )
        self._database.execute(
            "UPDATE populations SET releases = ?, head = ? WHERE name = ?", number + 1, head, statement.population
        )
        releases = (*statement.releases, dataclasses.replace(release, charged=False))  # as they are read
        return dataclasses.replace(
            statement, releases=releases, spent=total_of(releases, statement.delta_cap), head=head
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
