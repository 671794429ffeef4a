"""The paper's bandit figure: earnings, regret, estimated means and estimated quantiles."""

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments import drawing
from experiments.bandit.claims import CLAIMS, WITH_QUANTILES
from experiments.bandit.outcomes import Outcomes, estimate, median
from experiments.bandit.runs import plan
from experiments.bandit.styles import POLICY_STYLES
from experiments.experiment import Experiment, Listing
from experiments.tables import Tables

__all__ = ["BANDIT"]

WITH_MEANS = ("mgem", "rs", "rnm", "gem", "krr", "ucb", "thompson")
"""Whose estimated means are drawn: the paper's."""


def _draw(data: Tables) -> Figure:
    runs = Outcomes(data["runs"])
    figure, panels = drawing.grid(rows=3, columns=2, heights=(3.4, 2.6, 2.6), width=5.2, aligned=False)
    (reward, regret), (first_means, second_means), (first_quantiles, second_quantiles) = panels
    for panel, column in ((reward, "reward"), (regret, "regret")):
        _curves(panel, runs, column, runs.policies)
        panel.set_title(f"Cumulative {column}")
    for arm, panel in enumerate((first_means, second_means)):
        _curves(panel, runs, f"mean_{arm}", WITH_MEANS)
        panel.plot(runs.times, runs.truth(arm, "mean"), color="#999999", linewidth=5, alpha=0.35, zorder=1)
        panel.set(title=f"Estimated mean of arm {arm}", ylim=(-0.05, 1.05))
    for arm, panel in enumerate((first_quantiles, second_quantiles)):
        for end in ("low", "high"):
            _curves(panel, runs, f"{end}_{arm}", WITH_QUANTILES)
            panel.plot(runs.times, runs.truth(arm, end), color="#999999", linewidth=5, alpha=0.35, zorder=1)
        panel.set(title=f"Estimated 10th and 90th percentile of arm {arm}", ylim=(-0.05, 1.05))
    for panel in panels.flat:
        panel.axvline(runs.problem.shift, color="#888888", linewidth=0.8)
        panel.margins(x=0.01)
        panel.set_xlabel("step")
    lines = [
        Line2D([], [], label=POLICY_STYLES[name].label, **drawing.line(POLICY_STYLES[name]))
        for name in runs.policies
    ]
    truth = Line2D([], [], label="truth", color="#999999", linewidth=5, alpha=0.35)
    figure.legend(handles=[*lines, truth], loc="outside lower center", ncols=5, handlelength=3.2)
    return figure


def _curves(panel: Axes, runs: Outcomes, column: str, policies: Iterable[str]) -> None:
    """Draw means over all worlds, and bands from the 10th to the 90th percentile of the worlds."""
    for position, policy in enumerate(policies):
        values, style = runs.of(policy, column), POLICY_STYLES[policy]
        every = max(1, runs.times.size // 5)
        panel.plot(
            runs.times,
            values.mean(axis=0),
            markevery=((3 * position) % every, every),
            **drawing.line(style),
        )
        low, high = np.quantile(values, [0.1, 0.9], axis=0)
        panel.fill_between(runs.times, low, high, color=style.color, alpha=0.18, linewidth=0)


def _list(data: Tables) -> Listing:
    runs = Outcomes(data["runs"])

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
            "after it",
            "in all",
            "regret in all",
            "steps until the rising arm’s estimate is half-way (median)",
        ],
        rows=[row(policy) for policy in runs.policies],
    )


BANDIT = Experiment(
    name="bandit",
    title="Bandits under distribution shift",
    caption=(
        "Two arms change places (vertical line). Curves are means over all runs, bands the middle 80 % of them; "
        "grey bars are the truth."
    ),
    description=(
        "Six panels over time. Top: cumulative reward and cumulative regret of all policies. Middle: the "
        "estimated mean of each arm. Bottom: the estimated 10th and 90th percentile of each arm, against the "
        "true ones."
    ),
    choices={
        "arms": "rewards N(0.2, 0.1²) and N(0.8, 0.3²), clipped to [0, 1]; they change places at the shift",
        "length": "T = 50,000, shift at 30,000, as the caption has it (the text: 500); fast mode: 1,250 and 750",
        "runs": "20 (6 in the fast mode); what an arm would pay in a step is the same for all policies of a run",
        "private policies": "ε_M = ε_p = 1, ε_S = 1 (4 for kRR), β = γ = 0.05, windows of 200 rewards of an arm",
        "private means": "from the hybrid mechanism, over the whole past, not clipped",
        "at the start": "each arm is pulled once; its sensitivity is 1, the range, until its first window is full",
        "UCB": "α = √2 and ln T, as printed; with α = 0 for comparison",
        "Thompson sampling": "Gaussian posterior, prior N(½, 1), known standard deviation 0.3, the larger one",
        "discounted UCB": "γ = 1 − 1/(4√T), ξ = 0.6 (Garivier and Moulines 2011)",
        "UCB on private means": "ε_M = 2 and no quantiles: the same total; its bonus covers the noise’s variance",
        "regret": "against the better arm’s true mean, so the luck of single rewards does not enter",
    },
    plan=plan,
    draw=_draw,
    list=_list,
    claims=CLAIMS,
)
