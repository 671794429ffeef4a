"""The policies: private selection, UCB, discounted UCB, Thompson sampling and an oracle."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Protocol, TypeAlias

import numpy as np

import dpselect as dps
from experiments.arrays import FloatArray, IndexArray
from experiments.bandit.estimates import RunningMeans, Windows
from experiments.bandit.problem import Clip, Problem
from experiments.bandit.sums import hybrid_deviations
from experiments.mechanisms import PAPER, build

__all__ = [
    "BUDGETS",
    "MECHANISMS",
    "OTHERS",
    "PRINTED",
    "TEAMS",
    "Budget",
    "Learner",
    "PrivateLearner",
    "Setting",
    "Team",
    "private_team",
]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The settings that the sensitivity check varies. The defaults are the paper's."""

    clip: Clip = (0.0, 1.0)
    window: int = 200
    optimism: float = math.sqrt(2)
    """UCB's α."""
    clips_scores: bool = False
    """Whether a private policy clips its scores to the released quantiles before the pick."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The budget that a policy spends on one reward, and on one pick if the scores were one person's."""

    means: float = 0.0
    """ε_M: all running means of an arm."""
    quantiles: float = 0.0
    """ε_p: one pair of quantiles."""
    pick: float = 0.0
    """ε_S: one pick."""


class Learner(Protocol):
    """Plays many runs side by side."""

    means: FloatArray
    """The estimated mean reward of each arm: (runs, arms)."""

    def choose(self, step: int) -> IndexArray:
        """Return an arm for each run. Each arm has been pulled once before the first call."""
        ...

    def learn(self, places: IndexArray, rewards: FloatArray) -> None:
        """Learn from the rewards. Place 2 · run + arm is an arm of a run."""
        ...


class PrivateLearner:
    """Picks by private mechanisms from private means, with private quantile ranges as sensitivities.

    Several mechanisms play side by side, each in an equal share of the runs, in order. This shares common work.
    """

    def __init__(
        self,
        mechanisms: Sequence[dps.Mechanism],
        budget: Budget,
        problem: Problem,
        settings: Sequence[Setting],
        seed: int,
    ) -> None:
        rng = np.random.default_rng(seed)
        clips = np.array([setting.clip for setting in settings])
        sizes = np.array([setting.window for setting in settings])
        self._estimates = RunningMeans.private(problem.horizon, clips, epsilon=budget.means, rng=rng)
        self.means = self._estimates.means
        self.windows = Windows(clips, sizes, epsilon=budget.quantiles, rng=rng) if budget.quantiles else None
        self.sensitivities = (
            self.windows.widths if self.windows else np.repeat(clips[:, 1:] - clips[:, :1], 2, axis=1)
        )
        self._clipping = np.flatnonzero([setting.clips_scores for setting in settings])
        share = len(settings) // len(mechanisms)
        self._players = [
            (mechanism, slice(i * share, (i + 1) * share), dps.Randomness.seeded(seed).substream(f"player {i}"))
            for i, mechanism in enumerate(mechanisms)
        ]

    def choose(self, step: int) -> IndexArray:
        """Return what each mechanism's ``select`` picks, from a stream of its own for each step."""
        scores = self.scores()
        return np.concatenate(
            [
                mechanism.select(
                    scores[rows], self.sensitivities[rows], randomness=source.substream(f"step {step}")
                )
                for mechanism, rows, source in self._players
            ]
        )

    def scores(self) -> FloatArray:
        """Return the private means, clipped to the private quantiles where the setting says so."""
        if self.windows is None or not self._clipping.size:
            return self.means
        ends = self.windows.quantiles[self._clipping]
        scores = self.means.copy()
        scores[self._clipping] = np.clip(self.means[self._clipping], ends.min(axis=-1), ends.max(axis=-1))
        return scores

    def learn(self, places: IndexArray, rewards: FloatArray) -> None:
        """Add the rewards to sums and windows."""
        self._estimates.add(places, rewards)
        if self.windows is not None:
            self.windows.add(places, rewards)


