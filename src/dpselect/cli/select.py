"""``dpselect select``: one private pick for each unit."""

import argparse
import os
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dpselect.budget import BudgetError, Ledger, fingerprint_files
from dpselect.cli.batches import Run, report
from dpselect.cli.tables import UsageError, make_mechanism, open_tables
from dpselect.engines.arrow import Selector
from dpselect.engines.distinct import DistinctUnits
from dpselect.engines.jobs import Job
from dpselect.engines.sources import Source
from dpselect.mechanisms.protocol import Mechanism

__all__ = ["run"]


def run(options: argparse.Namespace) -> None:
    """Pick, pay, publish, report."""
    mechanism = make_mechanism(options)
    _check_budget_options(options)
    scratch = None if options.output is None else options.output.resolve().parent
    with ExitStack() as stack:
        source, layout = open_tables(options, scratch)
        layout.check_schema(source.schema)
        account = Account(options, source, mechanism, stack) if options.budget else None
        job = Run(options, source, layout, stack)

        def compute(key: bytes) -> Selector:
            selector = Selector(mechanism, key, layout=layout)
            if source.units_are_distinct:
                job.compute(lambda batches: map(selector.select, batches))
                return selector
            with DistinctUnits() as seen:
                job.compute(
                    lambda batches: selector.over(batches, seen),
                    lambda done: seen.add(selector.addresses(done.column(layout.unit))),
                )
            return selector

        if account is not None:
            selector = account.pay_for(job.job, compute)
        else:
            selector = compute(job.job.key() if options.key_file is None else read_key(options.key_file))
        job.publish(selector.schema(source.schema))
        facts = job.summary() | {"mechanism": repr(mechanism), "epsilon": mechanism.guarantee.epsilon}
        if account is not None:
            facts |= account.facts()
    lines = [f"{facts['picked']:,} picks with ε = {facts['epsilon']:g} each, in {facts['seconds']:.1f} s"]
    if facts["resumed"]:
        lines.append(f"{facts['resumed']:,} of them were there from an earlier run")
    lines += [f"skipped {count:,}: {problem}" for problem, count in facts["problems"].items()]
    if account is not None:
        lines.append(
            f"{facts['population']} {'paid' if facts['charged'] else 'had paid before'}: "
            f"ε = {facts['epsilon_spent']:g} of {facts['epsilon_cap']:g} is spent"
        )
    report(options, facts, lines)


def _check_budget_options(options: argparse.Namespace) -> None:
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

    def __init__(self, options: argparse.Namespace, source: Source, mechanism: Mechanism, stack: ExitStack) -> None:
        self._ledger = stack.enter_context(Ledger.open(options.budget, keys=options.keys))
        files = [*source.files, *([options.candidates] if options.candidates else [])]
        columns = ("unit", "candidate", "score", "sensitivity", "offset", "anchor", "by_position", "on_bad_unit")
        fingerprint = fingerprint_files(files, {name: getattr(options, name) for name in columns})
        self._release = (options.population, options.release, mechanism)
        self._terms = {"fingerprint": fingerprint, "units_per_person": options.units_per_person}
        self._what = options.what
        self._paid = self._ledger.check(*self._release, **self._terms)

    def pay_for(self, job: Job, compute: Callable[[bytes], Selector]) -> Selector:
        """Compute the picks with the release's key, and pay for them."""
        required = self._paid.key_id if self._paid else None
        while True:
            key_id = job.key_id(self._ledger.keys.new, required)
            selector = compute(self._ledger.keys.get(key_id))
            try:
                self._paid = self._ledger.charge(*self._release, **self._terms, what=self._what, key_id=key_id)
            except BudgetError:  # others have spent it meanwhile: nothing unpaid may stay
                job.discard()
                self._ledger.keys.forget(key_id)
                raise
            if self._paid.key_id == key_id:
                return selector
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
