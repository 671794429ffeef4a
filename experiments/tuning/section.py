"""The section on tuning: a panel and a row for each fleet."""

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments import drawing, tables
from experiments.arrays import FloatArray
from experiments.curves import SHOWN_EPSILONS
from experiments.experiment import Effort, Experiment, Listing, Task
from experiments.mechanisms import STYLES
from experiments.scenarios import SCENARIOS
from experiments.tables import Tables, unique, where
from experiments.trials import epsilon_grid
from experiments.tuning.fleets import data_folder, movielens, scenario_fleet
from experiments.tuning.measuring import PAPER, WITHIN, measure

__all__ = ["KEPT", "TUNING"]

KEPT = Path(__file__).with_name("movielens-1m.csv")
"""Results on MovieLens-1M, shown if the data are not available; ``python -m experiments.tuning`` computes them."""
COLUMNS = 3
CURVES = (
    ("pool_error", "#8a8a8a", (1, 1.5)),
    ("anchored_error", "#1ba3b8", (5, 1.5)),
    ("tuned_error", "#5e3c99", ()),
)
"""Columns, colours and dashes; the last one is drawn on top."""
LOWEST_RATIO = 1e-3
BEST_SHOWN_AT = 2.5
"""The height of the marks that show the best of the paper's mechanisms."""


