"""The look of all figures, and the panels that figures share. Draws from tables and computes nothing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator
from numpy.typing import NDArray

from experiments.arrays import FloatArray
from experiments.mechanisms import STYLES, Style
from experiments.tables import Tables, unique, where

__all__ = [
    "DARK",
    "LIGHT",
    "OTHER",
    "bottom_legend",
    "candidates",
    "errors",
    "grid",
    "handle",
    "heat_map",
    "legend",
    "line",
    "look",
    "plain_numbers",
    "ratio_map",
    "ratios",
    "scatter",
    "scenario_columns",
]


DARK, LIGHT = "#5b6f94", "#a9b8d3"
"""The colours of what is not a mechanism, such as a histogram or the parts of a cost."""
SMALLEST_ERROR = 1e-3
"""The lower end of error axes, relative to the largest error."""

OTHER = ("#7a6ff0", "#7d8c1f", "#b5525c", "#a87b4f")
"""The colours of what is no mechanism, on a light or a dark page. No mechanism has one of them."""

LARGEST_RATIO = 3.0
"""The ratio at which the colours of a map of ratios end."""


def look() -> Any:  # noqa: ANN401 - matplotlib's context manager
    """Return a context in which every machine draws and saves the same figures.

    Draw dark on white. In dark mode the report inverts the lightness of whole figures and keeps their hues, so no
    colour needs a second version.
    """
    return mpl.rc_context(
        {
            **mpl.rcParamsDefault,
            "axes.axisbelow": True,
            "axes.edgecolor": "#888888",
            "axes.grid": True,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlesize": 11,
            "axes.titleweight": "bold",
            "figure.facecolor": "white",
            "font.size": 10,
            "grid.color": "#e6e6e6",
            "legend.frameon": False,
            "lines.linewidth": 1.6,
            "lines.markersize": 5,
            "savefig.dpi": 140,
            "xtick.major.size": 3,
            "ytick.major.size": 3,
            "svg.hashsalt": "dpselect",  # the same table gives the same file, byte for byte
        }
    )


def grid(
    *, rows: int, columns: int, heights: Sequence[float], width: float = 3.6, aligned: bool = True
) -> tuple[Figure, NDArray[Any]]:
    """Return a figure and its panels. If ``aligned``, the panels of a row share their vertical axis."""
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08)
    figure = Figure(figsize=(width * columns, 1.3 * sum(heights)), layout=layout)
    panels = figure.subplots(
        rows, columns, squeeze=False, sharey="row" if aligned else "none", height_ratios=heights
    )
    return figure, panels


def candidates(panel: Axes, table: pa.Table) -> None:
    """Draw each candidate's score as a dot and its sensitivity as the length of a bar."""
    index, scores, sensitivities = (table[name].to_numpy() for name in ("candidate", "score", "sensitivity"))
    panel.vlines(index, scores - sensitivities / 2, scores + sensitivities / 2, color="#b9a9d6", linewidth=1.4)
    panel.plot(index, scores, ".", color="#3b1f6b", markersize=4)
    panel.set_xlabel("candidate")
    panel.margins(x=0.02)


