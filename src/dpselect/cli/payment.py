"""Keys and payment of a release."""

import argparse
import os
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from dpselect.budget import BudgetError, Ledger, fingerprint_files
from dpselect.cli.inputs import Inputs
from dpselect.cli.tables import UsageError
from dpselect.engines.jobs import Job
from dpselect.mechanisms.protocol import Mechanism

__all__ = ["Account", "check_budget_options", "read_key"]

Result = TypeVar("Result")


def check_budget_options(options: argparse.Namespace) -> None:
    """Refuse options of the budget that do not go together."""
    if options.budget and not (options.population and options.release):
        raise UsageError("--budget needs --population and --release")
    if options.budget and options.key_file:
        raise UsageError("--key-file does not go with --budget, which keeps a key for each release")
    if not options.budget and (options.population or options.release or options.keys):
        raise UsageError("--population, --release and --keys need --budget")


class Account:
    """Pays for the release of one job.

    Picks are computed first, in the job's private directory, and paid for just before they are published: bad input
    costs nothing. Whether the budget suffices is looked up before the work, and decided by the charge.
    """

    def __init__(self, options: argparse.Namespace, inputs: Inputs, mechanism: Mechanism, stack: ExitStack) -> None:
        self._inputs = inputs
        self._ledger = stack.enter_context(Ledger.open(options.budget, keys=options.keys))
        columns = (
            "unit",
            "candidate",
            "score",
            "sensitivity",
            "offset",
            "anchor",
            "by_position",
            "on_bad_unit",
            "one",
        )
        settings = {name: getattr(options, name) for name in columns} | {"readings": inputs.readings}
        fingerprint = fingerprint_files(inputs.files, settings)
        self._release = (options.population, options.release, mechanism)
        self._terms = {"fingerprint": fingerprint, "units_per_person": options.units_per_person}
        self._what = options.what
        self._paid = self._ledger.check(*self._release, **self._terms)

    def pay_for(self, job: Job, compute: Callable[[bytes], Result]) -> Result:
        """Compute the picks with the release's key, and pay for them."""
        required = self._paid.key_id if self._paid else None
        while True:
            key_id = job.key_id(self._ledger.keys.new, required)
            result = compute(self._ledger.keys.get(key_id))
            self._inputs.check_unchanged()
            try:
                self._paid = self._ledger.charge(*self._release, **self._terms, what=self._what, key_id=key_id)
            except BudgetError:  # others have spent it meanwhile: nothing unpaid may stay
                job.discard()
                self._ledger.keys.forget(key_id)
                raise
            if self._paid.key_id == key_id:
                return result
            required = self._paid.key_id  # another process was first, and its key is the release's

    def facts(self) -> dict[str, Any]:
        """Return what the release cost, and what is spent."""
        statement = self._ledger.statement(self._release[0])
        return {
            "population": statement.population,
            "release": self._release[1],
            "charged": self._paid is not None and self._paid.charged,
            "epsilon_spent": statement.epsilon_spent,
            "epsilon_cap": statement.epsilon_cap,
        }

    @staticmethod
    def line(facts: dict[str, Any]) -> str:
        """Say what the release cost."""
        paid = "paid" if facts["charged"] else "had paid before"
        spent = f"ε = {facts['epsilon_spent']:g} of {facts['epsilon_cap']:g} is spent"
        return f"{facts['population']} {paid}: {spent}"


def read_key(path: Path) -> bytes:
    """Return the key in a file that only its owner can read; make one if there is none."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise ValueError(f"the key file {path.name!r} must be readable by its owner only: chmod 600") from None
    else:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
    try:
        key = bytes.fromhex(path.read_text("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != 32:
        raise ValueError(f"the key file {path.name!r} must hold 64 hexadecimal digits")
    return key
