"""Beyond the paper: the error as a function of the tilt, for two normalisations."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

import dpselect as dps
from experiments import drawing
from experiments.arrays import FloatArray
from experiments.curves import number
from experiments.experiment import Effort, Experiment, Listing, Task
from experiments.mechanisms import BETA, STYLES, TILTED, tilted_style
from experiments.scenarios import SCENARIOS, TITLES, Scenario
from experiments.tables import Tables, unique, where
from experiments.trials import summary

__all__ = ["TILTS"]

EPSILONS = (1.0, 8.0)
LARGEST = 8.0
NAMED = {"rnm": ("tilted-rnm", 0.0), "gem": ("tilted-gem", 1.0), "mgem": ("tilted-gem", -1.0)}
"""The paper's mechanisms on the curves: which curve, and at which tilt."""
SHARE_OF_TRIALS = 10
"""Each curve has dozens of points, so each point uses one tenth of the trials."""


def _plan(effort: Effort) -> list[Task]:
    return [
        Task(
            label=f"{TITLES[place]}, ε = {epsilon:g}, {record.label}",
            table="errors",
            compute=partial(_errors, make, name, epsilon, effort),
        )
        for place, make in SCENARIOS.items()
        for epsilon in EPSILONS
        for name, record in TILTED.items()
    ]


