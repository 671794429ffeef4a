"""The section's figures, drawn from tables alone."""

from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from experiments import drawing
from experiments.arrays import FloatArray
from experiments.mechanisms import STYLES, Style, tilted_style
from experiments.recommender import private_section
from experiments.recommender.protocol import TILT_CURVES
from experiments.tables import Tables, unique, where

__all__ = [
    "FEW",
    "SHOWN_EPSILON",
    "draw_generated",
    "draw_real",
    "draw_tilts",
    "draw_unclipped",
    "over_noisy_max",
    "over_random",
    "runs_of",
    "trend",
]

TUNED: dict[str, Any] = {"color": drawing.DARK, "linestyle": (0, (1, 1))}
ZERO: dict[str, Any] = {"color": "#888888", "linewidth": 1}
SHOWN_EPSILON = 1.0
COUNTS = ListedColormap(mpl.colormaps["viridis_r"](np.linspace(0.25, 1, 256)))
"""The colours of numbers of users, without the yellows that vanish on white."""
MEAN_RATIO = "Mean score picked, mGEM’s over GEM’s"
SHOWN = ("heterogeneous-rnm", "rnm", "rs", "gem", "mgem", "top-share", "uniform")
"""The curves of errors on real data. The table has the others."""
FEW = 10
"""The fewest users of a point of the trend."""
COLUMNS = 3


def draw_real(data: Tables) -> Figure:
    """Draw a row for each run: the users' correlations, mGEM's advantage against them, and the clipped errors."""
    runs = runs_of(data)
    figure, panels = drawing.grid(rows=len(runs), columns=3, heights=[1.9] * len(runs), width=4.2, aligned=False)
    counts = _counts(data["ratios"])
    _share(panels[:, 0])
    _share(panels[:, 1])
    _share(panels[:, 2], y=True)
    for run, (users, ratios, errors) in zip(runs, panels, strict=True):
        _correlations(users, where(data["correlations"], run=run, variant="clipped"))
        users.set_ylabel(run.replace(", ", ",\n"), fontweight="bold")
        _ratios(ratios, where(data["ratios"], run=run, version="exact"), counts)
        _errors(errors, where(data["errors"], run=run, variant="clipped"), SHOWN)
    titles = ("Users, in %", MEAN_RATIO, "Error over a random pick’s")
    for panel, title in zip(panels[0], titles, strict=True):
        panel.set_title(title)
    for panel in panels[:-1].flat:
        panel.tick_params(labelbottom=False)
    panels[0, 2].set_ylim(bottom=0)
    below = ("Spearman correlation", "Spearman correlation", "privacy budget ε")
    for panel, label in zip(panels[-1], below, strict=True):
        panel.set_xlabel(label)
    _colour_bar(figure, counts, ax=panels[:, 1], location="bottom", fraction=0.02, pad=0.01, aspect=25)
    mean = Line2D([], [], color=mpl.rcParams["text.color"], linewidth=3, label="geometric mean (middle)")
    drawing.bottom_legend(figure, [*(drawing.handle(STYLES[name]) for name in SHOWN), mean], columns=4)
    return figure


def draw_unclipped(data: Tables) -> Figure:
    """Draw the errors on unclipped scores, a panel for each run."""
    runs = runs_of(data)
    figure, panels = _cells(len(runs))
    for run, panel in zip(runs, panels.flat, strict=False):
        _errors(panel, where(data["errors"], run=run, variant="unclipped"), SHOWN)
        panel.set_title(run)
    _label(panels, "error over a random pick’s", "privacy budget ε")
    drawing.legend(figure, SHOWN)
    return figure


def draw_tilts(data: Tables) -> Figure:
    """Draw errors over the tilt, a panel for each run."""
    runs = runs_of(data)
    figure, panels = _cells(len(runs))
    for run, panel in zip(runs, panels.flat, strict=False):
        _tilts(panel, where(data["tilts"], run=run), where(data["tuned"], run=run))
        panel.set_title(run)
    _label(panels, "error over noisy max’s", "tilt")
    drawing.bottom_legend(figure, _tilt_handles(), columns=5)
    return figure


