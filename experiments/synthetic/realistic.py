"""Scenarios 4 to 6: scores that vary between trials."""

from functools import partial

import numpy as np

from experiments import drawing
from experiments.curves import Curves, error_numbers, judge_where, number
from experiments.experiment import Effort, Experiment, Task
from experiments.ledger import Claim, Finding
from experiments.mechanisms import BETA, COMPARED, GAMMA, PAPER
from experiments.scenarios import TRIALS, titled
from experiments.tables import Tables
from experiments.trials import candidate_table, error_tasks, scenario_tasks

__all__ = ["REALISTIC"]

SCENARIOS = titled(4, 5, 6)
RISING, FALLING, INDEPENDENT = SCENARIOS


def _plan(effort: Effort) -> list[Task]:
    return [
        *scenario_tasks("candidates", SCENARIOS, candidate_table),
        *error_tasks(SCENARIOS, [name for name in COMPARED if name != "combined-gem"], effort),
    ]


def _check_rising(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    return judge_where(
        "mGEM and RSᵧ are below RNM, and RNM below GEM",
        curves.epsilons,
        curves.ordered(RISING, ("mgem", "rnm"), ("rs", "rnm"), ("rnm", "gem")),
        f"At ε = 1: {curves.values(RISING, 1.0, ('mgem', 'rs', 'rnm', 'gem', 'uniform'))}. mGEM is below RNM "
        f"{curves.span(RISING, 'mgem', 'rnm')}, RSᵧ {curves.span(RISING, 'rs', 'rnm')}. GEM is worse than random "
        f"{curves.span(RISING, 'uniform', 'gem')}.",
        "At large ε, mGEM’s comparisons of pairs and RSᵧ’s draws cost more than they gain.",
        parts={"GEM is worse than random for ε ≤ 1": curves.always(RISING, "uniform", "gem", high=1)},
    )


def _check_falling(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    return judge_where(
        "GEM is below RNM, and RNM below mGEM and RSᵧ",
        curves.epsilons,
        curves.ordered(FALLING, ("gem", "rnm"), ("rnm", "mgem"), ("rnm", "rs")),
        f"At ε = 1: {curves.values(FALLING, 1.0, ('gem', 'rnm', 'uniform', 'rs', 'mgem'))}. GEM is below RNM "
        f"{curves.span(FALLING, 'gem', 'rnm')}. mGEM is worse than random "
        f"{curves.span(FALLING, 'uniform', 'mgem')}, RSᵧ {curves.span(FALLING, 'uniform', 'rs')}.",
        "At large ε the budget suffices for mGEM’s comparisons of pairs.",
    )


def _check_independent(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    return judge_where(
        "GEM is below RNM, and RNM below mGEM and RSᵧ",
        curves.epsilons,
        curves.ordered(INDEPENDENT, ("gem", "rnm"), ("rnm", "mgem"), ("rnm", "rs")),
        f"At ε = 1: {curves.values(INDEPENDENT, 1.0, ('gem', 'rnm', 'uniform', 'rs', 'mgem'))}. GEM is below RNM "
        f"{curves.span(INDEPENDENT, 'gem', 'rnm')}, mGEM {curves.span(INDEPENDENT, 'mgem', 'rnm')}, RSᵧ "
        f"{curves.span(INDEPENDENT, 'rs', 'rnm')}.",
    )


def _check_randomized_response(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    rivals = [name for name in curves.mechanisms if name in PAPER and name not in {"krr", "uniform"}]
    best = np.logical_and.reduce(
        [curves.ordered(title, *(("krr", rival) for rival in rivals)) for title in SCENARIOS]
    )
    useless = {title: curves.at(title, "krr", 0.1) / curves.at(title, "uniform", 0.1) for title in SCENARIOS}
    at_ten = "; ".join(
        f"{title.split(':')[0]}: kRR {number(curves.at(title, 'krr', 10))}, best other "
        f"{number(min(curves.at(title, rival, 10) for rival in rivals))}"
        for title in SCENARIOS
    )
    return judge_where(
        "kRR has the lowest error in all three scenarios",
        curves.epsilons,
        best,
        f"At ε = 10, {at_ten}. At ε = 0.1, kRR’s error is at least {min(useless.values()):.1%} of random’s.",
        must=(20.0, np.inf),
    )


def _numbers(data: Tables) -> dict[str, str]:
    curves = Curves(data["errors"])
    return {
        name: curves.values(title, 1.0, ("mgem", "gem", "rnm"))
        for name, title in zip(("rising", "falling", "independent"), SCENARIOS, strict=True)
    }


REALISTIC = Experiment(
    name="scenarios-4-to-6",
    title="Scenarios 4 to 6: scores that vary",
    caption=(
        "Positive correlation (scenario 4) favours mGEM and RSᵧ, negative or no correlation GEM. Errors at ε = 1: "
        "{rising} in scenario 4; {falling} in 5; {independent} in 6. From ε = 20 on, where most errors are small, "
        "kRR is best."
    ),
    description=(
        "Three columns, one for each scenario. Top: the mean score of each of 100 candidates as a dot, its "
        "sensitivity as a bar. Bottom: mean squared error against the privacy budget, a curve for each mechanism."
    ),
    notes={
        "scenario 4": "a = 1…100: mean log a; standard deviations drawn from N(0.5, 1) on [0.01, 0.7], sorted",
        "scenario 5": "mean 0.1a, standard deviation 2.3 − 0.02a (the paper’s second argument read as a deviation)",
        "scenario 6": "means uniform on [0, 1]; standard deviations as in scenario 4, unsorted",
        "sensitivities": f"90th minus 10th percentile of {TRIALS} score sets; scores are clipped to that range",
        "mechanisms": f"β = {BETA}, γ = {GAMMA}",
        "error": (
            "the mean of each trial’s exact error; fewer trials for all RSᵧ and RNMH (see provenance); bands are "
            "±2 standard errors, mostly thinner than the lines"
        ),
    },
    plan=_plan,
    draw=partial(drawing.scenario_columns, score="mean score"),
    listings=error_numbers,
    numbers=_numbers,
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
