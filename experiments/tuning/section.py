"""The section on tuning: a row for each fleet, in the maps and in the table."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import drawing, tables
from experiments.arrays import FloatArray
from experiments.curves import SHOWN_EPSILONS
from experiments.experiment import Effort, Experiment, Listing, Task
from experiments.mechanisms import STYLES
from experiments.scenarios import SCENARIOS
from experiments.tables import Tables, unique, where
from experiments.trials import epsilon_grid
from experiments.tuning.fleets import data_folder, movielens, scenario_fleet
from experiments.tuning.measuring import WITHIN, measure

__all__ = ["KEPT", "TUNING"]

KEPT = Path(__file__).with_name("movielens-1m.csv")
"""Results on MovieLens-1M, shown if the data are not available; ``python -m experiments.tuning`` computes them."""
LARGEST_EPSILON = 10.0
"""Beyond, all errors are practically zero, and their ratios say nothing."""
MOST_COLUMNS = 13
LOWEST_RATIO = 1e-3


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
    table = _shown(data)
    fleets = unique(table, "fleet")
    heights = [0.42 * len(fleets) + 0.5]
    figure, ((panel,),) = drawing.grid(rows=1, columns=1, heights=heights, width=11, aligned=False)
    _map(panel, [where(table, fleet=fleet).to_pylist() for fleet in fleets])
    panel.set_title("Tuned: error / best error of the paper’s mechanisms")
    panel.set_yticks(range(len(fleets)), fleets)
    panel.set_xlabel("privacy budget ε")
    return figure


def _shown(data: Tables) -> pa.Table:
    """Return the rows up to the largest ε shown."""
    return data["errors"].filter(pc.field("epsilon") <= LARGEST_EPSILON * (1 + 1e-9))


def _map(panel: Axes, fleets: Sequence[Sequence[Mapping[str, Any]]]) -> None:
    """Draw a row for each fleet, with the ratio and the paper's best mechanism in each cell."""
    rows = [{f"{row['epsilon']:.6g}": row for row in fleet} for fleet in fleets]
    # A fast run computes fewer budgets than the kept results have.
    common = [epsilon for epsilon in rows[0] if all(epsilon in row for row in rows)]
    step = -(-len(common) // MOST_COLUMNS)
    epsilons = common[(len(common) - 1) % step :: step]  # the largest is always shown
    cells = [[row[epsilon] for epsilon in epsilons] for row in rows]
    ratios = np.array([[cell["tuned_error"] / cell["paper_error"] for cell in row] for row in cells])
    texts = [
        [f"{_ratio(ratio)}\n{_short(cell['paper_best'])}" for ratio, cell in zip(*row, strict=True)]
        for row in zip(ratios, cells, strict=True)
    ]
    drawing.ratio_map(panel, ratios, texts)
    panel.set_xticks(range(len(epsilons)), [f"{float(epsilon):.2g}" for epsilon in epsilons])


def _short(name: str) -> str:
    return STYLES[name].label.replace("combined", "comb.")


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}" if value >= LOWEST_RATIO else f"< {LOWEST_RATIO:g}"


def _numbers(data: Tables) -> dict[str, str]:
    table = _shown(data)
    ratios = table["tuned_error"].to_numpy() / table["paper_error"].to_numpy()
    return {"largest": f"{ratios.max():.2f}", "better": f"{(ratios < 1 / WITHIN).mean():.0%}".replace("%", " %")}


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
            f"choices at ε = {', '.join(f'{epsilon:g}' for epsilon in SHOWN_EPSILONS)}",
            "at equal total budget",
        ],
        rows=[_entry(where(data["errors"], fleet=fleet)) for fleet in unique(data["errors"], "fleet")],
    )


def _entry(table: pa.Table) -> list[str]:
    epsilons = table["epsilon"].to_numpy()
    ratios = table["tuned_error"].to_numpy() / table["paper_error"].to_numpy()
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
        "Mean squared error of the privately tuned choice, relative to the best of the paper’s private mechanisms "
        "at the same ε, which is named in each cell. Finding that best one would need the private scores. Blue: "
        "the tuned choice is better. In {better} of all cases up to ε = 10 it is more than 2 % better. Its error "
        "is never more than {largest} times that of the best."
    ),
    description=(
        "A map with a row for each fleet of users, the eight scenarios and MovieLens-1M, and a column for each ε. "
        "In each cell the ratio of errors and the best of the paper’s mechanisms. Nearly all cells are blue or "
        "white."
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
            "heterogeneous noisy max, noisy max and GEM at 11 tilts from −8 to 8, heterogeneous noisy max with "
            "12 ranges of sensitivities kept, random stopping (η = 0, 1), combined GEM at 4 shares, randomised "
            "response, random"
        ),
        "cap": "chosen with half of ε_tune: the squared width of all clipping ranges, or a 4ᵗʰ, a 16ᵗʰ, … of it",
        "shown": f"ε up to {LARGEST_EPSILON:g}, in the full run every second one; the tables have all",
        "error": "the mean over users and over the distribution of the choice, both from exact probabilities",
        "MovieLens-1M": (
            "EASE, 100 best unseen items of each test user, scores clipped to each item’s 1st to 99th percentile; "
            "computed if DPSELECT_DATA is the folder of ml-1m.parquet; otherwise kept results, for which the pool "
            "also had standardized noisy max, a mechanism that the library no longer has"
        ),
    },
    plan=_plan,
    draw=_draw,
    listings=lambda data: [_listing(data)],
    numbers=_numbers,
    discussion=(
        (
            "The choice is ε_tune-DP for any change of one user’s scores. Together with one pick for each user, it "
            "is (ε_tune + ε)-DP. A second pick costs another ε, but no second tuning."
        ),
        (
            "Where errors are practically zero (ε above 10, not in the figure, where randomised response wins), "
            "rare events decide the ratios: a wrong choice has an error 10⁹ times larger, so it must be rarer "
            "than one in 10¹¹ not to show. In scenarios 1 and 2 the tuned choice is therefore worse by a factor "
            "of 100 and more from ε = 20 on, with an error below a hundred-thousandth of a random pick’s. This is "
            "why the tuning’s budget grows with ε there. At an equal total budget, randomised response is then "
            "better by the factor exp(ε_tune) that the tuning costs."
        ),
    ),
)
