"""What the page shows: from candidates and settings to numbers, by exact probabilities alone.

**Not private**: everything here reads the scores and shows what follows from them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pprint import pformat
from typing import Any

import numpy as np

import dpselect as dps
from dpselect import parameters as check
from dpselect.auditing.losses import certain_losses
from dpselect.candidates import read_neighbours
from dpselect.inputs import read_numbers
from dpselect.kernels.arrays import FloatArray
from dpselect.registry import MECHANISMS, UNSAFE, Record

RECORDS = {**MECHANISMS, **UNSAFE}
"""The page shows every mechanism, those without a guarantee last."""

MOST_CANDIDATES = 400
"""More than anyone can look at; keeps every answer quick."""

LONGEST_NAME = 80

EPSILONS = (
    *(float(f"{digits}e{power}") for power in (-2, -1, 0, 1) for digits in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)),
    100.0,
)
"""The places of the page's slider."""

SLIDERS = {
    "epsilon": (1.0, 1e-3, 1e3),
    "beta": (0.05, 1e-12, 1 - 1e-12),
    "gamma": (0.05, 1e-12, 1.0),
    "tilt": (-1.0, -64.0, 64.0),
    "drop": (0.75, -0.95, 0.95),
}
"""Of each slider, its value if the request has none, the lowest and the highest."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The candidates and sliders of a view."""

    names: tuple[str, ...]
    scores: tuple[float, ...] = field(repr=False)
    sensitivities: tuple[float, ...]
    neighbour: tuple[float, ...] = field(repr=False)
    epsilon: float
    beta: float
    gamma: float
    tilt: float
    drop: float
    """The share of candidates that may not compete: the most sensitive ones, or the least sensitive if negative."""
    chosen: tuple[str, ...]
    """The mechanisms to show in full."""
    parts: tuple[str, ...]
    """What else to compute, out of ``PARTS``."""

    @property
    def keep(self) -> tuple[float, float]:
        """The quantiles of the sensitivities that may compete."""
        return (0.0, 1.0 - self.drop) if self.drop >= 0 else (-self.drop, 1.0)

    def mechanism(self, record: Record) -> dps.Mechanism:
        """Return a mechanism with the values of the sliders."""
        return record(epsilon=self.epsilon, **{name: getattr(self, name) for name in record.parameters})

    def law(self, name: str) -> FloatArray:
        """Return a mechanism's probabilities."""
        return _law(self.mechanism(RECORDS[name]), self.scores, self.sensitivities)

    def chance(self, law: FloatArray) -> float:
        """Return the chance of the best candidate, or of one of the best."""
        scores = np.array(self.scores)
        return min(1.0, float(law[scores == scores.max()].sum()))

    def error(self, law: FloatArray) -> float:
        """Return the mean squared error."""
        scores = np.array(self.scores)
        return float(law @ (scores.max() - scores) ** 2)


@lru_cache(maxsize=4096)  # of 400 numbers at most: a slider moves only some of them
def _law(mechanism: dps.Mechanism, scores: tuple[float, ...], sensitivities: tuple[float, ...]) -> FloatArray:
    law: FloatArray = mechanism.pmf(np.array(scores), np.array(sensitivities))
    return law


def read_setting(request: Any) -> Setting:
    """Return the setting that a request describes.

    Raises:
        ValueError: If a person's numbers or names break a rule. Messages show no score. A request that the page
            would never send may raise another exception.
    """
    filled = request | {"neighbour": request.get("neighbour") or request["scores"]}
    scores, neighbour, sensitivities = (
        read_numbers(name, filled[name]).tolist() for name in ("scores", "neighbour", "sensitivities")
    )
    if not 2 <= len(scores) <= MOST_CANDIDATES:
        raise ValueError(f"there must be at least 2 and at most {MOST_CANDIDATES} candidates")
    names = request.get("names") or [str(place) for place in range(1, len(scores) + 1)]
    if len(set(names)) < len(scores):
        raise ValueError("names must name each candidate once")
    read_neighbours(scores, neighbour, sensitivities)
    return Setting(
        names=tuple(name[:LONGEST_NAME] for name in names),
        scores=tuple(scores),
        sensitivities=tuple(sensitivities),
        neighbour=tuple(neighbour),
        **{
            name: check.between(name, request.get(name, default), *ends)
            for name, (default, *ends) in SLIDERS.items()
        },
        chosen=tuple(request.get("chosen", ("heterogeneous-rnm", "gem"))),
        parts=tuple(request.get("parts", ("curves",))),
    )


