"""Utility bounds: what GEM and RNM promise, and what they keep."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import dpselect as dps
from experiments import drawing
from experiments.experiment import Effort, Experiment, Task
from experiments.ledger import Claim, Finding, judge
from experiments.mechanisms import STYLES
from experiments.scenarios import SCENARIOS, SEED, TITLES, FloatArray, Scenario
from experiments.tables import Tables, where
from experiments.trials import epsilon_grid

__all__ = ["BOUNDS"]

BETA = 0.05
TILTS = (-2.0, -1.0, 0.0, 1.0, 2.0)
LAYOUTS = 400
SHOWN = (2, 5)
"""The scenarios whose bounds are drawn."""


def _plan(effort: Effort) -> list[Task]:
    return [
        *(
            Task(label=TITLES[number], table="failures", compute=partial(_failures, build, effort))
            for number, build in SCENARIOS.items()
        ),
        *(
            Task(
                label=TITLES[number],
                table="promises",
                compute=partial(_promises, SCENARIOS[number], effort),
            )
            for number in SHOWN
        ),
        Task(label="random layouts", table="conditions", compute=_conditions),
    ]


def _failures(build: Callable[[], Scenario], effort: Effort) -> pa.Table:
    """Return the exact probability that the pick falls below its published floor; the largest of twenty trials."""
    scenario = build().first(20)
    rows = [
        (scenario.title, tilt, float(epsilon), float(_failure(scenario, float(epsilon), tilt).max()))
        for tilt in TILTS
        for epsilon in epsilon_grid(effort)
    ]
    names = ("scenario", "tilt", "epsilon", "failure")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def _failure(scenario: Scenario, epsilon: float, tilt: float) -> FloatArray:
    law = dps.GEM(epsilon=epsilon, tilt=tilt, beta=BETA).pmf(scenario.scores, scenario.sensitivities)
    floors = dps.bounds.gem_floors(scenario.scores, scenario.sensitivities, epsilon=epsilon, tilt=tilt, beta=BETA)
    return np.asarray((law * (scenario.scores < floors)).sum(axis=-1))


def _promises(build: Callable[[], Scenario], effort: Effort) -> pa.Table:
    """Return, for the first trial, published bounds and the exact 5th percentile of the picked score."""
    scenario = build().first(1)
    scores, sensitivities = scenario.scores[0], scenario.sensitivities
    rows = []
    for epsilon in map(float, epsilon_grid(effort)):
        slack = 2 * np.log(scores.size / BETA) / epsilon
        floors = dps.bounds.gem_floors(scores, sensitivities, epsilon=epsilon, beta=BETA)
        bounds = {"gem": floors[0], "rnm": scores.max() - slack * sensitivities.max()}
        for name, mechanism in (
            ("gem", dps.GEM(epsilon=epsilon, beta=BETA)),
            ("rnm", dps.NoisyMax(epsilon=epsilon)),
        ):
            kept = scores.max() - dps.error_quantile(mechanism, scores, sensitivities, 1 - BETA)
            rows.append((scenario.title, name, epsilon, float(bounds[name]), float(kept), float(scores.min())))
    names = ("scenario", "mechanism", "epsilon", "bound", "percentile", "worst")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def _conditions() -> pa.Table:
    """Return, for random layouts, whether GEM's bound is worse than others', and what the conditions say."""
    random = np.random.default_rng([SEED, 10])
    rows = []
    for _ in range(LAYOUTS):
        k = int(random.integers(2, 101))
        scores = random.uniform(size=k)
        sensitivities = 10.0 ** random.uniform(-3, 0, size=k)
        epsilon = float(10.0 ** random.uniform(-1, 2))
        given = {"epsilon": epsilon, "beta": BETA}
        floors = dps.bounds.gem_floors(scores, sensitivities, **given)
        failure = float((dps.GEM(epsilon=epsilon, beta=BETA).pmf(scores, sensitivities) * (scores < floors)).sum())
        rows.append(
            (
                k,
                epsilon,
                bool(dps.bounds.published_gem_worse_than_noisy_max(scores, sensitivities)),
                bool(dps.bounds.gem_worse_than_noisy_max(scores, sensitivities, **given)),
                bool(dps.bounds.published_gem_worse_than_uniform(scores, sensitivities, **given)),
                bool(dps.bounds.gem_worse_than_uniform(scores, sensitivities, **given)),
                failure,
            )
        )
    names = (
        "candidates",
        "epsilon",
        "published_worse_than_noisy_max",
        "worse_than_noisy_max",
        "published_worse_than_uniform",
        "worse_than_uniform",
        "failure",
    )
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def _draw(data: Tables) -> Figure:
    figure, panels = drawing.grid(rows=1, columns=3, heights=(3,), width=3.9, aligned=False)
    titles = data["promises"]["scenario"].unique().to_pylist()
    for title, panel in zip(titles, panels[0], strict=False):
        panel.set_title(title)
        for name in ("rnm", "gem"):
            curve = where(data["promises"], scenario=title, mechanism=name)
            style = STYLES[name]
            panel.plot(curve["epsilon"], curve["percentile"], color=style.color, label=f"{style.label}, exact")
            panel.plot(
                curve["epsilon"], curve["bound"], ":", color=style.color, linewidth=2, label=f"{style.label}, bound"
            )
        promises = where(data["promises"], scenario=title)
        worst, top = promises["worst"][0].as_py(), max(promises["percentile"].to_pylist())
        panel.axhline(worst, color=STYLES["uniform"].color, linewidth=1, label="lowest score")
        panel.set(
            ylim=(worst - 0.6 * (top - worst), top + 0.15 * (top - worst)),
            ylabel="score",
            xlabel="privacy budget ε",
            xscale="log",
        )
        drawing.plain_numbers(panel.xaxis)
    panels[0, 0].legend(loc="center left", fontsize=8.5)
    right = panels[0, 2]
    for tilt, dashes in zip(TILTS, ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1))), strict=True):
        rows = where(data["failures"], tilt=tilt)
        epsilons = np.unique(rows["epsilon"].to_numpy())
        worst_case = [max(where(rows, epsilon=epsilon)["failure"].to_pylist()) for epsilon in epsilons]
        right.plot(
            epsilons, np.maximum(worst_case, 1e-9), linestyle=dashes, label=f"tilt {tilt:g}".replace("-", "−")
        )
    right.axhline(BETA, color="#000000", linewidth=1)
    right.text(0.011, BETA * 1.15, "β", va="bottom")
    right.set(
        title="Chance to break the bound", xlabel="privacy budget ε", xscale="log", yscale="log", ylim=(1e-6, 0.2)
    )
    for axis in (right.xaxis, right.yaxis):
        drawing.plain_numbers(axis)
    right.legend(fontsize=8.5)
    return figure


def _check_bound(data: Tables) -> Finding:
    failures = data["failures"]["failure"].to_numpy()
    random = data["conditions"]["failure"].to_numpy()
    proper = where(data["failures"], tilt=1.0)["failure"].to_numpy()
    return judge(
        {
            "the bound for any t fails with probability at most β": bool(failures.max() <= BETA),
            "GEM’s bound fails with probability at most β": bool(max(proper.max(), random.max()) <= BETA),
        },
        f"Largest exact probability to fall below the bound: {failures.max():.4f} over {failures.size} settings "
        f"(eight scenarios, tilts from −2 to 2, all ε), {proper.max():.4f} for GEM, {random.max():.4f} over "
        f"{random.size} random layouts; allowed: β = {BETA}.",
        "Loose: one half of β would do, since exponential noise trails by log((k−1)/2β) at most.",
    )


def _check_condition(other: str, name: str, data: Tables) -> Finding:
    published = data["conditions"][f"published_worse_than_{other}"].to_numpy(zero_copy_only=False)
    truth = data["conditions"][f"worse_than_{other}"].to_numpy(zero_copy_only=False)
    return judge(
        {
            "the condition is necessary": bool(published[truth].all()),
            "the condition is sufficient": bool(truth[published].all()),
        },
        f"Of {truth.size} random layouts GEM’s bound is worse than {name} in {int(truth.sum())}, and the "
        f"condition holds in all of them but in {int((published & ~truth).sum())} others as well.",
        "The condition is necessary but not sufficient: it looks at the best candidate alone, while GEM’s bound "
        "is a maximum over all. A candidate almost as good and less sensitive saves it "
        "(docs/theory/utility-bounds.md).",
    )


BOUNDS = Experiment(
    name="utility-bounds",
    title="Utility bounds",
    caption="The bounds hold, and say little: below the lowest score, a bound promises what any pick keeps.",
    description=(
        "Left and middle: the score that RNM and GEM reach with probability 95%, and the published bounds far "
        "below. Right: the exact probability that GEM’s pick falls below its bound stays under β for all tilts."
    ),
    choices={
        "bounds": (
            "RNM: q* − 2 max Δ log(k/β)/ε; GEM: max_j {q_j − 4Δ_j log(k/β)/ε}; any t: dpselect.bounds.gem_floors"
        ),
        "scenarios": "left and middle: the first trial; right: the largest of 20 trials of all eight scenarios",
        "random layouts": (
            f"{LAYOUTS}, of 2 to 100 candidates, uniform scores, Δ from 0.001 to 1, ε from 0.1 to 100"
        ),
        "mechanisms": f"β = {BETA}",
    },
    plan=_plan,
    draw=_draw,
    claims=[
        Claim(
            id="U1",
            text=(
                "Bound for any t, and GEM’s bound max_j{q_j − 4Δ_j log(k/β)/ε}, are respected by the exact "
                "distribution at level 1−β."
            ),
            check=_check_bound,
        ),
        Claim(
            id="U2",
            text="GEM’s bound is worse than RNM’s iff Δ_* > max Δ / 2.",
            check=partial(_check_condition, "noisy_max", "RNM’s"),
        ),
        Claim(
            id="U3",
            text="GEM’s bound is worse than uniform’s worst case iff Δ_* > (q_* − q_−)·ε / (4 log(k/β)).",
            check=partial(_check_condition, "uniform", "the lowest score"),
        ),
    ],
)
