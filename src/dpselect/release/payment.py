"""How a release is paid for: by a charge to a ledger, with a key file, or not at all.

A payment brings the key. It computes a result with that key and returns it when it may be published.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol, Self, TypeVar

from dpselect.budget import BudgetError, Ledger, Release
from dpselect.guarantees import Guarantee
from dpselect.release.inputs import Inputs
from dpselect.release.jobs import Job, gives_up
from dpselect.release.key_files import BoundKey

__all__ = [
    "Charge",
    "FreshKey",
    "KeyFile",
    "OutputExistsError",
    "Payment",
    "Priced",
    "Receipt",
    "Terms",
    "refuse_second_release",
]

Result = TypeVar("Result")


class Priced(Protocol):
    """What is released: a mechanism, or a choice of one. Its ``repr`` says everything that decides the result."""

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee, and so the price."""
        ...


@dataclass(frozen=True)
class Terms:
    """What a payment is for. Fingerprints are computed once, and only if a payment needs them."""

    command: str
    released: Priced
    fingerprint_with: Callable[[dict[str, object]], str]
    """Returns a fingerprint of the inputs and of further settings."""
    check_unchanged: Callable[[], None] = lambda: None
    """Raises if the inputs are no longer those of the fingerprint."""

    @classmethod
    def of_tables(cls, command: str, released: Priced, inputs: Inputs, *, one: bool = False) -> Self:
        """Return the terms of a release about tables."""
        settings = inputs.settings(one=one)
        return cls(command, released, lambda more: inputs.fingerprint(settings | more), inputs.check_unchanged)

    @cached_property
    def fingerprint(self) -> str:
        """A fingerprint of the inputs."""
        return self.fingerprint_with({})

    @cached_property
    def use(self) -> str:
        """A fingerprint of the inputs and of what is released."""
        return self.fingerprint_with({"command": self.command, "released": repr(self.released)})


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What a population has paid."""

    population: str
    release: str
    charged: bool
    """Whether this very call has paid; if not, an earlier one had."""
    epsilon_spent: float
    """The ε of all releases of the population together."""
    epsilon_cap: float


class OutputExistsError(ValueError):
    """The output may hold a release of the same scores, and another one would cost as much again."""

    exit_code = 4

    def __init__(self, output: Path, epsilon: float) -> None:
        self.problem = (
            f"{output.name!r} exists. If it holds picks for these users, picking again with a fresh key is a "
            f"second release and costs ε = {epsilon:g} again"
        )
        super().__init__(
            f"{self.problem}. overwrite=True replaces it; with payment=KeyFile(…) or Charge(…) the same call gives "
            "the same picks for nothing"
        )


def refuse_second_release(output: Path, payment: "Payment", released: Priced) -> None:
    """Raise if an output exists that a fresh key would replace by other picks."""
    if isinstance(payment, FreshKey) and output.exists():
        raise OutputExistsError(output, released.guarantee.epsilon)


class Payment(Protocol):
    """A way to get a key, and to pay for what is computed with it."""

    def check(self, terms: Terms) -> None:
        """Raise if the release would be refused now. Costs nothing."""

    def pay_for(
        self, terms: Terms, compute: Callable[[bytes], Result], job: Job | None = None
    ) -> tuple[Result, Receipt | None]:
        """Compute a result and pay for it. With a job, an interrupted computation goes on with the same key."""

    def describe(self) -> dict[str, str]:
        """Return what tells this payment from others, for the record of an unfinished job."""


@dataclass(frozen=True)
class FreshKey:
    """A key that is used once, kept only while the job is unfinished. Nothing is charged."""

    def check(self, terms: Terms) -> None:
        """Refuse nothing."""

    def pay_for(
        self, terms: Terms, compute: Callable[[bytes], Result], job: Job | None = None
    ) -> tuple[Result, Receipt | None]:
        """Compute a result with a fresh key."""
        result = compute(secrets.token_bytes(32) if job is None else job.key())
        terms.check_unchanged()
        return result, None

    def describe(self) -> dict[str, str]:
        """Return nothing: one fresh key is like another."""
        return {}


@dataclass(frozen=True)
class KeyFile:
    """The key in a file, for one release, which may be computed again. Nothing is charged.

    Args:
        path: The file, made if there is none. ``FILE.used`` beside it records what the key was used for.
    """

    path: str | Path

    def check(self, terms: Terms) -> None:
        """Raise if the key was used for another release."""
        self._bound(terms)

    def pay_for(
        self,
        terms: Terms,
        compute: Callable[[bytes], Result],
        job: Job | None = None,  # noqa: ARG002 - the file keeps the key
    ) -> tuple[Result, Receipt | None]:
        """Compute a result, and record what the key was used for."""
        bound = self._bound(terms)
        result = compute(bound.key)
        terms.check_unchanged()
        bound.bind()
        return result, None

    def describe(self) -> dict[str, str]:
        """Return the path."""
        return {"key_file": str(self.path)}

    def _bound(self, terms: Terms) -> BoundKey:
        return BoundKey(Path(self.path), terms.use)


@dataclass(frozen=True)
class Charge:
    """A charge to a population's budget. The ledger keeps a key for each release.

    Args:
        ledger: An open ledger.
        population: Whose budget is charged.
        release: Your name for the release. The same name and inputs cost nothing again and give the same picks.
        units_per_person: How many units' scores one person's data can move.
        what: What the release is for.
    """

    ledger: Ledger
    population: str
    release: str
    units_per_person: int = 1
    what: str = ""

    def check(self, terms: Terms) -> None:
        """Raise if the budget does not suffice, or if the release's name belongs to another one."""
        self._paid_before(terms)

    def _paid_before(self, terms: Terms) -> Release | None:
        return self.ledger.check(
            self.population,
            self.release,
            terms.released,
            fingerprint=terms.fingerprint,
            units_per_person=self.units_per_person,
        )

    def pay_for(
        self, terms: Terms, compute: Callable[[bytes], Result], job: Job | None = None
    ) -> tuple[Result, Receipt]:
        """Compute a result with the release's key, and pay for it."""
        paid = self._paid_before(terms)
        required = paid.key_id if paid else None
        while True:
            key_id = self._key_id(job, required)
            try:
                result = compute(self.ledger.keys.get(key_id))
                terms.check_unchanged()
            except BaseException as error:
                if key_id != required and (job is None or gives_up(error)):  # nothing will go on with this key
                    self.ledger.forget_key(key_id)
                raise
            try:
                paid = self._charge(terms, key_id)
            except BudgetError:  # others have spent the budget meanwhile
                self.ledger.forget_key(key_id)
                raise
            if paid.key_id == key_id:
                return result, self._receipt(paid)
            required = paid.key_id  # another process was first, and its key is the release's
            self.ledger.forget_key(key_id)

    def _key_id(self, job: Job | None, required: str | None) -> str:
        if job is None:
            return required or self.ledger.keys.new()
        known = job.known_key_id()
        key_id = job.key_id(self.ledger.keys.new, required)
        if known not in {None, key_id}:  # others have paid since an earlier run of this job was interrupted
            self.ledger.forget_key(known)
        return key_id

    def _charge(self, terms: Terms, key_id: str) -> Release:
        return self.ledger.charge(
            self.population,
            self.release,
            terms.released,
            fingerprint=terms.fingerprint,
            units_per_person=self.units_per_person,
            what=self.what,
            key_id=key_id,
        )

    def describe(self) -> dict[str, str]:
        """Return the names of the population and of the release."""
        return {"population": self.population, "release": self.release}

    def _receipt(self, paid: Release) -> Receipt:
        statement = self.ledger.statement(self.population)
        return Receipt(
            population=self.population,
            release=self.release,
            charged=paid.charged,
            epsilon_spent=statement.epsilon_spent,
            epsilon_cap=statement.epsilon_cap,
        )
