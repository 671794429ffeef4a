"""How every figure looks, and the panels that figures share. Reads tables, computes nothing."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from experiments.mechanisms import STYLES, Style
from experiments.tables import where

__all__ = ["candidates", "errors", "grid", "legend", "look"]

SMALLEST_ERROR = 1e-3
"""Where error axes end: below, all that is left is how fast each curve falls."""


def look() -> Any:  # noqa: ANN401 - matplotlib's context manager
    """Return a context in which figures are drawn and saved alike on every machine."""
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
            "svg.hashsalt": "dpselect",  # the same table gives the same file, byte for byte
        }
    )


def grid(*, rows: int, columns: int, heights: Sequence[float], aligned: bool = True) -> tuple[Figure, NDArray[Any]]:
    """Return a figure and its panels; panels of a row share their vertical axis if ``aligned``."""
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08)
    figure = Figure(figsize=(3.6 * columns, 1.3 * sum(heights)), layout=layout)
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


def errors(panel: Axes, table: pa.Table) -> None:
    """Draw the mean squared error of each mechanism against ε."""
    for position, (mechanism, style) in enumerate(STYLES.items()):
        curve = where(table, mechanism=mechanism)
        epsilons, values = (curve[name].to_numpy() for name in ("epsilon", "mean_squared_error"))
        every = max(1, len(epsilons) // 6)
        panel.plot(
            epsilons,
            # An error may underflow to 0, which has no logarithm; its curve should still leave by the bottom.
            np.maximum(values, np.finfo(float).tiny),
            # Staggered, so that curves which coincide show whose they are.
            markevery=(position % every, every),
            **_line(style),
        )
    panel.set(xscale="log", yscale="log", xlabel="privacy budget ε", ylim=(SMALLEST_ERROR, 6))
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())


def legend(figure: Figure) -> None:
    """Name all mechanisms below the panels, where no curve is covered."""
    handles = [Line2D([], [], label=style.label, **_line(style)) for style in STYLES.values()]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, handlelength=3.2)


def _line(style: Style) -> dict[str, Any]:
    return {
        "color": style.color,
        "marker": style.marker,
        "linestyle": (0, style.dashes) if style.dashes else "-",
        "zorder": 3 if style.private else 2,
    }
