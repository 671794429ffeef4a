"""Which sensitivities may compete: the error as a function of ``keep``, beside the best tilts."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import dpselect as dps
from experiments import drawing
from experiments.arrays import FloatArray
from experiments.curves import number
from experiments.default.styles import DEFAULT, KEPT, RIVALS, beside, style
from experiments.experiment import Effort, Experiment, Listing, Task
from experiments.mechanisms import TILTED
from experiments.scenarios import CANDIDATES, SCENARIOS, SEED, TITLES, Scenario
from experiments.tables import Tables, from_rows, unique, where

__all__ = ["KEEP", "heavy"]

EPSILONS = (1.0, 8.0)
SHARES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
TILTS = (-8.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
NORMALISATIONS = ("tilted-gem", "tilted-rnm")
SHARE_OF_TRIALS = 10
"""Each point uses one tenth of the trials."""
HEAVY_TRIALS, HEAVY_SPREAD = 500, 3.0
LEAST, MOST = "least", "most"
"""The ends from which a share is kept: the least and the most sensitive candidates."""
DASHES: Mapping[str, Any] = MappingProxyType({LEAST: "-", MOST: (0, (5, 1.5))})
MARKS = MappingProxyType({LEAST: "v", MOST: "^"})
LIMITS = (0.01, 4.0)


@cache
def heavy(sigma: float) -> Scenario:
    """Return lognormal sensitivities, drawn for each trial, and independent normal scores."""
    random = np.random.default_rng([SEED, 20, int(10 * sigma)])
    size = (HEAVY_TRIALS, CANDIDATES)
    scores = random.normal(0.0, HEAVY_SPREAD, size)
    return Scenario(
        title=f"Lognormal, σ = {sigma:g}",
        scores=scores,
        sensitivities=random.lognormal(0.0, sigma, size),
        midpoints=np.zeros(CANDIDATES),
        drawn=scores,
    )


CASES: Mapping[str, Callable[[], Scenario]] = MappingProxyType(
    {
        **{TITLES[place]: make for place, make in SCENARIOS.items()},
        **{f"Lognormal, σ = {sigma:g}": partial(heavy, sigma) for sigma in (1.0, 2.0)},
    }
)


DRAWN = (TITLES[4], TITLES[5], "Lognormal, σ = 1")
"""The cases of the figure. The table has all."""


def _plan(effort: Effort) -> list[Task]:
    return [
        Task(
            label=f"{title}, ε = {epsilon:g}",
            table="errors",
            compute=partial(_errors, make, epsilon, max(effort.trials // SHARE_OF_TRIALS, 6)),
        )
        for title, make in CASES.items()
        for epsilon in EPSILONS
    ]


def keep_of(end: str, share: float) -> tuple[float, float]:
    """Return the quantiles between which a share is kept.

    Example:
        >>> keep_of("least", 0.25), keep_of("most", 0.25)
        ((0.0, 0.25), (0.75, 1.0))
    """
    return (0.0, share) if end == LEAST else (1.0 - share, 1.0)


def _errors(make: Callable[[], Scenario], epsilon: float, trials: int) -> pa.Table:
    part = make().first(trials)
    kept = [
        (DEFAULT, end, share, _mean(beside(DEFAULT, epsilon, keep=keep_of(end, share)), part))
        for end in (LEAST, MOST)
        for share in SHARES
    ]
    rivals = [(name, "", 1.0, _mean(beside(name, epsilon), part)) for name in RIVALS]
    tilted = []
    for name in NORMALISATIONS:
        best = min((_mean(beside(name, epsilon, tilt=tilt), part), tilt) for tilt in TILTS)
        tilted.append((f"best {name}", f"{best[1]:g}", 1.0, best[0]))
    rows = [(part.title, epsilon, *row, len(part.scores)) for row in (*kept, *rivals, *tilted)]
    names = ("scenario", "epsilon", "mechanism", "setting", "share", "mean_squared_error", "trials")
    return from_rows(names, rows)


def _mean(mechanism: dps.Mechanism, part: Scenario) -> float:
    return float(np.mean(dps.expected_error(mechanism, part.scores, part.sensitivities)))


def _curve(table: pa.Table, end: str) -> FloatArray:
    return np.asarray(where(table, mechanism=DEFAULT, setting=end)["mean_squared_error"].to_numpy())


def _draw(data: Tables) -> Figure:
    titles = [title for title in DRAWN if title in unique(data["errors"], "scenario")]
    figure, panels = drawing.grid(rows=len(EPSILONS), columns=len(titles), heights=(2.4,) * len(EPSILONS))
    for epsilon, row in zip(EPSILONS, panels, strict=True):
        for title, panel in zip(titles, row, strict=True):
            _panel(panel, where(data["errors"], scenario=title, epsilon=epsilon))
            panel.set_title(f"{title.split(':')[0]}, ε = {epsilon:g}")
    for panel in panels[-1]:
        panel.set_xlabel("candidates kept, in %")
    for panel in panels[:, 0]:
        panel.set_ylabel("error / RNM’s error")
    ends = [Line2D([], [], **_look(end), label=f"only the {end} sensitive kept") for end in (LEAST, MOST)]
    rivals = [drawing.handle(style(name), marker="") for name in RIVALS]
    whole = drawing.handle(style(DEFAULT), linestyle="", label=f"{style(DEFAULT).label} (all kept)")
    drawing.bottom_legend(figure, [*ends, whole, *rivals], columns=3)
    return figure


def _look(end: str) -> dict[str, Any]:
    return {"color": style(KEPT).color, "linestyle": DASHES[end], "marker": MARKS[end]}


def _panel(panel: Axes, table: pa.Table) -> None:
    unit = where(table, mechanism="rnm")["mean_squared_error"][0].as_py()
    for name in RIVALS:
        error = where(table, mechanism=name)["mean_squared_error"][0].as_py()
        panel.axhline(error / unit, **(drawing.line(style(name)) | {"marker": "", "linewidth": 1.2, "zorder": 2}))
    for end in (LEAST, MOST):
        panel.plot(range(len(SHARES)), np.maximum(_curve(table, end) / unit, 1e-9), **_look(end), zorder=3)
    whole = drawing.line(style(DEFAULT)) | {"zorder": 4, "markersize": 8}
    panel.plot(len(SHARES) - 1, _curve(table, LEAST)[-1] / unit, **whole)
    panel.set(yscale="log", ylim=LIMITS)
    drawing.plain_numbers(panel.yaxis)
    panel.set_xticks(range(len(SHARES)), [*(f"{100 * share:g}" for share in SHARES[:-1]), "all"])


def _listings(data: Tables) -> list[Listing]:
    rows = [
        [
            f"{title.split(':')[0]}, ε = {epsilon:g}",
            *cells(where(data["errors"], scenario=title, epsilon=epsilon)),
        ]
        for title in unique(data["errors"], "scenario")
        for epsilon in EPSILONS
    ]
    labels = [f"best {TILTED[name].label}" for name in NORMALISATIONS]
    return [
        Listing(
            caption="Mean squared errors. In brackets: the share kept, or the tilt, at which the lowest occurs.",
            columns=[
                "",
                "RNM",
                "all kept",
                "least sensitive kept",
                "most sensitive kept",
                "GEM",
                "mGEM",
                *labels,
            ],
            rows=rows,
        )
    ]


def cells(table: pa.Table) -> list[str]:
    """Return the numbers of one case in the order of the listing, with the settings of the lowest ones."""
    errors = {row["mechanism"]: row["mean_squared_error"] for row in table.to_pylist()}
    tilts = {row["mechanism"]: row["setting"] for row in table.to_pylist()}
    best = []
    for end in (LEAST, MOST):
        curve = _curve(table, end)[:-1]
        best.append(f"{number(float(curve.min()))} ({SHARES[int(curve.argmin())]:.0%})")
    tilted = [
        f"{number(errors[name])} ({float(tilts[name]):g})".replace("(-", "(−")
        for name in (f"best {each}" for each in NORMALISATIONS)
    ]
    plain = [number(errors["rnm"]), number(float(_curve(table, LEAST)[-1]))]
    return [*plain, *best, number(errors["gem"]), number(errors["mgem"]), *tilted]


def _numbers(data: Tables) -> dict[str, str]:
    curve = _curve(where(data["errors"], scenario=heavy(1.0).title, epsilon=EPSILONS[-1]), LEAST)
    return {"all": number(float(curve[-1])), "kept": number(float(curve.min()))}


KEEP = Experiment(
    name="keep",
    title="Which sensitivities may compete",
    caption=(
        "Heterogeneous noisy max with only the least sensitive or only the most sensitive candidates kept. The "
        "right end of each curve keeps all. Errors are measured against the best of all candidates, and divided "
        "by RNM’s. With lognormal sensitivities (σ = 1) at ε = 8, keeping only the least sensitive ones lowers "
        "the error from {all} to {kept}."
    ),
    description=(
        "Six panels on the same axes: error over RNM’s against the share of candidates kept, from either end, for "
        "scenarios 4 and 5 and lognormal sensitivities at two budgets, with lines at RNM, GEM and mGEM."
    ),
    notes={
        "keep": (
            "keep = (0, share) or (1 − share, 1): quantiles of the public sensitivities, so the choice costs no "
            "budget; the noise then depends only on the kept ones"
        ),
        "lognormal": (
            f"k = {CANDIDATES}, sensitivities exp(σZ) drawn for each trial, independent normal scores of standard "
            f"deviation {HEAVY_SPREAD:g}"
        ),
        "tilts in the table": f"the best of {', '.join(f'{tilt:g}' for tilt in TILTS)}".replace("-", "−"),
        "error": "the mean of each trial’s exact error over the first tenth of the trials; ratios are cut off at "
        f"{LIMITS[0]:g} and {LIMITS[1]:g}",
        "not drawn": "the other scenarios and σ = 2, which are in the table",
    },
    plan=_plan,
    draw=_draw,
    listings=_listings,
    numbers=_numbers,
    discussion=(
        (
            "With heavy-tailed sensitivities, keeping all candidates loses badly, to GEM and to keep alike: the "
            "most sensitive candidate sets everybody’s noise, which is at most halved for the others. Leaving out "
            "the most sensitive ones removes that noise, for the small price of never picking them."
        ),
        (
            "The best end depends on the correlation, as the best tilt does: keep the least sensitive where good "
            "candidates are insensitive, the most sensitive where they are sensitive. Like a tilt, keep must be "
            "chosen from public knowledge, or by private tuning."
        ),
    ),
)
