"""A process that charges in a loop is killed from outside, in the middle of the database's own writes.

``python killings.py LOCATION KEYS SEED ROUNDS VICTIM`` lets a charger charge one release after another and sends
SIGKILL at random times, three in four of them within a write. The victim is the charger (VICTIM = "charger") or
its server process ("server", PostgreSQL only). After each kill the program opens the ledger again and checks that
the chain of records is complete. The ledger must hold every charge that was reported to the charger, with its key,
and at most one more, the charge under way. The next charger continues with that one. Prints the result as JSON.
"""

import collections
import itertools
import json
import os
import random
import signal
import sqlite3
import sys
import time
from pathlib import Path

import dpselect as dps
from dpselect.budget import Ledger
from dpselect.errors import DatabaseError

MECHANISM = dps.GEM(epsilon=0.1)
TEXT = "long enough for a write of many pages " * 500
PER_POPULATION = 20
"""The number of kills after which a new population starts, so that reading its records stays fast."""
JOURNAL = bytes.fromhex("d9d505f920a163d7")
"""How SQLite's journal starts once it is on disk, while the pages of the database are written."""
WRITING = "writing"
WARM = 9
"""The number of charges that measure how long one takes."""
LOST = 3


def names(first=0):
    return (f"release {number}" for number in itertools.count(first))


def charge_on(location, keys, population, first, reported):
    """Charge in an endless loop; report the server's process, if any, the start of each write, and its result."""
    try:
        with Ledger.open(location, keys=keys) as ledger:
            reported.write(f"{server_process(ledger)}\n")
            announce_writes(ledger, lambda: reported.write(f'"{WRITING}"\n'))
            for name in names(first):
                paid = ledger.charge(population, name, MECHANISM, fingerprint=f"inputs of {name}", what=TEXT)
                reported.write(json.dumps([name, paid.charged, paid.key.hex()]) + "\n")
    except DatabaseError:  # the server is gone, so nobody here can know whether the last charge was made
        os._exit(LOST)


def announce_writes(ledger, tell):
    execute = ledger._database.execute

    def announced(statement, *parameters):
        if statement.startswith("INSERT INTO releases"):
            tell()
        return execute(statement, *parameters)

    ledger._database.execute = announced


def server_process(ledger):
    if not ledger._database.lock_rows:
        return 0
    [[process]] = ledger._database.execute("SELECT pg_backend_pid()")
    return process


def reopen(location, keys):
    """Open a ledger whose server may still be recovering."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return Ledger.open(location, keys=keys)
        except DatabaseError:
            if time.monotonic() > deadline or not str(location).startswith("postgresql"):
                raise
            time.sleep(0.02)


class Round:
    """One charger, from its start to its end."""

    def __init__(self, location, keys, population, first):
        reading, writing = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(reading)
            with os.fdopen(writing, "w", buffering=1) as reported:
                charge_on(location, keys, population, first, reported)
        os.close(writing)
        self.reported = os.fdopen(reading)
        self.server = int(self.reported.readline())  # it charges from here on
        self._read = []

    def wait_for_write(self):
        while not self._read or self._read[-1] != WRITING:
            self._read.append(json.loads(self.reported.readline()))

    def kill(self, victim):
        """Kill the charger or its server's process, and return what was reported to the charger."""
        os.kill(self.server if victim == "server" else self.process, signal.SIGKILL)
        _, status = os.waitpid(self.process, 0)
        code = os.waitstatus_to_exitcode(status)
        assert code == (LOST if victim == "server" else -signal.SIGKILL), code
        with self.reported:
            self._read += [json.loads(line) for line in self.reported if line.endswith("\n")]
        return [line for line in self._read if line != WRITING]


def check(location, keys, population):
    """Return the keys of all releases by name, after every check that a single ledger allows."""
    if not str(location).startswith("postgresql"):
        with sqlite3.connect(location) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        database.close()
    with reopen(location, keys) as ledger:
        statement = ledger.statement(population)  # raises if a record does not match the chain of checksums
        found = {release.name: ledger.keys.get(release.key_id).hex() for release in statement.releases}
    assert list(found) == list(itertools.islice(names(), len(found))), "a gap, or a release twice"
    assert statement.epsilon_spent == len(found) / 10 <= statement.epsilon_cap
    assert len(set(found.values())) == len(found), "two releases with one key"
    return found


def run(location, keys, seed, rounds, victim):
    rng = random.Random(seed)  # noqa: S311 - instants, not secrets
    stages = ("kills", "in a transaction", "in a commit", "under way and made", "charges")
    happened = collections.Counter(dict.fromkeys(stages, 0))
    with Ledger.create(location, keys=keys) as ledger:
        ledger.add_population("warm", epsilon=1e6)
        starts, ends = [], []
        announce_writes(ledger, lambda: starts.append(time.perf_counter()))
        for name in itertools.islice(names(), WARM):
            ledger.charge("warm", name, MECHANISM, fingerprint="inputs", what=TEXT)
            ends.append(time.perf_counter())
    write = sorted(end - start for start, end in zip(starts, ends, strict=True))[WARM // 2]
    charge = (ends[-1] - ends[0]) / (WARM - 1)
    for number in range(rounds):
        population = f"people {number // PER_POPULATION}"
        if number % PER_POPULATION == 0:
            with reopen(location, keys) as ledger:
                ledger.add_population(population, epsilon=1e6)
            known = {}
        unsure = list(known)[-1:]  # charged again: if a charge was under way, nobody has seen its result
        charger = Round(location, keys, population, len(known) - len(unsure))
        if number % 4:
            charger.wait_for_write()
            time.sleep(rng.uniform(0, 1.2 * write))
        else:
            time.sleep(rng.uniform(0, 4 * charge))
        reported = charger.kill(victim)
        journal = Path(f"{location}-journal")
        happened["in a transaction"] += journal.exists()
        happened["in a commit"] += journal.exists() and journal.read_bytes()[:8] == JOURNAL
        found = check(location, keys, population)
        expected = dict(known)
        for name, charged, key in reported:
            assert charged is (name not in known), "charged twice, or not at all"
            assert known.get(name, key) == key, "another key than before"
            expected[name] = key
        more = list(found)[len(expected) :]
        assert {name: found[name] for name in expected} == expected, "a charge is lost, or has another key"
        assert len(more) <= 1, "more than was under way"
        happened.update(
            {"kills": 1, victim: 1, "under way and made": len(more), "charges": len(found) - len(known)}
        )
        known = found
    stored = {path.stem for path in Path(keys).glob("*.key")} - {"fingerprints"}
    orphans = len(stored) - happened["charges"] - WARM
    assert 0 <= orphans <= rounds, "a kill leaves one key at most that nobody uses"
    return happened | {"orphans": orphans}


if __name__ == "__main__":
    where, folder, start, count, whom = sys.argv[1:]
    print(json.dumps(run(where, Path(folder), int(start), int(count), whom)))
