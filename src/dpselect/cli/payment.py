"""Where the key of a release comes from, and who pays for it."""

import argparse
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Protocol, TypeVar

from dpselect.budget import BudgetError, Ledger, fingerprint_files
from dpselect.cli.inputs import Inputs
from dpselect.cli.keyfiles import KeyFile
from dpselect.cli.tables import UsageError
from dpselect.engines.jobs import Job
from dpselect.guarantees import Guarantee

__all__ = ["Payment", "Priced", "check_budget_options", "open_payment"]

Result = TypeVar("Result")


class Priced(Protocol):
    """What is released: a mechanism, or a choice of one. Its ``repr`` says everything that decides the result."""

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, and so what it costs."""
        ...


def check_budget_options(options: argparse.Namespace) -> None:
    """Refuse options of the budget that do not go together."""
    if options.budget and not (options.population and options.release):
        raise UsageError("--budget needs --population and --release")
    if options.budget and options.key_file:
        raise UsageError("--key-file does not go with --budget, which keeps a key for each release")
    if not options.budget and (options.population or options.release or options.keys):
        raise UsageError("--population, --release and --keys need --budget")


class Payment:
    """A key that is used once: made for this job, kept with it while it is unfinished, and forgotten then.

    ``pay_for`` computes a result with the key and returns it when it may be published. Results are computed first,
    where nobody else can see them, and paid for just before they are published: bad input costs nothing.
    """

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs

    def pay_for(self, compute: Callable[[bytes], Result], job: Job | None = None) -> Result:
        """Compute a result; a job can be interrupted and go on with the same key."""
        result = compute(secrets.token_bytes(32) if job is None else job.key())
        self._inputs.check_unchanged()
        return result

    def facts(self) -> dict[str, Any]:
        """Return what the release cost, and what is spent, if anything keeps account of it."""
        return {}

    def lines(self) -> list[str]:
        """Say the same in words."""
        return []


class Keyed(Payment):
    """The key in a file: for one release, which may be made again."""

    def __init__(self, options: argparse.Namespace, inputs: Inputs, released: Priced) -> None:
        super().__init__(inputs)
        settings = _settings(options, inputs) | {"command": options.command, "released": repr(released)}
        self._file = KeyFile(options.key_file, fingerprint_files(inputs.files, settings))

    def pay_for(self, compute: Callable[[bytes], Result], job: Job | None = None) -> Result:  # noqa: ARG002
        """Compute a result, and record what the key was used for."""
        result = compute(self._file.key)
        self._inputs.check_unchanged()
        self._file.bind()
        return result


class Account(Payment):
    """A population's budget: it keeps a key for each release.

    Whether the budget suffices is looked up before the work, and decided by the charge.
    """

    def __init__(self, options: argparse.Namespace, inputs: Inputs, released: Priced, stack: ExitStack) -> None:
        super().__init__(inputs)
        self._ledger = stack.enter_context(Ledger.open(options.budget, keys=options.keys))
        fingerprint = fingerprint_files(inputs.files, _settings(options, inputs))
        self._release = (options.population, options.release, released)
        self._terms = {"fingerprint": fingerprint, "units_per_person": options.units_per_person}
        self._what = options.what
        self._paid = self._ledger.check(*self._release, **self._terms)

    def pay_for(self, compute: Callable[[bytes], Result], job: Job | None = None) -> Result:
        """Compute a result with the release's key, and pay for it."""
        required = self._paid.key_id if self._paid else None
        while True:
            key_id = self._key_id(job, required)
            try:
                result = compute(self._ledger.keys.get(key_id))
                self._inputs.check_unchanged()
            except BaseException:
                if job is None and key_id != required:  # nothing will go on with this key
                    self._ledger.keys.forget(key_id)
                raise
            try:
                self._paid = self._ledger.charge(*self._release, **self._terms, what=self._what, key_id=key_id)
            except BudgetError:  # others have spent it meanwhile: nothing unpaid may stay
                if job is not None:
                    job.discard()
                self._ledger.forget_key(key_id)
                raise
            if self._paid.key_id == key_id:
                return result
            required = self._paid.key_id  # another process was first, and its key is the release's
            self._ledger.forget_key(key_id)

    def _key_id(self, job: Job | None, required: str | None) -> str:
        if job is None:
            return required or self._ledger.keys.new()
        known = job.known_key_id()
        key_id = job.key_id(self._ledger.keys.new, required)
        if (
            known is not None and known != key_id
        ):  # others have paid since an earlier run of this job was interrupted
            self._ledger.forget_key(known)
        return key_id

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

    def lines(self) -> list[str]:
        """Say what the release cost."""
        facts = self.facts()
        paid = "paid" if facts["charged"] else "had paid before"
        spent = f"ε = {facts['epsilon_spent']:g} of {facts['epsilon_cap']:g} is spent"
        return [f"{facts['population']} {paid}: {spent}"]


def open_payment(options: argparse.Namespace, inputs: Inputs, released: Priced, stack: ExitStack) -> Payment:
    """Return the payment that the options ask for."""
    if options.budget:
        return Account(options, inputs, released, stack)
    return Payment(inputs) if options.key_file is None else Keyed(options, inputs, released)


def _settings(options: argparse.Namespace, inputs: Inputs) -> dict[str, object]:
    """Return what decides, besides the contents of files, what is read out of them."""
    names = ["unit", "candidate", "score", "sensitivity", "offset", "anchor", "by_position", "on_bad_unit"]
    settings = {name: getattr(options, name) for name in names}
    return settings | {"one": getattr(options, "one", False), "readings": inputs.readings}
