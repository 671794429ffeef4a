"""The loop: many runs of many policies side by side, step by step.

Every step is one call of a mechanism's ``select`` on all its runs at once: what picks here is what picks anywhere
else, the compiled kernels do the work, and the call's overhead is shared by the runs.
"""

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from experiments.bandit.policies import Learner, PrivateLearner, Setting, Team
from experiments.bandit.problem import Problem

__all__ = ["Run", "Trace", "simulate", "simulate_all"]

FloatArray: TypeAlias = NDArray[np.float64]
IndexArray: TypeAlias = NDArray[np.int64]

ARMS = 2
BLOCK = 1000
"""Steps whose rewards are clipped at once."""
WORTH_A_PROCESS = 10_000
"""Steps below which starting a process takes longer than playing."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One life of a policy: under which setting, and in which of the worlds."""

    setting: Setting
    world: int


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What happened in each run. Times are numbers of steps done."""

    runs: Sequence[Run]
    times: IndexArray
    rewards: FloatArray
    """Cumulative reward: (times, runs)."""
    regrets: FloatArray
    """Cumulative mean reward that the better arm would have paid on top: (times, runs)."""
    means: FloatArray
    """Estimated means: (times, runs, arms)."""
    quantiles: FloatArray
    """Estimated 10th and 90th percentile: (times, runs, arms, 2); NaN where there are none."""
    pulls: IndexArray
    """How often each arm was pulled in all: (runs, arms)."""

    def part(self, rows: Sequence[bool] | slice) -> "Trace":
        """Return the trace of some of the runs."""
        index = np.arange(len(self.runs))[rows]
        return Trace(
            runs=[self.runs[i] for i in index],
            times=self.times,
            rewards=self.rewards[:, index],
            regrets=self.regrets[:, index],
            means=self.means[:, index],
            quantiles=self.quantiles[:, index],
            pulls=self.pulls[index],
        )


def simulate(
    team: Team, problem: Problem, runs: Sequence[Run], *, times: IndexArray, seed: int
) -> dict[str, Trace]:
    """Return what happens to each member of a team in the given runs.

    What an arm would pay depends on ``seed``, the world and the step only: all policies meet the same luck there.
    """
    worlds = 1 + max(run.world for run in runs)
    table = problem.rewards(worlds, np.random.default_rng(seed))
    everybody = [run for _ in team.members for run in runs]
    settings = [run.setting for run in everybody]
    learner = team.build(problem, settings, _own_seed(team, seed))
    recorder = _Recorder(problem, settings, times)
    clips = np.array([setting.clip for setting in settings])
    chosen_worlds = [run.world for run in everybody]
    first_places = ARMS * np.arange(len(everybody))
    for start in range(0, problem.horizon, BLOCK):
        block = table[start : start + BLOCK, chosen_worlds]
        clipped = np.clip(block, clips[:, :1], clips[:, 1:]).reshape(len(block), -1)
        for step, paid in enumerate(clipped, start):
            places = first_places + (learner.choose(step) if step >= ARMS else step)
            rewards = paid[places]
            learner.learn(places, rewards)
            recorder.record(step, places, rewards, learner)
    trace = recorder.trace(everybody)
    return {member: trace.part(slice(i * len(runs), (i + 1) * len(runs))) for i, member in enumerate(team.members)}


class _Recorder:
    """Keeps the score: nothing in here reaches a policy."""

    def __init__(self, problem: Problem, settings: Sequence[Setting], times: IndexArray) -> None:
        self._shift = problem.shift
        self._times = times
        self._next = 0
        self._gaps = [
            np.array([self._gap(problem, one, arm, shifted=shifted) for one in settings for arm in range(ARMS)])
            for shifted in (False, True)
        ]
        rows = len(settings)
        self._reward, self._regret = np.zeros(rows), np.zeros(rows)
        self._pulls = np.zeros(ARMS * rows, dtype=np.int64)
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
        self._regret += self._gaps[step >= self._shift][places]
        if self._next < self._times.size and step + 1 == self._times[self._next]:
            self._rewards[self._next] = self._reward
            self._regrets[self._next] = self._regret
            self._means[self._next] = learner.means
            if isinstance(learner, PrivateLearner) and learner.windows is not None:
                self._quantiles[self._next] = learner.windows.quantiles
            self._next += 1

    def trace(self, runs: Sequence[Run]) -> Trace:
        return Trace(
            runs=runs,
            times=self._times,
            rewards=self._rewards,
            regrets=self._regrets,
            means=self._means,
            quantiles=self._quantiles,
            pulls=self._pulls.reshape(-1, ARMS),
        )


def simulate_all(
    games: Sequence[tuple[Team, Sequence[Run]]], problem: Problem, *, times: IndexArray, seed: int
) -> dict[str, Trace]:
    """Return what happens to each member of each team, in the runs that go with it.

    Long games are shared out to the machine's processors.
    """
    play = partial(simulate, times=times, seed=seed)
    arguments = [(team, problem, runs) for team, runs in games]
    if problem.horizon < WORTH_A_PROCESS:
        results = [play(*each) for each in arguments]
    else:
        # Fresh processes, not forked ones: those would inherit locks of threads that they do not have.
        processes = min(_processors(), len(games))
        with get_context("spawn").Pool(processes, initializer=_leave_interrupts_alone) as pool:
            results = pool.starmap(play, arguments, chunksize=1)
    return {member: trace for result in results for member, trace in result.items()}


def _own_seed(team: Team, seed: int) -> int:
    """Return a seed for a team's own noise, apart from that of other teams and of the worlds."""
    return int(np.random.SeedSequence([seed, crc32(" ".join(team.members).encode())]).generate_state(1)[0])


def _leave_interrupts_alone() -> None:
    """Let the parent alone answer Ctrl-C: it ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