def draw_generated(data: Tables) -> Figure:
    """Draw all tables of the synthetic interactions."""
    figure, panels = drawing.grid(rows=2, columns=3, heights=(2.6, 3), width=4.2, aligned=False)
    (correlations, ratios, tilts), (clipped, unclipped, private) = panels
    figure.suptitle("Synthetic interactions, not real data", fontsize=11, fontweight="bold")
    _correlations(correlations, where(data["correlations"], variant="clipped"))
    correlations.set(title="Users, in %", xlabel="Spearman correlation")
    table = where(data["ratios"], version="exact")
    counts = _counts(table)
    _ratios(ratios, table, counts)
    ratios.set(title=MEAN_RATIO, xlabel="Spearman correlation")
    _colour_bar(figure, counts, ax=ratios)
    _tilts(tilts, data["tilts"], data["tuned"])
    tilts.set(title="Error over noisy max’s", xlabel="tilt")
    for panel, variant in ((clipped, "clipped"), (unclipped, "unclipped, not private")):
        _errors(panel, where(data["errors"], variant=variant.partition(",")[0]), SHOWN)
        panel.set(title=f"Error over a random pick’s,\n{variant}", xlabel="privacy budget ε")
    private_section.picks(private, data["private"])
    private.set(title="Error over a random pick’s,\nprivate from end to end", xlabel="privacy budget ε")
    known = [STYLES[name].label for name in SHOWN]
    others = (*_tilt_handles(), *private_section.pick_handles())
    further = [each for each in others if each.get_label() not in known]
    drawing.bottom_legend(figure, [*(drawing.handle(STYLES[name]) for name in SHOWN), *further], columns=4)
    for panel in (tilts, clipped, unclipped):
        panel.set_ylim(bottom=0)
    return figure


def runs_of(data: Tables) -> list[str]:
    """Return the titles of the runs, in the order of the figure."""
    return unique(data["facts"], "run")


