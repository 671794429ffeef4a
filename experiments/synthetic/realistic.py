"""Scenarios 4 to 6: scores that vary between trials."""

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dpselect as dps
from experiments import drawing
from experiments.arrays import FloatArray
from experiments.curves import Curves, error_numbers, judge_where, number
from experiments.experiment import Effort, Experiment, Task
from experiments.ledger import Claim, Finding, Verdict
from experiments.mechanisms import BETA, COMPARED, DRAWN, GAMMA, PAPER, STYLES, build
from experiments.scenarios import TITLES, TRIALS, redraw, titled
from experiments.tables import Tables, among, from_rows, where
from experiments.trials import candidate_table, error_tasks, scenario_tasks

__all__ = ["REALISTIC"]

NUMBERS = (4, 5, 6)
SCENARIOS = titled(*NUMBERS)
RISING, FALLING, INDEPENDENT = SCENARIOS
LAYOUTS = 40
"""The number of times that a scenario is drawn anew."""
LAYOUT_TRIALS = 10
"""The number of score sets of each."""
REDRAWN = ("rnm", "rs", "gem", "mgem", "krr", "uniform")
"""The mechanisms whose errors are computed for each."""
MOST = 0.5
"""What holds in more than this share of the layouts holds in most."""
BAND = (10.0, 90.0)
"""The percentiles over layouts between which bands are drawn."""


def _plan(effort: Effort) -> list[Task]:
    return [
        *scenario_tasks("candidates", SCENARIOS, candidate_table),
        *error_tasks(SCENARIOS, [name for name in COMPARED if name != "combined-gem"], effort),
        *(
            Task(
                label=f"{TITLES[place]}, drawn anew",
                table="redrawn",
                compute=partial(_redrawn, place, full=effort.full),
            )
            for place in NUMBERS
        ),
    ]


def _redrawn(place: int, *, full: bool) -> pa.Table:
    """Return the errors in other layouts of the scenario, over the same trials for each mechanism."""
    rows = []
    for layout in range(1, 1 + (LAYOUTS if full else 3)):
        part = redraw(place, layout).first(LAYOUT_TRIALS if full else 2)
        for epsilon in 10.0 ** np.linspace(-2, 2, 9 if full else 5):
            for name in REDRAWN:
                errors = dps.expected_error(build(name, epsilon), part.scores, part.sensitivities)
                rows.append((part.title, layout, name, epsilon, float(errors.mean())))
    return from_rows(("scenario", "layout", "mechanism", "epsilon", "mean_squared_error"), rows)


def _layouts(data: Tables, title: str, mechanism: str) -> FloatArray:
    """Return a mechanism's errors in the redrawn layouts: (layouts, ε)."""
    table = where(data["redrawn"], scenario=title, mechanism=mechanism)
    return np.asarray(table["mean_squared_error"].to_numpy()).reshape(table["layout"].unique().to_numpy().size, -1)


def _grid(data: Tables) -> FloatArray:
    """Return the values of ε of the redrawn layouts."""
    return np.asarray(data["redrawn"]["epsilon"].unique().to_numpy())


def _in_layouts(data: Tables, title: str, *pairs: tuple[str, str]) -> FloatArray:
    """Return the share of layouts in which the first mechanism of each pair has the lower error, for each ε."""
    below = [_layouts(data, title, better) < _layouts(data, title, worse) for better, worse in pairs]
    return np.asarray(np.logical_and.reduce(below).mean(axis=0))


def _bands(data: Tables, title: str, mechanisms: tuple[str, ...], epsilon: float = 1.0) -> str:
    """Write the 10th to 90th percentile over layouts of errors divided by RNM's: ``GEM 0.8 to 0.9``."""
    place = int(np.argmin(np.abs(_grid(data) - epsilon)))
    base = _layouts(data, title, "rnm")[:, place]
    said = []
    for name in mechanisms:
        low, high = np.percentile(_layouts(data, title, name)[:, place] / base, BAND)
        said.append(f"{STYLES[name].label} {number(low)} to {number(high)}")
    return ", ".join(said)


def _judge_layouts(
    data: Tables, title: str, claim: str, pairs: tuple[tuple[str, str], ...], measured: str, comment: str
) -> Finding:
    """Return the finding on an order of mechanisms, given as pairs: it must hold in most of the layouts."""
    epsilons, shares = _grid(data), _in_layouts(data, title, *pairs)
    small, one = epsilons <= 10.001, int(np.argmin(np.abs(epsilons - 1)))
    each = ", ".join(
        f"{STYLES[pair[0]].label} below {STYLES[pair[1]].label} in {_in_layouts(data, title, pair)[one]:.0%}"
        for pair in pairs
    )
    names = tuple(dict.fromkeys(name for pair in pairs for name in pair if name not in {"rnm", "uniform"}))
    finding = judge_where(
        f"{claim} in most layouts",
        epsilons,
        shares > MOST,
        f"{measured} Over {_layouts(data, title, 'rnm').shape[0]} other layouts, all of this holds in "
        + ", ".join(f"{share:.0%} (ε = {e:.3g})" for e, share in zip(epsilons[small], shares[small], strict=True))
        + f". At ε = 1: {each}; errors divided by RNM’s, 10th to 90th percentile over layouts: "
        f"{_bands(data, title, names)}.",
        comment,
    )
    if finding.verdict is not Verdict.HOLDS:
        return finding
    low, high = (f"{share:.0%}" for share in np.sort(shares[shares > MOST])[[0, -1]])
    where_ = "in all layouts" if low == "100%" else f"in {low} to {high} of the layouts"
    return replace(finding, scope=f"{where_} {finding.scope}".strip())


