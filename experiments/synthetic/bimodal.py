"""Scenarios 1 to 3: two groups of scores, and sensitivities that go with them, against them, or neither."""

from functools import partial

import pyarrow as pa
from matplotlib.figure import Figure

from experiments import drawing
from experiments.curves import Curves
from experiments.experiment import Effort, Experiment, Numbers, Task
from experiments.ledger import Claim, Finding, judge
from experiments.mechanisms import STYLES
from experiments.scenarios import SCENARIOS, TITLES, Scenario
from experiments.tables import Tables, where
from experiments.trials import BETA, GAMMA, error_tasks

__all__ = ["BIMODAL"]

SHOWN_EPSILONS = (0.1, 1.0, 10.0)
BUILDERS = {TITLES[number]: SCENARIOS[number] for number in (1, 2, 3)}
POSITIVE, NEGATIVE, NONE = BUILDERS


def _plan(effort: Effort) -> list[Task]:
    return [
        Task(label=title, table="candidates", compute=partial(_candidates, build()))
        for title, build in BUILDERS.items()
    ] + error_tasks(BUILDERS.items(), list(STYLES), effort)


def _candidates(scenario: Scenario) -> pa.Table:
    k = scenario.sensitivities.size
    return pa.table(
        {
            "scenario": [scenario.title] * k,
            "candidate": range(1, k + 1),
            "score": scenario.scores[0],
            "sensitivity": scenario.sensitivities,
        }
    )


def _draw(data: Tables) -> Figure:
    figure, panels = drawing.grid(rows=2, columns=len(BUILDERS), heights=(2, 3))
    for title, (top, bottom) in zip(BUILDERS, panels.T, strict=True):
        top.set_title(title)
        drawing.candidates(top, where(data["candidates"], scenario=title))
        drawing.errors(bottom, where(data["errors"], scenario=title), limits=(1e-3, 6))
    panels[0, 0].set_ylabel("score ± sensitivity / 2")
    panels[1, 0].set_ylabel("mean squared error")
    drawing.legend(figure)
    return figure


def _count(data: Tables) -> Numbers:
    return Curves(data["errors"]).numbers(
        SHOWN_EPSILONS, "Mean squared error. Bold: the lowest of the private mechanisms."
    )


def _check_positive(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    return judge(
        {
            "RSᵧ and mGEM below RNM for ε ≤ 1": all(
                curves.always(POSITIVE, name, "rnm", high=1) for name in ("rs", "mgem")
            ),
            "mGEM below RNM for every ε": curves.always(POSITIVE, "mgem", "rnm"),
            "RSᵧ below RNM for every ε": curves.always(POSITIVE, "rs", "rnm"),
            "RNM below GEM for every ε": curves.always(POSITIVE, "rnm", "gem"),
            "GEM worse than random for ε ≤ 1": curves.always(POSITIVE, "uniform", "gem", high=1),
        },
        f"At ε = 1: {curves.values(POSITIVE, 1.0, ('mgem', 'rs', 'rnm', 'uniform', 'gem'))}. Below RNM: mGEM "
        f"{curves.span(POSITIVE, 'mgem', 'rnm')}, RSᵧ {curves.span(POSITIVE, 'rs', 'rnm')}. GEM worse than random "
        f"{curves.span(POSITIVE, 'uniform', 'gem')}.",
        _LARGE_BUDGET,
    )


def _check_negative(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    return judge(
        {
            "GEM below RNM for every ε": curves.always(NEGATIVE, "gem", "rnm"),
            "RNM below RSᵧ for every ε": curves.always(NEGATIVE, "rnm", "rs"),
            "RNM below mGEM for every ε": curves.always(NEGATIVE, "rnm", "mgem"),
            "RSᵧ and mGEM worse than random for ε ≤ 1": all(
                curves.always(NEGATIVE, "uniform", name, high=1) for name in ("rs", "mgem")
            ),
        },
        f"At ε = 1: {curves.values(NEGATIVE, 1.0, ('gem', 'rnm', 'uniform', 'rs', 'mgem'))}. Below RNM: GEM "
        f"{curves.span(NEGATIVE, 'gem', 'rnm')}. Worse than random: RSᵧ {curves.span(NEGATIVE, 'uniform', 'rs')}, "
        f"mGEM {curves.span(NEGATIVE, 'uniform', 'mgem')}.",
        "Beyond ε = 10 errors are small, and RNM, which does not pay for comparing pairs, passes GEM.",
    )


def _check_none(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    trailing = max(curves.at(NONE, name, 1.0) / curves.at(NONE, "rnm", 1.0) for name in ("rs", "gem", "mgem"))
    return judge(
        {
            "RSᵧ, GEM and mGEM above RNM for every ε": all(
                curves.always(NONE, "rnm", name) for name in ("rs", "gem", "mgem")
            ),
            "slightly: by at most a quarter at ε ≤ 1": trailing <= 1.25,
            "GEM below mGEM for every ε": curves.always(NONE, "gem", "mgem"),
            "GEM below RSᵧ for every ε": curves.always(NONE, "gem", "rs"),
        },
        f"At ε = 1: {curves.values(NONE, 1.0, ('rnm', 'gem', 'rs', 'mgem', 'uniform'))}; at ε = 10: "
        f"{curves.values(NONE, 10.0, ('rnm', 'gem', 'rs', 'mgem'))}. GEM below RSᵧ "
        f"{curves.span(NONE, 'gem', 'rs')}, below mGEM {curves.span(NONE, 'gem', 'mgem')}.",
    )


_LARGE_BUDGET = (
    "With 20 draws on average RSᵧ may never see a good candidate, so its error levels off as ε grows. Beyond ε = "
    "10 "
    "errors are small, and RNM, which does not pay for comparing pairs, passes mGEM."
)

BIMODAL = Experiment(
    name="scenarios-1-to-3",
    title="Scenarios 1 to 3: two groups of scores",
    caption="Which mechanism is best depends on whether good candidates are the sensitive ones.",
    description=(
        "Three columns, one for each scenario. Top: the score of each of 100 candidates as a dot, its "
        "sensitivity as a bar. Bottom: mean squared error against the privacy budget, a curve per mechanism."
    ),
    choices={
        "candidates": "k = 100: 50 of score +1, then 50 of score −1",
        "sensitivities": "1.8 or 1; in scenario 3 half of each in both groups: correlation exactly 0",
        "mechanisms": (
            f"β = {BETA}, γ = {GAMMA}; combined GEM spends 0.6 ε on its question; improved RSᵧ at the same γ, as "
            "printed, and at the γ that gives it as many draws as RSᵧ on average"
        ),
        "error": "mean squared difference to the best score; from exact probabilities, not sampled",
        "axes": "errors below 0.001 are cut off; the table in the files has them",
    },
    plan=_plan,
    draw=_draw,
    count=_count,
    claims=[
        Claim(
            id="S1",
            text=(
                "Scenario 1 (positive): RSᵧ and mGEM best, then RNM, then GEM; at small ε GEM is worse than random."
            ),
            check=_check_positive,
        ),
        Claim(
            id="S2",
            text=("Scenario 2 (negative): the order is flipped; RSᵧ and mGEM are worse than random at small ε."),
            check=_check_negative,
        ),
        Claim(
            id="S3",
            text=(
                "Scenario 3 (none): RSᵧ, GEM and mGEM all slightly worse than RNM; GEM better than RSᵧ and mGEM."
            ),
            check=_check_none,
        ),
    ],
)
