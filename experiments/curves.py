"""Error curves: which mechanism is below which, and for which ε."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from experiments.arrays import BoolArray, FloatArray
from experiments.experiment import Numbers
from experiments.ledger import Finding, judge
from experiments.mechanisms import STYLES
from experiments.tables import Tables, unique, where

__all__ = ["SHOWN_EPSILONS", "Curves", "error_numbers", "judge_where", "number", "scope", "span"]


NEGLIGIBLE = 1e-6
"""Errors below this, relative to the scenario's largest error, count as equal."""
SHOWN_EPSILONS = (0.1, 1.0, 10.0)
"""The budgets of the small tables below figures."""


@dataclass(frozen=True)
class Curves:
    """A table of errors by scenario, mechanism and ε."""

    table: pa.Table

    @property
    def scenarios(self) -> list[str]:
        """The scenarios' titles, in the order of the table."""
        return unique(self.table, "scenario")

    @property
    def mechanisms(self) -> list[str]:
        """The mechanisms of the table, in the order of figures."""
        present = set(unique(self.table, "mechanism"))
        return [name for name in STYLES if name in present]

    @property
    def epsilons(self) -> FloatArray:
        """The values of ε."""
        return np.asarray(self.table["epsilon"].unique().to_numpy())

    def of(self, scenario: str, mechanism: str, column: str = "mean_squared_error") -> FloatArray:
        """Return one curve."""
        return np.asarray(where(self.table, scenario=scenario, mechanism=mechanism)[column].to_numpy())

    def at(self, scenario: str, mechanism: str, epsilon: float) -> float:
        """Return the error at one ε of the grid."""
        return float(self.of(scenario, mechanism)[np.argmin(np.abs(self.epsilons - epsilon))])

    def below(self, scenario: str, better: str, worse: str) -> BoolArray:
        """Return for which ε one mechanism's error is below another's, or both are negligible."""
        first, second = self.of(scenario, better), self.of(scenario, worse)
        negligible = NEGLIGIBLE * self.of(scenario, "uniform").max()
        return np.asarray((first < second) | (np.maximum(first, second) < negligible))

    def ordered(self, scenario: str, *pairs: tuple[str, str]) -> BoolArray:
        """Return for which ε the first mechanism of every pair is below the second."""
        return np.asarray(np.logical_and.reduce([self.below(scenario, *pair) for pair in pairs]))

    def always(self, scenario: str, better: str, worse: str, *, low: float = 0.0, high: float = np.inf) -> bool:
        """Return whether one mechanism is below another for all ε in a range."""
        inside = (self.epsilons >= low * (1 - 1e-9)) & (self.epsilons <= high * (1 + 1e-9))
        return bool(self.below(scenario, better, worse)[inside].all())

    def span(self, scenario: str, better: str, worse: str) -> str:
        """Say for which ε one mechanism is below another."""
        return span(self.epsilons, self.below(scenario, better, worse))

    def values(self, scenario: str, epsilon: float, mechanisms: Iterable[str]) -> str:
        """Write the errors of some mechanisms at one ε: ``RNM 1.45, GEM 3.45``."""
        return ", ".join(f"{STYLES[name].label} {number(self.at(scenario, name, epsilon))}" for name in mechanisms)


def error_numbers(data: Tables) -> list[Numbers]:
    """Return the small table below a figure of errors."""
    curves = Curves(data["errors"])
    return [
        Numbers(
            caption="Mean squared error. Bold: the lowest of the private mechanisms.",
            groups=curves.scenarios,
            columns=[f"ε = {epsilon:g}" for epsilon in SHOWN_EPSILONS],
            values={
                name: [curves.at(scenario, name, e) for scenario in curves.scenarios for e in SHOWN_EPSILONS]
                for name in curves.mechanisms
            },
        )
    ]


def span(epsilons: FloatArray, mask: BoolArray) -> str:
    """Say where a condition holds.

    Example:
        >>> span(np.array([0.01, 0.1, 1.0, 10.0]), np.array([True, True, False, True]))
        'for ε = 0.01 to 0.1 and ε = 10'
        >>> span(np.array([0.01, 0.1]), np.array([True, True]))
        'for all ε'
    """
    if mask.all():
        return "for all ε"
    if not mask.any():
        return "for no ε"
    starts = np.flatnonzero(mask & ~np.r_[False, mask[:-1]])
    ends = np.flatnonzero(mask & ~np.r_[mask[1:], False])
    return "for " + " and ".join(
        f"ε = {epsilons[start]:.3g}" + (f" to {epsilons[end]:.3g}" if end > start else "")
        for start, end in zip(starts, ends, strict=True)
    )


def scope(values: FloatArray, mask: BoolArray, symbol: str = "ε") -> str:
    """Say where a claim holds, in as few words as possible; nothing if it holds everywhere.

    Example:
        >>> scope(np.array([0.1, 1.0, 10.0]), np.array([True, True, False]))
        'for ε ≤ 1'
        >>> scope(np.array([0.1, 1.0, 10.0]), np.array([False, True, False]), "α")
        'for α = 1'
    """
    changes = int(np.abs(np.diff(mask.astype(int))).sum())
    if mask.all():
        return ""
    if changes == 1:
        return f"for {symbol} ≤ {values[mask][-1]:.3g}" if mask[0] else f"for {symbol} ≥ {values[mask][0]:.3g}"
    return span(values, mask).replace("ε", symbol)


def judge_where(
    claim: str,
    values: FloatArray,
    mask: BoolArray,
    measured: str,
    comment: str = "",
    *,
    must: tuple[float, float] = (0.0, 1.0),
    parts: Mapping[str, bool] = MappingProxyType({}),
    instead: Mapping[str, str] = MappingProxyType({}),
    symbol: str = "ε",
) -> Finding:
    """Return the finding on a claim that names no ε: it holds where it does, if that includes a given range.

    Args:
        claim: What is claimed at each ε.
        values: The values of ε.
        mask: For which of them it is true.
        measured: The numbers.
        comment: What else to say.
        must: The range in which it must be true.
        parts: Further parts of the claim.
        instead: What is true where one of these fails.
        symbol: What the values are, if they are not of ε.
    """
    low, high = must
    inside = (values >= low * (1 - 1e-9)) & (values <= high * (1 + 1e-9))
    # Islands beyond the range around it, where all errors are negligible, are not worth a word.
    first, last = np.flatnonzero(inside)[[0, -1]]
    while first > 0 and mask[first - 1]:
        first -= 1
    while last + 1 < mask.size and mask[last + 1]:
        last += 1
    around = np.zeros_like(mask)
    around[first : last + 1] = True
    return judge(
        {claim: bool(mask[inside].all()), **parts},
        measured,
        comment,
        instead={
            claim: f"{claim} {'only ' if mask.any() else ''}{span(values, mask).replace('ε', symbol)}",
            **instead,
        },
        scope=scope(values, around, symbol),
    )


def number(value: float) -> str:
    """Write a number with three significant digits.

    Example:
        >>> number(0.2908), number(1234.5), number(3.2e-7)
        ('0.291', '1234', '3.2e-07')
    """
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
