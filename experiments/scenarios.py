"""Scenarios 1 to 3: two groups of scores, and sensitivities that go with them, against them, or neither."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from numpy.typing import NDArray

import dpselect as dps
from experiments import drawing
from experiments.experiment import Effort, Experiment, Numbers, Task
from experiments.mechanisms import STYLES, contenders
from experiments.tables import Tables, where

__all__ = ["SCENARIOS_1_TO_3", "Scenario", "negative", "positive", "uncorrelated"]

FloatArray: TypeAlias = NDArray[np.float64]

BETA = 0.05
GAMMA = 0.05
SHOWN_EPSILONS = (0.1, 1.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Candidates with their scores and sensitivities."""

    title: str
    scores: FloatArray
    sensitivities: FloatArray


def positive() -> Scenario:
    """Return scenario 1: the good candidates are the sensitive ones."""
    return _two_groups("Scenario 1: positive correlation", [1.8, 1.8, 1.0, 1.0])


def negative() -> Scenario:
    """Return scenario 2: the good candidates are the steady ones."""
    return _two_groups("Scenario 2: negative correlation", [1.0, 1.0, 1.8, 1.8])


def uncorrelated() -> Scenario:
    """Return scenario 3: each group is half sensitive, half steady."""
    return _two_groups("Scenario 3: no correlation", [1.8, 1.0, 1.8, 1.0])


def _two_groups(title: str, quarters: Sequence[float]) -> Scenario:
    """Return 50 candidates of score +1, then 50 of score −1, with the sensitivity of each quarter."""
    return Scenario(title=title, scores=np.repeat([1.0, -1.0], 50), sensitivities=np.repeat(quarters, 25))


def _plan(scenarios: Sequence[Callable[[], Scenario]], effort: Effort) -> list[Task]:
    # Exponents first: so 0.1, 1 and 10 are on the grid exactly, without rounding.
    epsilons = 10.0 ** np.linspace(-2, 2, effort.epsilon_points)
    built = [build() for build in scenarios]
    return [
        Task(label=scenario.title, table="candidates", compute=partial(_candidates, scenario)) for scenario in built
    ] + [
        Task(
            label=f"{scenario.title}, {STYLES[mechanism].label}",
            table="errors",
            compute=partial(_errors, scenario, mechanism, epsilons),
        )
        for scenario in built
        for mechanism in STYLES
    ]


def _candidates(scenario: Scenario) -> pa.Table:
    k = scenario.scores.size
    return pa.table(
        {
            "scenario": [scenario.title] * k,
            "candidate": np.arange(1, k + 1),
            "score": scenario.scores,
            "sensitivity": scenario.sensitivities,
        }
    )


def _errors(scenario: Scenario, mechanism: str, epsilons: FloatArray) -> pa.Table:
    errors = [
        dps.expected_error(
            contenders(epsilon, beta=BETA, gamma=GAMMA)[mechanism], scenario.scores, scenario.sensitivities
        )
        for epsilon in epsilons
    ]
    return pa.table(
        {
            "scenario": [scenario.title] * epsilons.size,
            "mechanism": [mechanism] * epsilons.size,
            "epsilon": epsilons,
            "mean_squared_error": errors,
        }
    )


def _draw(data: Tables) -> Figure:
    titles = data["candidates"]["scenario"].unique().to_pylist()
    figure, panels = drawing.grid(rows=2, columns=len(titles), heights=(2, 3))
    for title, (top, bottom) in zip(titles, panels.T, strict=True):
        top.set_title(title)
        drawing.candidates(top, where(data["candidates"], scenario=title))
        drawing.errors(bottom, where(data["errors"], scenario=title))
    panels[0, 0].set_ylabel("score ± sensitivity / 2")
    panels[1, 0].set_ylabel("mean squared error")
    drawing.legend(figure)
    return figure


def _count(data: Tables) -> Numbers:
    titles = data["errors"]["scenario"].unique().to_pylist()
    found = {
        (row["scenario"], row["mechanism"], row["epsilon"]): row["mean_squared_error"]
        for row in data["errors"].to_pylist()
    }
    return Numbers(
        caption="Mean squared error. Bold: the lowest of the private mechanisms.",
        groups=titles,
        columns=[f"ε = {epsilon:g}" for epsilon in SHOWN_EPSILONS],
        values={
            mechanism: [found[title, mechanism, epsilon] for title in titles for epsilon in SHOWN_EPSILONS]
            for mechanism in STYLES
        },
    )


SCENARIOS_1_TO_3 = Experiment(
    name="scenarios-1-to-3",
    title="Scenarios 1 to 3: two groups of scores",
    caption="Which mechanism is best depends on whether good candidates are the sensitive ones.",
    description=(
        "Three columns, one for each scenario. Top: the score of each of 100 candidates as a dot, its "
        "sensitivity as a bar. Bottom: mean squared error against the privacy budget, a curve per mechanism."
    ),
    choices={
        "candidates": "k = 100: 50 of score +1, then 50 of score −1",
        "sensitivities": "1.8 or 1; in scenario 3 half of each in both groups: correlation exactly 0",
        "mechanisms": f"β = {BETA}, γ = {GAMMA}; combined GEM spends 0.6 ε on its question",
        "error": "mean squared difference to the best score; from exact probabilities, not sampled",
        "axes": "errors below 0.001 are cut off; the table in the files has them",
    },
    plan=partial(_plan, (positive, negative, uncorrelated)),
    draw=_draw,
    count=_count,
)
