"""What the page shows: from candidates and settings to numbers, by exact probabilities alone.

**Not private**: everything here reads the scores and shows what follows from them.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

import dpselect as dps
from dpselect import parameters as check
from dpselect.auditing.losses import certain_losses
from dpselect.candidates import read_neighbours
from dpselect.kernels.arrays import FloatArray
from dpselect.mechanisms.base import law_name
from dpselect.registry import MECHANISMS, UNSAFE, Record

__all__ = ["MOST_CANDIDATES", "RECORDS", "MalformedError", "Setting", "read_setting", "view"]

RECORDS = {**MECHANISMS, **UNSAFE}
"""The page shows every mechanism, those without a guarantee last."""

MOST_CANDIDATES = 400
"""More than anyone can look at; keeps every answer quick."""

LONGEST_NAME = 80

EPSILONS = tuple(10.0 ** (step / 6) for step in range(-12, 13))
"""From 0.01 to 100."""

TILTS = tuple(step / 2 for step in range(-16, 17))


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The candidates and sliders of a view. Hashable, so that answers can be cached while one slider moves."""

    names: tuple[str, ...]
    scores: tuple[float, ...]
    sensitivities: tuple[float, ...]
    neighbour: tuple[float, ...]
    epsilon: float
    beta: float
    gamma: float
    tilt: float
    drop: float
    """The share of candidates that may not compete: the most sensitive ones, or the least sensitive if negative."""

    @property
    def keep(self) -> tuple[float, float]:
        """The quantiles of the sensitivities that may compete."""
        return (0.0, 1.0 - self.drop) if self.drop >= 0 else (-self.drop, 1.0)

    def mechanism(self, record: Record) -> dps.Mechanism:
        """Return a mechanism with the values of the sliders."""
        return record(epsilon=self.epsilon, **{name: getattr(self, name) for name in record.parameters})


class MalformedError(ValueError):
    """A request with wrong types, or with numbers that float64 does not hold: the page never sends one."""


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
    neighbour = _numbers(request, "neighbour") if request.get("neighbour") else scores
    read_neighbours(scores, neighbour, sensitivities)
    return Setting(
        names=tuple(name[:LONGEST_NAME] for name in names),
        scores=tuple(scores),
        sensitivities=tuple(sensitivities),
        neighbour=tuple(neighbour),
        epsilon=check.between("epsilon", _number(request, "epsilon", 1.0), 1e-3, 1e3),
        beta=check.inside_unit_interval("beta", _number(request, "beta", 0.05)),
        gamma=check.probability("gamma", _number(request, "gamma", 0.05)),
        tilt=check.between("tilt", _number(request, "tilt", -1.0), -64, 64),
        drop=check.between("drop", _number(request, "drop", 0.75), -0.95, 0.95),
    )


def _numbers(request: dict[str, Any], name: str) -> list[float]:
    values = request.get(name)
    if not isinstance(values, list) or not all(type(value) in {int, float} for value in values):
        raise MalformedError(f"{name} must be a list of numbers")
    return [_finite_float(name, value) for value in values]


def _number(request: dict[str, Any], name: str, default: float) -> float:
    value = request.get(name, default)
    if type(value) not in {int, float}:
        raise MalformedError(f"{name} must be a number")
    return _finite_float(name, value)


def _finite_float(name: str, value: float) -> float:
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond all floats
        number = math.inf
    if not math.isfinite(number):
        raise MalformedError(f"{name} must be finite, and not too large for float64")
    return number


def view(setting: Setting) -> dict[str, Any]:
    """Return everything the page shows of a setting."""
    scores, sensitivities = np.array(setting.scores), np.array(setting.sensitivities)
    laws = _laws(replace(setting, neighbour=setting.scores))
    there = _laws(replace(setting, scores=setting.neighbour))
    return {
        "mechanisms": {
            name: {
                "label": record.label,
                "private": record.is_private,
                "family": record.family,
                "color": record.color,
            }
            for name, record in RECORDS.items()
        },
        "probabilities": {name: law.tolist() for name, law in laws.items()},
        "errors": {name: float(law @ (scores.max() - scores) ** 2) for name, law in laws.items()},
        "advice": _advice(setting.scores, setting.sensitivities, setting.epsilon),
        "curves": {name: _curve(name, _relevant(record, setting)) for name, record in RECORDS.items()},
        "tilts": _tilts(replace(setting, tilt=0.0, neighbour=setting.scores)),
        "correlations": _correlations(scores, sensitivities),
        "losses": {
            name: _finite(max(map(np.max, certain_losses(laws[name], there[name], 0.0, setting.epsilon))))
            for name in laws
        },
        "snippets": {name: snippet(name, setting) for name in RECORDS},
    }


