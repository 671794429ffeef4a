"""What the page shows: from candidates and settings to numbers, by exact probabilities alone.

**Not private**: everything here reads the scores and shows what follows from them.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

import dpselect as dps
from dpselect.auditing.losses import certain_losses
from dpselect.candidates import read_neighbours
from dpselect.errors import MalformedError
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

SMALL = 6000
"""In candidates: a call of this size runs in plain Python and in one thread, so offsets are computed once."""

TILTS = tuple(step / 4 for step in range(-32, 33))

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
    """The candidates and sliders of a view. Hashable, so that answers can be cached while one slider moves."""

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


def read_setting(request: Any) -> Setting:
    """Return the setting that a request describes.

    Raises:
        MalformedError: If it has another form than the page's requests.
        ValueError: If something else is wrong with it. Messages say what, without scores.
    """
    if not isinstance(request, dict):
        raise MalformedError("the request must be a JSON object")
    scores, sensitivities = (_numbers(request, name) for name in ("scores", "sensitivities"))
    if not 2 <= len(scores) <= MOST_CANDIDATES:
        raise ValueError(f"there must be at least 2 and at most {MOST_CANDIDATES} candidates")
    names = request.get("names") or [str(place) for place in range(1, len(scores) + 1)]
    if not isinstance(names, list) or len(names) != len(scores) or not all(isinstance(name, str) for name in names):
        raise MalformedError("names must be one text for each candidate")
    if len(set(names)) < len(names):
        raise ValueError("names must name each candidate once")
    neighbour = _numbers(request, "neighbour") if request.get("neighbour") else scores
    read_neighbours(scores, neighbour, sensitivities)
    return Setting(
        names=tuple(name[:LONGEST_NAME] for name in names),
        scores=tuple(scores),
        sensitivities=tuple(sensitivities),
        neighbour=tuple(neighbour),
        **{name: _slider(request, name) for name in SLIDERS},
        chosen=_listing(request, "chosen", ("heterogeneous-rnm", "gem"), RECORDS),
        parts=_listing(request, "parts", ("curves",), PARTS),
    )


def _listing(
    request: dict[str, Any], name: str, default: tuple[str, ...], known: Mapping[str, Any]
) -> tuple[str, ...]:
    values = request.get(name, default)
    if not isinstance(values, list | tuple) or not all(
        isinstance(value, str) and value in known for value in values
    ):
        raise MalformedError(f"{name} must be a list of some of {', '.join(known)}")
    return tuple(dict.fromkeys(values))


def _numbers(request: dict[str, Any], name: str) -> list[float]:
    values = request.get(name)
    if not isinstance(values, list) or not all(type(value) in {int, float} for value in values):
        raise MalformedError(f"{name} must be a list of numbers")
    return [_finite_float(name, value) for value in values]


def _slider(request: dict[str, Any], name: str) -> float:
    default, lowest, highest = SLIDERS[name]
    value = request.get(name, default)
    if type(value) not in {int, float}:
        raise MalformedError(f"{name} must be a number")
    number = _finite_float(name, value)
    if not lowest <= number <= highest:
        raise ValueError(f"{name} must be between {lowest:g} and {highest:g}")
    return number


def _finite_float(name: str, value: float) -> float:
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond all floats
        number = math.inf
    if not math.isfinite(number):
        raise MalformedError(f"{name} must be finite, and not too large for float64")
    return number


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
    scores, sensitivities = np.array(setting.scores), np.array(setting.sensitivities)
    laws = {name: _law(name, setting) for name in RECORDS}
    shown: dict[str, Any] = {
        "chances": {name: _chance(law, scores) for name, law in laws.items()},
        "errors": {name: _error(law, scores) for name, law in laws.items()},
        "probabilities": {name: laws[name].tolist() for name in setting.chosen},
        "snippets": {name: snippet(name, setting) for name in setting.chosen},
    }
    return shown | {part: PARTS[part](setting, scores, sensitivities) for part in setting.parts}


def _law(name: str, setting: Setting) -> FloatArray:
    """Return a mechanism's probabilities, from a cache of what they depend on."""
    record = RECORDS[name]
    ignored: dict[str, Any] = {field: 0.5 for field in ("beta", "gamma", "tilt") if field not in record.parameters}
    ignored |= {} if "keep" in record.parameters else {"drop": 0.0}
    relevant = replace(setting, names=(), neighbour=(), chosen=(), parts=(), **ignored)
    if record.family is dps.HeterogeneousNoisyMax and setting.epsilon in EPSILONS:
        return _laws_by_epsilon(name, replace(relevant, epsilon=EPSILONS[-1]))[setting.epsilon]
    return _computed_law(name, relevant)


@lru_cache(maxsize=4096)  # of 400 numbers at most
def _computed_law(name: str, setting: Setting) -> FloatArray:
    law: FloatArray = setting.mechanism(RECORDS[name]).pmf(
        np.array(setting.scores), np.array(setting.sensitivities)
    )
    return law


