"""The paper's bandit figure: earnings, regret, estimated means and estimated quantiles."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from experiments import drawing
from experiments.bandit.claims import CLAIMS, PRINTED, WITH_QUANTILES
from experiments.bandit.outcomes import Outcomes, estimate, median
from experiments.bandit.runs import ALPHAS, optimist, plan
from experiments.bandit.styles import POLICY_STYLES
from experiments.experiment import Experiment, Listing
from experiments.tables import Tables

__all__ = ["BANDIT"]

TRUTH: dict[str, Any] = {"color": "#999999", "linewidth": 5, "alpha": 0.35}
WITH_MEANS = ("mgem", "rs", "rnm", "gem", "krr", "ucb", "thompson")
"""The policies whose estimated means are drawn, as in the paper."""


def _draw(data: Tables) -> Figure:
    runs = Outcomes(data["runs"])
    figure, panels = drawing.grid(rows=4, columns=2, heights=(3.4, 2.6, 2.6, 2.6), width=5.2, aligned=False)
    (reward, regret), (first_means, second_means), (first_quantiles, second_quantiles), last = panels
    for panel, column in ((reward, "reward"), (regret, "regret")):
        _curves(panel, runs, column, runs.policies)
        panel.set_title(f"Cumulative {column}")
    for arm, panel in enumerate((first_means, second_means)):
        _curves(panel, runs, f"mean_{arm}", WITH_MEANS)
        panel.plot(runs.times, runs.truth(arm, "mean"), zorder=1, **TRUTH)
        panel.set(title=f"Estimated mean of arm {arm}", ylim=(-0.05, 1.05))
    for arm, panel in enumerate((first_quantiles, second_quantiles)):
        for end in ("low", "high"):
            _curves(panel, runs, f"{end}_{arm}", WITH_QUANTILES)
            panel.plot(runs.times, runs.truth(arm, end), zorder=1, **TRUTH)
        panel.set(title=f"Estimated 10th and 90th percentile of arm {arm}", ylim=(-0.05, 1.05))
    _over_alpha(last, runs, Outcomes(data["optimism"]))
    for panel in panels[:-1].flat:
        panel.axvline(runs.problem.shift, color="#888888", linewidth=0.8)
        panel.margins(x=0.01)
        panel.set_xlabel("step")
    truth = Line2D([], [], label="truth", **TRUTH)
    handles = [drawing.handle(POLICY_STYLES[name]) for name in runs.policies]
    drawing.bottom_legend(figure, [*handles, truth], columns=5)
    return figure


def _over_alpha(panels: Sequence[Axes], runs: Outcomes, optimists: Outcomes) -> None:
    """Draw UCB's earnings over α, before and after the shift, and those of the other policies as lines."""
    names = [optimist(alpha) for alpha in ALPHAS]
    for panel, phase in zip(panels, ("before", "after"), strict=True):
        for policy in (*PRINTED, "thompson"):
            level = float(getattr(runs, phase)(policy).mean())
            panel.axhline(level, **{**drawing.line(POLICY_STYLES[policy]), "marker": ""})
        found = [estimate(getattr(optimists, phase)(name)) for name in names]
        panel.errorbar(
            ALPHAS, [one.mean for one in found], [one.margin for one in found], **drawing.line(POLICY_STYLES["ucb"])
        )
        panel.set_xscale("symlog", linthresh=0.01, linscale=0.4)
        panel.set_xticks(
            [0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], ["0", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"]
        )
        panel.xaxis.set_minor_locator(NullLocator())
        panel.set(title=f"Reward {phase} the shift, UCB over α", xlabel="UCB’s α")


def _curves(panel: Axes, runs: Outcomes, column: str, policies: Iterable[str]) -> None:
    """Draw means over all worlds, with bands from the 10th to the 90th percentile."""
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


def _listing(data: Tables) -> Listing:
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
            "reward after the shift",
            "total reward",
            "total regret",
            "steps until the new best arm’s estimate has covered half of its rise (median)",
        ],
        rows=[row(policy) for policy in runs.policies],
    )


BANDIT = Experiment(
    name="bandit",
    title="Bandits under distribution shift",
    caption=(
        "Two arms swap their rewards (vertical line). Curves are means over all runs, and bands are the middle 80 "
        "%. Thick grey lines are the truth."
    ),
    description=(
        "Six panels over time. Top: cumulative reward and cumulative regret of all policies. Then the estimated "
        "mean of each arm, and the estimated 10th and 90th percentile of each arm, against the true ones. Bottom: "
        "UCB’s reward before and after the shift over its α, with a horizontal line for each of the other policies."
    ),
    notes={
        "arms": "rewards N(0.2, 0.1²) and N(0.8, 0.3²), clipped to [0, 1]; they swap at the shift",
        "length": "T = 50,000, shift at 30,000, as in the paper’s caption (its text says 500); fast mode: 1,250 "
        "and 750",
        "runs": "20 (6 in the fast mode); the rewards of a run are the same for all policies",
        "private policies": "ε_M = ε_p = 1, ε_S = 1 (4 for kRR), β = γ = 0.05, windows of 200 rewards of an arm",
        "private means": "from the hybrid mechanism, over the whole past, not clipped",
        "at the start": "each arm is pulled once; its sensitivity is 1, the width of the range, until its first "
        "window is full",
        "UCB": "ln T as printed; α = √2, which the paper calls common, and α = 0; in the bottom row from 0 to √2",
        "Thompson sampling": "Gaussian posterior, prior N(½, 1), known standard deviation 0.3, the larger one",
        "discounted UCB": "γ = 1 − 1/(4√T), ξ = 0.6 (Garivier and Moulines 2011)",
        "UCB on private means": "ε_M = 2 and no quantiles, so the same total; its bonus covers the variance of the "
        "noise",
        "regret": "relative to the better arm’s true mean, so the randomness of single rewards does not enter",
    },
    plan=plan,
    draw=_draw,
    listings=lambda data: [_listing(data)],
    claims=CLAIMS,
)
