"""The section's figures, drawn from tables alone."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

import dpselect as dps
from experiments import drawing
from experiments.mechanisms import STYLES, Style, tilted_style
from experiments.recommender.private import FAST, STRONGLY_TILTED
from experiments.recommender.protocol import TILT_CURVES
from experiments.tables import Tables, unique, where

__all__ = ["SHOWN_EPSILON", "SHOWN_FAST", "draw_beyond", "draw_generated", "draw_real", "runs_of"]

WIDTH = 2.7
Dashes: TypeAlias = tuple[float, Sequence[float]]

TUNED: dict[str, Any] = {"color": "#e69f00", "linestyle": (0, (1, 1))}
SHOWN_FAST = {name: (STYLES[name].label, STYLES[name].color) for name in FAST if name != "krr"} | {
    name: (dps.MECHANISMS[record](epsilon=1.0, tilt=-8.0).label, dps.MECHANISMS[record].color)
    for name, record in STRONGLY_TILTED.items()
}
"""Labels and colours of the mechanisms shown under both protocols."""
PROTOCOLS: Mapping[str, Dashes] = MappingProxyType({"paper": (0, (2, 1.5)), "private": (0, ())})
SHOWN_EPSILON = 1.0


def draw_real(data: Tables) -> Figure:
    """Draw the paper's three rows and the unclipped errors below them, with a column for each run."""
    runs = runs_of(data)
    figure, panels = drawing.grid(rows=4, columns=len(runs), heights=(1.7, 2.2, 3, 3), width=WIDTH, aligned=False)
    for run, column in zip(runs, panels.T, strict=True):
        column[0].set_title(_wrapped(run), fontsize=9.5)
        _correlations(column[0], where(data["correlations"], run=run, variant="clipped"))
        _ratios(column[1], where(data["ratios"], run=run, version="exact"))
        for panel, variant in zip(column[2:], ("clipped", "unclipped"), strict=True):
            _errors(panel, where(data["errors"], run=run, variant=variant))
    _label(panels, ["users", "log ratio mGEM / GEM", "mean squared error, clipped", "unclipped (not private)"])
    drawing.legend(figure, unique(data["errors"], "mechanism"), columns=min(5, len(runs)))
    return figure


def draw_beyond(data: Tables) -> Figure:
    """Draw curves over the tilt, and the private protocol next to the paper's."""
    runs = runs_of(data)
    figure, panels = drawing.grid(rows=2, columns=len(runs), heights=(2.6, 3), width=3.2, aligned=False)
    for run, (top, bottom) in zip(runs, panels.T, strict=True):
        top.set_title(_wrapped(run), fontsize=10)
        _tilts(top, where(data["tilts"], run=run), where(data["tuned"], run=run))
        table = where(data["private"], run=run)
        if table.num_rows:
            _private(bottom, table)
        else:
            bottom.set_axis_off()
    _label(panels, ["mean squared error, ε = 1", "squared shortfall"])
    drawing.bottom_legend(figure, [*_tilt_handles(), *_private_handles()], columns=min(5, len(runs)))
    return figure


def draw_generated(data: Tables) -> Figure:
    """Draw all tables of the synthetic interactions."""
    figure, panels = drawing.grid(rows=2, columns=3, heights=(2.6, 3), aligned=False)
    (correlations, ratios, tilts), (clipped, unclipped, private) = panels
    figure.suptitle("Synthetic interactions, not real data", fontsize=11, fontweight="bold")
    _correlations(correlations, where(data["correlations"], variant="clipped"))
    correlations.set_ylabel("users")
    _ratios(ratios, where(data["ratios"], version="exact"))
    ratios.set_ylabel("log ratio mGEM / GEM")
    _tilts(tilts, data["tilts"], data["tuned"])
    tilts.set_ylabel("mean squared error, ε = 1")
    tilts.legend(handles=_tilt_handles(), fontsize=8)
    for panel, variant in ((clipped, "clipped"), (unclipped, "unclipped")):
        _errors(panel, where(data["errors"], variant=variant))
        panel.set_ylabel(f"mean squared error, {variant}")
    _private(private, data["private"])
    private.set_ylabel("squared shortfall")
    private.legend(handles=_private_handles(), fontsize=7.5, ncols=2, loc="upper center")
    private.set_ylim(0, 1.55 * private.get_ylim()[1])  # room for the legend
    drawing.legend(figure)
    return figure


def runs_of(data: Tables) -> list[str]:
    """Return the titles of the runs, in the order of the figure."""
    return unique(data["facts"], "run")