class UCB:
    """Upper confidence bounds: picks the arm with the largest mean + α √(ln T / N).

    On private means the bonus covers the noise as well: α √(ln T (1/N + s²/N²)), where s is the standard deviation
    of the noise in a sum of N rewards, a public number.
    """

    def __init__(
        self,
        estimates: RunningMeans,
        problem: Problem,
        settings: Sequence[Setting],
        deviations: FloatArray | None = None,
    ) -> None:
        pulls = np.arange(1, problem.horizon + 1)
        variances = 1 / pulls if deviations is None else 1 / pulls + (deviations[1:] / pulls) ** 2
        # By number of pulls; each arm has been pulled once before the first choice.
        self._bonuses = np.sqrt(math.log(problem.horizon) * np.r_[np.inf, variances])
        self._optimism = np.array([[setting.optimism] for setting in settings])
        self._estimates = estimates
        self.means = estimates.means

    def choose(self, step: int) -> IndexArray:  # noqa: ARG002 - the protocol's
        """Return the arm with the highest upper confidence bound."""
        bounds = self.means + self._optimism * self._bonuses[self._estimates.counts]
        return _larger(bounds)

    def learn(self, places: IndexArray, rewards: FloatArray) -> None:
        """Add the rewards to the means."""
        self._estimates.add(places, rewards)


class DiscountedUCB:
    """Discounted UCB: the weight of a reward is multiplied by γ in every step.

    The bonus is 2B √(ξ ln n / N), with discounted numbers of pulls N and their sum n, rewards within B of each
    other, ξ = 0.6 (the theory needs more than ½), and γ = 1 − √(1/T)/(4B) for one change in T steps.

    References:
        A. Garivier, E. Moulines, On upper-confidence bound policies for switching bandit problems, 2011.
    """

    def __init__(self, problem: Problem, settings: Sequence[Setting], seed: int) -> None:  # noqa: ARG002
        self._spread = np.array([[setting.clip[1] - setting.clip[0]] for setting in settings])
        self._keep = 1 - 1 / (4 * self._spread * math.sqrt(problem.horizon))
        self._counts = np.zeros((len(settings), 2))
        self._sums = np.zeros((len(settings), 2))
        self.means = np.full((len(settings), 2), np.nan)

    def choose(self, step: int) -> IndexArray:  # noqa: ARG002
        """Return the arm with the highest upper confidence bound."""
        total = np.log(self._counts.sum(axis=1, keepdims=True))
        bounds = self.means + 2 * self._spread * np.sqrt(0.6 * np.maximum(total, 0) / self._counts)
        return _larger(bounds)

    def learn(self, places: IndexArray, rewards: FloatArray) -> None:
        """Discount the old rewards, and add the new ones."""
        self._counts *= self._keep
        self._sums *= self._keep
        self._counts.reshape(-1)[places] += 1
        self._sums.reshape(-1)[places] += rewards
        np.divide(self._sums, self._counts, out=self.means, where=self._counts > 0)


