"""Correlation from −1 to +1 in seven steps."""

from functools import partial

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import dpselect as dps
from experiments import drawing
from experiments.curves import Curves, judge_where, number, span
from experiments.experiment import Effort, Experiment, Task
from experiments.ledger import Claim, Finding
from experiments.mechanisms import BETA, GAMMA, STYLES
from experiments.scenarios import Scenario, increasing
from experiments.tables import Tables, where
from experiments.trials import error_tasks, scenario_tasks

__all__ = ["INCREASING"]

SLOPES = (-5.0, -0.8, -0.3, 0.0, 0.3, 0.8, 5.0)
TITLES = {t: f"t = {t:g}".replace("-", "−") for t in SLOPES}
MECHANISMS = ("rnm", "rnmh", "rs", "gem", "mgem", "krr", "uniform")
HETEROGENEOUS = ("rs", "gem", "mgem")
EPSILON = 1.0
LIMITS = (0.02, 10.0)
"""The ends of the axis of ratios."""


def _plan(effort: Effort) -> list[Task]:
    scenarios = {title: partial(increasing, t) for t, title in TITLES.items()}
    return [
        *scenario_tasks("candidates", scenarios, _first_layout),
        *error_tasks(scenarios, MECHANISMS, effort),
    ]


def _first_layout(scenario: Scenario) -> pa.Table:
    k = scenario.scores.shape[1]
    correlations = dps.correlation.spearman(scenario.scores, scenario.sensitivities)
    return pa.table(
        {
            "scenario": [scenario.title] * k,
            "score": scenario.scores[0],
            "sensitivity": scenario.sensitivities,
            "mean_correlation": [float(correlations.mean())] * k,
        }
    )


def _draw(data: Tables) -> Figure:
    curves = Curves(data["errors"])
    figure, panels = drawing.grid(rows=1, columns=len(SLOPES), heights=(3.2,), width=1.95)
    for title, panel in zip(TITLES.values(), panels[0], strict=True):
        base = curves.of(title, "rnm")
        for position, name in enumerate(curves.mechanisms):
            ratios = curves.of(title, name) / base
            every = max(1, len(ratios) // 3)
            panel.plot(curves.epsilons, ratios, markevery=(position % every, every), **drawing.line(STYLES[name]))
        correlation = where(data["candidates"], scenario=title)["mean_correlation"][0].as_py()
        shown = f"{correlation + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−")
        panel.set_title(f"{title}\ncorrelation {shown}", fontsize=10)
        panel.set(xscale="log", yscale="log", ylim=LIMITS, xlim=(0.008, 125), xlabel="ε")
        drawing.plain_numbers(panel.yaxis)
        panel.set_xticks([0.01, 1, 100], ["0.01", "1", "100"])
        panel.xaxis.minorticks_off()
    panels[0, 0].set_ylabel("error / RNM’s error")
    drawing.legend(figure, MECHANISMS, columns=7)
    return figure


def _check(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    gains = {
        t: curves.of(title, "rnm") / np.minimum.reduce([curves.of(title, name) for name in HETEROGENEOUS])
        for t, title in TITLES.items()
    }
    left, right = (np.stack([gains[t] for t in side]) for side in (SLOPES[3::-1], SLOPES[3:]))
    sides = [
        *(curves.below(TITLES[t], "gem", "rnm") for t in SLOPES[:3]),
        *(curves.below(TITLES[t], name, "rnm") for t in SLOPES[4:] for name in ("mgem", "rs")),
    ]
    grows = np.asarray((np.diff(left, axis=0) > 0).all(axis=0) & (np.diff(right, axis=0) > 0).all(axis=0))
    place = int(np.argmin(np.abs(curves.epsilons - EPSILON)))
    listed = ", ".join(f"{number(float(gain[place]))} at {TITLES[t]}" for t, gain in gains.items())
    return judge_where(
        "GEM gains to the left, mGEM and RSᵧ to the right, and the best gain grows with |t| on both sides",
        curves.epsilons,
        np.logical_and.reduce(sides) & grows,
        f"RNM’s error divided by the lowest of RSᵧ, GEM and mGEM at ε = {EPSILON:g}: {listed}. The best gain grows "
        f"with |t| on both sides {span(curves.epsilons, grows)}. GEM is below RNM for every negative t, and mGEM "
        f"and RSᵧ for every positive t, {span(curves.epsilons, np.logical_and.reduce(sides))}.",
    )


def _numbers(data: Tables) -> dict[str, str]:
    curves = Curves(data["errors"])
    return {
        f"{name}_{side}": f"{curves.at(TITLES[t], name, EPSILON) / curves.at(TITLES[t], 'rnm', EPSILON):.2g}"
        for name in ("gem", "mgem")
        for side, t in (("left", SLOPES[0]), ("right", SLOPES[-1]))
    }


INCREASING = Experiment(
    name="increasing-correlation",
    title="Increasing correlation",
    caption=(
        "Errors divided by RNM’s. As the correlation of scores and sensitivities grows from −1 to +1, the "
        "advantage passes from GEM to mGEM and RSᵧ: at ε = 1 GEM’s error is {gem_left} times RNM’s at t = −5 and "
        "{gem_right} times at t = 5; mGEM’s is {mgem_left} and {mgem_right} times."
    ),
    description=(
        "Seven panels in a row, from strongly negative to strongly positive correlation: each mechanism’s error "
        "divided by RNM’s, against ε. GEM’s curve is lowest on the left and highest on the right; mGEM’s and RSᵧ’s "
        "are the other way round."
    ),
    notes={
        "scores": "(t·x + z)/5 shifted to start at 0, x and z standard normal; z is new for each trial",
        "sensitivities": (
            "Δ = x − min x + 0.1, the same in all trials; the paper asks for a linear relationship and gives no "
            "formula"
        ),
        "values of t": "all seven of the text; the paper’s figure shows six",
        "mechanisms": f"β = {BETA}, γ = {GAMMA}",
        "correlation": "Spearman’s, the mean over the trials",
        "error": "the mean of each trial’s exact error; fewer trials for RSᵧ and RNMH",
        "axes": f"ratios are cut off below {LIMITS[0]:g} and above {LIMITS[1]:g}; the tables have them",
    },
    plan=_plan,
    draw=_draw,
    numbers=_numbers,
    claims=[
        Claim(
            id="S7",
            text=(
                "Increasing correlation, t ∈ {−5, −0.8, −0.3, 0, 0.3, 0.8, 5}: GEM gains to the left, mGEM and "
                "RSᵧ to the right, and the best heterogeneous mechanism’s gain over RNM grows with |correlation|."
            ),
            check=_check,
            needs_full_run=True,
        )
    ],
)
