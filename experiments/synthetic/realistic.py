"""Scenarios 4 to 6: scores that vary between trials, with sensitivities that rise, fall, or do neither."""

from functools import partial

import pyarrow as pa
from matplotlib.figure import Figure

from experiments import drawing
from experiments.curves import Curves, number
from experiments.experiment import Effort, Experiment, Numbers, Task
from experiments.ledger import Claim, Finding, judge
from experiments.mechanisms import STYLES
from experiments.scenarios import SCENARIOS, TITLES, TRIALS, Scenario
from experiments.tables import Tables, where
from experiments.trials import BETA, GAMMA, error_tasks

__all__ = ["REALISTIC", "candidate_means"]

SHOWN_EPSILONS = (0.1, 1.0, 10.0)
BUILDERS = {TITLES[number]: SCENARIOS[number] for number in (4, 5, 6)}
RISING, FALLING, INDEPENDENT = BUILDERS
MECHANISMS = [name for name in STYLES if name != "combined-gem"]


def candidate_means(scenario: Scenario) -> pa.Table:
    """Return each candidate's mean clipped score and its sensitivity."""
    k = scenario.sensitivities.size
    return pa.table(
        {
            "scenario": [scenario.title] * k,
            "candidate": range(1, k + 1),
            "score": scenario.scores.mean(axis=0),
            "sensitivity": scenario.sensitivities,
        }
    )


def _plan(effort: Effort) -> list[Task]:
    return [
        Task(label=title, table="candidates", compute=partial(lambda build: candidate_means(build()), build))
        for title, build in BUILDERS.items()
    ] + error_tasks(BUILDERS.items(), MECHANISMS, effort)


def _draw(data: Tables) -> Figure:
    figure, panels = drawing.grid(rows=2, columns=len(BUILDERS), heights=(2, 3), aligned=False)
    for title, (top, bottom) in zip(BUILDERS, panels.T, strict=True):
        top.set_title(title)
        drawing.candidates(top, where(data["candidates"], scenario=title))
        drawing.errors(bottom, where(data["errors"], scenario=title))
    panels[0, 0].set_ylabel("mean score ± sensitivity / 2")
    panels[1, 0].set_ylabel("mean squared error")
    drawing.legend(figure, MECHANISMS)
    return figure


def _count(data: Tables) -> Numbers:
    return Curves(data["errors"]).numbers(
        SHOWN_EPSILONS, "Mean squared error. Bold: the lowest of the private mechanisms."
    )