def errors(
    panel: Axes, table: pa.Table, *, along: str = "epsilon", limits: tuple[float, float] | None = None
) -> None:
    """Draw the mean squared error of each mechanism, with a band of ±2 standard errors, on logarithmic axes.

    Args:
        panel: Where to draw.
        table: With columns ``mechanism``, ``mean_squared_error``, the one named by ``along``, and perhaps
            ``standard_error``.
        along: The column on the horizontal axis.
        limits: The ends of the vertical axis; by default, from the table.
    """
    for position, (mechanism, style) in enumerate(STYLES.items()):
        curve = where(table, mechanism=mechanism)
        if curve.num_rows == 0:
            continue
        places = curve[along].to_numpy()
        # An error may underflow to 0, which has no logarithm; its curve should still leave through the bottom.
        values = np.maximum(curve["mean_squared_error"].to_numpy(), np.finfo(float).tiny)
        every = max(1, len(places) // 6)
        # Staggered markers tell coinciding curves apart.
        panel.plot(places, values, markevery=(position % every, every), **line(style))
        if "standard_error" in curve.column_names:
            margin = 2 * curve["standard_error"].to_numpy()
            low = np.maximum(values - margin, np.finfo(float).tiny)
            panel.fill_between(places, low, values + margin, color=style.color, alpha=0.2, linewidth=0)
    largest = float(np.max(table["mean_squared_error"].to_numpy()))
    panel.set(yscale="log", ylim=limits or (largest * SMALLEST_ERROR / 4, largest * 1.5))
    plain_numbers(panel.yaxis)
    if along == "epsilon":
        panel.set(xscale="log", xlabel="privacy budget ε")
        plain_numbers(panel.xaxis)


def ratios(panel: Axes, epsilons: FloatArray, curves: Mapping[str, FloatArray]) -> None:
    """Draw each mechanism's error, divided by another's, against ε."""
    for position, (name, values) in enumerate(curves.items()):
        every = max(1, len(values) // 4)
        panel.plot(epsilons, values, markevery=(position % every, every), **line(STYLES[name]))
    panel.set(xscale="log", xlabel="privacy budget ε")
    plain_numbers(panel.xaxis)


def scenario_columns(
    data: Tables,
    *,
    score: str,
    limits: tuple[float, float] | None = None,
    below: Callable[[Axes, str], None] | None = None,
    limits_below: tuple[float, float] | None = None,
) -> Figure:
    """Draw a column for each scenario: its candidates above, the errors of the mechanisms below.

    Args:
        data: With tables ``candidates`` and ``errors``.
        score: What the candidates' scores are.
        limits: The ends of all error axes; by default, each scenario has its own.
        below: Draws a third panel of a scenario.
        limits_below: The ends of its vertical axis; by default, those of the second panel.
    """
    titles = unique(data["errors"], "scenario")
    heights = (2, 3) if below is None else (2, 3, 3)
    figure, panels = grid(rows=len(heights), columns=len(titles), heights=heights, aligned=limits is not None)
    for title, (top, middle, *bottom) in zip(titles, panels.T, strict=True):
        top.set_title(title)
        candidates(top, where(data["candidates"], scenario=title))
        errors(middle, where(data["errors"], scenario=title), limits=limits)
        if below is not None:
            below(bottom[0], title)
            bottom[0].set(xlim=middle.get_xlim(), ylim=limits_below or middle.get_ylim())
    panels[0, 0].set_ylabel(f"{score} ± Δ/2")
    panels[1, 0].set_ylabel("mean squared error")
    legend(figure, unique(data["errors"], "mechanism"))
    return figure


def plain_numbers(axis: Axis) -> None:
    """Write 0.01 and 100 on a logarithmic axis instead of powers of ten, and more values where there is room."""
    low, high = axis.get_view_interval()
    if high < 30 * low:
        between = (1.0, 2.0, 5.0) if high > 4 * low else (1.0, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
        axis.set_major_locator(LogLocator(subs=between))
    elif high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axis.set_major_formatter(lambda value, _: np.format_float_positional(value, precision=12, trim="-"))
    axis.set_minor_locator(NullLocator())


def heat_map(panel: Axes, table: pa.Table, *, x: str, y: str, value: str, limit: float) -> AxesImage:
    """Draw a square map of signed values: red where positive, blue where negative, a line where they are 0.

    The colours of ``RdBu`` can be told apart with any colour vision.
    """
    across, up = np.unique(table[x].to_numpy()), np.unique(table[y].to_numpy())
    order = np.lexsort((table[x].to_numpy(), table[y].to_numpy()))
    values = table[value].to_numpy()[order].reshape(up.size, across.size)
    image = panel.imshow(
        values,
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
        origin="lower",
        extent=(across[0], across[-1], up[0], up[-1]),
        interpolation="bilinear",
    )
    if values.min() < 0 < values.max():
        panel.contour(across, up, values, levels=[0.0], colors="#333333", linewidths=0.8)
    panel.grid(visible=False)
    panel.label_outer()  # neighbours have the same axes
    return image


def ratio_map(panel: Axes, values: FloatArray, texts: Sequence[Sequence[str]], *, limit: float = 0.0) -> None:
    """Draw a map with a text in each cell: blue where a ratio is below 1, red where it is above.

    Args:
        panel: Where to draw.
        values: A row of the map in each row.
        texts: What to write into the cells.
        limit: If positive, the values are not ratios but sizes, all red; the colours end here.
    """
    # Logarithms treat half and double alike.
    colours = values / limit if limit > 0 else np.log(values) / np.log(LARGEST_RATIO)
    panel.imshow(np.clip(colours, -1, 1), cmap="RdBu_r", vmin=-1.3, vmax=1.3, aspect="auto")
    for (row, column), colour in np.ndenumerate(colours):
        ink = "white" if abs(colour) > 0.85 else "black"  # on the cell, whatever the page
        panel.text(column, row, texts[row][column], ha="center", va="center", fontsize=8.5, color=ink)
    panel.grid(visible=False)
    panel.tick_params(length=0)


def scatter(
    panel: Axes, scores: FloatArray, sensitivities: FloatArray, *, sizes: float | FloatArray = 16.0
) -> None:
    """Draw candidates by score and sensitivity."""
    panel.scatter(scores, sensitivities, s=sizes, color="#3b1f6b", alpha=0.6, linewidths=0)
    panel.set(xlabel="score", ylabel="sensitivity")


def legend(figure: Figure, mechanisms: Iterable[str], *, columns: int = 4) -> None:
    """Name the mechanisms below the panels, where no curve is covered."""
    names = set(mechanisms)
    bottom_legend(figure, [handle(style) for name, style in STYLES.items() if name in names], columns=columns)


def bottom_legend(figure: Figure, handles: Sequence[Any], *, columns: int) -> None:
    """Put a legend below the panels."""
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, handlelength=3.2)


def handle(style: Style, **changes: object) -> Line2D:
    """Return a legend's entry for a mechanism or policy; ``changes`` replace properties of its line."""
    return Line2D([], [], **{"label": style.label, **line(style), **changes})


def line(style: Style) -> dict[str, Any]:
    """Return the properties of a mechanism's curve."""
    return {
        "color": style.color,
        "marker": style.marker,
        "linestyle": (0, style.dashes) if style.dashes else "-",
        "zorder": 3 if style.private else 2,
    }
