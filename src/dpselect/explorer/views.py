"""What the page shows: from candidates and settings to numbers, by exact probabilities alone.

**Not private**: everything here reads the scores and shows what follows from them.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import dpselect as dps
from dpselect import parameters as check
from dpselect.auditing.losses import certain_losses
from dpselect.candidates import read_neighbours
from dpselect.kernels.arrays import FloatArray

__all__ = ["MOST_CANDIDATES", "MalformedError", "MechanismView", "Setting", "read_setting", "view"]

MOST_CANDIDATES = 400
"""More than anyone can look at; keeps every answer quick."""

LONGEST_NAME = 80

EPSILONS = tuple(10.0 ** (step / 6) for step in range(-12, 13))
"""From 0.01 to 100."""

TILTS = tuple(step / 2 for step in range(-16, 17))


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A view's candidates and sliders. Hashable, so that answers can be kept while one slider moves."""

    names: tuple[str, ...]
    scores: tuple[float, ...]
    sensitivities: tuple[float, ...]
    neighbour: tuple[float, ...]
    epsilon: float
    beta: float
    gamma: float
    tilt: float


@dataclass(frozen=True, kw_only=True)
class MechanismView:
    """A mechanism on the page."""

    label: str
    code: str
    """How it is made, as Python; ``{name}`` stands for a slider's value."""
    make: Callable[[float, Setting], dps.Mechanism]
    """Makes it for a privacy budget and a setting."""
    private: bool = True
    slow: bool = False
    """Whether the exact law is a quadrature of milliseconds; its curve then has fewer points."""


MECHANISMS: Mapping[str, MechanismView] = {
    "rnm": MechanismView(
        label="noisy max",
        code="dps.NoisyMax(epsilon={epsilon})",
        make=lambda epsilon, _: dps.NoisyMax(epsilon=epsilon),
    ),
    "tilted-rnm": MechanismView(
        label="tilted noisy max",
        code="dps.NoisyMax(epsilon={epsilon}, tilt={tilt}, beta={beta})",
        make=lambda epsilon, s: dps.NoisyMax(epsilon=epsilon, tilt=s.tilt, beta=s.beta),
    ),
    "standardized-rnm": MechanismView(
        label="standardized noisy max",
        code="dps.StandardizedNoisyMax(epsilon={epsilon}, tilt={tilt}, beta={beta})",
        make=lambda epsilon, s: dps.StandardizedNoisyMax(epsilon=epsilon, tilt=s.tilt, beta=s.beta),
    ),
    "gem": MechanismView(
        label="GEM",
        code="dps.GEM(epsilon={epsilon}, beta={beta})",
        make=lambda epsilon, s: dps.GEM(epsilon=epsilon, beta=s.beta),
    ),
    "mgem": MechanismView(
        label="modified GEM",
        code="dps.ModifiedGEM(epsilon={epsilon}, beta={beta})",
        make=lambda epsilon, s: dps.ModifiedGEM(epsilon=epsilon, beta=s.beta),
    ),
    "tilted-gem": MechanismView(
        label="tilted GEM",
        code="dps.GEM(epsilon={epsilon}, tilt={tilt}, beta={beta})",
        make=lambda epsilon, s: dps.GEM(epsilon=epsilon, tilt=s.tilt, beta=s.beta),
    ),
    "combined-gem": MechanismView(
        label="combined GEM",
        code="dps.CombinedGEM(epsilon={epsilon}, beta={beta})",
        make=lambda epsilon, s: dps.CombinedGEM(epsilon=epsilon, beta=s.beta),
    ),
    "rs": MechanismView(
        label="random stopping",
        code="dps.RandomStopping(epsilon={epsilon}, gamma={gamma})",
        make=lambda epsilon, s: dps.RandomStopping(epsilon=epsilon, gamma=s.gamma),
        slow=True,
    ),
    "krr": MechanismView(
        label="randomised response",
        code="dps.RandomizedResponse(epsilon={epsilon})",
        make=lambda epsilon, _: dps.RandomizedResponse(epsilon=epsilon),
    ),
    "uniform": MechanismView(label="random", code="dps.Uniform()", make=lambda *_: dps.Uniform()),
    "rnmh": MechanismView(
        label="RNMH",
        code="dps.unsafe.HeterogeneousNoisyMax(epsilon={epsilon})",
        make=lambda epsilon, _: dps.unsafe.HeterogeneousNoisyMax(epsilon=epsilon),
        private=False,
        slow=True,
    ),
}
"""In the order of the page."""

TILTED: Mapping[str, str] = {
    "tilted-rnm": "noisy max",
    "standardized-rnm": "standardized noisy max",
    "tilted-gem": "GEM",
}
"""The families whose tilt can be chosen."""


class MalformedError(ValueError):
    """A request of another form than the page's: of wrong types, or with numbers that float64 does not hold."""


def read_setting(request: Any) -> Setting:  # noqa: ANN401 - whatever the browser sent
    """Return the setting that a request describes; a ``ValueError`` says what is wrong with it, without scores."""
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
        epsilon=_between("epsilon", _number(request, "epsilon", 1.0), 1e-3, 1e3),
        beta=check.inside_unit_interval("beta", _number(request, "beta", 0.05)),
        gamma=check.probability("gamma", _number(request, "gamma", 0.05)),
        tilt=_between("tilt", _number(request, "tilt", -1.0), -64, 64),
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
        raise MalformedError(f"{name} must be finite, and within what float64 holds")
    return number


def _between(name: str, number: float, low: float, high: float) -> float:
    if not low <= number <= high:
        raise ValueError(f"{name} must be between {low:g} and {high:g}, not {number:g}")
    return number