def over_random(table: pa.Table, mechanism: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the values of ε, and a mechanism's error and its standard error over a random pick's error."""
    curve = where(table, mechanism=mechanism)
    random = where(table, mechanism="uniform")
    base = dict(zip(random["epsilon"].to_pylist(), random["mean_squared_error"].to_pylist(), strict=True))
    epsilons = curve["epsilon"].to_numpy()
    unit = np.array([base[epsilon] for epsilon in epsilons])
    return epsilons, curve["mean_squared_error"].to_numpy() / unit, curve["standard_error"].to_numpy() / unit


def over_noisy_max(table: pa.Table, tuned: pa.Table, family: str) -> tuple[FloatArray, FloatArray, float]:
    """Return the tilts of a family, and its errors and the tuned mechanism's over noisy max's, at the shown ε."""
    curve, [chosen] = _at(where(table, family=family)), _at(tuned).to_pylist()
    errors = curve["mean_squared_error"].to_numpy() / chosen["rnm"]
    return curve["tilt"].to_numpy(), errors, chosen["mean_squared_error"] / chosen["rnm"]


def trend(table: pa.Table) -> tuple[FloatArray, FloatArray]:
    """Return the mean log ratio of the users whose correlation is in each tenth, if there are a few of them."""
    places, ratios, users = (table[name].to_numpy() for name in ("correlation", "log_ratio", "users"))
    bins = np.floor(places * 10 + 1e-9).astype(int)
    found = [
        (np.average(places[own], weights=users[own]), np.average(ratios[own], weights=users[own]))
        for own in (bins == each for each in np.unique(bins))
        if users[own].sum() >= FEW
    ]
    across, up = np.array(found).reshape(-1, 2).T
    return across, up


def _cells(count: int) -> tuple[Figure, NDArray[Any]]:
    """Return a figure with a panel for each run, in rows of three, and no empty frame."""
    rows = -(-count // COLUMNS)
    figure, panels = drawing.grid(
        rows=rows, columns=min(COLUMNS, count), heights=[2.6] * rows, width=4.2, aligned=False
    )
    _share(panels, y=True)
    for panel in panels.flat[count:]:
        panel.set_axis_off()
    return figure, panels


def _label(panels: NDArray[Any], label: str, below: str) -> None:
    """Name the vertical axes of the first column, which start at 0, and all horizontal ones."""
    panels[0, 0].set_ylim(bottom=0)  # after drawing, which stretches the other end
    for panel in panels[:, 0]:
        panel.set_ylabel(label)
    for panel in panels.flat:
        panel.set_xlabel(below)


def _share(panels: NDArray[Any], *, y: bool = False) -> None:
    """Give panels the same horizontal axis, and perhaps the same vertical one. To be called before drawing."""
    first, *rest = panels.flat
    for panel in rest:
        panel.sharex(first)
        if y:
            panel.sharey(first)
    if y and panels.ndim == 2:
        for panel in panels[:, 1:].flat:
            panel.tick_params(labelleft=False)


def _counts(table: pa.Table) -> LogNorm:
    return LogNorm(1, max(2, *table["users"].to_pylist()))


def _colour_bar(figure: Figure, counts: LogNorm, **place: Any) -> None:  # noqa: ANN401 - matplotlib's arguments
    ticks = [count for power in (1, 10, 100, 1000) for count in (power, 2 * power, 5 * power)]
    bar = figure.colorbar(ScalarMappable(counts, COUNTS), label="users in a cell", **place)
    bar.set_ticks([count for count in ticks if count <= (counts.vmax or 1)], minor=False)
    bar.minorticks_off()
    (bar.ax.xaxis if bar.orientation == "horizontal" else bar.ax.yaxis).set_major_formatter("{x:g}")


def _correlations(panel: Axes, table: pa.Table) -> None:
    places, users = table["correlation"].to_numpy(), table["users"].to_numpy()
    panel.bar(places, 100 * users / users.sum(), width=0.02, color=drawing.DARK)
    panel.axvline(0, **ZERO)


def _ratios(panel: Axes, table: pa.Table, counts: Normalize) -> None:
    panel.scatter(
        table["correlation"].to_numpy(),
        np.exp(table["log_ratio"].to_numpy()),
        c=table["users"].to_numpy(),
        s=8,
        marker="s",
        cmap=COUNTS,
        norm=counts,
        linewidths=0,
        rasterized=True,
    )
    panel.axhline(1, **ZERO)
    panel.axvline(0, **ZERO)
    # In the colours of text on background, to be seen over any cell.
    text, background = (mpl.rcParams[name] for name in ("text.color", "axes.facecolor"))
    outline = [withStroke(linewidth=4, foreground=background)]
    places, means = trend(table)
    panel.plot(places, np.exp(means), color=text, linewidth=1.8, path_effects=outline)
    panel.set_yscale("log")
    drawing.plain_numbers(panel.yaxis)


def _errors(panel: Axes, table: pa.Table, names: Iterable[str]) -> None:
    for mechanism, style in ((name, STYLES[name]) for name in names):
        epsilons, values, deviations = over_random(table, mechanism)
        if epsilons.size:
            panel.plot(epsilons, values, **{**drawing.line(style), "markersize": 4})
            panel.fill_between(
                epsilons,
                values - 2 * deviations,
                values + 2 * deviations,
                color=style.color,
                alpha=0.2,
                linewidth=0,
            )
    panel.set_xscale("log")
    drawing.plain_numbers(panel.xaxis)


def _tilts(panel: Axes, table: pa.Table, tuned: pa.Table) -> None:
    for name in TILT_CURVES:
        places, values, chosen = over_noisy_max(table, tuned, name)
        panel.plot(places, values, **_tilt_line(name))
        for tilt, special in ((1.0, "gem"), (-1.0, "mgem")) if name == "gem" else ():
            value, style = values[places == tilt], STYLES[special]
            panel.plot([tilt] * value.size, value, style.marker, color=style.color, markersize=8)
    panel.axhline(chosen, linewidth=1.6, **TUNED)
    panel.set_xscale("symlog", linthresh=1, linscale=0.6)
    panel.set_xticks([-32, -8, -2, 0, 2, 8], ["−32", "−8", "−2", "0", "2", "8"])
    panel.xaxis.set_minor_locator(NullLocator())


def _tilt_style(name: str) -> Style:
    """Return the style of a tilted curve; GEM's own record also makes tilted GEM."""
    return tilted_style("tilted-gem" if name == "gem" else name)


def _tilt_line(name: str) -> dict[str, Any]:
    dashes = (0, ()) if name == "gem" else (0, (5, 1.5))
    return {"color": _tilt_style(name).color, "linestyle": dashes, "marker": "."}


def _at(table: pa.Table) -> pa.Table:
    return table.filter(np.isclose(table["epsilon"].to_numpy(), SHOWN_EPSILON))


def _tilt_handles() -> list[Line2D]:
    curves = [Line2D([], [], label=_tilt_style(name).label, **_tilt_line(name)) for name in TILT_CURVES]
    points = [drawing.handle(STYLES[name], linestyle="") for name in ("gem", "mgem")]
    return [*curves, *points, Line2D([], [], label="tuned", **TUNED)]