class ThompsonSampling:
    """Thompson sampling: picks the arm with the largest draw from the posterior of its mean.

    The model is Gaussian with a known standard deviation, the larger one of the two arms. Each mean has the prior
    N(½, 1).
    """

    def __init__(self, problem: Problem, settings: Sequence[Setting], seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._precision = 1 / max(problem.deviations) ** 2
        self._estimates = RunningMeans(len(settings))
        self.means = self._estimates.means

    def choose(self, step: int) -> IndexArray:  # noqa: ARG002
        """Return the arm with the largest draw."""
        weights = self._precision * self._estimates.counts
        centres = (0.5 + weights * self.means) / (1 + weights)
        draws = centres + self._rng.standard_normal(centres.shape) / np.sqrt(1 + weights)
        return _larger(draws)

    def learn(self, places: IndexArray, rewards: FloatArray) -> None:
        """Add the rewards to the means."""
        self._estimates.add(places, rewards)


def _larger(values: FloatArray) -> IndexArray:
    """Return which of the two values of each row is larger, or the first if they are equal."""
    return np.asarray(values[:, 1] > values[:, 0], dtype=np.int64)


class Oracle:
    """Knows the better arm, and when it changes."""

    def __init__(self, problem: Problem, settings: Sequence[Setting], seed: int) -> None:  # noqa: ARG002
        self._problem = problem
        self._estimates = RunningMeans(len(settings))
        self.means = self._estimates.means

    def choose(self, step: int) -> IndexArray:
        """Return the better arm."""
        better = int(np.argmax(self._problem.means))
        return np.full(len(self.means), better if step < self._problem.shift else 1 - better)

    def learn(self, places: IndexArray, rewards: FloatArray) -> None:
        """Add the rewards to the means, for the figure only."""
        self._estimates.add(places, rewards)


Build: TypeAlias = Callable[[Problem, Sequence[Setting], int], Learner]
"""Makes a learner for a problem, with one run for each setting, from a seed."""


@dataclass(frozen=True, kw_only=True)
class Team:
    """Policies that play side by side."""

    members: Sequence[str]
    """Each has an equal share of the runs, in order."""
    build: Build


MECHANISMS: Mapping[str, dps.Mechanism] = MappingProxyType(
    {name: build(name, 4.0 if name == "krr" else 1.0) for name in PAPER if not name.startswith("rs-improved")}
)
"""The mechanisms of the private policies: ε_S = 4 for kRR, and 1 for the others."""

BUDGETS: Mapping[str, Budget] = MappingProxyType(
    {
        name: Budget(
            means=0.0 if name == "uniform" else 1.0,
            quantiles=0.0 if name in {"krr", "uniform"} else 1.0,
            pick=mechanism.guarantee.epsilon,
        )
        for name, mechanism in MECHANISMS.items()
    }
    # The cost of one reward under the policies with quantiles: ε_M + ε_p.
    | {"private-ucb": Budget(means=2.0)}
)
"""The budgets of the private policies: ε_M = ε_p = 1."""


def private_team(*names: str) -> Team:
    """Return policies that pick with these mechanisms. Either all of them need quantiles, or none."""
    build = partial(PrivateLearner, [MECHANISMS[name] for name in names], BUDGETS[names[0]])
    return Team(members=names, build=build)


def _random(problem: Problem, settings: Sequence[Setting], seed: int) -> Learner:
    # Its picks depend on nothing. Its means are for the figure only, so any budget will do.
    return PrivateLearner([MECHANISMS["uniform"]], Budget(means=1.0), problem, settings, seed)


def _ucb(problem: Problem, settings: Sequence[Setting], seed: int) -> Learner:  # noqa: ARG001
    return UCB(RunningMeans(len(settings)), problem, settings)


def _greedy(problem: Problem, settings: Sequence[Setting], seed: int) -> Learner:
    return _ucb(problem, [replace(setting, optimism=0.0) for setting in settings], seed)


def _private_ucb(problem: Problem, settings: Sequence[Setting], seed: int) -> Learner:
    """Return UCB on private means, for rewards in [0, 1]."""
    epsilon = BUDGETS["private-ucb"].means
    clips = np.array([setting.clip for setting in settings])
    means = RunningMeans.private(problem.horizon, clips, epsilon=epsilon, rng=np.random.default_rng(seed))
    return UCB(means, problem, settings, hybrid_deviations(problem.horizon, epsilon=epsilon))


TEAMS = (
    private_team("mgem", "rs"),
    private_team("rnm", "gem"),
    private_team("combined-gem"),
    private_team("krr"),
    Team(members=["uniform"], build=_random),
    Team(members=["private-ucb"], build=_private_ucb),
    Team(members=["ucb"], build=_ucb),
    Team(members=["greedy"], build=_greedy),
    Team(members=["discounted-ucb"], build=DiscountedUCB),
    Team(members=["thompson"], build=ThompsonSampling),
    Team(members=["oracle"], build=Oracle),
)
"""All policies, the slow ones first. Beyond the paper: combined GEM, random choice, UCB on private means, UCB with
α = 0, discounted UCB and the oracle."""

PRINTED = ("krr", "rnm", "rs", "gem", "mgem", "ucb", "thompson")
"""The paper's seven policies: five private ones, and two that are not."""
OTHERS = tuple(name for team in TEAMS for name in team.members if name not in PRINTED)
"""The policies that the paper does not have."""
