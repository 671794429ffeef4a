"""Scenarios 7 and 8: two groups of users with opposite tastes, and combined GEM, which estimates the sign."""

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import drawing
from experiments.arrays import FloatArray
from experiments.curves import Curves, error_numbers, judge_where, number
from experiments.experiment import Effort, Experiment, Task
from experiments.ledger import Claim, Finding, judge
from experiments.mechanisms import BETA, COMPARED, GAMMA, STYLES
from experiments.scenarios import TRIALS, Scenario, titled
from experiments.tables import Tables, where
from experiments.trials import error_tasks, scenario_tasks

__all__ = ["BOX_PLOTS", "POLARISED"]

SCENARIOS = titled(7, 8)
STRONG, WEAK = SCENARIOS
GROUPS = ("group 0", "group 1")
SMALLEST_EPSILON = 0.1
"""Below, no mechanism depends on ε."""
ERRORS = (0.03, 200.0)
"""The ends of the axis of mean squared errors."""
SAFE = ("rnm", "krr", "uniform")
"""What A1 shows beside the GEMs: mechanisms that do not depend on the correlation."""
BOXED = ("rnm", "gem", "mgem", "combined-gem", "krr", "uniform")
"""The mechanisms whose errors are drawn beside the box plots."""
QUANTILES = {"p5": 0.05, "p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95}


def _plan(effort: Effort) -> list[Task]:
    return [
        *scenario_tasks("candidates", SCENARIOS, _group_means),
        *error_tasks(SCENARIOS, [name for name in COMPARED if name != "rs-improved-matched"], effort),
    ]


def _by_group(scenario: Scenario, group: int, columns: dict[str, FloatArray]) -> pa.Table:
    k = scenario.sensitivities.size
    return pa.table(
        {"scenario": [scenario.title] * k, "group": [GROUPS[group]] * k, "candidate": range(k), **columns}
    )


def _group_means(scenario: Scenario) -> pa.Table:
    return pa.concat_tables(
        _by_group(
            scenario,
            group,
            {"score": scenario.scores[group::2].mean(axis=0), "sensitivity": scenario.sensitivities},
        )
        for group in range(len(GROUPS))
    )


def _draw(data: Tables) -> Figure:
    curves = Curves(data["errors"])
    shown = curves.epsilons >= SMALLEST_EPSILON * (1 - 1e-9)
    epsilons = curves.epsilons[shown]
    figure, panels = drawing.grid(rows=3, columns=2, heights=(1.8, 3.2, 3.2), width=5.2)
    for title, (top, middle, bottom) in zip(SCENARIOS, panels.T, strict=True):
        top.set_title(title)
        _groups(top, where(data["candidates"], scenario=title))
        _errors(middle, data["errors"], title)
        random = curves.of(title, "uniform")
        found = {name: (curves.of(title, name) / random)[shown] for name in curves.mechanisms}
        drawing.ratios(bottom, epsilons, found)
        bottom.set_ylim(0, 1.4)
    panels[0, 0].set_ylabel("sensitivity")
    panels[0, 0].legend(loc="lower left")
    panels[1, 0].set_ylabel("mean squared error")
    panels[2, 0].set_ylabel("error / random’s error")
    drawing.legend(figure, curves.mechanisms)
    return figure


def _groups(panel: Axes, table: pa.Table) -> None:
    """Draw sensitivity against mean score for both groups."""
    for group, marker, color in zip(GROUPS, "ox", drawing.OTHER, strict=False):
        own = where(table, group=group)
        scores, sensitivities = own["score"].to_numpy(), own["sensitivity"].to_numpy()
        panel.plot(scores, sensitivities, marker, color=color, markersize=3, label=group)
    panel.set_xlabel("mean score")


def _errors(panel: Axes, table: pa.Table, title: str) -> None:
    """Draw mean squared errors from the smallest shown ε on."""
    own = where(table, scenario=title)
    own = own.filter(own["epsilon"].to_numpy() >= SMALLEST_EPSILON * (1 - 1e-9))
    drawing.errors(panel, own, limits=ERRORS)


def _advantage(curves: Curves, title: str) -> FloatArray:
    """Return the ratio of the better error of GEM and mGEM to combined GEM's, for each ε."""
    better = np.minimum(curves.of(title, "gem"), curves.of(title, "mgem"))
    return np.asarray(better / curves.of(title, "combined-gem"))


def _check_strong(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    below = {name: curves.span(STRONG, "combined-gem", name) for name in ("gem", "mgem", *SAFE)}
    shown = ("combined-gem", "gem", "mgem", *SAFE)
    return judge_where(
        "combined GEM is below GEM and mGEM",
        curves.epsilons,
        curves.ordered(STRONG, ("combined-gem", "gem"), ("combined-gem", "mgem")),
        f"At ε = 1: {curves.values(STRONG, 1.0, shown)}; at ε = 10: {curves.values(STRONG, 10.0, shown)}. "
        f"Combined GEM is below GEM {below['gem']}, below mGEM {below['mgem']}, "
        + ", ".join(f"below {STYLES[name].label} {below[name]}" for name in SAFE)
        + ".",
        "At small ε the estimated sign is nearly random; at very large ε the pick needs no estimate.",
        must=(1.0, 10.0),
        parts={"it is clearly better: by a factor of 2 for some ε": bool(_advantage(curves, STRONG).max() > 2)},
    )


def _check_weak(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    strong, weak = _advantage(curves, STRONG), _advantage(curves, WEAK)
    middle = (curves.epsilons >= 1) & (curves.epsilons <= 10.001)
    one = int(np.argmin(np.abs(curves.epsilons - 1)))
    return judge(
        {
            "the advantage is smaller than in scenario 7 for all ε from 1 to 10": bool(
                (weak[middle] < strong[middle]).all()
            )
        },
        "The better error of GEM and mGEM, divided by combined GEM’s, for ε from 1 to 10: at most "
        f"{number(strong[middle].max())} in scenario 7 and {number(weak[middle].max())} in scenario 8. At ε = 1: "
        f"{number(float(strong[one]))} and {number(float(weak[one]))}.",
    )


def _numbers(data: Tables) -> dict[str, str]:
    curves = Curves(data["errors"])
    return {
        f"{name.split('-')[0]}_{place}": f"{curves.at(title, name, 10.0) / curves.at(title, 'uniform', 10.0):.2f}"
        for name in ("combined-gem", "gem", "mgem")
        for place, title in ((7, STRONG), (8, WEAK))
    }


POLARISED = Experiment(
    name="scenarios-7-and-8",
    title="Scenarios 7 and 8: choosing adaptively",
    caption=(
        "Where users disagree, it helps to estimate the sign of the "
        "correlation first: at ε = 10 combined GEM’s error is {combined_7} of random’s in scenario 7, GEM’s and "
        "mGEM’s {gem_7} and {mgem_7}. Under more noise, in scenario 8, it is {combined_8}, theirs {gem_8} and "
        "{mgem_8}."
    ),
    description=(
        "Two columns. Top: sensitivity against mean score for the two groups of users, which mirror each other. "
        "Middle: mean squared error against ε. Bottom: the same divided by a random pick’s, on a linear axis; "
        "combined GEM falls below GEM and mGEM from ε = 1 on."
    ),
    notes={
        "scores": "a = 0…99: group 0 has mean −8 + 0.08a, group 1 has 8 − 0.08a; standard deviation 0.5 and 3",
        "users": f"{TRIALS}, alternating between the two groups",
        "sensitivities": "90th minus 10th percentile over all users; scores are clipped to that range",
        "mechanisms": f"β = {BETA}, γ = {GAMMA}; combined GEM (60 % of ε on the sign)",
        "error": "the mean of each user’s exact error; fewer users for both RSᵧ and naive noisy max",
        "axes": (
            f"ε from {SMALLEST_EPSILON:g}: below, the curves are level; errors below {ERRORS[0]:g} are cut off; "
            "the tables have all"
        ),
    },
    plan=_plan,
    draw=_draw,
    numbers=_numbers,
    listings=error_numbers,
    claims=[
        Claim(
            id="A1",
            text="Scenario 7 (polarised, σ = 0.5, N = 5000, $ε_c = 0.6ε$): combined GEM clearly beats GEM and "
            "mGEM.",
            check=_check_strong,
            needs_full_run=True,
        ),
        Claim(
            id="A2",
            text="Scenario 8 (σ = 3): the benefit shrinks.",
            check=_check_weak,
            needs_full_run=True,
        ),
    ],
)


def _quantiles(scenario: Scenario) -> pa.Table:
    overall = np.quantile(scenario.drawn, [0.05, 0.95], axis=0)
    return pa.concat_tables(
        _by_group(
            scenario,
            group,
            {
                **{name: np.quantile(scenario.drawn[group::2], level, axis=0) for name, level in QUANTILES.items()},
                "all_p5": overall[0],
                "all_p95": overall[1],
            },
        )
        for group in range(len(GROUPS))
    )


def _plan_boxes(effort: Effort) -> list[Task]:
    return [
        *scenario_tasks("quantiles", SCENARIOS, _quantiles),
        *scenario_tasks("candidates", SCENARIOS, _group_means),
        *error_tasks(SCENARIOS, BOXED, effort),
    ]


def _draw_boxes(data: Tables) -> Figure:
    figure, panels = drawing.grid(rows=2, columns=4, heights=(2.6, 2.6), width=3.6, aligned=False)
    places = {"med": "p50", "q1": "p25", "q3": "p75", "whislo": "p5", "whishi": "p95"}
    for title, row in zip(SCENARIOS, panels, strict=True):
        for group, panel, color in zip(GROUPS, row[:2], drawing.OTHER, strict=False):
            table = where(data["quantiles"], scenario=title, group=group)
            boxes = [
                {"fliers": []} | {place: each[name] for place, name in places.items()}
                for each in table.to_pylist()[::4]
            ]
            index = table["candidate"].to_numpy()[::4]
            lines = {f"{part}props": {"color": color} for part in ("box", "whisker", "cap", "median")}
            panel.bxp(boxes, positions=index, widths=2.4, manage_ticks=False, **lines)
            for name in ("all_p5", "all_p95"):
                panel.plot(table["candidate"], table[name], color=drawing.OTHER[2], linewidth=1.4)
            panel.set(title=f"{title.split(':')[0]}, {group}", xlabel="candidate")
        row[1].sharey(row[0])
        row[0].set_ylabel("score")
        _groups(row[2], where(data["candidates"], scenario=title))
        row[2].set(title="Sensitivities", ylabel="sensitivity")
        _errors(row[3], data["errors"], title)
        row[3].set(title="Errors", ylabel="mean squared error")
    panels[0, 2].legend(loc="lower left")
    drawing.legend(figure, BOXED, columns=6)
    return figure


BOX_PLOTS = Experiment(
    name="box-plots",
    title="Scenarios 7 and 8: the scores of both groups",
    caption=(
        "The scores of every fourth candidate within each group: one group’s favourites are the other’s least "
        "liked. The red lines are the 5th and 95th percentiles over both groups. Beside them, what follows: equal "
        "sensitivities for both groups, and mean squared errors."
    ),
    description=(
        "A row for each scenario. Box plots over candidates: group 0 rises from −8 to 0 and group 1 falls from 8 "
        "to 0; boxes are narrow in scenario 7 and wide in scenario 8. Then sensitivity against mean score, and "
        "mean squared error against ε."
    ),
    notes={
        "boxes": (
            "quartiles, with whiskers at the 5th and 95th percentiles within the group; every fourth candidate is "
            "drawn"
        ),
        "lines": "5th and 95th percentiles over all users; sensitivities use the 10th and 90th",
        "scores": "before clipping",
    },
    plan=_plan_boxes,
    draw=_draw_boxes,
)
