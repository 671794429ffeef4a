"""The paper's synthetic scenarios: score sets, one for each trial, and their sensitivities.

A scenario is a short function that returns a :class:`Scenario`. Treat its arrays as read-only. Where scores vary
between trials, N = 5000 score sets are drawn with a fixed seed: the paper prints this N for scenarios 7 and 8 only.
A candidate's sensitivity is then the distance between the 10th and the 90th percentile of its N scores, and its
scores are clipped to that range, as in the paper. The increasing correlation is an exception: its sensitivities are
no percentiles, and its scores are not clipped.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from types import MappingProxyType

import numpy as np

from experiments.arrays import FloatArray

__all__ = [
    "CANDIDATES",
    "SCENARIOS",
    "SEED",
    "TITLES",
    "TRIALS",
    "Scenario",
    "falling",
    "increasing",
    "independent",
    "negative",
    "polarised",
    "positive",
    "redraw",
    "rising",
    "titled",
    "uncorrelated",
    "weakly_polarised",
]


CANDIDATES = 100
TRIALS = 5000
SEED = 20_250_105
"""Every scenario draws from its own stream of this seed."""

TITLES = MappingProxyType(
    {
        1: "Scenario 1: positive correlation",
        2: "Scenario 2: negative correlation",
        3: "Scenario 3: no correlation",
        4: "Scenario 4: log growth, rising σ",
        5: "Scenario 5: linear growth, falling σ",
        6: "Scenario 6: independent",
        7: "Scenario 7: polarised",
        8: "Scenario 8: less polarised, noisier",
    }
)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Score sets and sensitivities."""

    title: str
    scores: FloatArray
    """A row for each trial, a column for each candidate; clipped where the scenario clips."""
    sensitivities: FloatArray
    """One for each candidate, or a row for each trial where they vary too."""
    midpoints: FloatArray
    """The middle of each candidate's clipping range; 0 where nothing is clipped."""
    drawn: FloatArray
    """The scores before clipping."""
    groups: int = 1
    """The number of groups of users. Trials come from each group in turn."""

    def first(self, trials: int) -> "Scenario":
        """Return only the first trials. The sensitivities still come from all of them."""
        varies = self.sensitivities.ndim > 1
        return replace(
            self,
            scores=self.scores[:trials],
            sensitivities=self.sensitivities[:trials] if varies else self.sensitivities,
            drawn=self.drawn[:trials],
        )


def positive(high: int = 50) -> Scenario:
    """Return scenario 1: the ``high`` good candidates are the more sensitive ones."""
    return _two_groups(TITLES[1], high, (1.8, 1.8), (1.0, 1.0))


def negative(high: int = 50) -> Scenario:
    """Return scenario 2: the ``high`` good candidates are the less sensitive ones."""
    return _two_groups(TITLES[2], high, (1.0, 1.0), (1.8, 1.8))


def uncorrelated(high: int = 50) -> Scenario:
    """Return scenario 3: in each group, half of the candidates are more sensitive."""
    return _two_groups(TITLES[3], high, (1.8, 1.0), (1.8, 1.0))


@cache
def rising() -> Scenario:
    """Return scenario 4: candidate a = 1…100 has mean log a, and a standard deviation that rises with a."""
    return _rising(_stream(4))


@cache
def falling() -> Scenario:
    """Return scenario 5: candidate a = 1…100 has mean 0.1a and standard deviation 2.3 − 0.02a."""
    return _falling(_stream(5))


@cache
def independent() -> Scenario:
    """Return scenario 6: means and standard deviations are independent."""
    return _independent(_stream(6))


def redraw(number: int, layout: int) -> Scenario:
    """Return scenario 4, 5 or 6 drawn anew, with its random means and standard deviations if it has any.

    Args:
        number: The scenario.
        layout: Which of its draws, from 1 on.
    """
    make = {4: _rising, 5: _falling, 6: _independent}[number]
    return make(np.random.default_rng([SEED, number, layout]))


@cache
def polarised() -> Scenario:
    """Return scenario 7: half the users like what the other half dislikes."""
    return _two_camps(TITLES[7], 7, deviation=0.5)


@cache
def weakly_polarised() -> Scenario:
    """Return scenario 8: scenario 7 with more noise."""
    return _two_camps(TITLES[8], 8, deviation=3.0)


