"""``dpselect tune``: one private choice of the mechanism that suits all users best."""

import argparse
from contextlib import ExitStack
from typing import Any

import numpy as np

from dpselect.cli.batches import report
from dpselect.cli.tables import UsageError, as_options, open_tables, read_list
from dpselect.engines.layout import BadUnitsError, Layout
from dpselect.engines.sources import Source, prefetched
from dpselect.tuning import tune

__all__ = ["run"]


def run(options: argparse.Namespace) -> None:
    """Read all users, choose and report."""
    bounds = read_list("--cap", options.cap)
    if len(bounds) > 2:
        raise UsageError("--cap must be one number, or two with a comma: the lowest and the highest")
    with ExitStack():
        source, layout = open_tables(options, None)
        layout.check_schema(source.schema)
        scores, sensitivities, users = _read(source, layout)
    found = tune(
        scores,
        sensitivities,
        options.epsilon,
        options.tuning_epsilon,
        cap=bounds[0] if len(bounds) == 1 else (bounds[0], bounds[1]),
        power=options.power,
        progress=False if options.quiet else None,
    )
    facts = {
        "mechanism": repr(found.mechanism),
        "options": as_options(found.mechanism),
        "cap": found.cap,
        "users": users,
        "tuning_epsilon": found.tuning.epsilon,
        "epsilon_with_picks": found.guarantee.epsilon,
    }
    if options.json:
        report(options, facts, [])
    else:
        print(found)
        print(f"dpselect select … --epsilon {options.epsilon:g} {facts['options']}")


def _read(source: Source, layout: Layout) -> tuple[Any, Any, int]:
    """Return the scores and sensitivities of all users, flat with bounds, or dense if candidates are positions."""
    parts = []
    for located in prefetched(source.batches(layout.columns)):
        problems = None
        try:
            parts.append(layout.read(located.batch))
        except ValueError:
            problems = layout.problems(located.batch)
            if problems.null_count == len(problems):
                raise
        if problems is not None:
            error = BadUnitsError(problems)
            raise ValueError(f"{located.locate(error.row, layout.unit)}: {error.problem}")
    if not parts:
        raise ValueError("the table holds no users")
    users = sum(len(part.bounds) - 1 for part in parts)
    first = parts[0]
    if not isinstance(first.scores, tuple):
        return np.concatenate([part.scores for part in parts]), first.sensitivities, users
    sizes = np.concatenate([np.diff(part.bounds) for part in parts])
    bounds = np.insert(np.cumsum(sizes), 0, 0)
    scores = np.concatenate([part.scores[0] for part in parts])
    if isinstance(first.sensitivities, float):
        return (scores, bounds), first.sensitivities, users
    flat = [p.sensitivities[0] if isinstance(p.sensitivities, tuple) else p.sensitivities for p in parts]
    return (scores, bounds), (np.concatenate(flat), bounds), users