# Answers are cached by their setting. What they do not depend on is replaced by a constant before.


@lru_cache(maxsize=64)
def _laws(setting: Setting) -> dict[str, FloatArray]:
    """Return each mechanism's probabilities."""
    scores, sensitivities = np.array(setting.scores), np.array(setting.sensitivities)
    return {name: setting.mechanism(record).pmf(scores, sensitivities) for name, record in RECORDS.items()}


def _relevant(record: Record, setting: Setting) -> Setting:
    """Return the setting without what a mechanism's error curve does not depend on."""
    ignored: dict[str, Any] = {name: 0.5 for name in ("beta", "gamma", "tilt") if name not in record.parameters}
    ignored |= {} if "keep" in record.parameters else {"drop": 0.0}
    return replace(setting, epsilon=1.0, neighbour=setting.scores, **ignored)


@lru_cache(maxsize=256)
def _curve(name: str, setting: Setting) -> dict[str, Any]:
    """Return a mechanism's mean squared error against ε; fewer points if each takes milliseconds."""
    record = RECORDS[name]
    epsilons = EPSILONS[::2] if record.has_slow_pmf else EPSILONS
    return {"epsilons": epsilons, "errors": [_error(record, replace(setting, epsilon=e)) for e in epsilons]}


@lru_cache(maxsize=64)
def _tilts(setting: Setting) -> dict[str, Any]:
    """Return the mean squared error against the tilt, for each family whose tilt can be chosen."""
    return {
        name: {
            "label": record.family,
            "tilts": TILTS,
            "errors": [_error(record, replace(setting, tilt=tilt)) for tilt in TILTS],
        }
        for name, record in RECORDS.items()
        if "tilt" in record.parameters
    }


def _error(record: Record, setting: Setting) -> float:
    return float(
        dps.expected_error(setting.mechanism(record), np.array(setting.scores), np.array(setting.sensitivities))
    )


def _correlations(scores: FloatArray, sensitivities: FloatArray) -> dict[str, float | None]:
    found = {
        "Spearman": dps.correlation.spearman(scores, sensitivities),
        "Pearson": dps.correlation.pearson(scores, sensitivities),
        "weighted": dps.correlation.weighted(scores, sensitivities),
    }
    return {name: _finite(value) for name, value in found.items()}


@lru_cache(maxsize=64)
def _advice(scores: tuple[float, ...], sensitivities: tuple[float, ...], epsilon: float) -> dict[str, Any]:
    """Return the best mechanisms for these scores, with the library's reasons and warnings."""
    advice = dps.advice.advise(np.array(sensitivities), epsilon, prior=dps.advice.Public(np.array([scores])))
    ranking = [{"text": ranked.mechanism.label, "error": ranked.error} for ranked in advice.ranking[:3]]
    return {"ranking": ranking, "words": advice.reasons, "warnings": advice.warnings}


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
    return (
        f"{warning}import dpselect as dps\n\n"
        f"names = {_listed(json.dumps(name, ensure_ascii=False) for name in setting.names)}\n"
        f"scores = {_listed(map(repr, setting.scores))}\n"
        f"sensitivities = {_listed(map(repr, setting.sensitivities))}\n\n"
        f"mechanism = {module}.{law_name(setting.mechanism(record))}\n"
        "print(mechanism.guarantee)\n"
        'print("picked:", names[mechanism.select(scores, sensitivities)])\n\n'
        "# Exact, and not private: these lines read the scores without paying for it.\n"
        'print("probabilities:", mechanism.pmf(scores, sensitivities).round(4))\n'
        'print("mean squared error:", dps.expected_error(mechanism, scores, sensitivities))\n'
    )
