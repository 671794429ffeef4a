"""``dpselect tune``: one private choice of the mechanism that suits all users best."""

import argparse
import hashlib
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.cli.batches import report
from dpselect.cli.inputs import Inputs
from dpselect.cli.payment import check_budget_options, open_payment
from dpselect.cli.tables import UsageError, as_options, open_tables, read_list
from dpselect.engines.layout import BadUnitsError, Layout
from dpselect.engines.sources import Source, prefetched
from dpselect.guarantees import ANY_SCORES, Guarantee
from dpselect.pools import default_pool
from dpselect.randomness import Randomness
from dpselect.tuning import Tuned, choice_guarantee, tune

__all__ = ["run"]


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """A choice to be made: what decides it, besides scores and sensitivities, and what it costs."""

    epsilon: float
    tuning_epsilon: float
    cap: float | tuple[float, float]
    power: float
    pool: str
    """A hash of all mechanisms to choose from: a version that has other ones must not pass for the same release."""

    @property
    def guarantee(self) -> Guarantee:
        """What the choice promises, for a ledger.

        A ledger speaks of one user's scores, and takes who the users are as public. The choice protects scores
        against any change (docs/theory/tuning.md, theorem 1), and so at least against those that a population's cap
        is for.
        """
        return choice_guarantee(self.tuning_epsilon).restated(neighbours=ANY_SCORES)


def run(options: argparse.Namespace) -> None:
    """Read all users, choose, pay and report."""
    tuning = _tuning(options)
    check_budget_options(options)
    if options.on_bad_unit == "skip":
        raise UsageError("--on-bad-unit skip does not go with tune: the number of users must not depend on scores")
    if options.offset or options.anchor:
        raise UsageError("--offset and --anchor do not go with tune, whose mechanisms take none")
    inputs = Inputs(options)
    with ExitStack() as stack:
        source, layout = open_tables(options, None)
        layout.check_schema(source.schema)
        payment = open_payment(options, inputs, tuning, stack)
        scores, sensitivities = _read(source, layout)

        def choose(key: bytes) -> Tuned:
            return tune(
                scores,
                sensitivities,
                tuning.epsilon,
                tuning.tuning_epsilon,
                cap=tuning.cap,
                power=tuning.power,
                randomness=Randomness.keyed(key, "tuning"),
                progress=False if options.quiet else None,
            )

        found = payment.pay_for(choose)
        facts = {
            "mechanism": repr(found.mechanism),
            "options": as_options(found.mechanism),
            "cap": found.cap,
            "users": found.users,
            "tuning_epsilon": found.tuning.epsilon,
            "epsilon_with_picks": found.guarantee.epsilon,
        } | payment.facts()
        lines = payment.lines()
    if not options.json:
        print(found)
        print(f"dpselect select … --epsilon {options.epsilon:g} {facts['options']}")
    report(options, facts, lines)


def _tuning(options: argparse.Namespace) -> Tuning:
    bounds = read_list("--cap", options.cap)
    if len(bounds) > 2:
        raise UsageError("--cap must be one number, or two with a comma: the lowest and the highest")
    try:
        choice_guarantee(options.tuning_epsilon)
        pool = default_pool(options.epsilon)
    except ValueError as error:
        raise UsageError(f"--{error}".replace("tuning_epsilon", "tuning-epsilon")) from None
    return Tuning(
        epsilon=options.epsilon,
        tuning_epsilon=options.tuning_epsilon,
        cap=bounds[0] if len(bounds) == 1 else (bounds[0], bounds[1]),
        power=options.power,
        pool=hashlib.blake2b(repr(pool).encode(), digest_size=8).hexdigest(),
    )


def _read(source: Source, layout: Layout) -> tuple[Any, Any]:
    """Return the scores and sensitivities of all users, flat with bounds, or dense if candidates are positions."""
    parts = []
    for located in prefetched(source.batches(layout.columns)):
        problems = layout.problems(located.batch)
        if problems.null_count < len(problems):
            error = BadUnitsError(problems)
            raise ValueError(f"{located.locate(error.row, layout.unit)}: {error.problem}")
        parts.append(layout.read(located.batch))
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
