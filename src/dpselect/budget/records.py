"""The records of a ledger: releases, what they cost together, and which further ones are refused."""

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from dpselect.budget.amounts import float_from, read_decimal
from dpselect.errors import BudgetError, BudgetExhaustedError, ReleaseConflictError
from dpselect.guarantees import ONE_USER_CHANGED, SAME_USERS, Guarantee, compose_counted, covers

COLUMNS = "name, fingerprint, mechanism, guarantee, units_per_person, who, what, made, key_id"

AT_ONCE = "all units at once: "
"""The first words of a record of what does not pick for each unit, such as a count, if a person has several."""


class Guaranteed(Protocol):
    """Anything with a guarantee, such as a mechanism."""

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee."""
        ...


@dataclass(frozen=True, kw_only=True)
class Release:
    """One release: what was released, from which inputs, at which price, by whom and when."""

    name: str
    fingerprint: str
    mechanism: str
    guarantee: Guarantee
    units_per_person: int
    who: str
    what: str
    made: str
    key_id: str
    key: bytes | None = field(default=None, repr=False)
    """The key of its randomness. Only :meth:`Ledger.charge` sets it."""
    charged: bool = False
    """Whether this call has paid for it."""
    statement: "Statement | None" = field(default=None, repr=False)
    """The state of the budget with this release. Only :meth:`Ledger.charge` sets it."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The state of a population's budget."""

    population: str
    epsilon_cap: float
    delta_cap: float
    neighbours: str
    """The neighbour relation that the cap is for. Every release must guarantee at least that."""
    spent: Guarantee | None
    """The cost of all releases together, rounded up; ``None`` if there are none."""
    releases: tuple[Release, ...]
    head: str = field(repr=False)
    """The checksum of the last record, which covers all records."""

    @property
    def epsilon_spent(self) -> float:
        """The ε of all releases together, as the cap counts it: ten times 0.1 is 1."""
        if self.spent is not None and self.spent.delta > 0:
            return self.spent.epsilon
        return float_from(_price(self.releases))


def described(mechanism: Guaranteed) -> str:
    """Return the text that identifies a mechanism. A new field with a default does not change it."""
    return str(getattr(mechanism, "law_name", None) or repr(mechanism))


def recorded(mechanism: Guaranteed, units: int) -> str:
    """Return the text of a mechanism in a record, which also says whether it picks for each unit."""
    text = described(mechanism)
    return text if units == 1 or hasattr(mechanism, "select") else AT_ONCE + text


def find_paid(statement: Statement, asked: Release) -> Release | None:
    """Return the release of that name, if it is paid for; raise if it is another one."""
    for release in (each for each in statement.releases if each.name == asked.name):
        before, now = release.guarantee.epsilon, asked.guarantee.epsilon
        for name in ("fingerprint", "mechanism", "units_per_person"):
            if getattr(release, name) != getattr(asked, name):
                other = f"another {name.replace('_', ' ')}"
                other = "other inputs, or by another version of dpselect" if name == "fingerprint" else other
                other = other if before == now else f"ε = {before:g}, not {now:g}"
                raise ReleaseConflictError(
                    f"{asked.name!r} is refused: a release of that name about {statement.population!r} was made on "
                    f"{release.made} with {other}; use a new name for a new release"
                )
        return release
    return None


def refuse_excess(statement: Statement, asked: Release) -> None:
    """Raise if a release would exceed the cap, or is not of the kind that the cap is for."""
    if not covers(asked.guarantee.neighbours, statement.neighbours):
        raise BudgetError(
            f"{asked.name!r} is refused: the cap of {statement.population!r} is for {statement.neighbours}, but "
            f"the guarantee of {asked.mechanism} is for {asked.guarantee.neighbours}"
        )
    if asked.guarantee.delta > 0:
        raise BudgetError(
            f"{asked.name!r} is refused: it has δ = {asked.guarantee.delta:.6g}, and only releases with δ = 0 can "
            "be charged; the δ of a cap is for the total of many releases"
        )
    releases = (*statement.releases, asked)
    cap = read_decimal(statement.epsilon_cap)
    epsilon = _price(releases)
    if epsilon > cap and statement.delta_cap > 0:
        total = total_of(releases, statement.delta_cap)
        if total is not None and total.delta > 0:  # computed from the sum of ρ
            epsilon = Fraction(total.epsilon)
    if epsilon > cap:
        shown = f"ε = {float(epsilon):.6g}"
        if float(f"{float(epsilon):.6g}") <= statement.epsilon_cap:
            shown = "a little more than its cap"
        raise BudgetExhaustedError(
            f"{asked.name!r} is refused: with it {statement.population!r} would have spent {shown}, and "
            f"its cap is {statement.epsilon_cap:.6g} (spent so far: {statement.epsilon_spent:.6g})"
        )


def _price(releases: Iterable[Release]) -> Fraction:
    """Return the exact sum of all ε, as decimals."""
    prices = (each.units_per_person * read_decimal(each.guarantee.epsilon) for each in releases)
    return sum(prices, Fraction(0))


def total_of(releases: Iterable[Release], delta: float) -> Guarantee | None:
    """Return the cost of releases together, rounded up: with a δ, the sum of their ρ where that is less."""
    counts: Counter[Guarantee] = Counter()
    for release in releases:
        guarantee, parts = _parts(release)
        counts[guarantee] += parts
    if not counts:
        return None
    if delta == 0:
        return compose_counted(counts)
    from dpselect.accounting import total_guarantee  # noqa: PLC0415 - optional, and slow to import

    return total_guarantee(counts.elements(), delta=delta, fixed_beforehand=False)


def _parts(release: Release) -> tuple[Guarantee, int]:
    """Return what a release costs one person: a guarantee, and how often.

    A person who moves the scores of m units changes m picks, whose losses add up. One result for all units is a
    single mechanism at distance m, whose ρ grows faster: group privacy (docs/theory/tuning.md).
    """
    guarantee, units = release.guarantee, release.units_per_person
    # "Tuning(" is how earlier versions recorded a choice of one mechanism for all units.
    whole = release.mechanism.startswith((AT_ONCE, "Tuning(")) or guarantee.neighbours.startswith(SAME_USERS)
    if units == 1 or not whole:
        return guarantee, units
    # One step is one unit, in any way. How losses grow within a unit says nothing about further units.
    step = dataclasses.replace(guarantee, flat_epsilon=None, neighbours=ONE_USER_CHANGED)
    return step.at_distance(units).with_neighbours(guarantee.neighbours), 1


def values_of(release: Release) -> list[Any]:
    """Return the columns of a release."""
    guarantee = json.dumps(dataclasses.asdict(release.guarantee), sort_keys=True, ensure_ascii=False)
    return [guarantee if name == "guarantee" else getattr(release, name) for name in COLUMNS.split(", ")]


def release_of(values: list[Any]) -> Release:
    """Return the release with these columns."""
    fields = dict(zip(COLUMNS.split(", "), values, strict=True))
    return Release(**fields | {"guarantee": Guarantee(**json.loads(fields["guarantee"]))})


def checksum(before: str, values: list[Any]) -> str:
    """Return a checksum of a record and of all records before it."""
    content = json.dumps([before, *values], ensure_ascii=False).encode()
    return hashlib.blake2b(content, digest_size=16, person=b"dpselect ledger").hexdigest()