def _check_rising(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    return judge(
        {
            "mGEM beats RNM for all ε ≤ 1": curves.always(RISING, "mgem", "rnm", high=1),
            "RSᵧ beats RNM for all ε ≤ 1": curves.always(RISING, "rs", "rnm", high=1),
            "mGEM and RSᵧ beat RNM for every ε": curves.always(RISING, "mgem", "rnm")
            and curves.always(RISING, "rs", "rnm"),
            "GEM worse than RNM for every ε": curves.always(RISING, "rnm", "gem"),
            "GEM worse than random for ε ≤ 1": curves.always(RISING, "uniform", "gem", high=1),
        },
        f"At ε = 1: {curves.values(RISING, 1.0, ('mgem', 'rs', 'rnm', 'gem', 'uniform'))}. Below RNM: mGEM "
        f"{curves.span(RISING, 'mgem', 'rnm')}, RSᵧ {curves.span(RISING, 'rs', 'rnm')}.",
        "At large ε the budget that mGEM spends on comparing pairs, and RSᵧ on its draws, is no longer worth it.",
    )


def _check_falling(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    return judge(
        {
            "GEM beats RNM for every ε": curves.always(FALLING, "gem", "rnm"),
            "mGEM worse than RNM for every ε": curves.always(FALLING, "rnm", "mgem"),
            "RSᵧ worse than RNM for every ε": curves.always(FALLING, "rnm", "rs"),
        },
        f"At ε = 1: {curves.values(FALLING, 1.0, ('gem', 'rnm', 'uniform', 'rs', 'mgem'))}. Below RNM: GEM "
        f"{curves.span(FALLING, 'gem', 'rnm')}; worse than random: mGEM {curves.span(FALLING, 'uniform', 'mgem')}, "
        f"RSᵧ {curves.span(FALLING, 'uniform', 'rs')}.",
        "At large ε a budget is enough for mGEM’s comparisons of pairs: it is below RNM "
        f"{curves.span(FALLING, 'mgem', 'rnm')}.",
    )


def _check_independent(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    return judge(
        {
            "GEM beats RNM for ε ≤ 10": curves.always(INDEPENDENT, "gem", "rnm", high=10),
            "mGEM worse than RNM for ε ≤ 10": curves.always(INDEPENDENT, "rnm", "mgem", high=10),
            "RSᵧ worse than RNM for ε ≤ 10": curves.always(INDEPENDENT, "rnm", "rs", high=10),
        },
        f"At ε = 1: {curves.values(INDEPENDENT, 1.0, ('gem', 'rnm', 'uniform', 'rs', 'mgem'))}. Below RNM: GEM "
        f"{curves.span(INDEPENDENT, 'gem', 'rnm')}, mGEM {curves.span(INDEPENDENT, 'mgem', 'rnm')}, RSᵧ "
        f"{curves.span(INDEPENDENT, 'rs', 'rnm')}.",
    )


def _check_randomized_response(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    rivals = [name for name in curves.mechanisms if STYLES[name].private and name not in {"krr", "uniform"}]
    ahead = {title: all(curves.always(title, "krr", rival, low=20) for rival in rivals) for title in BUILDERS}
    useless = {title: curves.at(title, "krr", 0.1) / curves.at(title, "uniform", 0.1) for title in BUILDERS}
    at_ten = "; ".join(
        f"{title.split(':')[0]}: kRR {number(curves.at(title, 'krr', 10))}, best other "
        f"{number(min(curves.at(title, rival, 10) for rival in rivals))}"
        for title in BUILDERS
    )
    return judge(
        {
            "below RNM for all ε ≥ 10": all(curves.always(title, "krr", "rnm", low=10) for title in BUILDERS),
            **{f"{title}: lowest of all for all ε ≥ 20": holds for title, holds in ahead.items()},
        },
        f"At ε = 10, {at_ten}. At ε = 0.1 it is at {min(useless.values()):.1%} of random’s error or more.",
    )


REALISTIC = Experiment(
    name="scenarios-4-to-6",
    title="Scenarios 4 to 6: scores that vary",
    caption="Positive correlation favours mGEM and RSᵧ, negative and absent correlation GEM; at large ε kRR wins.",
    description=(
        "Three columns, one for each scenario. Top: the mean score of each of 100 candidates as a dot, its "
        "sensitivity as a bar. Bottom: mean squared error against the privacy budget, a curve per mechanism."
    ),
    choices={
        "scenario 4": "a = 1…100: mean log a; standard deviations drawn from N(0.5, 1) on [0.01, 0.7], sorted",
        "scenario 5": "mean 0.1a, standard deviation 2.3 − 0.02a (the paper’s second argument read as a deviation)",
        "scenario 6": "means uniform on [0, 1]; standard deviations as in scenario 4, unsorted",
        "sensitivities": f"90th minus 10th percentile of {TRIALS} score sets; scores are clipped to that range",
        "mechanisms": f"β = {BETA}, γ = {GAMMA}",
        "error": (
            "the exact error of each trial, averaged; random stopping and RNMH see fewer trials than the others "
            "(see provenance); bands are ±2 standard errors, mostly thinner than the lines"
        ),
    },
    plan=_plan,
    draw=_draw,
    count=_count,
    claims=[
        Claim(
            id="S4",
            text="Scenario 4 (log growth, rising σ): mGEM and RSᵧ beat RNM, GEM does badly.",
            check=_check_rising,
            needs_full_run=True,
        ),
        Claim(
            id="S5",
            text="Scenario 5 (linear growth, falling σ): GEM beats RNM, mGEM and RSᵧ do badly.",
            check=_check_falling,
            needs_full_run=True,
        ),
        Claim(
            id="S6",
            text="Scenario 6 (independent): GEM does well, mGEM and RSᵧ do not.",
            check=_check_independent,
            needs_full_run=True,
        ),
        Claim(
            id="S12",
            text="kRR does well when ε is large.",
            check=_check_randomized_response,
            needs_full_run=True,
        ),
    ],
)
