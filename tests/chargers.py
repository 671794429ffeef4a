"""Processes that charge a ledger and are killed, or race. Run as a program, so that forking meets no threads.

``python chargers.py kill LOCATION KEYS FOLDER SEED ROUNDS`` kills one charger after the other at random instants
and checks the ledger after each; ``python chargers.py race LOCATION KEYS ROUNDS`` lets four charge for what one can
have.
Both print what happened as JSON.
"""

import collections
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import dpselect as dps
from dpselect.budget import BudgetExhaustedError, Ledger

POPULATION = "people"
MECHANISM = dps.GEM(epsilon=0.5)


def picks_of(key):
    """Return what stands for picks: anything that is a function of the key."""
    return key[:8].hex()


def release(location, keys, folder, name):
    """Charge, then publish: what every user of a ledger does."""
    with Ledger.open(location, keys=keys) as ledger:
        paid = ledger.charge(POPULATION, name, MECHANISM, fingerprint=f"inputs of {name}")
    (folder / f"{name}.part").write_text(picks_of(paid.key))
    (folder / f"{name}.part").rename(folder / f"{name}.picks")


def check(location, keys, folder):
    """Check that nothing unpaid is published, and that retries would give the same; return the names paid for."""
    with Ledger.open(location, keys=keys) as ledger:
        statement = ledger.statement(POPULATION)
        paid = {entry.name: picks_of(ledger.keys.get(entry.key_id)) for entry in statement.releases}
    assert statement.epsilon_spent == 0.5 * len(paid)
    assert statement.epsilon_spent <= statement.epsilon_cap
    for path in folder.glob("*.picks"):
        assert path.read_text() == paid[path.stem], "an unpaid release, or another one than was paid for"
    return paid


def kill(location, keys, folder, seed, rounds):
    rng = random.Random(seed)  # noqa: S311 - instants, not secrets
    start = time.perf_counter()
    Ledger.create(location, keys=keys).close()
    with Ledger.open(location, keys=keys) as ledger:
        ledger.add_population(POPULATION, epsilon=2.0 * rounds)
    for warm in range(3):
        release(location, keys, folder, f"warm {warm}")
    usual = (time.perf_counter() - start) / 4
    happened = collections.Counter()
    number = 0
    paid = check(location, keys, folder)
    while happened.total() - happened["done"] < rounds:
        name = f"release {number // 3}"  # tried up to three times
        number += 1
        before = set(paid)
        child = os.fork()
        if child == 0:
            release(location, keys, folder, name)
            os._exit(0)
        time.sleep(rng.uniform(0, 1.2 * usual))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        paid = check(location, keys, folder)
        assert before <= set(paid), "a charge is lost"
        stage = "published" if (folder / f"{name}.picks").exists() else "paid" if name in paid else "unpaid"
        happened[stage if os.WIFSIGNALED(status) else "done"] += 1
        # How long a charge takes differs from machine to machine and grows with the ledger: stay around it.
        usual *= 1.03 if stage == "unpaid" else 0.95
    names = (number + 2) // 3
    for again in range(names):
        release(location, keys, folder, f"release {again}")
    assert len(check(location, keys, folder)) == names + 3
    return happened


def race(location, keys, rounds):
    wins = []
    with Ledger.create(location, keys=keys) as ledger:
        for number in range(rounds):
            ledger.add_population(f"{POPULATION} {number}", epsilon=0.9)
    for number in range(rounds):
        gate = os.pipe()
        children = []
        for racer in range(4):
            child = os.fork()
            if child == 0:
                os.close(gate[1])
                os.read(gate[0], 1)
                try:
                    with Ledger.open(location, keys=keys) as ledger:
                        ledger.charge(f"{POPULATION} {number}", f"{racer}", MECHANISM, fingerprint="same")
                except BudgetExhaustedError:
                    os._exit(4)
                os._exit(0)
            children.append(child)
        os.close(gate[0])
        os.close(gate[1])  # the end of the pipe is the start for all
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        assert set(codes) == {0, 4}, codes
        wins.append(codes.count(0))
    with Ledger.open(location, keys=keys) as ledger:
        statements = [ledger.statement(f"{POPULATION} {number}") for number in range(rounds)]
    assert all(len(statement.releases) == 1 for statement in statements)
    stored = [path for path in Path(keys).iterdir() if path.name != "fingerprints.key"]
    assert len(stored) == rounds, "keys of those who lost are left"
    return {"wins": wins}


if __name__ == "__main__":
    action, location, keys, *rest = sys.argv[1:]
    if action == "kill":
        print(json.dumps(kill(location, Path(keys), Path(rest[0]), int(rest[1]), int(rest[2]))))
    else:
        print(json.dumps(race(location, Path(keys), int(rest[0]))))
