"""The loop: many runs of many policies side by side, step by step.

Every step calls a mechanism's ``select`` once, on all its runs. The picks are the library's, the compiled kernels
do the work, and the runs share the overhead of the call.
"""

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from zlib import crc32

import numpy as np

from experiments.arrays import FloatArray, IndexArray
from experiments.bandit.policies import Learner, PrivateLearner, Setting, Team
from experiments.bandit.problem import Problem

__all__ = ["Run", "Trace", "simulate", "simulate_all"]


ARMS = 2
BLOCK = 1000
"""The number of steps whose rewards are clipped at once."""
WORTH_A_PROCESS = 10_000
"""The number of steps below which starting a process takes longer than playing."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A setting and a world in which a policy plays."""

    setting: Setting
    world: int


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The history of each run. Times are numbers of steps done."""

    runs: Sequence[Run]
    times: IndexArray
    rewards: FloatArray
    """Cumulative reward: (times, runs)."""
    regrets: FloatArray
    """Cumulative regret: the mean reward of the better arm minus that of the pulled one: (times, runs)."""
    means: FloatArray
    """Estimated means: (times, runs, arms)."""
    quantiles: FloatArray
    """Estimated 10th and 90th percentile: (times, runs, arms, 2); NaN if there are none."""
    pulls: IndexArray
    """The number of pulls of each arm: (runs, arms)."""

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
    """Return the trace of each member of a team in the given runs.

    The rewards depend only on ``seed``, the world and the step, so they are the same for all policies.
    """
    worlds = 1 + max(run.world for run in runs)
    table = problem.rewards(worlds, np.random.default_rng(seed))
    repeated = [run for _ in team.members for run in runs]
    settings = [run.setting for run in repeated]
    learner = team.build(problem, settings, _own_seed(team, seed))
    recorder = _Recorder(problem, settings, times)
    clips = np.array([setting.clip for setting in settings])
    chosen_worlds = [run.world for run in repeated]
    first_places = ARMS * np.arange(len(repeated))
    for start in range(0, problem.horizon, BLOCK):
        block = table[start : start + BLOCK, chosen_worlds]
        clipped = np.clip(block, clips[:, :1], clips[:, 1:]).reshape(len(block), -1)
        for step, paid in enumerate(clipped, start):
            places = first_places + (learner.choose(step) if step >= ARMS else step)
            rewards = paid[places]
            learner.learn(places, rewards)
            recorder.record(step, places, rewards, learner)
    trace = recorder.trace(repeated)
    return {member: trace.part(slice(i * len(runs), (i + 1) * len(runs))) for i, member in enumerate(team.members)}


class _Recorder:
    """Records what happens. Nothing in here reaches a policy."""

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
    """Return the trace of each member of each team in its runs.

    Long games run in parallel processes.
    """
    play = partial(simulate, times=times, seed=seed)
    arguments = [(team, problem, runs) for team, runs in games]
    if problem.horizon < WORTH_A_PROCESS:
        results = [play(*each) for each in arguments]
    else:
        # Spawned processes: forked ones would inherit the locks of threads that they do not have.
        processes = min(_processors(), len(games))
        with get_context("spawn").Pool(processes, initializer=_leave_interrupts_alone) as pool:
            results = pool.starmap(play, arguments, chunksize=1)
    return {member: trace for result in results for member, trace in result.items()}


def _own_seed(team: Team, seed: int) -> int:
    """Return a seed for a team's own noise, different from those of other teams and of the worlds."""
    return int(np.random.SeedSequence([seed, crc32(" ".join(team.members).encode())]).generate_state(1)[0])


def _leave_interrupts_alone() -> None:
    """Let only the parent handle Ctrl-C; it ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