def mechanisms() -> dict[str, dict[str, Any]]:
    """Return what the page must know of each mechanism before it asks for numbers."""
    return {
        name: {
            "label": record.label,
            "private": record.is_private,
            "color": record.color,
            "parameters": record.parameters,
        }
        for name, record in RECORDS.items()
    }


def view(setting: Setting) -> dict[str, Any]:
    """Return the numbers of a setting, with those of its parts."""
    laws = {name: setting.law(name) for name in RECORDS}
    shown: dict[str, Any] = {
        "chances": {name: setting.chance(law) for name, law in laws.items()},
        "errors": {name: setting.error(law) for name, law in laws.items()},
        "probabilities": {name: laws[name].tolist() for name in setting.chosen},
        "snippets": {name: snippet(name, setting) for name in setting.chosen},
    }
    return shown | {part: PARTS[part](setting) for part in setting.parts}


# What the page shows when it is unfolded, or when a slider rests.


def _curves(setting: Setting) -> dict[str, Any]:
    """Return the chance of the best and the mean squared error against ε; fewer points for slow laws."""
    curves = {}
    for name in (*setting.chosen, "uniform"):
        places = EPSILONS[:: 4 if RECORDS[name].has_slow_pmf else 2]
        laws = [replace(setting, epsilon=epsilon).law(name) for epsilon in places]
        chances, errors = [setting.chance(law) for law in laws], [setting.error(law) for law in laws]
        curves[name] = {"places": places, "chances": chances, "errors": errors}
    return curves


def _losses(setting: Setting) -> dict[str, float | None]:
    """Return each mechanism's exact privacy loss between the scores and the neighbour's."""
    there = replace(setting, scores=setting.neighbour)
    return {
        name: _finite(max(map(np.max, certain_losses(setting.law(name), there.law(name), 0.0, setting.epsilon))))
        for name in RECORDS
    }


def _correlation(setting: Setting) -> float | None:
    return _finite(dps.correlation.spearman(list(setting.scores), list(setting.sensitivities)))


PARTS: dict[str, Callable[[Setting], Any]] = {"curves": _curves, "losses": _losses, "correlation": _correlation}


def _finite(value: float) -> float | None:
    """Return a number; ``None`` stands for infinity and NaN, which JSON does not have."""
    return float(value) if math.isfinite(value) else None


def snippet(name: str, setting: Setting) -> str:
    """Return a script that makes one pick with this setting and prints the numbers of the page."""
    record = RECORDS[name]
    warning = "" if record.is_private else "# This mechanism is NOT private: never use it on private scores.\n"
    module = "dps" if record.is_private else "dps.unsafe"
    mechanism = setting.mechanism(record)
    widths = f"sensitivities = {_listed(setting.sensitivities)}\n" if mechanism.uses_sensitivities else ""
    rows = "scores, sensitivities" if widths else "scores"
    return (
        f"{warning}import dpselect as dps\n\n"
        f"names = {_listed(setting.names)}\n"
        f"scores = {_listed(setting.scores)}\n"
        f"{widths}\n"
        f"mechanism = {module}.{mechanism.law_name}\n"
        "print(mechanism.guarantee)\n"
        f'print("picked:", names[mechanism.select({rows})])\n\n'
        "# Exact, and not private: these lines read the scores without paying for it.\n"
        f'print("probabilities:", mechanism.pmf({rows}).round(4))\n'
        f'print("mean squared error:", dps.expected_error(mechanism, {rows}))\n'
    )


def _listed(entries: tuple[object, ...]) -> str:
    """Return a list as Python writes it, in lines of readable length."""
    return pformat(list(entries), compact=True)
