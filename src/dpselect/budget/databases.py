"""One SQL layer over two databases: SQLite, which needs no server, and PostgreSQL for teams.

Both run the same statements, with ``?`` for parameters. This module holds the differences: how to connect, how a
charge makes others wait, and how errors are reported.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from dpselect.errors import DatabaseError
from dpselect.extras import install_command

APPLICATION = 0x64707365
"""The application number in the header of this library's SQLite files: "dpse"."""

PATIENCE = 60.0
"""The number of seconds a charge waits for others."""


class SQLite:
    """A SQLite file. Transactions run one at a time: ``BEGIN IMMEDIATE`` waits until nobody else writes."""

    lock_rows = ""  # ``transaction`` locks them

    def __init__(self, path: Path) -> None:
        self._name = path.name
        with self._errors():
            self._connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
            self._connection.execute("PRAGMA synchronous = EXTRA")  # a charge counts once it is on disk
            self._connection.execute("PRAGMA foreign_keys = ON")

    def execute(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        with self._errors():
            return self._connection.execute(statement, parameters).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block as one transaction."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.rollback()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            hint = "; restore it from a backup" if type(error) is sqlite3.DatabaseError else ""  # it is damaged
            raise DatabaseError(f"the budget {self._name!r} cannot be used: {error}{hint}") from None


def open_sqlite(path: Path, *, create: bool) -> SQLite:
    """Open a ledger's file, or create one that only its owner can read; refuse another program's."""
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    elif not path.is_file():
        raise DatabaseError(f"there is no budget {str(path)!r}: create it with `dpselect budget create`")
    database = SQLite(path)
    try:
        [[application]] = database.execute("PRAGMA application_id")
        [[tables]] = database.execute("SELECT count(*) FROM sqlite_master")
        if tables and application != APPLICATION:
            raise DatabaseError(f"{path.name!r} is a database of another program: choose another file")  # noqa: TRY301
        if create:
            database.execute(f"PRAGMA application_id = {APPLICATION}")
    except BaseException:
        database.close()
        raise
    return database


class Postgres:
    """A PostgreSQL database. A charge locks the row of its population, and other charges wait for it."""

    lock_rows = " FOR UPDATE"  # what makes a ``SELECT`` lock its rows

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ModuleNotFoundError:
            raise DatabaseError(f"a budget in PostgreSQL needs psycopg: {install_command('postgres')}") from None
        self._failed = psycopg.Error
        self._name = _shown(url)
        with self._errors():
            self._connection = psycopg.connect(url, autocommit=True, connect_timeout=int(PATIENCE))
            self._connection.execute(f"SET lock_timeout = '{int(PATIENCE)}s'")
            self._connection.execute("SET synchronous_commit = on")

    def execute(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        with self._errors():
            cursor = self._connection.execute(statement.replace("?", "%s"), parameters)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block as one transaction."""
        with self._errors(), self._connection.transaction():
            yield

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._failed as error:
            [line, *_] = str(error).strip().splitlines() or [type(error).__name__]
            raise DatabaseError(f"the budget at {self._name!r} cannot be used: {line}") from None


def _shown(url: str) -> str:
    """Return the host and the database of a URL, the only parts of it that messages show.

    A URL in which part of a password could be mistaken for another part is refused.
    """
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        parts = {"host": "@"}
    host, port, database = (str(parts.get(name) or "") for name in ("host", "port", "dbname"))
    if "@" in host + database or (port and not port.replace(",", "").isdigit()):
        raise DatabaseError(
            "the URL of the budget cannot be read: in a password, write @ : / ? # % as %40 %3A %2F %3F %23 %25"
        )
    return f"{host}/{database}"


Database: TypeAlias = SQLite | Postgres