def _wrapped(title: str) -> str:
    return title.replace(", ", ",\n", 1)


def _label(panels: NDArray[Any], labels: Sequence[str]) -> None:
    for panel, label in zip(panels[:, 0], labels, strict=True):
        panel.set_ylabel(label)


def _correlations(panel: Axes, table: pa.Table) -> None:
    places, counts = table["correlation"].to_numpy(), table["users"].to_numpy()
    panel.bar(places, counts, width=0.02, color="#6a51a3")
    panel.axvline(0, color="#888888", linewidth=1)
    panel.set(xlim=(min(-0.25, places.min() - 0.05), 1), xlabel="Spearman correlation")


def _ratios(panel: Axes, table: pa.Table) -> None:
    counts = table["users"].to_numpy()
    panel.scatter(
        table["correlation"].to_numpy(),
        table["log_ratio"].to_numpy(),
        c=counts,
        s=5,
        marker="s",
        cmap="viridis_r",
        norm=LogNorm(1, max(2, counts.max())),
        linewidths=0,
        rasterized=True,
    )
    panel.axhline(0, color="#888888", linewidth=1)
    panel.axvline(0, color="#888888", linewidth=1)
    panel.set(xlabel="Spearman correlation")


def _errors(panel: Axes, table: pa.Table) -> None:
    epsilons, values = table["epsilon"].to_numpy(), table["mean_squared_error"].to_numpy()
    # Show where the curves differ: beyond ε = 4 randomised response leaves the panel.
    drawing.errors(panel, table, limits=(0.5 * float(values[epsilons <= 4].min()), 1.4 * float(values.max())))


def _tilts(panel: Axes, table: pa.Table, tuned: pa.Table) -> None:
    for name in TILT_CURVES:
        curve = _at(where(table, family=name))
        places, values = curve["tilt"].to_numpy(), curve["mean_squared_error"].to_numpy()
        panel.plot(places, values, **_tilt_line(name))
        for tilt, special in ((1.0, "gem"), (-1.0, "mgem")) if name == "gem" else ():
            value, style = values[places == tilt], STYLES[special]
            panel.plot([tilt] * value.size, value, style.marker, color=style.color, markersize=8)
    for value in _at(tuned)["mean_squared_error"].to_pylist():
        panel.axhline(value, linewidth=1.2, **TUNED)
    panel.set_xscale("symlog", linthresh=1, linscale=0.6)
    panel.set_xticks([-32, -8, -2, 0, 2, 8], ["−32", "−8", "−2", "0", "2", "8"])
    panel.set(xlabel="tilt", ylim=(0, None))
    panel.ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))


def _tilt_style(name: str) -> Style:
    """Return the style of a tilted curve; GEM's own record also makes tilted GEM."""
    return tilted_style("tilted-gem" if name == "gem" else name)


def _tilt_line(name: str) -> dict[str, Any]:
    dashes = (0, ()) if name == "gem" else (0, (5, 1.5))
    return {"color": _tilt_style(name).color, "linestyle": dashes, "marker": "."}


def _at(table: pa.Table) -> pa.Table:
    return table.filter(np.isclose(table["epsilon"].to_numpy(), SHOWN_EPSILON))


def _private(panel: Axes, table: pa.Table) -> None:
    for mechanism, (_, color) in SHOWN_FAST.items():
        for name, style in PROTOCOLS.items():
            curve = where(table, mechanism=mechanism, protocol=name)
            panel.plot(
                curve["epsilon"].to_numpy(), curve["mean_squared_error"].to_numpy(), color=color, linestyle=style
            )
    panel.set(xscale="log", xlabel="privacy budget ε", ylim=(0, None))
    panel.ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))
    drawing.plain_numbers(panel.xaxis)


def _tilt_handles() -> list[Line2D]:
    curves = [Line2D([], [], label=_tilt_style(name).label, **_tilt_line(name)) for name in TILT_CURVES]
    points = [drawing.handle(STYLES[name], linestyle="") for name in ("gem", "mgem")]
    return [*curves, *points, Line2D([], [], label="tuned", **TUNED)]


def _private_handles() -> list[Line2D]:
    protocols = [
        Line2D([], [], color="#555555", linestyle=style, label=label)
        for label, style in zip(("paper’s protocol", "private protocol"), PROTOCOLS.values(), strict=True)
    ]
    return [*(Line2D([], [], color=color, label=label) for label, color in SHOWN_FAST.values()), *protocols]
