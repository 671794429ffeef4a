"""Exact errors, averaged over the trials of a scenario."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import dpselect as dps
from experiments.arrays import FloatArray
from experiments.experiment import Effort, Task
from experiments.mechanisms import COMPARED, build
from experiments.scenarios import Scenario

__all__ = [
    "Errors",
    "candidate_table",
    "epsilon_grid",
    "error_table",
    "error_tasks",
    "exact_errors",
    "paired_error_table",
    "scenario_tasks",
    "summary",
]


def epsilon_grid(effort: Effort) -> FloatArray:
    """Return the values of ε from 0.01 to 100, evenly spaced on a logarithmic scale."""
    # Evenly spaced exponents put 0.1, 1 and 10 on the grid without rounding.
    return np.asarray(10.0 ** np.linspace(-2, 2, effort.epsilon_points))


def summary(values: FloatArray, groups: int = 1) -> tuple[float, float]:
    """Return the mean and its standard error, which is 0 for a single value.

    If the trials come from several groups in turn, each group's share is fixed. The standard error is then that of
    the mean over rounds of all groups.

    Example:
        >>> summary(np.array([1.0, 9.0, 1.0, 9.0, 1.0, 9.0]), groups=2)
        (5.0, 0.0)
    """
    rounds = values[: values.size // groups * groups].reshape(-1, groups).mean(axis=1)
    spread = float(rounds.std(ddof=1)) if rounds.size > 1 else 0.0
    return float(values.mean()), spread / rounds.size**0.5


def scenario_tasks(
    table: str, scenarios: Mapping[str, Callable[[], Scenario]], compute: Callable[[Scenario], pa.Table]
) -> list[Task]:
    """Return one task for each scenario, all of one table. The scenario is made only when its task runs."""
    return [
        Task(label=title, table=table, compute=partial(_of_scenario, compute, make))
        for title, make in scenarios.items()
    ]


def _of_scenario(compute: Callable[[Scenario], pa.Table], make: Callable[[], Scenario]) -> pa.Table:
    return compute(make())


def candidate_table(scenario: Scenario) -> pa.Table:
    """Return each candidate's mean score and its sensitivity."""
    k = scenario.sensitivities.size
    return pa.table(
        {
            "scenario": [scenario.title] * k,
            "candidate": range(1, k + 1),
            "score": scenario.scores.mean(axis=0),
            "sensitivity": scenario.sensitivities,
        }
    )


def error_table(make: Callable[[], Scenario], mechanism: str, effort: Effort) -> pa.Table:
    """Return the mean squared error of one mechanism in one scenario, for each ε."""
    found = exact_errors(make, mechanism, effort)
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


def paired_error_table(make: Callable[[], Scenario], mechanism: str, effort: Effort) -> pa.Table:
    """Return errors over the same trials for every mechanism, so that small differences are no accident."""
    slow = COMPARED[mechanism].has_slow_pmf  # computed for other figures too
    return error_table(make, mechanism, effort if slow else replace(effort, trials=effort.slow_trials))


def error_tasks(
    scenarios: Mapping[str, Callable[[], Scenario]],
    mechanisms: Iterable[str],
    effort: Effort,
    compute: Callable[[Callable[[], Scenario], str, Effort], pa.Table] = error_table,
) -> list[Task]:
    """Return one task for each scenario and mechanism. Together they make the table ``errors``."""
    return [
        Task(
            label=f"{title}, {COMPARED[mechanism].symbol}",
            table="errors",
            compute=partial(compute, make, mechanism, effort),
        )
        for title, make in scenarios.items()
        for mechanism in mechanisms
    ]


class Errors(NamedTuple):
    """Mean squared errors over the trials of a scenario, for each ε."""

    title: str
    means: Sequence[float]
    deviations: Sequence[float]
    """Standard errors of the means."""
    trials: int


@cache
def exact_errors(make: Callable[[], Scenario], mechanism: str, effort: Effort) -> Errors:
    """Return the exact errors of one mechanism in one scenario, computed once for all figures that show them."""
    scenario = make()
    part = scenario.first(effort.slow_trials if COMPARED[mechanism].has_slow_pmf else effort.trials)
    found = [
        summary(dps.expected_error(build(mechanism, epsilon), part.scores, part.sensitivities), part.groups)
        for epsilon in epsilon_grid(effort)
    ]
    means, deviations = zip(*found, strict=True)
    return Errors(scenario.title, means, deviations, len(part.scores))
