"""Processes that charge a ledger and are killed, or race. Run as a program, so that no thread runs while it forks.

``python chargers.py kill LOCATION KEYS FOLDER SEED ROUNDS`` kills one charger after another at random times and
checks the ledger after each. ``python chargers.py race LOCATION KEYS ROUNDS`` lets four processes charge for an
amount that only one can have. ``share`` lets eight charge for one release. ``publish`` runs the command line four
times for one release, so that all have computed picks, each with its own key, before the first one pays. All print
the result as JSON.
"""

import collections
import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import dpselect as dps
from dpselect.budget import BudgetExhaustedError, Ledger

POPULATION = "people"
MECHANISM = dps.GEM(epsilon=0.5)


def picks_of(key):
    """Return a substitute for picks: a function of the key."""
    return key[:8].hex()


def release(location, keys, folder, name):
    """Charge, then publish, like every user of a ledger."""
    with Ledger.open(location, keys=keys) as ledger:
        paid = ledger.charge(POPULATION, name, MECHANISM, fingerprint=f"inputs of {name}")
    (folder / f"{name}.part").write_text(picks_of(paid.key))
    (folder / f"{name}.part").rename(folder / f"{name}.picks")


def check(location, keys, folder):
    """Check that nothing unpaid is published and that retries would give the same; return the names paid for."""
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
        # The time of a charge differs between machines and grows with the ledger: stay near it.
        usual *= 1.03 if stage == "unpaid" else 0.95
    names = (number + 2) // 3
    for again in range(names):
        release(location, keys, folder, f"release {again}")
    assert len(check(location, keys, folder)) == names + 3
    return happened


def start_together(racers, run):
    """Run ``run(racer, wait)`` in a process for each racer, whose waits end when all have come to them.

    Return exit codes, and what each has returned.
    """
    gate, arrivals = os.pipe(), os.pipe()
    children = []
    for racer in range(racers):
        answer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(gate[1])

            def wait():
                os.write(arrivals[1], b".")
                os.read(gate[0], 1)

            code = 1
            try:
                code, reported = run(racer, wait)
                os.write(answer[1], json.dumps(reported).encode())
            except BaseException:
                traceback.print_exc()
            finally:
                os.write(arrivals[1], b".")  # a racer that fails does not block the others
                os._exit(code)
        os.close(answer[1])
        children.append((child, answer[0]))
    for _ in range(racers):
        os.read(arrivals[0], 1)
    os.close(gate[1])  # the end of the pipe starts all racers
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child, _ in children]
    answers = []
    for _, answer in children:
        with os.fdopen(answer) as reported:
            answers.append(reported.read())
    for end in (gate[0], *arrivals):
        os.close(end)
    return codes, [json.loads(answer) if answer else None for answer in answers]


def add_populations(location, keys, rounds):
    with Ledger.create(location, keys=keys) as ledger:
        for number in range(rounds):
            ledger.add_population(f"{POPULATION} {number}", epsilon=0.9)


def check_keys(location, keys, rounds):
    """Check that every population has one release and that the store has exactly their keys; return the keys."""
    with Ledger.open(location, keys=keys) as ledger:
        statements = [ledger.statement(f"{POPULATION} {number}") for number in range(rounds)]
        paid = [ledger.keys.get(entry.key_id).hex() for statement in statements for entry in statement.releases]
    assert [len(statement.releases) for statement in statements] == [1] * rounds
    used = {f"{statement.releases[0].key_id}.key" for statement in statements}
    stored = {path.name for path in Path(keys).iterdir()} - {"fingerprints.key"}
    assert stored == used, "keys of those who lost are left, or the winner's is gone"
    return paid


def race(location, keys, rounds):
    wins = []
    add_populations(location, keys, rounds)
    for number in range(rounds):

        def run(racer, wait, number=number):
            wait()
            try:
                with Ledger.open(location, keys=keys) as ledger:
                    ledger.charge(f"{POPULATION} {number}", f"{racer}", MECHANISM, fingerprint="same")
            except BudgetExhaustedError:
                return 4, None
            return 0, None

        codes, _ = start_together(4, run)
        assert set(codes) == {0, 4}, codes
        wins.append(codes.count(0))
    check_keys(location, keys, rounds)
    return {"wins": wins}


def share(location, keys, rounds):
    payers, got = [], []
    add_populations(location, keys, rounds)
    for number in range(rounds):

        def run(_racer, wait, number=number):
            with Ledger.open(location, keys=keys) as ledger:
                wait()
                paid = ledger.charge(f"{POPULATION} {number}", "spring", MECHANISM, fingerprint="same")
            return 0, [paid.charged, paid.key.hex()]

        codes, answers = start_together(8, run)
        assert codes == [0] * 8, codes
        payers.append(sum(charged for charged, _ in answers))
        got.append({key for _, key in answers})
    assert got == [{key} for key in check_keys(location, keys, rounds)], "a key that is not the release's"
    return {"payers": payers}


def publish(location, keys, rounds):
    import dpselect.cli.select  # noqa: PLC0415 - slow, and here it is imported once for all

    add_populations(location, keys, rounds)
    folder = Path(keys).parent
    (folder / "scores.csv").write_text(
        "user,candidate,score\n" + "".join(f"u{u},{c},0\n" for u in range(40) for c in "ab")
    )
    payers = []
    for number in range(rounds):

        def run(racer, wait, number=number):
            genuine = Ledger.charge
            waited = []

            def charge(*arguments, **terms):
                if not waited:
                    waited.append(wait())
                paid = genuine(*arguments, **terms)
                waited.append(paid.charged)
                return paid

            Ledger.charge = charge
            command = ["select", str(folder / "scores.csv"), "--epsilon", "0.5", "--sensitivity", "1", "--quiet"]
            command += ["--budget", str(location), "--keys", str(keys), "--population", f"{POPULATION} {number}"]
            return dpselect.cli.main([*command, "--release", "spring", "-o", str(folder / f"{racer}.csv")]), waited[
                1:
            ]

        codes, answers = start_together(4, run)
        assert codes == [0] * 4, codes
        # The losers compute again with the winner's key.
        assert sorted(answers) == [[False]] * 3 + [[True]], answers
        payers.append(sum(True in charged for charged in answers))
        # 40 users with two equal candidates, so other keys give other picks.
        assert len({(folder / f"{racer}.csv").read_bytes() for racer in range(4)}) == 1, "picks differ"
    assert len(set(check_keys(location, keys, rounds))) == rounds
    assert not list(folder.glob(".*"))
    return {"payers": payers}


if __name__ == "__main__":
    action, location, keys, *rest = sys.argv[1:]
    if action == "kill":
        print(json.dumps(kill(location, Path(keys), Path(rest[0]), int(rest[1]), int(rest[2]))))
    else:
        run = {"race": race, "share": share, "publish": publish}[action]
        print(json.dumps(run(location, Path(keys), int(rest[0]))))
