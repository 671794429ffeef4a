"""Scenarios 1 to 3: two groups of scores, and sensitivities that go with them, against them, or neither."""

from functools import partial

import pyarrow as pa
from matplotlib.figure import Figure

from experiments import drawing
from experiments.experiment import Effort, Experiment, Numbers, Task
from experiments.mechanisms import STYLES
from experiments.scenarios import Scenario, negative, positive, uncorrelated
from experiments.tables import Tables, where
from experiments.trials import BETA, GAMMA, error_tasks

__all__ = ["BIMODAL"]

SHOWN_EPSILONS = (0.1, 1.0, 10.0)
BUILDERS = (positive, negative, uncorrelated)


def _plan(effort: Effort) -> list[Task]:
    scenarios = [build() for build in BUILDERS]
    titles = [scenario.title for scenario in scenarios]
    return [
        Task(label=scenario.title, table="candidates", compute=partial(_candidates, scenario))
        for scenario in scenarios
    ] + error_tasks(zip(titles, BUILDERS, strict=True), list(STYLES), effort)


def _candidates(scenario: Scenario) -> pa.Table:
    k = scenario.sensitivities.size
    return pa.table(
        {
            "scenario": [scenario.title] * k,
            "candidate": range(1, k + 1),
            "score": scenario.scores[0],
            "sensitivity": scenario.sensitivities,
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


BIMODAL = Experiment(
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
    plan=_plan,
    draw=_draw,
    count=_count,
)
