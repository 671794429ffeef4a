"""The loop: many runs of one policy side by side, step by step.

Every step is one call of the policy's ``select`` on all runs at once, so what picks here is what picks anywhere else,
and the call's overhead is shared by the runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from experiments.bandit.policies import Learner, Policy, PrivateLearner, Setting
from experiments.bandit.problem import Problem

__all__ = ["Trace", "simulate"]

FloatArray: TypeAlias = NDArray[np.float64]
IndexArray: TypeAlias = NDArray[np.int64]

ARMS = 2
BLOCK = 1000
"""Steps whose rewards are clipped at once."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What happened. Runs are in two axes, (settings, repetitions); times are numbers of steps done."""

    times: IndexArray
    rewards: FloatArray
    """Cumulative reward: (times, settings, repetitions)."""
    regrets: FloatArray
    """Cumulative mean reward that the better arm would have paid on top: (times, settings, repetitions)."""
    means: FloatArray
    """Estimated means: (times, settings, repetitions, arms)."""
    quantiles: FloatArray
    """Estimated 10th and 90th percentile: (times, settings, repetitions, arms, 2); NaN where there are none."""
    pulls: IndexArray
    """How often each arm was pulled in all: (settings, repetitions, arms)."""
    last_misjudged: IndexArray
    """The last step after the shift with the means in the wrong order, or the shift: (settings, repetitions)."""


def simulate(
    policy: Policy,
    problem: Problem,
    settings: Sequence[Setting],
    *,
    repetitions: int,
    times: IndexArray,
    seed: int,
) -> Trace:
    """Return what happens to one policy, once for each setting and repetition.

    Rewards depend on ``seed`` and the repetition only: all policies and all settings meet the same luck.
    """
    rewards_seed, policy_seed = np.random.SeedSequence(seed).generate_state(2).tolist()
    raw = problem.rewards(repetitions, np.random.default_rng(rewards_seed))
    runs = [setting for setting in settings for _ in range(repetitions)]
    learner = policy.build(problem, runs, policy_seed)
    recorder = _Recorder(problem, runs, times)
    clips = np.array([setting.clip for setting in settings])
    first_places = ARMS * np.arange(len(runs))
    for start in range(0, problem.horizon, BLOCK):
        block = raw[start : start + BLOCK, np.newaxis]
        clipped = np.clip(block, clips[:, :1, np.newaxis], clips[:, 1:, np.newaxis]).reshape(len(block), -1)
        for step, paid in enumerate(clipped, start):
            places = first_places + (learner.choose(step) if step >= ARMS else step)
            rewards = paid[places]
            learner.learn(places, rewards)
            recorder.record(step, places, rewards, learner)
    return recorder.trace((len(settings), repetitions))


class _Recorder:
    """Keeps the score: nothing in here reaches a policy."""

    def __init__(self, problem: Problem, runs: Sequence[Setting], times: IndexArray) -> None:
        self._shift = problem.shift
        self._better = int(np.argmax(problem.means))
        self._times = times
        self._next = 0
        self._gaps = [
            np.array([self._gap(problem, setting, arm, shifted=shifted) for setting in runs for arm in range(ARMS)])
            for shifted in (False, True)
        ]
        rows = len(runs)
        self._reward, self._regret = np.zeros(rows), np.zeros(rows)
        self._pulls = np.zeros(ARMS * rows, dtype=np.int64)
        self._last_misjudged = np.full(rows, problem.shift)
        self._rewards, self._regrets = np.empty((2, times.size, rows))
        self._means = np.empty((times.size, rows, ARMS))
        self._quantiles = np.full((times.size, rows, ARMS, 2), np.nan)

    @staticmethod
    def _gap(problem: Problem, setting: Setting, arm: int, *, shifted: bool) -> float:
        means = [problem.clipped_mean(a, setting.clip, shifted=shifted) for a in range(ARMS)]
        return max(means) - means[arm]

    def record(self, step: int, places: IndexArray, rewards: FloatArray, learner: Learner) -> None:
        self._reward += rewards
        self._pulls[places] += 1
        if step >= self._shift:
            self._regret += self._gaps[1][places]
            means = learner.means
            # "not larger" and not "smaller": an arm that was never pulled has no mean, and is not known to be better
            misjudged = ~(means[:, 1 - self._better] > means[:, self._better])
            self._last_misjudged[misjudged] = step + 1
        else:
            self._regret += self._gaps[0][places]
        if self._next < self._times.size and step + 1 == self._times[self._next]:
            self._rewards[self._next] = self._reward
            self._regrets[self._next] = self._regret
            self._means[self._next] = learner.means
            if isinstance(learner, PrivateLearner) and learner.windows is not None:
                self._quantiles[self._next] = learner.windows.quantiles
            self._next += 1

    def trace(self, shape: tuple[int, int]) -> Trace:
        return Trace(
            times=self._times,
            rewards=self._rewards.reshape(-1, *shape),
            regrets=self._regrets.reshape(-1, *shape),
            means=self._means.reshape(-1, *shape, ARMS),
            quantiles=self._quantiles.reshape(-1, *shape, ARMS, 2),
            pulls=self._pulls.reshape(*shape, ARMS),
            last_misjudged=self._last_misjudged.reshape(shape),
        )
