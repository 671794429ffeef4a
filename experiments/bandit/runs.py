"""The simulations behind the bandit's figures, as tables."""

from collections.abc import Mapping
from functools import cache, partial
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from experiments.arrays import FloatArray, IndexArray
from experiments.bandit.policies import TEAMS, Setting
from experiments.bandit.problem import Problem
from experiments.bandit.simulation import Run, Trace, simulate_all
from experiments.experiment import Effort, Task
from experiments.scenarios import SEED

__all__ = [
    "ALPHAS",
    "POINTS",
    "SETTINGS",
    "VARIED",
    "optimist",
    "plan",
    "plan_settings",
    "problem_of",
    "times_of",
]


POINTS = 125
"""The number of recorded times; the shift is the 75th."""

SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        "as in the paper": Setting(),
        "rewards in [−0.5, 1.5]": Setting(clip=(-0.5, 1.5)),
        "rewards in [−1, 2]": Setting(clip=(-1.0, 2.0)),
        "rewards in [0.25, 0.75]": Setting(clip=(0.25, 0.75)),
        "windows of 50": Setting(window=50),
        "windows of 100": Setting(window=100),
        "windows of 400": Setting(window=400),
        "windows of 800": Setting(window=800),
        "scores clipped to the quantiles": Setting(clips_scores=True),
    }
)
"""The settings of the sensitivity check."""

ALPHAS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.2, 0.5, 1.0, Setting().optimism)
"""UCB's α. The paper calls √2 common, and does not say that it used it."""

VARIED = frozenset({"mgem", "rs", "rnm", "gem"})
"""The policies of the sensitivity check: the paper's policies with quantiles."""


def problem_of(effort: Effort) -> Problem:
    """Return the paper's problem, shortened in the fast mode. The arms swap after three fifths of the steps."""
    return Problem(horizon=effort.bandit_steps, shift=effort.bandit_steps * 3 // 5)


def times_of(problem: Problem) -> IndexArray:
    """Return the recorded times: evenly spaced, up to the end."""
    return np.arange(1, POINTS + 1) * (problem.horizon // POINTS)


def plan(effort: Effort) -> list[Task]:
    """Return the tasks that play all policies with the paper's setting, and UCB with other α."""
    return [
        Task(label="all policies", table="runs", compute=partial(_runs, effort)),
        Task(label="UCB over α", table="optimism", compute=partial(_optimism, effort)),
    ]


def plan_settings(effort: Effort) -> list[Task]:
    """Return the task that plays some policies under each setting."""
    return [Task(label="all settings", table="settings", compute=partial(_settings, effort))]


@cache
def _play(effort: Effort) -> dict[str, Trace]:
    """Return all runs of all policies, for all tables. Many runs side by side cost little more than one."""
    problem = problem_of(effort)
    usual = [Run(setting=Setting(), world=world) for world in range(effort.bandit_worlds)]
    others = [
        Run(setting=setting, world=world)
        for setting in SETTINGS.values()
        for world in _settings_worlds(effort)
        if setting != Setting()
    ]
    alphas = [
        Run(setting=Setting(optimism=alpha), world=world)
        for alpha in ALPHAS[:-1]
        for world in range(effort.bandit_worlds)
    ]
    further = {"ucb": alphas} | dict.fromkeys(VARIED, others)
    games = [(team, usual + further.get(team.members[0], [])) for team in TEAMS]
    return simulate_all(games, problem, times=times_of(problem), seed=SEED)


def _settings_worlds(effort: Effort) -> range:
    """Return a quarter of the worlds: enough to see whether a conclusion changes."""
    return range(max(effort.bandit_worlds // 4, 2))


def _runs(effort: Effort) -> pa.Table:
    return pa.concat_tables(
        _trace_table(policy, trace.part([run.setting == Setting() for run in trace.runs]))
        for policy, trace in _play(effort).items()
    )


def optimist(alpha: float) -> str:
    """Return the name of UCB with this α in the table of runs."""
    return f"UCB, α = {alpha:.3g}"


def _optimism(effort: Effort) -> pa.Table:
    trace = _play(effort)["ucb"]
    parts = [trace.part([run.setting.optimism == alpha for run in trace.runs]) for alpha in ALPHAS]
    table = pa.concat_tables(_trace_table(optimist(alpha), part) for alpha, part in zip(ALPHAS, parts, strict=True))
    return table.select(["policy", "world", "time", "reward", "regret", "mean_0", "mean_1"])


def _trace_table(policy: str, trace: Trace) -> pa.Table:
    """Return a row for each run and time."""
    points, worlds = trace.times.size, len(trace.runs)

    def column(values: FloatArray) -> FloatArray:
        return values.T.reshape(-1)

    return pa.table(
        {
            "policy": [policy] * (points * worlds),
            "world": np.repeat([run.world for run in trace.runs], points),
            "time": np.tile(trace.times, worlds),
            "reward": column(trace.rewards),
            "regret": column(trace.regrets),
            **{f"mean_{arm}": column(trace.means[:, :, arm]) for arm in (0, 1)},
            **{f"low_{arm}": column(trace.quantiles[:, :, arm, 0]) for arm in (0, 1)},
            **{f"high_{arm}": column(trace.quantiles[:, :, arm, 1]) for arm in (0, 1)},
        }
    )


def _settings(effort: Effort) -> pa.Table:
    worlds = _settings_worlds(effort)
    problem = problem_of(effort)
    return pa.concat_tables(
        _end(problem, policy, trace.part([run.world in worlds for run in trace.runs]))
        for policy, trace in _play(effort).items()
        if policy in VARIED
    )


def _end(problem: Problem, policy: str, trace: Trace) -> pa.Table:
    """Return a row for each run: its regret, and the oracle's mean earnings."""
    shift = int(np.searchsorted(trace.times, problem.shift))
    names = {setting: name for name, setting in SETTINGS.items()}
    best = [max(problem.clipped_mean(arm, run.setting.clip, shifted=False) for arm in (0, 1)) for run in trace.runs]
    return pa.table(
        {
            "policy": [policy] * len(trace.runs),
            "setting": [names[run.setting] for run in trace.runs],
            "world": [run.world for run in trace.runs],
            "regret_before": trace.regrets[shift],
            "regret_after": trace.regrets[-1] - trace.regrets[shift],
            "oracle_before": np.multiply(best, problem.shift),
            "oracle_after": np.multiply(best, problem.horizon - problem.shift),
        }
    )
