"""One private choice of the mechanism that suits all users best, paid for like picks."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpselect.engines import Limits
from dpselect.engines.local import LocalTables, open_tables
from dpselect.errors import BadUnitsError, LayoutError, UnknownColumnError
from dpselect.guarantees import ANY_SCORES, Guarantee
from dpselect.pools import default_pool
from dpselect.randomness import Randomness
from dpselect.release.payment import FreshKey, Payment, Receipt, Terms
from dpselect.tables.layout import Layout
from dpselect.tables.stored import AnyTable
from dpselect.tables.units import find_problems, read_units
from dpselect.tuning import Tuned, choice_guarantee, tune


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """A choice to be made: what decides it, besides scores and sensitivities, and what it costs.

    Args:
        epsilon: The privacy budget of one pick.
        tuning_epsilon: The privacy budget of the choice.
        cap: The error at which errors are cut off, or a range of caps.
        power: The power of the error.
    """

    epsilon: float
    tuning_epsilon: float
    cap: float | tuple[float, float]
    power: float = 2.0
    pool: str = field(init=False)
    """A hash of all mechanisms to choose from: a version that has other ones must not pass for the same release."""

    def __post_init__(self) -> None:
        pool = hashlib.blake2b(repr(default_pool(self.epsilon)).encode(), digest_size=8)
        object.__setattr__(self, "pool", pool.hexdigest())

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the choice, for a ledger.

        A ledger is about one user's scores, and takes who the users are as public. The choice protects scores
        against any change (docs/theory/tuning.md, theorem 1), and so at least against those that a population's cap
        is for.
        """
        return choice_guarantee(self.tuning_epsilon).with_neighbours(ANY_SCORES)


@dataclass(frozen=True, kw_only=True)
class ReleasedChoice:
    """A choice, and what was paid for it if a ledger was charged."""

    tuned: Tuned
    receipt: Receipt | None


def release_choice(
    table: AnyTable,
    tuning: Tuning,
    *,
    layout: Layout | None = None,
    payment: Payment | None = None,
    limits: Limits | None = None,
    progress: bool | None = None,
) -> ReleasedChoice:
    """Choose one mechanism for all users of a table by :func:`dpselect.tuning.tune`, and pay for the choice.

    All scores are read into memory.

    Args:
        table: The table of scores, as for :func:`release`.
        tuning: What to choose for, and at what price.
        layout: Where the columns are, and how files are read.
        payment: :class:`Charge`, :class:`KeyFile`, or by default :class:`FreshKey`.
        limits: How much is held in memory.
        progress: Whether to show a progress bar; ``None`` for a terminal only.
    """
    tables = open_tables(table, layout, limits=limits or Limits(), output=None)
    columns = tables.columns
    if columns.unit is None:
        raise LayoutError("unit must name a column for tuning: it is for many users")
    if columns.on_bad_unit == "skip":
        raise LayoutError("on_bad_unit must be 'raise' for tuning: the number of users must not depend on scores")
    for role in ("offset", "weight"):
        if getattr(columns, role) is not None:
            raise LayoutError(f"{role} must not be given: tuning takes no {role}s")
    if columns.sensitivity is None:
        raise UnknownColumnError("sensitivity", "sensitivity", tables.table.label, tables.table.column_names)

    def choose(key: bytes) -> Tuned:
        scores, sensitivities = _read(tables)
        return tune(
            scores,
            sensitivities,
            tuning.epsilon,
            tuning.tuning_epsilon,
            cap=tuning.cap,
            power=tuning.power,
            randomness=Randomness.keyed(key, "tuning"),
            progress=progress,
        )

    tuned, receipt = (payment or FreshKey()).pay_for(Terms("tune", tuning, tables), choose)
    return ReleasedChoice(tuned=tuned, receipt=receipt)


def _read(tables: LocalTables) -> tuple[Any, Any]:
    """Return the scores and sensitivities of all users, flat with bounds, or dense if candidates are positions."""
    parts, layout = [], tables.columns
    for located in tables.batches():
        problems = find_problems(located.batch, layout)
        if problems.null_count < len(problems):
            error = BadUnitsError(problems)
            raise ValueError(f"{located.locate(error.row, layout.unit_name)}: {error.problem}")
        parts.append(read_units(located.batch, layout))
    if not parts:
        raise ValueError("the table holds no users")
    first = parts[0]
    if not isinstance(first.scores, tuple):
        own = np.ndim(first.sensitivities) == 2
        widths = np.concatenate([part.sensitivities for part in parts]) if own else first.sensitivities
        return np.concatenate([part.scores for part in parts]), widths
    sizes = np.concatenate([np.diff(part.bounds) for part in parts])
    bounds = np.insert(np.cumsum(sizes), 0, 0)
    scores = np.concatenate([part.scores[0] for part in parts])
    if isinstance(first.sensitivities, float):
        return (scores, bounds), first.sensitivities
    flat = [p.sensitivities[0] if isinstance(p.sensitivities, tuple) else p.sensitivities for p in parts]
    return (scores, bounds), (np.concatenate(flat), bounds)