def view(setting: Setting) -> dict[str, Any]:
    """Return everything the page shows of a setting."""
    scores, sensitivities = np.array(setting.scores), np.array(setting.sensitivities)
    laws = _laws(_without(setting, neighbour=setting.scores))
    there = _laws(_without(setting, scores=setting.neighbour))
    errors = {name: float(law @ (scores.max() - scores) ** 2) for name, law in laws.items()}
    return {
        "mechanisms": {
            name: {"label": entry.label, "private": entry.private, "code": _code(entry, setting)}
            for name, entry in MECHANISMS.items()
        },
        "probabilities": {name: law.tolist() for name, law in laws.items()},
        "errors": errors,
        "advice": _advice(setting.scores, setting.sensitivities, setting.epsilon),
        "curves": _curves(_without(setting, epsilon=1.0, neighbour=setting.scores)),
        "tilts": _tilts(_without(setting, tilt=0.0, neighbour=setting.scores)),
        "correlations": _correlations(scores, sensitivities),
        "losses": {name: _finite(max(map(np.max, certain_losses(laws[name], there[name], 0.0)))) for name in laws},
        "snippets": {name: snippet(name, setting) for name in MECHANISMS},
    }


@lru_cache(maxsize=64)
def _laws(setting: Setting) -> dict[str, FloatArray]:
    """Return each mechanism's probabilities."""
    scores, sensitivities = np.array(setting.scores), np.array(setting.sensitivities)
    return {
        name: entry.make(setting.epsilon, setting).pmf(scores, sensitivities) for name, entry in MECHANISMS.items()
    }


def _without(setting: Setting, **neutral: Any) -> Setting:  # noqa: ANN401 - fields of a setting
    """Return the setting with what does not matter set aside, so that it is found again among kept answers."""
    return Setting(**{**vars(setting), **neutral})


def _curves(setting: Setting) -> dict[str, Any]:
    """Return each mechanism's mean squared error against ε."""
    return {name: _curve(name, _relevant(entry, setting)) for name, entry in MECHANISMS.items()}


def _relevant(entry: MechanismView, setting: Setting) -> Setting:
    """Return the setting with the sliders that the mechanism ignores set aside."""
    ignored = {name: 0.5 for name in ("beta", "gamma", "tilt") if f"{{{name}}}" not in entry.code}
    return _without(setting, **ignored)


@lru_cache(maxsize=256)
def _curve(name: str, setting: Setting) -> dict[str, Any]:
    scores, sensitivities = np.array(setting.scores), np.array(setting.sensitivities)
    entry = MECHANISMS[name]
    epsilons = EPSILONS[::2] if entry.slow else EPSILONS
    errors = [dps.expected_error(entry.make(epsilon, setting), scores, sensitivities) for epsilon in epsilons]
    return {"epsilons": epsilons, "errors": [float(error) for error in errors]}


@lru_cache(maxsize=64)
def _tilts(setting: Setting) -> dict[str, Any]:
    """Return the mean squared error against the tilt, for each family that has one."""
    scores, sensitivities = np.array(setting.scores), np.array(setting.sensitivities)
    return {
        name: {
            "label": label,
            "tilts": TILTS,
            "errors": [
                float(
                    dps.expected_error(
                        MECHANISMS[name].make(setting.epsilon, _without(setting, tilt=tilt)), scores, sensitivities
                    )
                )
                for tilt in TILTS
            ],
        }
        for name, label in TILTED.items()
    }


def _correlations(scores: FloatArray, sensitivities: FloatArray) -> dict[str, float | None]:
    found = {
        "Spearman": dps.correlation.spearman(scores, sensitivities),
        "Pearson": dps.correlation.pearson(scores, sensitivities),
        "weighted": dps.correlation.weighted(scores, sensitivities),
    }
    return {name: None if math.isnan(value) else float(value) for name, value in found.items()}


@lru_cache(maxsize=64)
def _advice(scores: tuple[float, ...], sensitivities: tuple[float, ...], epsilon: float) -> dict[str, Any]:
    """Return the best mechanisms for these scores, with the library's reasons and warnings."""
    advice = dps.advice.advise(np.array(sensitivities), epsilon, prior=dps.advice.Public(np.array([scores])))
    ranking = [{"text": row.mechanism.label, "error": row.error} for row in advice.rows[:3]]
    return {"ranking": ranking, "words": advice.reasons, "warnings": advice.warnings}


def _finite(value: float) -> float | None:
    """Return a loss; ``None`` stands for infinity, which JSON has not."""
    return float(value) if math.isfinite(value) else None


def _code(entry: MechanismView, setting: Setting) -> str:
    values = {name: _written(getattr(setting, name)) for name in ("epsilon", "beta", "gamma", "tilt")}
    return entry.code.format(**values)


def _written(number: float) -> str:
    """Write a number with as many digits as it takes to mean just that number."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


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
    """Return a script that makes one pick, and the numbers of the page, with this setting."""
    entry = MECHANISMS[name]
    warning = "" if entry.private else "# This mechanism is NOT private: never use it on private scores.\n"
    return (
        f"{warning}import dpselect as dps\n\n"
        f"names = {_listed(json.dumps(name, ensure_ascii=False) for name in setting.names)}\n"
        f"scores = {_listed(map(repr, setting.scores))}\n"
        f"sensitivities = {_listed(map(repr, setting.sensitivities))}\n\n"
        f"mechanism = {_code(entry, setting)}\n"
        "print(mechanism.guarantee)\n"
        'print("picked:", names[mechanism.select(scores, sensitivities)])\n\n'
        "# Exact, and not private: these lines read the scores without paying for it.\n"
        'print("probabilities:", mechanism.pmf(scores, sensitivities).round(4))\n'
        'print("mean squared error:", dps.expected_error(mechanism, scores, sensitivities))\n'
    )
