"""Scenarios 1 to 3 again, with the share of high scores varied at one ε."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from numpy.typing import NDArray

import dpselect as dps
from experiments import drawing
from experiments.experiment import Effort, Experiment, Task
from experiments.ledger import Claim, Finding, judge
from experiments.mechanisms import STYLES, contenders
from experiments.scenarios import CANDIDATES, TITLES, FloatArray, Scenario, negative, positive, uncorrelated
from experiments.tables import Tables, where
from experiments.trials import BETA, GAMMA

__all__ = ["SHARES"]

EPSILON = 2.0
BUILDERS = (positive, negative, uncorrelated)
POSITIVE, NEGATIVE, NONE = (TITLES[number] for number in (1, 2, 3))


def _plan(effort: Effort) -> list[Task]:
    counts = np.unique(np.linspace(2, CANDIDATES - 2, min(effort.resolution, 49)).round().astype(int))
    # Even numbers, so that the halves of scenario 3 are halves.
    counts = np.unique(np.r_[2, counts - counts % 2, CANDIDATES - 2])
    return [
        Task(
            label=f"{build().title}, {STYLES[mechanism].label}",
            table="errors",
            compute=partial(_errors, build, mechanism, counts),
        )
        for build in BUILDERS
        for mechanism in STYLES
    ]


def _errors(build: Callable[[int], Scenario], mechanism: str, counts: NDArray[np.int64]) -> pa.Table:
    scenarios = [build(int(count)) for count in counts]
    contender = contenders(EPSILON, beta=BETA, gamma=GAMMA)[mechanism]
    return pa.table(
        {
            "scenario": [scenario.title for scenario in scenarios],
            "mechanism": [mechanism] * len(scenarios),
            "share": [count / CANDIDATES for count in counts],
            "mean_squared_error": dps.expected_error(
                contender,
                np.concatenate([scenario.scores for scenario in scenarios]),
                np.stack([scenario.sensitivities for scenario in scenarios]),
            ),
        }
    )


def _draw(data: Tables) -> Figure:
    table = data["errors"]
    titles = table["scenario"].unique().to_pylist()
    figure, panels = drawing.grid(rows=1, columns=len(titles), heights=(3,))
    for title, panel in zip(titles, panels[0], strict=True):
        panel.set_title(title)
        drawing.errors(panel, where(table, scenario=title), along="share", limits=(4e-3, 6))
        panel.set_xlabel("share of high scores")
    panels[0, 0].set_ylabel(f"mean squared error at ε = {EPSILON:g}")
    drawing.legend(figure)
    return figure


def _curve(data: Tables, scenario: str, mechanism: str) -> FloatArray:
    table = where(data["errors"], scenario=scenario, mechanism=mechanism)
    return np.asarray(table["mean_squared_error"].to_numpy())


def _check(data: Tables) -> Finding:
    shares = where(data["errors"], scenario=POSITIVE, mechanism="rnm")["share"].to_numpy()
    rivals = np.minimum.reduce([_curve(data, POSITIVE, name) for name in ("rnm", "gem", "krr", "uniform")])
    ahead = {name: (_curve(data, POSITIVE, name) < rivals) for name in ("rnmh", "mgem", "rs")}
    gap = _curve(data, POSITIVE, "rnm") - _curve(data, POSITIVE, "mgem")
    worse = {
        name: (_curve(data, NEGATIVE, name) > _curve(data, NEGATIVE, "uniform")) for name in ("rnmh", "mgem", "rs")
    }
    gem_ahead = _curve(data, NEGATIVE, "gem") < _curve(data, NEGATIVE, "rnm")
    heterogeneous = np.minimum.reduce([_curve(data, NONE, name) for name in ("gem", "mgem", "rs", "rs-improved")])
    suffices = _curve(data, NONE, "rnm") <= heterogeneous * (1 + 1e-9)
    middle = gap[(shares > 0.2) & (shares < 0.8)].min()
    listed = ", ".join(f"{STYLES[name].label} {mask.mean():.0%}" for name, mask in ahead.items())
    lost = ", ".join(f"{STYLES[name].label} {mask.mean():.0%}" for name, mask in worse.items())
    return judge(
        {
            "positive: RNMH, mGEM and RSᵧ ahead for most shares": all(mask.mean() > 0.5 for mask in ahead.values()),
            "positive: the gap is smallest at both extremes": bool(max(gap[0], gap[-1]) < middle),
            "negative: GEM ahead of RNM at all shares": bool(gem_ahead.all()),
            "negative: RNMH, mGEM and RSᵧ worse than random at all shares": all(m.all() for m in worse.values()),
            "none: no heterogeneous mechanism is ahead of RNM at any share": bool(suffices.all()),
        },
        f"Positive: ahead of RNM, GEM, kRR and random at this part of the shares: {listed}. RNM − mGEM is "
        f"{gap[0]:.2f} at share {shares[0]:g}, {gap.max():.2f} at {shares[gap.argmax()]:g}, {gap[-1]:.2f} at "
        f"{shares[-1]:g}. Negative: GEM ahead of RNM at {gem_ahead.mean():.0%}; worse than random: {lost}. None: "
        f"RNM ahead of GEM, mGEM and both RSᵧ at {suffices.mean():.0%}.",
        "With few high scores the gap is large, not small: so says the paper’s own caption. At ε = 2 RSᵧ is "
        "already better than "
        "random where there are few high scores.",
    )


SHARES = Experiment(
    name="share-of-high-scores",
    title="Scenarios 1 to 3 with other shares of high scores",
    caption="The order of the mechanisms is the same whatever part of the candidates is good.",
    description="Three panels, one for each scenario: mean squared error against the share of high scores.",
    choices={
        "candidates": "k = 100; 2 to 98 of them of score +1, the others −1; sensitivities as in scenarios 1 to 3",
        "mechanisms": f"ε = {EPSILON:g}, β = {BETA}, γ = {GAMMA}",
        "error": "from exact probabilities, not sampled",
    },
    plan=_plan,
    draw=_draw,
    claims=[
        Claim(
            id="S11",
            text=(
                "Varying the share of high scores in scenarios 1–3 at ε = 2: positive → RNMH, mGEM, RSᵧ ahead "
                "for most shares, gap smallest at the extremes; negative → only GEM ahead, the others worse than "
                "random; none → RNM suffices."
            ),
            check=_check,
        )
    ],
)
