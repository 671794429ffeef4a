"""The paper's bandit figure: the earnings, estimated means and estimated quantiles of its seven policies."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments import drawing
from experiments.bandit.claims import CLAIMS
from experiments.bandit.origin import note, provenance
from experiments.bandit.outcomes import Outcomes, estimate, median
from experiments.bandit.policies import BUDGETS, PRINTED
from experiments.bandit.runs import PROBLEM, STUCK_ALPHA, plan
from experiments.bandit.styles import POLICY_STYLES
from experiments.bandit.summaries import QUANTILES
from experiments.experiment import Experiment, Listing
from experiments.tables import Tables, where

__all__ = ["BANDIT", "SETUP", "curves", "earnings"]

TRUTH: dict[str, Any] = {"color": "#888888", "linewidth": 1.2, "linestyle": (0, (4, 2)), "zorder": 5}
POINTS: dict[str, Any] = {
    "color": drawing.LIGHT,
    "marker": ".",
    "linestyle": "none",
    "markersize": 3.5,
    "zorder": 0,
}
STUCK: dict[str, Any] = {"color": POLICY_STYLES["ucb"].color, "linestyle": (0, (1, 1)), "linewidth": 2}
SHOWN = [name for name in POLICY_STYLES if name in PRINTED]
WITH_QUANTILES = [name for name in SHOWN if name in BUDGETS and BUDGETS[name].quantiles]


def _draw(data: Tables) -> Figure:
    table, rewards = data["curves"], data["rewards"]
    figure, panels = drawing.grid(rows=3, columns=2, heights=(3.2, 3.2, 3.2), width=5.2, aligned=False)
    for letter, panel, quantity in zip(("a  ", ""), panels[0], ("reward", "regret"), strict=True):
        curves(panel, table, quantity, SHOWN)
        panel.plot(data["stuck"]["time"].to_numpy(), data["stuck"][quantity].to_numpy(), **STUCK)
        panel.set_title(f"{letter}Cumulative {quantity}")
    for arm, panel in enumerate(panels[1]):
        panel.plot(rewards["time"].to_numpy(), rewards[f"arm_{arm}"].to_numpy(), **POINTS)
        curves(panel, table, f"mean_{arm}", SHOWN)
        _truth(panel, table, arm, "mean")
        panel.set(title=f"b  Estimated mean of arm {arm}", ylim=(-0.05, 1.05))
    for arm, (letter, panel) in enumerate(zip("cd", panels[2], strict=True)):
        for quantity in ("p10", "p90"):
            curves(panel, table, f"{quantity}_{arm}", WITH_QUANTILES, bands=False)
            _truth(panel, table, arm, quantity)
        panel.set(title=f"{letter}  Estimated 10th and 90th percentile of arm {arm}", ylim=(-0.05, 1.05))
    handles = [drawing.handle(POLICY_STYLES[name]) for name in SHOWN]
    others = [
        Line2D([], [], label=f"UCB with α = {STUCK_ALPHA:g} (a)", **STUCK),
        Line2D([], [], label="truth", **TRUTH),
        Line2D([], [], label="single rewards", **{**POINTS, "markersize": 6}),
    ]
    drawing.bottom_legend(figure, [*handles, *others], columns=5)
    note(figure, data)
    return figure


def curves(panel: Axes, table: pa.Table, quantity: str, policies: list[str], *, bands: bool = True) -> None:
    """Draw means over all runs, with bands from the 10th to the 90th percentile, and the time of the shift."""
    for position, policy in enumerate(policies):
        curve, style = where(table, policy=policy), POLICY_STYLES[policy]
        times = curve["time"].to_numpy()
        every = max(1, times.size // 5)
        panel.plot(
            times, curve[quantity].to_numpy(), markevery=((3 * position) % every, every), **drawing.line(style)
        )
        if bands:
            low, high = (curve[f"{quantity}_{end}"].to_numpy() for end in ("low", "high"))
            panel.fill_between(times, low, high, color=style.color, alpha=0.15, linewidth=0)
    panel.axvline(PROBLEM.shift, color="#888888", linewidth=0.8)
    panel.margins(x=0.01)
    panel.set_xlabel("step")
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter("{x:,g}")


def _truth(panel: Axes, table: pa.Table, arm: int, quantity: str) -> None:
    times = where(table, policy=SHOWN[0])["time"].to_numpy()
    panel.plot(times, PROBLEM.truth(arm, quantity, times), **TRUTH)


def earnings(data: Tables, policies: list[str]) -> Listing:
    """Return what each policy earned, for readers."""
    runs = Outcomes(data["worlds"])

    def row(policy: str) -> list[str]:
        return [
            POLICY_STYLES[policy].label,
            str(estimate(runs.before(policy))),
            str(estimate(runs.after(policy))),
            str(estimate(runs.total(policy))),
            str(estimate(runs.total(policy, "regret"))),
            str(median(runs.half_times(policy))),
        ]

    return Listing(
        caption="Means over all runs, with 95 % confidence intervals.",
        columns=[
            "policy",
            "reward before the shift",
            "reward after the shift",
            "total reward",
            "total regret",
            "steps until the new best arm’s estimate has covered half of its rise (median)",
        ],
        rows=[row(policy) for policy in policies],
    )


def _numbers(data: Tables) -> Mapping[str, str]:
    runs = Outcomes(data["worlds"])
    means = {name: float(runs.total(name).mean()) for name in SHOWN}
    worst, *_, best = sorted(BUDGETS.keys() & means.keys(), key=means.__getitem__)
    near = {name: float(np.mean([runs.of(name, f"near_{each}") for each in QUANTILES])) for name in WITH_QUANTILES}
    low, *_, high = sorted(f"{share:.0%}" for name, share in near.items() if name != "gem")
    return {
        "best": POLICY_STYLES[best].label,
        "best_reward": f"{means[best]:,.0f}",
        "worst": POLICY_STYLES[worst].label,
        "worst_reward": f"{means[worst]:,.0f}",
        "near": f"{low} to {high}",
        "gem_near": f"{near['gem']:.0%}",
        "ucb": f"{means['ucb']:,.0f}",
        "stuck": f"{data['stuck']['reward'][-1].as_py():,.0f}",
        "alpha": f"{STUCK_ALPHA:g}",
        "thompson": f"{means['thompson']:,.0f}",
        "half_time": f"{median(runs.half_times('mgem')).middle:,.0f}",
    }


SETUP = {
    "arms": "rewards N(0.2, 0.1²) and N(0.8, 0.3²), clipped to [0, 1]; they swap at the shift",
    "length": "T = 50,000, shift at 30,000, as in the paper’s caption (its text says 500)",
    "runs": "20; the rewards of a run are the same for all policies",
    "fast run": "plays nothing and shows the kept tables of a full run; `python -m experiments.bandit` makes them "
    "again",
}
"""The notes of all figures of the bandit."""

BANDIT = Experiment(
    name="bandit",
    title="Bandits under distribution shift",
    caption=(
        "The paper’s seven policies. The two arms swap their rewards at the vertical line. Of the private "
        "policies {best} earns most, {best_reward}, and {worst} least, {worst_reward}. Without privacy UCB earns "
        "{ucb} with α = √2, the only value that the paper prints, and {stuck} with α = {alpha}, at which it stays "
        "on the old arm as the paper says; Thompson sampling earns {thompson}. (a) The reward so far, and beside "
        "it the regret. (b) The "
        "estimated mean of each arm, over single rewards (points): mGEM has covered half of the rise of arm 0 "
        "after {half_time} steps. (c, d) The four policies that use quantiles: in the second half of each phase, "
        "their estimates are within 0.1 of the truth in {near} of the time, GEM’s in {gem_near}. GEM’s 90th "
        "percentile of the worse arm is furthest off: a range that comes out too wide stays for long, since GEM "
        "then avoids the arm. Curves are means over 20 runs; bands in a and b are the middle 80 %."
    ),
    description=(
        "Six panels over time, for the paper’s seven policies. Top: cumulative reward and cumulative regret. "
        "Middle: the estimated mean of each arm over points that are single rewards. Bottom: the estimated 10th "
        "and 90th percentile of each arm against the true ones."
    ),
    notes={
        **SETUP,
        "private policies": "ε_M = ε_p = 1, ε_S = 1 (4 for kRR), β = γ = 0.05, windows of 200 rewards of an arm",
        "private means": "from the hybrid mechanism, over the whole past, not clipped",
        "points": "the paper’s “private scores”: we read them as what the arms pay, each reward a person’s secret; "
        "shown are those of every 100th step of one run",
        "at the start": "each arm is pulled once; its sensitivity is 1, the width of the range, until its first "
        "window is full",
        "UCB": f"ln T as printed; α = √2, which the paper calls common, and in (a) also α = {STUCK_ALPHA:g}; other "
        "α are in “Bandits: policies beyond the paper, and UCB’s α”",
        "Thompson sampling": "Gaussian posterior, prior N(½, 1), known standard deviation 0.3, the larger one",
        "regret": "relative to the better arm’s true mean, so the randomness of single rewards does not enter",
    },
    plan=plan,
    draw=_draw,
    listings=lambda data: [earnings(data, SHOWN), provenance(data)],
    numbers=_numbers,
    claims=CLAIMS,
)
