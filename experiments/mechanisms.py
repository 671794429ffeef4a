"""The mechanisms that the figures compare, read from dpselect's records, and how each one is drawn."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

import dpselect as dps
from dpselect.registry import UNSAFE, Record

__all__ = [
    "BETA",
    "COMPARED",
    "COMPARED_IN_PAPER",
    "DRAWN",
    "GAMMA",
    "PAPER",
    "PRIVATE",
    "STYLES",
    "TILTED",
    "TOP_SHARE",
    "Style",
    "build",
    "matched_gamma",
    "tilted_style",
]

BETA = 0.05
GAMMA = 0.05
"""The paper's parameters on synthetic data."""

MARKERS = "ov^sDdPp*X<>"
DASHES = ((), (6, 1.5), (2, 1), (5, 1.5, 1, 1.5))
"""Each further mechanism of a family gets the next dash pattern."""
DOTTED, SPARSE = (1, 1.5), (4, 2)
"""For mechanisms that spend no budget, and for those that are not private."""
COMPARED_IN_PAPER = ("rnm", "gem", "mgem", "rs", "rs-improved", "combined-gem", "krr", "uniform")
"""The private mechanisms that the paper compares, in the order of the records."""


@cache
def matched_gamma(gamma: float) -> float:
    """Return the γ at which improved random stopping takes as many draws on average as RS_γ, which takes 1/γ.

    Solves (1/x − 1)/log(1/x) = 1/γ for x by bisection of log x. The left side falls in x.

    Example:
        >>> x = matched_gamma(0.05)
        >>> round((1 / x - 1) / math.log(1 / x), 9)
        20.0
    """
    low, high = -700.0, math.log(gamma)
    while (middle := (low + high) / 2) not in {low, high}:
        low, high = (middle, high) if math.expm1(-middle) / -middle > 1 / gamma else (low, middle)
    return math.exp(middle)


def _compared() -> dict[str, Record]:
    """Return the paper's mechanisms and heterogeneous noisy max, improved RS_γ with equal draws, RNMH."""
    improved = dps.MECHANISMS["rs-improved"]
    matched = replace(
        improved,
        name="rs-improved-matched",
        symbol=f"{improved.symbol}, equal E[K]",
        description=f"{improved.description}, with as many draws on average as {dps.MECHANISMS['rs'].symbol}",
        constructor=lambda *, gamma=0.05, **other: improved(gamma=matched_gamma(gamma), **other),
        color="#8c6bb1",
    )
    found = {}
    for record in dps.MECHANISMS.values():
        if record.name in {*COMPARED_IN_PAPER, "heterogeneous-rnm"}:
            found[record.name] = record
        if record is improved:
            found[matched.name] = matched
    naive = UNSAFE["rnmh"]
    return found | {naive.name: replace(naive, symbol=f"{naive.symbol} (not private)")}


COMPARED: Mapping[str, Record] = MappingProxyType(_compared())
"""The records of the compared mechanisms, in the order of figures and tables."""

TOP_SHARE = dps.MECHANISMS["top-share"]
"""Compared on real data alone, where rows are about one person."""

PRIVATE = tuple(name for name, record in COMPARED.items() if record.is_private)
PAPER = tuple(name for name in PRIVATE if name != "heterogeneous-rnm")
"""The paper's private mechanisms, with improved random stopping twice."""

TILTED: Mapping[str, Record] = MappingProxyType(
    {name: record for name, record in dps.MECHANISMS.items() if "tilt" in record.parameters}
)
"""The records of the mechanisms that take any tilt: one for each normalisation."""


def build(name: str, epsilon: float, *, beta: float = BETA, gamma: float = GAMMA) -> dps.Mechanism:
    """Return one of the compared mechanisms or top share, with those of the parameters that it has.

    Example:
        >>> build("mgem", 1.0) == dps.ModifiedGEM(epsilon=1.0, beta=0.05)
        True
    """
    record, given = {**COMPARED, TOP_SHARE.name: TOP_SHARE}[name], {"beta": beta, "gamma": gamma}
    return record(epsilon=epsilon, **{key: value for key, value in given.items() if key in record.parameters})


@dataclass(frozen=True, kw_only=True)
class Style:
    """How a mechanism or a policy is named and drawn. Colour, dashes and marker each tell it apart."""

    label: str
    description: str
    color: str
    marker: str
    dashes: tuple[float, ...] = ()
    """Lengths of strokes and gaps, in line widths; empty for a solid line."""
    private: bool = True


def _described(record: Record) -> str:
    """Return what a mechanism is, after its name in words if the figures abbreviate it."""
    abbreviated = record.label.partition(" (")[0] not in record.symbol
    return f"{record.label}: {record.description}" if abbreviated else record.description


def _style(name: str, position: int) -> Style:
    """Return a mechanism's style: the marker by its position, the dashes by its position within its family."""
    record = COMPARED[name]
    family = [other for other, each in COMPARED.items() if each.family == record.family]
    dashes = DASHES[family.index(name) % len(DASHES)] if record.is_private else SPARSE
    spends_nothing = build(name, 1.0).guarantee.epsilon == 0
    return Style(
        label=record.symbol,
        description=_described(record),
        color=record.color,
        marker="" if spends_nothing else MARKERS[position % len(MARKERS)],
        dashes=DOTTED if spends_nothing else dashes,
        private=record.is_private,
    )


STYLES: Mapping[str, Style] = MappingProxyType(
    {name: _style(name, i) for i, name in enumerate(COMPARED)}
    | {
        TOP_SHARE.name: Style(
            label=TOP_SHARE.symbol,
            description=TOP_SHARE.description,
            color=TOP_SHARE.color,
            marker=MARKERS[-1],
            dashes=DASHES[1],
        )
    }
)
"""The styles of the compared mechanisms, and of top share, which is compared on real data alone."""


DRAWN = ("heterogeneous-rnm", "rnm", "rs", "gem", "mgem", "krr", "uniform", "rnmh")
"""The curves of crowded figures. The tables have the others."""


def tilted_style(name: str) -> Style:
    """Return the style of a tilted mechanism: that of its family's first compared member, if there is one."""
    record = TILTED[name]
    relative = next((other for other, each in COMPARED.items() if each.family == record.family), None)
    if relative is not None:
        return replace(STYLES[relative], label=record.label)
    return Style(
        label=record.label,
        description=record.description,
        color=record.color,
        marker=MARKERS[len(COMPARED)],
        dashes=DASHES[-1],
    )