@lru_cache(maxsize=64)
def _laws_by_epsilon(name: str, setting: Setting) -> dict[float, FloatArray]:
    """Return the probabilities at every place of the slider, for little more than the price of one.

    Neutral offsets take most of the time, and rows of the same sensitivities share them. Noise is in proportion to
    1/ε, so the scores (ε/100) q at a budget of 100 have the law of the scores q at a budget of ε.
    """
    mechanism, scores = setting.mechanism(RECORDS[name]), np.array(setting.scores)
    rows = SMALL // max(64, scores.size)
    shares = np.array(EPSILONS) / setting.epsilon
    blocks = [np.outer(shares[first : first + rows], scores) for first in range(0, len(EPSILONS), rows)]
    laws = np.concatenate([mechanism.pmf(block, np.array(setting.sensitivities)) for block in blocks])
    return dict(zip(EPSILONS, laws, strict=True))


def _chance(law: FloatArray, scores: FloatArray) -> float:
    """Return the chance of the best candidate, or of one of the best."""
    return min(1.0, float(law[scores == scores.max()].sum()))


def _error(law: FloatArray, scores: FloatArray) -> float:
    return float(law @ (scores.max() - scores) ** 2)


def _curve(name: str, slider: str, places: tuple[float, ...], setting: Setting) -> dict[str, Any]:
    """Return the chance of the best and the mean squared error against a slider; fewer points for slow laws."""
    scores = np.array(setting.scores)
    places = places[:: 4 if RECORDS[name].has_slow_pmf else 2]
    moves: list[dict[str, Any]] = [{slider: place} for place in places]
    laws = [_law(name, replace(setting, **move)) for move in moves]
    return {
        "places": places,
        "chances": [_chance(law, scores) for law in laws],
        "errors": [_error(law, scores) for law in laws],
    }


# What the page shows when it is unfolded, or when a slider rests.


def _curves(setting: Setting, *_: FloatArray) -> dict[str, Any]:
    return {name: _curve(name, "epsilon", EPSILONS, setting) for name in (*setting.chosen, "uniform")}


def _tilts(setting: Setting, *_: FloatArray) -> dict[str, Any]:
    """Return the curves against the tilt of the chosen mechanisms that have one."""
    tilted = (name for name in setting.chosen if "tilt" in RECORDS[name].parameters)
    return {name: _curve(name, "tilt", TILTS, setting) for name in tilted}


def _losses(setting: Setting, *_: FloatArray) -> dict[str, float | None]:
    """Return each mechanism's exact privacy loss between the scores and the neighbour's."""
    there = replace(setting, scores=setting.neighbour)
    return {
        name: _finite(
            max(map(np.max, certain_losses(_law(name, setting), _law(name, there), 0.0, setting.epsilon)))
        )
        for name in RECORDS
    }


def _correlation(_: Setting, scores: FloatArray, sensitivities: FloatArray) -> float | None:
    return _finite(dps.correlation.spearman(scores, sensitivities))


def _advice(setting: Setting, scores: FloatArray, sensitivities: FloatArray) -> dict[str, Any]:
    """Return the best mechanisms for these scores, with the library's notes; for one person's row, the notes."""
    if setting.chosen[:1] == ("top-share",):
        return {"ranking": [], "notes": dps.advice.advise(None, setting.epsilon).notes}
    advice = dps.advice.advise(sensitivities, setting.epsilon, public_scores=scores[None])
    ranking = [{"text": ranked.mechanism.label, "error": ranked.error} for ranked in advice.ranking[:3]]
    return {"ranking": ranking, "notes": advice.notes}


PARTS: Mapping[str, Callable[[Setting, FloatArray, FloatArray], Any]] = MappingProxyType(
    {"curves": _curves, "tilts": _tilts, "losses": _losses, "correlation": _correlation, "advice": _advice}
)


def _finite(value: float) -> float | None:
    """Return a number; ``None`` stands for infinity and NaN, which JSON does not have."""
    return float(value) if math.isfinite(value) else None


def _listed(entries: Iterable[str]) -> str:
    """Return a list as Python writes it, in lines of readable length."""
    lines = [""]
    for entry in entries:
        if len(lines[-1]) + len(entry) > 72:
            lines.append("")
        lines[-1] += f"{entry}, "
    if len(lines) == 1:
        return f"[{lines[0].removesuffix(', ')}]"
    return "[\n" + "".join(f"    {line.rstrip()}\n" for line in lines) + "]"


def snippet(name: str, setting: Setting) -> str:
    """Return a script that makes one pick with this setting and prints the numbers of the page."""
    record = RECORDS[name]
    warning = "" if record.is_private else "# This mechanism is NOT private: never use it on private scores.\n"
    module = "dps" if record.is_private else "dps.unsafe"
    mechanism = setting.mechanism(record)
    widths = (
        f"sensitivities = {_listed(map(repr, setting.sensitivities))}\n" if mechanism.uses_sensitivities else ""
    )
    rows = "scores, sensitivities" if widths else "scores"
    return (
        f"{warning}import dpselect as dps\n\n"
        f"names = {_listed(json.dumps(name, ensure_ascii=False) for name in setting.names)}\n"
        f"scores = {_listed(map(repr, setting.scores))}\n"
        f"{widths}\n"
        f"mechanism = {module}.{mechanism.law_name}\n"
        "print(mechanism.guarantee)\n"
        f'print("picked:", names[mechanism.select({rows})])\n\n'
        "# Exact, and not private: these lines read the scores without paying for it.\n"
        f'print("probabilities:", mechanism.pmf({rows}).round(4))\n'
        f'print("mean squared error:", dps.expected_error(mechanism, {rows}))\n'
    )