def _rows(effort: Effort) -> int:
    """Return the number of distinct users in a scenario's fleet."""
    return max(10, effort.trials // 20)


def _plan(effort: Effort) -> list[Task]:
    rows, epsilons = _rows(effort), epsilon_grid(effort).tolist()
    plan = [
        Task(
            label=f"tuning, scenario {number}",
            table="errors",
            compute=partial(measure, partial(scenario_fleet, number, rows), epsilons),
        )
        for number in SCENARIOS
    ]
    compute: Callable[[], pa.Table]
    folder = data_folder()
    if folder is not None:
        compute, inputs = partial(measure, partial(movielens, folder, 4 * rows), epsilons), "computed"
    else:
        compute, inputs = partial(tables.read, KEPT), sha256(KEPT.read_bytes()).hexdigest()
    return [*plan, Task(label="tuning, MovieLens-1M", table="errors", compute=compute, inputs=inputs)]


def _draw(data: Tables) -> Figure:
    fleets = unique(data["errors"], "fleet")
    rows = -(-len(fleets) // COLUMNS)
    figure, panels = drawing.grid(rows=rows, columns=COLUMNS, heights=[2.2] * rows)
    for fleet, panel in zip(fleets, panels.flat, strict=False):
        panel.set_title(fleet, fontsize=10)
        _panel(panel, where(data["errors"], fleet=fleet))
    for panel in panels.flat[len(fleets) :]:
        panel.set_axis_off()
    for row in panels:
        row[0].set_ylabel("error / best error of the paper’s")
    present = set(unique(data["errors"], "paper_best"))
    figure.legend(
        handles=_handles([name for name in PAPER if name in present]), loc="outside lower center", ncols=4
    )
    return figure


def _panel(panel: Axes, table: pa.Table) -> None:
    epsilons, best = table["epsilon"].to_numpy(), table["paper_error"].to_numpy()
    panel.axhspan(WITHIN, BEST_SHOWN_AT, color="#f9e4e0", zorder=0)
    panel.axhline(1.0, color="#888888", linewidth=0.8)
    for column, color, dashes in CURVES:
        # Where both errors are practically zero, their ratio may be off the axis; draw it along the edge.
        ratios = np.clip(table[column].to_numpy() / best, LOWEST_RATIO, 2 * BEST_SHOWN_AT)
        panel.plot(
            epsilons, ratios, color=color, linestyle=(0, dashes) if dashes else "-", linewidth=1.8, clip_on=False
        )
    if (table["tuned_error"].to_numpy() < LOWEST_RATIO * best).all():
        panel.text(1.0, 1.6 * LOWEST_RATIO, f"below {LOWEST_RATIO:g} for all ε", ha="center", fontsize=9)
    for name in PAPER:
        here = np.array(table["paper_best"].to_pylist()) == name
        style = STYLES[name]
        panel.plot(
            epsilons[here], np.full(here.sum(), BEST_SHOWN_AT), style.marker, color=style.color, markersize=4
        )
    panel.set(xscale="log", yscale="log", xlabel="privacy budget ε", ylim=(LOWEST_RATIO, 2 * BEST_SHOWN_AT))
    drawing.plain_numbers(panel.xaxis)
    drawing.plain_numbers(panel.yaxis)


def _handles(present: Sequence[str]) -> list[Line2D]:
    labels = ("best of the pool (not private)", "tuned, with anchors", "tuned")
    lines = [
        Line2D([], [], color=color, linestyle=(0, dashes) if dashes else "-", label=label)
        for (_, color, dashes), label in zip(CURVES, labels, strict=True)
    ]
    marks = [drawing.handle(STYLES[name], linestyle="", label=f"best: {STYLES[name].label}") for name in present]
    return lines[::-1] + marks


def _listing(data: Tables) -> Listing:
    return Listing(
        caption=(
            "The error of the tuned choice divided by that of the best of the paper’s mechanisms at the same ε. "
            "In the last column, the paper’s mechanisms also get the budget of the tuning."
        ),
        columns=[
            "fleet",
            "users",
            f"ratio ≤ {WITHIN}",
            "largest ratio",
            "smallest ratio",
            "smallest, with anchors",
            f"choices at ε = {', '.join(f'{epsilon:g}' for epsilon in SHOWN_EPSILONS)}",
            "at equal total budget",
        ],
        rows=[_entry(where(data["errors"], fleet=fleet)) for fleet in unique(data["errors"], "fleet")],
    )


def _entry(table: pa.Table) -> list[str]:
    epsilons = table["epsilon"].to_numpy()
    ratios, anchored = (
        table[column].to_numpy() / table["paper_error"].to_numpy() for column in ("tuned_error", "anchored_error")
    )
    choices = [
        table["tuned_choice"][int(np.abs(np.log(epsilons / epsilon)).argmin())].as_py()
        for epsilon in SHOWN_EPSILONS
    ]
    equal = _equal_total(table)
    return [
        table["fleet"][0].as_py(),
        f"{table['users'][0].as_py()}",
        f"{(ratios <= WITHIN).sum()} of {ratios.size} ε",
        _at(ratios, epsilons, int(ratios.argmax())),
        _at(ratios, epsilons, int(ratios.argmin())),
        _at(anchored, epsilons, int(anchored.argmin())),
        "; ".join(choices),
        f"≤ {WITHIN} at {(equal <= WITHIN).sum()} of {equal.size} ε; largest {equal.max():.3g}",
    ]


def _equal_total(table: pa.Table) -> FloatArray:
    """Return the ratios to the errors of the paper's best mechanisms at ε plus the tuning's budget.

    The errors are interpolated: their logarithm is nearly linear in ε, and exactly linear for randomised response.
    """
    epsilons, errors = table["epsilon"].to_numpy(), table["paper_error"].to_numpy()
    totals = epsilons + table["tuning_epsilon"].to_numpy()
    inside = totals <= epsilons[-1]
    rivals = np.exp(np.interp(totals[inside], epsilons, np.log(errors)))
    return np.asarray(table["tuned_error"].to_numpy()[inside] / rivals)


def _at(ratios: FloatArray, epsilons: FloatArray, place: int) -> str:
    return f"{ratios[place]:.3g} at ε = {epsilons[place]:.3g}"


TUNING = Experiment(
    name="tuning",
    title="Tuning: one private choice of the mechanism for a fleet of users",
    caption=(
        "Mean squared error of the privately tuned choice, relative to the best of the paper’s private mechanisms. "
        "Finding that best one would need the private scores; marks at the top show which one it is. Shaded: more "
        "than 2 % worse."
    ),
    description=(
        "One panel for each fleet of users: the eight scenarios, and MovieLens-1M. The ratio of errors against ε, "
        "for the tuned choice without and with public anchors, and for the best mechanism of the pool."
    ),
    notes={
        "users": (
            "5000: the first trials of each scenario (250 in the full run), equally many users for each; "
            "MovieLens-1M: 1000 test users"
        ),
        "tuning budget": (
            "ε_tune = 0.2, spent once for all later picks, or ε/100 if that is more; five times as much for the "
            "1000 users of MovieLens-1M, since only users × ε_tune matters"
        ),
        "pool": (
            "noisy max, standardized noisy max and GEM at 11 tilts from −8 to 8, random stopping (η = 0, 1), "
            "combined GEM at 4 shares, randomised response, random; with anchors also 3 × 5 anchor weights"
        ),
        "cap": "chosen with half of ε_tune: the squared width of all clipping ranges, or a 4ᵗʰ, a 16ᵗʰ, … of it",
        "anchors": "the midpoints of the clipping ranges (dashed); none in scenarios 1 to 3",
        "standardized noisy max": "without anchors it measures from 0, the mean score in scenarios 1 to 3",
        "error": "the mean over users and over the distribution of the choice, both from exact probabilities",
        "MovieLens-1M": (
            "EASE, 100 best unseen items of each test user, scores clipped to each item’s 1st to 99th percentile; "
            "computed if DPSELECT_DATA is the folder of ml-1m.parquet, otherwise kept results"
        ),
    },
    plan=_plan,
    draw=_draw,
    listings=lambda data: [_listing(data)],
    discussion=(
        (
            "The choice is ε_tune-DP for any change of one user’s scores. Together with one pick for each user, it "
            "is (ε_tune + ε)-DP. A second pick costs another ε, but no second tuning."
        ),
        (
            "Where errors are practically zero (ε above about 10, where randomised response wins), rare events "
            "decide the ratios: a wrong choice has an error 10⁹ times larger, so it must be rarer than one in 10¹¹ "
            "not to show. This is why the tuning’s budget grows with ε there. At an equal total budget, randomised "
            "response is then better by the factor exp(ε_tune) that the tuning costs."
        ),
    ),
)
