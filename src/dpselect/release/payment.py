"""How a release is paid for: by a charge to a ledger, with a key file, or not at all.

A payment brings the key. It computes a result with that key and returns it when it may be published.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dpselect.budget import Ledger, Statement
from dpselect.budget.records import Guaranteed, described
from dpselect.engines import Tables
from dpselect.errors import OutputExistsError
from dpselect.release.key_files import BoundKey

Result = TypeVar("Result")


@dataclass(frozen=True)
class Terms:
    """What a payment is for. Fingerprints are computed once, and only if a payment needs them."""

    released: Guaranteed
    """What is released, such as a mechanism. Its fields are everything that decides the result."""
    tables: Tables
    output: Path | None = None

    @cached_property
    def fingerprint(self) -> str:
        """A fingerprint of the inputs."""
        return self.tables.fingerprint({})

    @cached_property
    def release_fingerprint(self) -> str:
        """A fingerprint of the inputs and of what is released."""
        return self.tables.fingerprint({"command": "select", "released": described(self.released)})


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


class Payment(Protocol):
    """A way to get a key, and to pay for what is computed with it."""

    def pay_for(self, terms: Terms, compute: Callable[[bytes], Result]) -> tuple[Result, Receipt | None]:
        """Compute a result and pay for it. Raise before any work if the release would be refused."""


@dataclass(frozen=True)
class FreshKey:
    """A key that is used once and forgotten. Nothing is charged, and every call is another release.

    Args:
        overwrite: Whether to replace an output that exists.
    """

    overwrite: bool = False

    def pay_for(self, terms: Terms, compute: Callable[[bytes], Result]) -> tuple[Result, Receipt | None]:
        """Compute a result with a fresh key."""
        self._refuse_second_release(terms)
        result = compute(secrets.token_bytes(32))
        self._refuse_second_release(terms)  # another process may have been faster
        return result, None

    def _refuse_second_release(self, terms: Terms) -> None:
        if not self.overwrite and terms.output is not None and terms.output.exists():
            raise OutputExistsError(terms.output, terms.released.guarantee.epsilon)


@dataclass(frozen=True)
class KeyFile:
    """The key in a file, for one release, which may be computed again. Nothing is charged.

    Args:
        path: The file, made if there is none. ``FILE.used`` beside it records what the key was used for.
    """

    path: str | Path

    def pay_for(self, terms: Terms, compute: Callable[[bytes], Result]) -> tuple[Result, Receipt | None]:
        """Compute a result, and record what the key was used for."""
        bound = BoundKey(Path(self.path), terms.release_fingerprint)
        result = compute(bound.key)
        bound.bind()
        return result, None


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

    def pay_for(self, terms: Terms, compute: Callable[[bytes], Result]) -> tuple[Result, Receipt]:
        """Compute a result with the release's key, and pay for it."""
        asked: dict[str, Any] = {
            "population": self.population,
            "release": self.release,
            "mechanism": terms.released,
            "fingerprint": terms.fingerprint,
            "units_per_person": self.units_per_person,
        }
        known = self.ledger.statement(self.population)
        paid = self.ledger.check(**asked, known=known)
        if paid is None:
            key = secrets.token_bytes(32)  # stored by the charge: a process that is killed before leaves nothing
            result = compute(key)
            paid = self.ledger.charge(**asked, what=self.what, key=key, known=known)
            known = paid.statement or known
            if paid.key == key:
                return result, self._receipt(known, charged=True)
        # It is paid for: by an earlier call, or by another process in the meantime, whose key is the release's.
        return compute(self.ledger.keys.get(paid.key_id)), self._receipt(known, charged=False)

    def _receipt(self, statement: Statement, *, charged: bool) -> Receipt:
        return Receipt(
            population=self.population,
            release=self.release,
            charged=charged,
            epsilon_spent=statement.epsilon_spent,
            epsilon_cap=statement.epsilon_cap,
        )
