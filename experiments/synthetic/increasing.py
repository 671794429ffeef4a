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
from experiments.mechanisms import BETA, GAMMA
from experiments.scenarios import Scenario, increasing
from experiments.tables import Tables, where
from experiments.trials import error_tasks, scenario_tasks

__all__ = ["INCREASING", "SLOPED"]

SLOPES = (-5.0, -0.8, -0.3, 0.0, 0.3, 0.8, 5.0)
TITLES = {t: f"t = {t:g}".replace("-", "−") for t in SLOPES}
SLOPED = {title: partial(increasing, t) for t, title in TITLES.items()}
"""The scenarios by title; made once, so that their errors are computed once for all figures."""
MECHANISMS = ("rnm", "rnmh", "rs", "gem", "mgem", "krr", "uniform")
HETEROGENEOUS = ("rs", "gem", "mgem")
EPSILON = 1.0
LIMITS = (0.02, 10.0)
"""The ends of the axis of ratios."""


def _plan(effort: Effort) -> list[Task]:
    return [
        *scenario_tasks("candidates", SLOPED, _first_layout),
        *error_tasks(SLOPED, MECHANISMS, effort),
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
    figure, panels = drawing.grid(rows=3, columns=len(SLOPES), heights=(1.9, 2.8, 2.8), width=1.95)
    largest = max(float(curves.of(title, name).max()) for title in TITLES.values() for name in curves.mechanisms)
    for title, (top, middle, bottom) in zip(TITLES.values(), panels.T, strict=True):
        table = where(data["candidates"], scenario=title)
        drawing.scatter(top, table["score"].to_numpy(), table["sensitivity"].to_numpy(), sizes=5.0)
        shown = f"{table['mean_correlation'][0].as_py() + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−")
        top.set_title(f"{title}\ncorrelation {shown}", fontsize=10)
        drawing.errors(middle, where(data["errors"], scenario=title), limits=(1e-3, largest * 1.5))
        middle.set_xlabel("")
        base = curves.of(title, "rnm")
        drawing.ratios(bottom, curves.epsilons, {name: curves.of(title, name) / base for name in curves.mechanisms})
        bottom.set(yscale="log", ylim=LIMITS, xlabel="ε")
        drawing.plain_numbers(bottom.yaxis)
        for panel in (middle, bottom):
            panel.set_xlim(0.008, 125)
            panel.set_xticks([0.01, 1, 100], ["0.01", "1", "100"])
            panel.xaxis.minorticks_off()
    for panel in panels[0, 1:]:
        panel.set_ylabel("")
    panels[1, 0].set_ylabel("mean squared error")
    panels[2, 0].set_ylabel("error / RNM’s error")
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
        f"RNM’s error divided by the lowest of RSᵧ, GEM and mGEM at ε = {EPSILON:g}: {listed}. The best gain "
        f"grows with |t| on both sides {span(curves.epsilons, grows)}. GEM is below RNM for every negative t, "
        f"and mGEM and RSᵧ for every positive t, {span(curves.epsilons, np.logical_and.reduce(sides))}.",
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
        "As the correlation of scores and sensitivities grows from −1 to +1, the "
        "advantage passes from GEM to mGEM and RSᵧ: at ε = 1 GEM’s error is {gem_left} times RNM’s at t = −5 and "
        "{gem_right} times at t = 5; mGEM’s is {mgem_left} and {mgem_right} times."
    ),
    description=(
        "Seven columns, from strongly negative to strongly positive correlation. Top: sensitivity against score. "
        "Middle: mean squared error against ε. Bottom: the same divided by RNM’s. GEM’s curve is lowest on the "
        "left and highest on the right; mGEM’s and RSᵧ’s are the other way round."
    ),
    notes={
        "scores": "(t·x + z)/5 shifted to start at 0, x and z standard normal; z is new for each trial",
        "sensitivities": (
            "Δ = x − min x + 0.1, the same in all trials; the paper asks for a linear relationship and gives no "
            "formula"
        ),
        "clipping": "none, unlike in the other scenarios: these sensitivities are no percentiles of the scores",
        "values of t": "all seven of the text; the paper’s figure shows six",
        "mechanisms": f"β = {BETA}, γ = {GAMMA}",
        "correlation": "Spearman’s, the mean over the trials",
        "error": "the mean of each trial’s exact error; fewer trials for RSᵧ and naive noisy max",
        "axes": (
            "top: the first trial; errors below 0.001 and ratios "
            f"below {LIMITS[0]:g} or above {LIMITS[1]:g} are cut off; the tables have them"
        ),
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
