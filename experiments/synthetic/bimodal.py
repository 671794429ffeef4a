"""Scenarios 1 to 3: two groups of scores; sensitivities correlate positively, negatively or not at all."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import drawing
from experiments.curves import Curves, error_numbers, judge_where, number
from experiments.experiment import Effort, Experiment, Task
from experiments.ledger import Claim, Finding
from experiments.mechanisms import BETA, COMPARED, DRAWN, GAMMA, STYLES
from experiments.scenarios import titled
from experiments.tables import Tables, among
from experiments.trials import candidate_table, error_tasks, scenario_tasks

__all__ = ["BIMODAL"]

SCENARIOS = titled(1, 2, 3)
POSITIVE, NEGATIVE, NONE = SCENARIOS
SLIGHTLY = 1.25
"""An error up to this many times another's is slightly worse."""


def _plan(effort: Effort) -> list[Task]:
    return [
        *scenario_tasks("candidates", SCENARIOS, candidate_table),
        *error_tasks(SCENARIOS, COMPARED, effort),
    ]


def _check_positive(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    return judge_where(
        "RSᵧ and mGEM are below RNM, and RNM below GEM",
        curves.epsilons,
        curves.ordered(POSITIVE, ("rs", "rnm"), ("mgem", "rnm"), ("rnm", "gem")),
        f"At ε = 1: {curves.values(POSITIVE, 1.0, ('mgem', 'rs', 'rnm', 'uniform', 'gem'))}. mGEM is below RNM "
        f"{curves.span(POSITIVE, 'mgem', 'rnm')}, RSᵧ {curves.span(POSITIVE, 'rs', 'rnm')}. GEM is worse than "
        f"random {curves.span(POSITIVE, 'uniform', 'gem')}.",
        "RSᵧ takes 20 draws on average and may never see a good candidate, so its error levels off as ε grows. "
        "Beyond ε = 10 all errors are small, and RNM overtakes mGEM because it spends nothing on comparing pairs.",
        parts={"GEM is worse than random for ε ≤ 1": curves.always(POSITIVE, "uniform", "gem", high=1)},
    )


def _check_negative(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    return judge_where(
        "GEM is below RNM, and RNM below RSᵧ and mGEM",
        curves.epsilons,
        curves.ordered(NEGATIVE, ("gem", "rnm"), ("rnm", "rs"), ("rnm", "mgem")),
        f"At ε = 1: {curves.values(NEGATIVE, 1.0, ('gem', 'rnm', 'uniform', 'rs', 'mgem'))}. GEM is below RNM "
        f"{curves.span(NEGATIVE, 'gem', 'rnm')}. RSᵧ is worse than random "
        f"{curves.span(NEGATIVE, 'uniform', 'rs')}, mGEM {curves.span(NEGATIVE, 'uniform', 'mgem')}.",
        "Beyond ε = 10 all errors are small, and RNM overtakes GEM because it spends nothing on comparing pairs.",
        parts={
            "RSᵧ and mGEM are worse than random for ε ≤ 1": all(
                curves.always(NEGATIVE, "uniform", name, high=1) for name in ("rs", "mgem")
            )
        },
    )


def _check_none(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    behind = {name: curves.of(NONE, name) / curves.of(NONE, "rnm") for name in ("gem", "rs", "mgem")}

    def listed(epsilon: float) -> str:
        place = int(np.argmin(np.abs(curves.epsilons - epsilon)))
        return ", ".join(f"{STYLES[name].label} {number(float(ratios[place]))}" for name, ratios in behind.items())

    return judge_where(
        "RNM is slightly below GEM, RSᵧ and mGEM, and GEM below RSᵧ and mGEM",
        curves.epsilons,
        curves.ordered(NONE, ("rnm", "gem"), ("gem", "rs"), ("gem", "mgem"))
        & (np.maximum.reduce(list(behind.values())) <= SLIGHTLY),
        f"Errors divided by RNM’s: {listed(0.1)} at ε = 0.1; {listed(1.0)} at ε = 1; {listed(10.0)} at ε = 10. GEM "
        f"is below RSᵧ {curves.span(NONE, 'gem', 'rs')}, and below mGEM {curves.span(NONE, 'gem', 'mgem')}.",
        f"“Slightly worse” is read as at most {SLIGHTLY:g} times RNM’s error. Beyond this ε they are far behind.",
    )


def _draw(data: Tables) -> Figure:
    curves = Curves(data["errors"])

    def over_noisy_max(panel: Axes, title: str) -> None:
        base = curves.of(title, "rnm")
        drawing.ratios(panel, curves.epsilons, {name: curves.of(title, name) / base for name in DRAWN})
        panel.set(yscale="log")
        drawing.plain_numbers(panel.yaxis)

    shown = {**data, "errors": among(data["errors"], mechanism=DRAWN)}
    figure = drawing.scenario_columns(
        shown, score="score", limits=(1e-3, 6), below=over_noisy_max, limits_below=(0.1, 60)
    )
    figure.axes[2 * len(SCENARIOS)].set_ylabel("error / RNM’s error")
    return figure


BIMODAL = Experiment(
    name="scenarios-1-to-3",
    title="Scenarios 1 to 3: two groups of scores",
    caption=(
        "The best mechanism depends on whether the good candidates are the sensitive ones. At ε = 1 a random pick "
        "has error 2: mGEM has 0.29 in scenario 1 and 3.4 in scenario 2, GEM the other way round, and RNM 1.5 in "
        "all three. In scenario 3 all mechanisms are alike at small ε; the bottom row, errors divided by RNM’s, "
        "tells them apart."
    ),
    description=(
        "Three columns, one for each scenario. Top: the score of each of 100 candidates as a dot, its "
        "sensitivity as a bar. Middle: mean squared error against the privacy budget, eight curves. Bottom: the "
        "same divided by RNM’s."
    ),
    notes={
        "candidates": "k = 100: 50 of score +1, then 50 of score −1",
        "sensitivities": "1.8 or 1; in scenario 3 half of each in both groups, so the correlation is exactly 0",
        "mechanisms": (
            f"β = {BETA}, γ = {GAMMA}; combined GEM spends 0.6 ε on the sign of the correlation; improved RSᵧ at "
            "the same γ, as printed, and at the γ with as many draws on average as RSᵧ"
        ),
        "error": "mean squared difference from the best score, computed from exact probabilities",
        "axes": "errors below 0.001, and ratios outside 0.1 to 60, are cut off; the tables have them",
        "not drawn": "both improved RSᵧ and combined GEM, which are in the table",
    },
    plan=_plan,
    draw=_draw,
    listings=error_numbers,
    claims=[
        Claim(
            id="S1",
            text="Scenario 1 (positive): RSᵧ and mGEM best, then RNM, then GEM; at small ε GEM is worse than "
            "random.",
            check=_check_positive,
        ),
        Claim(
            id="S2",
            text="Scenario 2 (negative): the order is flipped; RSᵧ and mGEM are worse than random at small ε.",
            check=_check_negative,
        ),
        Claim(
            id="S3",
            text="Scenario 3 (none): RSᵧ, GEM and mGEM all slightly worse than RNM; GEM better than RSᵧ and mGEM.",
            check=_check_none,
        ),
    ],
)
