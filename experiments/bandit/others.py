"""The bandit beyond the paper: policies that it does not have, and UCB with other α."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from experiments import drawing
from experiments.bandit.origin import note, provenance
from experiments.bandit.outcomes import Outcomes, estimate
from experiments.bandit.policies import OTHERS, PRINTED
from experiments.bandit.runs import ALPHAS, REFERENCES, optimist, plan_others
from experiments.bandit.shift import SETUP, curves, earnings
from experiments.bandit.styles import POLICY_STYLES
from experiments.experiment import Experiment
from experiments.tables import Tables

__all__ = ["BANDIT_OTHERS"]

SHOWN = [name for name in POLICY_STYLES if name in {*REFERENCES, *OTHERS}]
LEVELS = [name for name in POLICY_STYLES if name in PRINTED and name != "ucb"]


def _draw(data: Tables) -> Figure:
    figure, panels = drawing.grid(rows=2, columns=2, heights=(3.4, 3.0), width=5.2, aligned=False)
    for panel, quantity in zip(panels[0], ("reward", "regret"), strict=True):
        curves(panel, data["others"], quantity, SHOWN)
        panel.set_title(f"Cumulative {quantity}")
    _over_alpha(panels[1], Outcomes(data["worlds"]), Outcomes(data["optimism"]))
    names = [name for name in POLICY_STYLES if name in {*SHOWN, *LEVELS}]
    drawing.bottom_legend(figure, [drawing.handle(POLICY_STYLES[name]) for name in names], columns=5)
    note(figure, data)
    return figure


def _over_alpha(panels: Sequence[Axes], runs: Outcomes, optimists: Outcomes) -> None:
    """Draw UCB's earnings over α, before and after the shift, and those of the paper's other policies as lines."""
    for panel, phase in zip(panels, ("before", "after"), strict=True):
        for policy in LEVELS:
            level = float(getattr(runs, phase)(policy).mean())
            panel.axhline(level, **{**drawing.line(POLICY_STYLES[policy]), "marker": ""})
        found = [estimate(getattr(optimists, phase)(optimist(alpha))) for alpha in ALPHAS]
        panel.errorbar(
            ALPHAS, [one.mean for one in found], [one.margin for one in found], **drawing.line(POLICY_STYLES["ucb"])
        )
        panel.set_xscale("symlog", linthresh=0.01, linscale=0.4)
        panel.set_xticks(
            [0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], ["0", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"]
        )
        panel.xaxis.set_minor_locator(NullLocator())
        panel.yaxis.set_major_formatter("{x:,g}")
        panel.set(title=f"Reward {phase} the shift, UCB over α", xlabel="UCB’s α")


def _numbers(data: Tables) -> Mapping[str, str]:
    runs, optimists = Outcomes(data["worlds"]), Outcomes(data["optimism"])
    names = ("private-ucb", "mgem", "combined-gem", "discounted-ucb")
    return {
        **{name.replace("-", "_"): f"{runs.total(name).mean():,.0f}" for name in names},
        "stuck": f"{optimists.of(optimist(0.05), 'old_arm').mean():.0%}".replace("%", " %"),
        "adapted": f"{optimists.of(optimist(ALPHAS[-1]), 'old_arm').mean():.1%}".replace("%", " %"),
    }


BANDIT_OTHERS = Experiment(
    name="bandit-others",
    title="Bandits: policies beyond the paper, and UCB’s α",
    caption=(
        "Top: six policies that the paper does not have, with mGEM and UCB to compare. UCB on private means "
        "spends as much budget as mGEM and earns {private_ucb} against {mgem}; combined GEM earns {combined_gem}. "
        "Discounted UCB, without privacy, earns {discounted_ucb}. UCB with α = √2 covers the oracle’s curve. "
        "Bottom: UCB’s reward over its α; horizontal lines are the paper’s other policies. After the shift UCB "
        "still pulls the old arm in {stuck} of the steps at α = 0.05, and in {adapted} at α = √2: what the paper "
        "finds about UCB depends on α."
    ),
    description=(
        "Four panels. Top: cumulative reward and regret over time of combined GEM, random choice, UCB on private "
        "means, UCB with α = 0, discounted UCB and the oracle, with mGEM and UCB. Bottom: UCB’s reward before and "
        "after the shift over its α, with a horizontal line for each of the paper’s other policies."
    ),
    notes={
        **SETUP,
        "curves": "means over 20 runs, bands are the middle 80 %; error bars below are 95 % confidence intervals "
        "of the mean over 20 runs",
        "combined GEM": "as the private policies of the paper’s figure",
        "discounted UCB": "γ = 1 − 1/(4√T), ξ = 0.6 (Garivier and Moulines 2011)",
        "UCB on private means": "ε_M = 2 and no quantiles, so the same total; its bonus covers the variance of the "
        "noise",
    },
    plan=plan_others,
    draw=_draw,
    listings=lambda data: [earnings(data, SHOWN), provenance(data)],
    numbers=_numbers,
)