@lru_cache(maxsize=1)
def increasing(t: float) -> Scenario:
    """Return a scenario of the increasing correlation: scores (t·x + z)/5 and sensitivities that grow with x.

    With x standard normal for each candidate, and z for each candidate and trial, scores start at 0 and
    Δ_a = x_a − min x + 0.1. Sensitivities are the same in all trials, as in every scenario. They are no percentiles
    of the scores, so there is no range to clip to: scores are as drawn.
    """
    # Common random numbers: two scenarios differ only in t.
    random = _stream(9)
    x, z = random.standard_normal(CANDIDATES), random.standard_normal((TRIALS, CANDIDATES))
    scores = (t * x + z) / 5
    scores -= scores.min(axis=1, keepdims=True)
    return Scenario(
        title=f"t = {t:g}".replace("-", "−"),
        scores=scores,
        sensitivities=x - x.min() + 0.1,
        midpoints=np.zeros(CANDIDATES),
        drawn=scores,
    )


def _rising(random: np.random.Generator) -> Scenario:
    return _clipped(TITLES[4], random, np.log(np.arange(1.0, 101.0)), np.sort(_deviations(random)))


def _falling(random: np.random.Generator) -> Scenario:
    a = np.arange(1.0, 101.0)
    return _clipped(TITLES[5], random, 0.1 * a, 2.3 - 0.02 * a)


def _independent(random: np.random.Generator) -> Scenario:
    return _clipped(TITLES[6], random, random.uniform(size=CANDIDATES), _deviations(random))


def _two_groups(title: str, high: int, above: Sequence[float], below: Sequence[float]) -> Scenario:
    """Return ``high`` candidates of score +1, the others −1; each group has its two sensitivities half and half."""
    low = CANDIDATES - high
    scores = np.repeat([1.0, -1.0], [high, low])[np.newaxis]
    return Scenario(
        title=title,
        scores=scores,
        sensitivities=np.repeat([*above, *below], [high - high // 2, high // 2, low - low // 2, low // 2]),
        midpoints=np.zeros(CANDIDATES),
        drawn=scores,
    )


def _two_camps(title: str, stream: int, deviation: float) -> Scenario:
    """Return users of two groups in turn, with opposite mean scores −8 + 0.08a and 8 − 0.08a, a = 0…99."""
    means = np.outer(np.where(np.arange(TRIALS) % 2, -1.0, 1.0), -8 + 0.08 * np.arange(CANDIDATES))
    return replace(_clipped(title, _stream(stream), means, np.full(CANDIDATES, deviation)), groups=2)


def _clipped(title: str, random: np.random.Generator, means: FloatArray, deviations: FloatArray) -> Scenario:
    """Draw N normal score sets. Their 10th and 90th percentiles give the sensitivities and the clipping ranges."""
    drawn = random.normal(means, deviations, size=(TRIALS, CANDIDATES))
    low, high = np.quantile(drawn, [0.1, 0.9], axis=0)
    return Scenario(
        title=title,
        scores=np.clip(drawn, low, high),
        sensitivities=high - low,
        midpoints=(low + high) / 2,
        drawn=drawn,
    )


def _deviations(random: np.random.Generator) -> FloatArray:
    """Draw standard deviations from the normal distribution N(0.5, 1) truncated to [0.01, 0.7]."""
    found = np.empty(0)
    while found.size < CANDIDATES:
        drawn = random.normal(0.5, 1.0, size=4 * CANDIDATES)
        found = np.concatenate([found, drawn[(drawn >= 0.01) & (drawn <= 0.7)]])
    return found[:CANDIDATES]


def _stream(number: int) -> np.random.Generator:
    return np.random.default_rng([SEED, number])


SCENARIOS: MappingProxyType[int, Callable[[], Scenario]] = MappingProxyType(
    {
        1: positive,
        2: negative,
        3: uncorrelated,
        4: rising,
        5: falling,
        6: independent,
        7: polarised,
        8: weakly_polarised,
    }
)
"""The paper's eight scenarios by number."""


def titled(*numbers: int) -> dict[str, Callable[[], Scenario]]:
    """Return some of the scenarios by title."""
    return {TITLES[number]: SCENARIOS[number] for number in numbers}