def _check_rising(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    return _judge_layouts(
        data,
        RISING,
        "mGEM and RSᵧ are below RNM, and GEM above RNM and random,",
        (("mgem", "rnm"), ("rs", "rnm"), ("rnm", "gem"), ("uniform", "gem")),
        f"One layout at ε = 1: {curves.values(RISING, 1.0, ('mgem', 'rs', 'rnm', 'gem', 'uniform'))}. mGEM is "
        f"below RNM {curves.span(RISING, 'mgem', 'rnm')}, RSᵧ {curves.span(RISING, 'rs', 'rnm')}.",
        "At large ε, mGEM’s comparisons of pairs and RSᵧ’s draws cost more than they gain.",
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
    return _judge_layouts(
        data,
        INDEPENDENT,
        "GEM is below RNM, and RNM below mGEM and RSᵧ,",
        (("gem", "rnm"), ("rnm", "mgem"), ("rnm", "rs")),
        f"One layout at ε = 1: {curves.values(INDEPENDENT, 1.0, ('gem', 'rnm', 'uniform', 'rs', 'mgem'))}. GEM is "
        f"below RNM {curves.span(INDEPENDENT, 'gem', 'rnm')}, mGEM {curves.span(INDEPENDENT, 'mgem', 'rnm')}, RSᵧ "
        f"{curves.span(INDEPENDENT, 'rs', 'rnm')}.",
        "Means and standard deviations are random here, so one layout proves nothing.",
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


def _draw(data: Tables) -> Figure:
    def layouts(panel: Axes, title: str) -> None:
        for name in REDRAWN:
            errors, style = np.maximum(_layouts(data, title, name), np.finfo(float).tiny), STYLES[name]
            low, high = np.percentile(errors, BAND, axis=0)
            panel.fill_between(_grid(data), low, high, color=style.color, alpha=0.25, linewidth=0)
            panel.plot(_grid(data), np.median(errors, axis=0), **drawing.line(style))
        panel.set(xscale="log", yscale="log", xlabel="privacy budget ε")
        for axis in (panel.xaxis, panel.yaxis):
            drawing.plain_numbers(axis)

    shown = {**data, "errors": among(data["errors"], mechanism=DRAWN)}
    figure = drawing.scenario_columns(shown, score="mean score", below=layouts)
    count = _layouts(data, RISING, "rnm").shape[0]
    figure.axes[2 * len(SCENARIOS)].set_ylabel(f"mean squared error,\n{count} layouts")
    return figure


def _numbers(data: Tables) -> dict[str, str]:
    curves = Curves(data["errors"])
    return {
        **{
            name: curves.values(title, 1.0, ("mgem", "gem", "rnm"))
            for name, title in zip(("rising", "falling", "independent"), SCENARIOS, strict=True)
        },
        "layouts": str(_layouts(data, RISING, "rnm").shape[0]),
        "band": _bands(data, INDEPENDENT, ("gem", "mgem")),
    }


REALISTIC = Experiment(
    name="scenarios-4-to-6",
    title="Scenarios 4 to 6: scores that vary",
    caption=(
        "Positive correlation (scenario 4) favours mGEM and RSᵧ, negative or no correlation GEM. Errors at ε = 1: "
        "{rising} in scenario 4; {falling} in 5; {independent} in 6. From ε = 20 on, where most errors are small, "
        "kRR is best. Bottom: medians and bands, from the 10th to the 90th percentile, over {layouts} draws of "
        "the scenario’s random means and deviations. In scenario 6 the layout matters: at ε = 1, errors divided "
        "by RNM’s are {band}."
    ),
    description=(
        "Three columns, one for each scenario. Top: the mean score of each of 100 candidates as a dot, its "
        "sensitivity as a bar. Middle: mean squared error against the privacy budget, a curve for each mechanism. "
        "Bottom: the same with a band over many layouts, for six mechanisms; the bands are wide in scenario 6."
    ),
    notes={
        "not drawn": "both improved RSᵧ, which are in the table",
        "scenario 4": "a = 1…100: mean log a; standard deviations drawn from N(0.5, 1) on [0.01, 0.7], sorted",
        "scenario 5": "mean 0.1a, standard deviation 2.3 − 0.02a (the paper’s second argument read as a deviation)",
        "scenario 6": "means uniform on [0, 1]; standard deviations as in scenario 4, unsorted",
        "sensitivities": f"90th minus 10th percentile of {TRIALS} score sets; scores are clipped to that range",
        "number of score sets": f"N = {TRIALS} is our choice: the paper prints its N for scenarios 7 and 8 only",
        "layouts": (
            f"the means of scenario 6 and the deviations of scenarios 4 and 6 are random: top and middle show one "
            f"draw, the bottom {LAYOUTS} others, with {LAYOUT_TRIALS} score sets each; scenario 5 has no random "
            "layout, so only its scores are drawn anew"
        ),
        "mechanisms": f"β = {BETA}, γ = {GAMMA}",
        "error": (
            "the mean of each trial’s exact error; fewer trials for all RSᵧ and naive noisy max (see "
            "provenance); bands are ±2 standard errors, mostly thinner than the lines"
        ),
    },
    plan=_plan,
    draw=_draw,
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