def _errors(make: Callable[[], Scenario], name: str, epsilon: float, effort: Effort) -> pa.Table:
    tilts = np.linspace(-LARGEST, LARGEST, effort.resolution)
    scenario = make()
    part = scenario.first(max(effort.trials // SHARE_OF_TRIALS, 6))
    means, deviations = np.transpose(
        [summary(_error(name, epsilon, float(tilt), part), part.groups) for tilt in tilts]
    )
    return pa.table(
        {
            "scenario": [scenario.title] * tilts.size,
            "mechanism": [name] * tilts.size,
            "epsilon": [epsilon] * tilts.size,
            "tilt": tilts,
            "mean_squared_error": means,
            "standard_error": deviations,
            "trials": [len(part.scores)] * tilts.size,
        }
    )


def _error(name: str, epsilon: float, tilt: float, part: Scenario) -> FloatArray:
    mechanism = TILTED[name](epsilon=epsilon, tilt=tilt, beta=BETA)
    return np.asarray(dps.expected_error(mechanism, part.scores, part.sensitivities))


def _draw(data: Tables) -> Figure:
    figure, panels = drawing.grid(rows=4, columns=4, heights=(2.2,) * 4, width=3.1, aligned=False)
    for position, title in enumerate(unique(data["errors"], "scenario")):
        for row, epsilon in enumerate(EPSILONS):
            panel = panels[2 * (position // 4) + row, position % 4]
            panel.set_title(f"{title.split(':')[0]}, ε = {epsilon:g}")
            smallest = np.inf
            for name in TILTED:
                curve = where(data["errors"], scenario=title, mechanism=name, epsilon=epsilon)
                errors = np.maximum(curve["mean_squared_error"].to_numpy(), 1e-12)
                smallest = min(smallest, errors.min())
                panel.plot(curve["tilt"], errors, **_curve_look(name))
            for name, (tilted, tilt) in NAMED.items():
                named = where(data["errors"], scenario=title, mechanism=tilted, epsilon=epsilon, tilt=tilt)
                panel.plot(tilt, named["mean_squared_error"][0].as_py(), **_mark(name))
            panel.set(yscale="log")
            if smallest < 1e-5:
                panel.set_ylim(bottom=1e-5)
            low, high = panel.get_ylim()
            drawing.plain_numbers(panel.yaxis)
            if high < 2 * low:
                panel.yaxis.set_major_locator(MaxNLocator(5))
    for panel in panels[-1]:
        panel.set_xlabel("tilt")
    for panel in panels[:, 0]:
        panel.set_ylabel("mean squared error")
    curves = [Line2D([], [], label=record.label, **_curve_look(name)) for name, record in TILTED.items()]
    marks = [drawing.handle(STYLES[name], **_mark(name)) for name in NAMED]
    drawing.bottom_legend(figure, [*curves, *marks], columns=5)
    return figure


def _curve_look(name: str) -> dict[str, Any]:
    return drawing.line(tilted_style(name)) | {"marker": "", "zorder": 2}


def _mark(name: str) -> dict[str, Any]:
    return drawing.line(STYLES[name]) | {"linestyle": "", "markersize": 7, "zorder": 4}


def _listings(data: Tables) -> list[Listing]:
    rows = []
    for title in unique(data["errors"], "scenario"):
        for epsilon in EPSILONS:
            curves = {
                name: where(data["errors"], scenario=title, epsilon=epsilon, mechanism=name) for name in TILTED
            }
            printed = [
                number(where(curves["tilted-gem"], tilt=tilt)["mean_squared_error"][0].as_py())
                for tilt in (1.0, -1.0)
            ]
            rows.append([f"{title.split(':')[0]}, ε = {epsilon:g}", *printed, *map(_best, curves.values())])
    return [
        Listing(
            caption="The lowest error of each curve, and in brackets the tilt at which it occurs.",
            columns=["", "GEM", "mGEM", *(record.label for record in TILTED.values())],
            rows=rows,
        )
    ]


def _best(curve: pa.Table) -> str:
    errors = curve["mean_squared_error"].to_numpy()
    return f"{number(float(errors.min()))} ({curve['tilt'].to_numpy()[errors.argmin()]:g})".replace("(-", "(−")


def _numbers(data: Tables) -> dict[str, str]:
    curve = where(data["errors"], scenario=TITLES[5], epsilon=1.0, mechanism="tilted-gem")
    gem = where(curve, tilt=1.0)["mean_squared_error"][0].as_py()
    return {"gem": number(gem), "best": number(min(curve["mean_squared_error"].to_pylist()))}


TILTS = Experiment(
    name="tilts",
    title="Beyond the paper: any tilt, two normalisations",
    caption=(
        "The marks are the paper’s mechanisms: RNM is tilted noisy max at tilt 0, GEM is tilted GEM at tilt 1, and "
        "mGEM at tilt −1. The lowest error of a panel is at another tilt, except in scenario 7, where tilt 0 is "
        "best: in scenario 5 at ε = 1, GEM has {gem}, and the best tilted GEM {best}."
    ),
    description=(
        "Sixteen panels: mean squared error against the tilt for eight scenarios at two budgets, a curve for "
        "tilted GEM and for tilted noisy max, and marks for RNM, GEM and mGEM. Errors fall towards one side, which "
        "depends on the correlation."
    ),
    notes={
        "mechanisms": f"β = {BETA}; every tilt is ε-DP, since the offsets are public",
        "normalisations": "tilted GEM: pairwise; tilted noisy max: global",
        "error": "the mean of each trial’s exact error over the first tenth of the trials; cut off at 0.00001",
    },
    discussion=[
        (
            "The best tilt has the opposite sign of the correlation, and is larger than 1. Where scores and "
            "sensitivities correlate strongly (scenarios 1, 2, 4 and 5), every curve keeps falling beyond GEM’s "
            "and mGEM’s tilts, by orders of magnitude in scenarios 1 and 2. Little of this is the mechanism’s "
            "merit: with a large tilt the public sensitivities alone decide, and here they reveal the best "
            "candidates."
        ),
        (
            "No normalisation wins everywhere. The pairwise one (GEM) spends part of the budget on comparisons: "
            "with equal sensitivities it is noisy max at ε/2. It is worth its cost where the good candidates are "
            "far less sensitive than the rest (scenarios 5 and 6 at ε = 1), since it alone ignores the noise of "
            "other candidates’ large sensitivities. Under positive correlation (scenarios 1 and 4) that gains "
            "nothing, and tilted noisy max, which needs no comparisons, is better than tilted GEM throughout."
        ),
        (
            "In scenario 7 every tilt hurts, since it suits one half of the users and harms the other. Tilt 0 is "
            "best for both, and combined GEM, which first estimates the sign, is far better than either. "
            "A tilt chosen from private scores would not be private. Use these curves for synthetic data, or to "
            "choose a tilt from prior knowledge."
        ),
    ],
    plan=_plan,
    draw=_draw,
    listings=_listings,
    numbers=_numbers,
)
