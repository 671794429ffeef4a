"""Exact errors, averaged over the trials of a scenario."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import dpselect as dps
from experiments.experiment import Effort, Task
from experiments.mechanisms import STYLES, contenders
from experiments.scenarios import FloatArray, Scenario

__all__ = [
    "BETA",
    "GAMMA",
    "SLOW",
    "Errors",
    "epsilon_grid",
    "error_table",
    "error_tasks",
    "exact_errors",
    "summary",
]

BETA = 0.05
GAMMA = 0.05
SLOW = frozenset({"rnmh", "rs", "rs-improved", "rs-improved-matched"})
"""Mechanisms whose exact law takes about a millisecond a row: they see the first ``slow_trials`` only."""


def epsilon_grid(effort: Effort) -> FloatArray:
    """Return the values of ε from 0.01 to 100, evenly spaced on a logarithmic scale."""
    # Exponents first: so 0.1, 1 and 10 are on the grid exactly, without rounding.
    return np.asarray(10.0 ** np.linspace(-2, 2, effort.epsilon_points))


def summary(values: FloatArray, groups: int = 1) -> tuple[float, float]:
    """Return the mean and its standard error, which is 0 for a single value: nothing varies there.

    Where trials come from several groups in turn, each group's share is fixed, so only what varies within a round
    of all groups counts: the error is that of the mean over rounds.

    Example:
        >>> summary(np.array([1.0, 9.0, 1.0, 9.0, 1.0, 9.0]), groups=2)
        (5.0, 0.0)
    """
    rounds = values[: values.size // groups * groups].reshape(-1, groups).mean(axis=1)
    spread = float(rounds.std(ddof=1)) if rounds.size > 1 else 0.0
    return float(values.mean()), spread / rounds.size**0.5


def error_tasks(
    scenarios: Iterable[tuple[str, Callable[[], Scenario]]], mechanisms: Sequence[str], effort: Effort
) -> list[Task]:
    """Return one task for each scenario and mechanism; together they make the table ``errors``."""
    return [
        Task(
            label=f"{title}, {STYLES[mechanism].label}",
            table="errors",
            compute=partial(error_table, build, mechanism, effort),
        )
        for title, build in scenarios
        for mechanism in mechanisms
    ]


def error_table(build: Callable[[], Scenario], mechanism: str, effort: Effort) -> pa.Table:
    """Return the mean squared error of one mechanism in one scenario, for each ε."""
    found = exact_errors(build, mechanism, effort)
    points = len(found.means)
    return pa.table(
        {
            "scenario": [found.title] * points,
            "mechanism": [mechanism] * points,
            "epsilon": epsilon_grid(effort),
            "mean_squared_error": found.means,
            "standard_error": found.deviations,
            "trials": [found.trials] * points,
        }
    )


class Errors(NamedTuple):
    """Mean squared errors over the trials of a scenario, for each ε."""

    title: str
    means: Sequence[float]
    deviations: Sequence[float]
    """Standard errors of the means."""
    trials: int


@cache
def exact_errors(build: Callable[[], Scenario], mechanism: str, effort: Effort) -> Errors:
    """Return the exact errors of one mechanism in one scenario; once for all figures that show them."""
    scenario = build()
    part = scenario.first(effort.slow_trials if mechanism in SLOW else effort.trials)
    found = [
        summary(
            dps.expected_error(
                contenders(epsilon, beta=BETA, gamma=GAMMA)[mechanism], part.scores, part.sensitivities
            ),
            part.groups,
        )
        for epsilon in epsilon_grid(effort)
    ]
    means, deviations = zip(*found, strict=True)
    return Errors(scenario.title, means, deviations, len(part.scores))
