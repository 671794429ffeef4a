"""All eight scenarios at once: what the paper says of the mechanisms as a whole."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import dpselect as dps
from experiments import drawing
from experiments.curves import Curves
from experiments.experiment import Effort, Experiment, Task
from experiments.mechanisms import BETA, COMPARED, GAMMA, STYLES, build
from experiments.recommender.evidence import kept_errors
from experiments.scenarios import SCENARIOS, Scenario, titled
from experiments.synthetic.overall_claims import CLAIMS, GAMMAS, NEW
from experiments.tables import Tables, from_rows
from experiments.trials import error_tasks, paired_error_table

__all__ = ["OVERALL"]

TITLED = titled(*SCENARIOS)
MECHANISMS = tuple(
    name
    for name in (NEW, "rnm", "rs", "rs-improved", "gem", "mgem", "combined-gem", "krr", "uniform", "rnmh")
    if name in COMPARED
)
LEVEL: dict[str, Any] = {"color": STYLES["rnm"].color, "linewidth": 1, "marker": ""}
STOPPING_TRIALS = 50
"""The number of trials for random stopping of every γ."""
LIMITS = (0.03, 30.0)
SHOWN = (NEW, "rs", "gem", "mgem", "combined-gem")
"""The curves of the figure; RNM is the line at 1."""


def _plan(effort: Effort) -> list[Task]:
    return [
        *error_tasks(TITLED, MECHANISMS, effort, paired_error_table),
        *(
            Task(
                label=f"{title}, γ = {gamma:g}",
                table="stopping",
                compute=partial(_stopping, make, gamma, effort),
            )
            for title, make in TITLED.items()
            for gamma in GAMMAS
        ),
        *kept_errors("data"),
    ]


def _stopping(make: Callable[[], Scenario], gamma: float, effort: Effort) -> pa.Table:
    """Return random stopping's errors at some ε, and mGEM's over the same trials."""
    part = make().first(min(STOPPING_TRIALS, effort.slow_trials))
    rows = []
    for epsilon in 10.0 ** np.linspace(-2, 2, 9 if effort.full else 5):
        rivals = (build("rs", epsilon, gamma=gamma), build("mgem", epsilon))
        errors = (float(dps.expected_error(each, part.scores, part.sensitivities).mean()) for each in rivals)
        rows.append((part.title, gamma, epsilon, *errors))
    return from_rows(("scenario", "gamma", "epsilon", "mean_squared_error", "mgem"), rows)


def _draw(data: Tables) -> Figure:
    curves = Curves(data["errors"])
    figure, panels = drawing.grid(rows=2, columns=4, heights=(2.6, 2.6), width=3.2)
    for title, panel in zip(curves.scenarios, panels.flat, strict=True):
        base = curves.of(title, "rnm")
        drawing.ratios(panel, curves.epsilons, {name: curves.of(title, name) / base for name in SHOWN})
        panel.axhline(1, **LEVEL)
        panel.set_title(title, fontsize=9.5)
        panel.set(yscale="log", ylim=LIMITS)
        drawing.plain_numbers(panel.yaxis)
    for panel in panels[0]:
        panel.set_xlabel("")
    for panel in panels[:, 0]:
        panel.set_ylabel("error / RNM’s error")
    handles = [drawing.handle(STYLES[name]) for name in SHOWN]
    drawing.bottom_legend(figure, [*handles, drawing.handle(STYLES["rnm"], **LEVEL)], columns=3)
    return figure


OVERALL = Experiment(
    name="all-scenarios",
    title="All eight scenarios: which mechanism without prior knowledge?",
    caption=(
        "Errors divided by RNM’s, which is the black line: below it is better. For ε ≤ 10, mGEM and both RSᵧ are "
        "below 1 only in scenarios 1 and 4, GEM only in scenarios 2, 5, 6 and 8, combined GEM only in 5, 7 and "
        "8, and kRR only at large ε. Heterogeneous noisy max is below 1 in all scenarios at every ε."
    ),
    description=(
        "Eight panels, one for each scenario: the error of five mechanisms divided by that of RNM, against the "
        "privacy budget, on logarithmic axes. Each of the paper’s mechanisms that uses sensitivities has curves "
        "on both sides of 1."
    ),
    notes={
        "mechanisms": f"β = {BETA}, γ = {GAMMA} unless said; combined GEM spends 0.6 ε on the sign",
        "error": (
            "the mean of each trial’s exact error; all mechanisms are compared on the same trials, as many as "
            f"random stopping has elsewhere, and {STOPPING_TRIALS} for random stopping with other γ"
        ),
        "axes": f"ratios are cut off below {LIMITS[0]:g} and above {LIMITS[1]:g}; the tables have them",
        "not drawn": "improved RSᵧ, kRR, a random pick, naive noisy max and RSᵧ of other γ: see the tables",
    },
    plan=_plan,
    draw=_draw,
    claims=CLAIMS,
)
