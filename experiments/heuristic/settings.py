"""The settings in which the heuristic is scored: scenarios and datasets, each with the errors of the mechanisms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from experiments.arrays import BoolArray, FloatArray
from experiments.curves import Curves
from experiments.mechanisms import PAPER
from experiments.recommender.evidence import judged
from experiments.tables import Tables, unique, where

__all__ = ["PAIR", "SMALL", "Case", "Setting", "basis", "counted", "runs", "scenarios", "scorecard", "short"]

SMALL = (0.01, 0.1, 1.0)
"""The values of ε of the scorecard. Beyond, kRR wins."""
PAIR = ("gem", "mgem")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The errors of the paper's mechanisms in a scenario or on a dataset: one curve over ε for each."""

    title: str
    errors: Mapping[str, FloatArray]
    epsilons: FloatArray

    def at(self, epsilon: float) -> int:
        """Return the place of the nearest ε."""
        return int(np.argmin(np.abs(np.log(self.epsilons / epsilon))))

    def best(self, place: int) -> str:
        """Return the mechanism with the lowest error at the ε of this place."""
        return min(self.errors, key=lambda name: self.errors[name][place])

    def winner(self, epsilon: float) -> str:
        """Return which of GEM and mGEM has the lower error."""
        return min(PAIR, key=lambda name: self.errors[name][self.at(epsilon)])

    @property
    def small(self) -> BoolArray:
        """Which values of ε are at most 1."""
        return np.asarray(self.epsilons <= 1.001)

    @property
    def distances(self) -> FloatArray:
        """The better error of GEM and mGEM divided by the lowest error, for each ε."""
        better = np.minimum(*(self.errors[name] for name in PAIR))
        lowest = np.minimum.reduce(list(self.errors.values()))
        return np.asarray(better / np.maximum(lowest, np.finfo(float).tiny))  # an error may underflow to 0

    @property
    def led(self) -> BoolArray:
        """For which ε mGEM has the lowest error."""
        return np.array([self.best(place) == "mgem" for place in range(self.epsilons.size)])


def scenarios(table: pa.Table) -> list[Setting]:
    """Return the settings of a table of errors by scenario."""
    curves = Curves(table)
    return [
        Setting(
            title=title,
            errors={name: curves.of(title, name) for name in curves.mechanisms},
            epsilons=curves.epsilons,
        )
        for title in curves.scenarios
    ]


def runs(data: Tables, variant: str = "clipped") -> list[Setting]:
    """Return the settings of the kept runs on real data."""
    found = []
    for run in unique(data["data"], "run"):
        table = where(data["data"], run=run, variant=variant)
        errors = {
            name: np.asarray(where(table, mechanism=name)["mean_squared_error"].to_numpy())
            for name in PAPER
            if name in unique(table, "mechanism")
        }
        found.append(Setting(title=run, errors=errors, epsilons=np.asarray(table["epsilon"].unique().to_numpy())))
    return found


def counted(data: Tables) -> list[str]:
    """Return the runs that verdicts rest on."""
    return list(judged(unique(data["data"], "run")))


def basis(data: Tables) -> str:
    """Say on which runs a verdict rests."""
    own = counted(data)
    others = [run for run in unique(data["data"], "run") if run not in own]
    words = f"Real data are judged on {' and '.join(own)}, clipped" if own else "No real data are judged"
    return f"{words}; shown: {', '.join(others)}." if others else f"{words}."


class Case(NamedTuple):
    """A line of the scorecard: a setting at one ε."""

    title: str
    correlation: float
    epsilon: float
    predicted: str
    """What the sign of the correlation predicts; empty if it is 0."""
    actual: str
    counts: bool
    """Whether verdicts rest on the setting."""

    @property
    def is_right(self) -> bool:
        """Whether the prediction is true."""
        return self.predicted == self.actual


def scorecard(data: Tables) -> list[Case]:
    """Return all cases: the scenarios, the slopes, and the runs on real data."""
    signs = {row["setting"]: row["correlation"] for row in data["signs"].to_pylist()}
    medians = {row["run"]: row["correlation"] for row in where(data["data"], variant="clipped").to_pylist()}
    settings = [
        *((each, signs[each.title], True) for name in ("errors", "slopes") for each in scenarios(data[name])),
        *((each, medians[each.title], each.title in counted(data)) for each in runs(data)),
    ]
    return [
        Case(each.title, sign, epsilon, _prediction(sign), each.winner(epsilon), counts)
        for each, sign, counts in settings
        for epsilon in SMALL
    ]


def _prediction(correlation: float) -> str:
    return "" if correlation == 0 else "mgem" if correlation > 0 else "gem"


def short(title: str) -> str:
    """Return the name of a setting without its description."""
    return title.partition(":")[0]
