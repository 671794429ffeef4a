"""One private choice of the mechanism that suits all users best, paid for like picks."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.guarantees import ANY_SCORES, Guarantee
from dpselect.pools import default_pool
from dpselect.randomness import Randomness
from dpselect.release.inputs import Inputs
from dpselect.release.payment import FreshKey, Payment, Receipt, Terms
from dpselect.tables.layout import Layout, LayoutError
from dpselect.tables.sorting import MEMORY
from dpselect.tables.sources import UnitSource, open_units, prefetched
from dpselect.tables.stored import BATCH_CANDIDATES, AnyTable, Csv, Format
from dpselect.tables.units import BadUnitsError, find_problems, read_units
from dpselect.tuning import Tuned, choice_guarantee, tune

__all__ = ["ReleasedChoice", "release_choice"]


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """A choice to be made: what decides it, besides scores and sensitivities, and what it costs."""

    epsilon: float
    tuning_epsilon: float
    cap: float | tuple[float, float]
    power: float
    pool: str
    """A hash of all mechanisms to choose from: a version that has other ones must not pass for the same
    release."""

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
    epsilon: float,
    tuning_epsilon: float,
    *,
    cap: float | tuple[float, float],
    power: float = 2.0,
    layout: Layout | None = None,
    candidates: AnyTable | None = None,
    format: Format | Csv | None = None,
    payment: Payment | None = None,
    memory: str = MEMORY,
    batch_candidates: int = BATCH_CANDIDATES,
    progress: bool | None = None,
) -> ReleasedChoice:
    """Choose one mechanism for all users of a table, privately, and pay for the choice.

    The choice is that of :func:`dpselect.tuning.tune`, which explains ``epsilon``, ``tuning_epsilon``, ``cap``,
    ``power`` and ``progress``. The other arguments are those of :func:`release_picks`. All scores are
    read into memory.

    Args:
        table: The table of scores.
        epsilon: The privacy budget of one pick.
        tuning_epsilon: The privacy budget of the choice.
        cap: The error at which errors are cut off, or a range of caps.
        power: The power of the error.
        layout: Which columns mean what.
        candidates: A table with public numbers of each candidate.
        format: The format of the tables, if their names do not tell.
        payment: A charge to a ledger, a file with a key, or a fresh key.
        memory: How much memory sorting may take.
        batch_candidates: About how many candidates a batch holds.
        progress: Whether to show a progress bar; ``None`` for a terminal only.
    """
    pool = hashlib.blake2b(repr(default_pool(epsilon)).encode(), digest_size=8).hexdigest()
    tuning = Tuning(epsilon=epsilon, tuning_epsilon=tuning_epsilon, cap=cap, power=power, pool=pool)
    inputs = Inputs.open(table, layout, candidates, format)
    if inputs.layout.on_bad_unit == "skip":
        raise LayoutError("on_bad_unit must be 'raise' for tuning: the number of users must not depend on scores")
    if inputs.layout.offset:
        raise LayoutError("tuning takes no offsets")
    source = open_units(inputs.table, inputs.layout, memory=memory, batch_candidates=batch_candidates)
    terms = Terms.of_tables("tune", tuning, inputs)
    paying = payment or FreshKey()
    paying.check(terms)
    scores, sensitivities = _read(source, inputs.layout)

    def choose(key: bytes) -> Tuned:
        return tune(
            scores,
            sensitivities,
            epsilon,
            tuning_epsilon,
            cap=cap,
            power=power,
            randomness=Randomness.keyed(key, "tuning"),
            progress=progress,
        )

    tuned, receipt = paying.pay_for(terms, choose)
    return ReleasedChoice(tuned=tuned, receipt=receipt)


def _read(source: UnitSource, layout: Layout) -> tuple[Any, Any]:
    """Return the scores and sensitivities of all users, flat with bounds, or dense if candidates are positions."""
    parts = []
    for located in prefetched(source.batches(layout.columns)):
        problems = find_problems(located.batch, layout)
        if problems.null_count < len(problems):
            error = BadUnitsError(problems)
            raise ValueError(f"{located.locate(error.row, layout.unit)}: {error.problem}")
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
