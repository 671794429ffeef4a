"""Scenarios 7 and 8: users who disagree, and combined GEM, which asks each one first."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from experiments import drawing
from experiments.curves import Curves, number
from experiments.experiment import Effort, Experiment, Numbers, Task
from experiments.ledger import Claim, Finding, judge
from experiments.mechanisms import STYLES
from experiments.scenarios import SCENARIOS, TITLES, TRIALS, FloatArray, Scenario
from experiments.tables import Tables, where
from experiments.trials import BETA, GAMMA, error_tasks

__all__ = ["BOX_PLOTS", "POLARISED"]

SHOWN_EPSILONS = (0.1, 1.0, 10.0)
BUILDERS = {TITLES[number]: SCENARIOS[number] for number in (7, 8)}
STRONG, WEAK = BUILDERS
MECHANISMS = [name for name in STYLES if name != "rs-improved-matched"]
GROUPS = ("group 0", "group 1")
QUANTILES = {"p5": 0.05, "p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95}


def _plan(effort: Effort) -> list[Task]:
    return [
        Task(label=title, table="candidates", compute=partial(_group_means, build))
        for title, build in BUILDERS.items()
    ] + error_tasks(BUILDERS.items(), MECHANISMS, effort)


def _group_means(build: Callable[[], Scenario]) -> pa.Table:
    scenario = build()
    k = scenario.sensitivities.size
    return pa.concat_tables(
        pa.table(
            {
                "scenario": [scenario.title] * k,
                "group": [group] * k,
                "candidate": range(k),
                "score": scenario.scores[first::2].mean(axis=0),
                "sensitivity": scenario.sensitivities,
            }
        )
        for first, group in enumerate(GROUPS)
    )


def _draw(data: Tables) -> Figure:
    figure, panels = drawing.grid(rows=2, columns=2, heights=(2, 3), width=4.6, aligned=False)
    for title, (top, bottom) in zip(BUILDERS, panels.T, strict=True):
        top.set_title(title)
        for group, marker, color in zip(GROUPS, "ox", ("#0072b2", "#d55e00"), strict=True):
            table = where(data["candidates"], scenario=title, group=group)
            scores, sensitivities = table["score"].to_numpy(), table["sensitivity"].to_numpy()
            top.plot(scores, sensitivities, marker, color=color, markersize=3, label=group)
        top.set(xlabel="mean score", ylabel="sensitivity")
        top.legend()
        drawing.errors(bottom, where(data["errors"], scenario=title))
    panels[1, 0].set_ylabel("mean squared error")
    drawing.legend(figure, MECHANISMS)
    return figure


def _count(data: Tables) -> Numbers:
    return Curves(data["errors"]).numbers(
        SHOWN_EPSILONS, "Mean squared error. Bold: the lowest of the private mechanisms."
    )


def _advantage(curves: Curves, title: str) -> FloatArray:
    """Return by which factor combined GEM is ahead of the better of GEM and mGEM, for each ε."""
    better = np.minimum(curves.of(title, "gem"), curves.of(title, "mgem"))
    return np.asarray(better / curves.of(title, "combined-gem"))


def _check_strong(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    ahead = _advantage(curves, STRONG)
    both = {name: curves.span(STRONG, "combined-gem", name) for name in ("gem", "mgem")}
    return judge(
        {
            "combined GEM beats both for ε from 1 to 30": all(
                curves.always(STRONG, "combined-gem", name, low=1, high=30) for name in ("gem", "mgem")
            ),
            "clearly: by a factor of 2 somewhere": bool(ahead.max() > 2),
            "combined GEM beats both for every ε": all(
                curves.always(STRONG, "combined-gem", name) for name in ("gem", "mgem")
            ),
        },
        f"At ε = 1: {curves.values(STRONG, 1.0, ('combined-gem', 'gem', 'mgem', 'rnm'))}; at ε = 10: "
        f"{curves.values(STRONG, 10.0, ('combined-gem', 'gem', 'mgem', 'rnm', 'krr'))}. Combined GEM is below GEM "
        f"{both['gem']}, below mGEM {both['mgem']}.",
        "At small ε its question is answered nearly at random; at very large ε the pick needs no help.",
    )


def _check_weak(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    strong, weak = _advantage(curves, STRONG), _advantage(curves, WEAK)
    middle = (curves.epsilons >= 1) & (curves.epsilons <= 10.001)
    return judge(
        {
            "smaller advantage than in scenario 7 for all ε from 1 to 10": bool(
                (weak[middle] < strong[middle]).all()
            )
        },
        "Error of the better of GEM and mGEM over that of combined GEM: scenario 7 up to "
        f"{number(strong[middle].max())}, scenario 8 up to {number(weak[middle].max())} for ε from 1 to 10; at ε "
        f"= 1 {number(float(strong[np.argmin(np.abs(curves.epsilons - 1))]))} and "
        f"{number(float(weak[np.argmin(np.abs(curves.epsilons - 1))]))}.",
    )


POLARISED = Experiment(
    name="scenarios-7-and-8",
    title="Scenarios 7 and 8: choosing adaptively",
    caption="Where users disagree, asking first pays; in more noise it pays less.",
    description=(
        "Two columns. Top: sensitivity against mean score for the two groups of users, which mirror each other. "
        "Bottom: mean squared error against ε; combined GEM falls below GEM and mGEM as ε grows."
    ),
    choices={
        "scores": "a = 0…99: group 0 has mean −8 + 0.08a, group 1 has 8 − 0.08a; standard deviation 0.5 and 3",
        "users": f"{TRIALS}, half in each group, taken in turn",
        "sensitivities": "90th minus 10th percentile over all users; scores are clipped to that range",
        "mechanisms": f"β = {BETA}, γ = {GAMMA}; combined GEM spends 0.6 ε on its question",
        "error": (
            "the exact error of each user, averaged; fewer users for random stopping and RNMH; ±2 standard errors"
        ),
    },
    plan=_plan,
    draw=_draw,
    count=_count,
    claims=[
        Claim(
            id="A1",
            text="Scenario 7 (polarised, σ = 0.5, N = 5000, ε_c = 0.6ε): combined GEM clearly beats GEM and mGEM.",
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


def _plan_boxes(_effort: Effort) -> list[Task]:
    return [
        Task(label=title, table="quantiles", compute=partial(_quantiles, build))
        for title, build in BUILDERS.items()
    ]


def _quantiles(build: Callable[[], Scenario]) -> pa.Table:
    scenario = build()
    drawn = scenario.drawn
    k = scenario.sensitivities.size
    overall = np.quantile(drawn, [0.05, 0.95], axis=0)
    return pa.concat_tables(
        pa.table(
            {
                "scenario": [scenario.title] * k,
                "group": [group] * k,
                "candidate": range(k),
                **{name: np.quantile(drawn[first::2], level, axis=0) for name, level in QUANTILES.items()},
                "all_p5": overall[0],
                "all_p95": overall[1],
            }
        )
        for first, group in enumerate(GROUPS)
    )


def _draw_boxes(data: Tables) -> Figure:
    figure, panels = drawing.grid(rows=2, columns=2, heights=(2.6, 2.6), width=5.0)
    for title, row in zip(BUILDERS, panels, strict=True):
        for group, panel in zip(GROUPS, row, strict=True):
            table = where(data["quantiles"], scenario=title, group=group)
            index = table["candidate"].to_numpy()[::4]
            boxes = [
                {
                    "med": row["p50"],
                    "q1": row["p25"],
                    "q3": row["p75"],
                    "whislo": row["p5"],
                    "whishi": row["p95"],
                    "fliers": [],
                }
                for row in table.to_pylist()[::4]
            ]
            panel.bxp(boxes, positions=index, widths=2.4, manage_ticks=False, medianprops={"color": "#3b1f6b"})
            for name in ("all_p5", "all_p95"):
                panel.plot(table["candidate"], table[name], color="#d55e00", linewidth=1.4)
            panel.set(title=f"{title.split(':')[0]}, {group}")
    for panel in panels[-1]:
        panel.set_xlabel("candidate")
    for panel in panels[:, 0]:
        panel.set_ylabel("score")
    return figure


BOX_PLOTS = Experiment(
    name="box-plots",
    title="Scenarios 7 and 8: the scores of both groups",
    caption=(
        "Within each group the scores of every candidate; the lines are the 5th and 95th percentile over both "
        "groups."
    ),
    description=(
        "Four panels of box plots over candidates: group 0 rises from −8 to 0 and group 1 falls from 8 to 0; boxes "
        "are narrow in scenario 7 and wide in scenario 8."
    ),
    choices={
        "boxes": (
            "quartiles, whiskers at the 5th and 95th percentile within the group; every fourth candidate is drawn"
        ),
        "lines": "5th and 95th percentile over all users; sensitivities use the 10th and 90th",
        "scores": "before clipping",
    },
    plan=_plan_boxes,
    draw=_draw_boxes,
)
