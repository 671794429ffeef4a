"""The mechanisms that the sections on the default compare, and how they are drawn."""

from collections.abc import Iterable

from matplotlib.figure import Figure

import dpselect as dps
from experiments import drawing
from experiments.mechanisms import BETA, STYLES, Style

__all__ = ["BESIDE", "DEFAULT", "KEPT", "RIVALS", "beside", "legend", "style"]

DEFAULT, KEPT = "heterogeneous-rnm", "kept-rnm"
RIVALS = ("rnm", "gem", "mgem")
BESIDE = (DEFAULT, *RIVALS)


def beside(name: str, epsilon: float, **fields: object) -> dps.Mechanism:
    """Return one of these mechanisms.

    Example:
        >>> beside("mgem", 2.0).label
        'modified GEM'
    """
    record = dps.MECHANISMS[name]
    given = {"beta": BETA} if "beta" in record.parameters else {}
    return record(epsilon=epsilon, **given, **fields)


def style(name: str) -> Style:
    """Return a mechanism's style: the one of all other figures, if they show it."""
    if name in STYLES:
        return STYLES[name]
    record = dps.MECHANISMS[name]
    return Style(label=record.symbol, description=record.description, color=record.color, marker="*")


def legend(figure: Figure, names: Iterable[str], *further: object, columns: int = 5) -> None:
    """Name mechanisms below the panels, and then further lines."""
    drawing.bottom_legend(figure, [*(drawing.handle(style(name)) for name in names), *further], columns=columns)
