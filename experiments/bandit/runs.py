"""The simulations behind the bandit's figures, as tables."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from experiments.arrays import IndexArray
from experiments.bandit import kept, summaries
from experiments.bandit.policies import OTHERS, PRINTED, TEAMS, Setting
from experiments.bandit.problem import Problem
from experiments.bandit.simulation import Run, Trace, simulate_all
from experiments.experiment import Effort, Task
from experiments.scenarios import SEED

__all__ = [
    "ALPHAS",
    "POINTS",
    "PROBLEM",
    "REFERENCES",
    "SETTINGS",
    "STUCK_ALPHA",
    "VARIED",
    "WORLDS",
    "optimist",
    "plan",
    "plan_others",
    "plan_settings",
    "play_all",
    "play_curves",
    "play_optimists",
    "play_settings",
    "play_stuck",
    "thin_rewards",
    "times_of",
]


PROBLEM = Problem()
"""The paper's problem."""
WORLDS = 20
"""The number of runs of each policy under each setting."""
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
STUCK_ALPHA = 0.03
"""An α at which UCB does what the paper says: it stays on the old arm."""

EARNINGS = ("reward", "regret")
ALL = (*EARNINGS, "mean_0", "mean_1", *summaries.QUANTILES)
"""What is drawn over time: for the policies that the paper does not have, and for those that it has."""
REFERENCES = ("mgem", "ucb")
"""The paper's policies that are drawn with the others, to compare."""
VARIED = frozenset({"mgem", "rs", "rnm", "gem"})
"""The policies of the sensitivity check: the paper's policies with quantiles."""


def plan(effort: Effort) -> list[Task]:
    """Return the tasks that play all policies with the paper's setting, and UCB with other α."""
    played = [
        Task(label="all policies", table="worlds", compute=partial(play_all, PROBLEM, WORLDS)),
        Task(label="UCB over α", table="optimism", compute=partial(play_optimists, PROBLEM, WORLDS)),
        Task(
            label="curves of the paper's policies",
            table="curves",
            compute=partial(play_curves, PRINTED, ALL, PROBLEM, WORLDS),
        ),
        Task(
            label=f"curves of UCB with α = {STUCK_ALPHA:g}",
            table="stuck",
            compute=partial(play_stuck, PROBLEM, WORLDS),
        ),
        Task(label="single rewards", table="rewards", compute=partial(thin_rewards, PROBLEM, WORLDS)),
    ]
    return kept.tasks(effort, played)


def plan_others(effort: Effort) -> list[Task]:
    """Return the tasks that play the policies that the paper does not have."""
    played = [
        Task(label="all policies", table="worlds", compute=partial(play_all, PROBLEM, WORLDS)),
        Task(label="UCB over α", table="optimism", compute=partial(play_optimists, PROBLEM, WORLDS)),
        Task(
            label="curves of the other policies",
            table="others",
            compute=partial(play_curves, (*REFERENCES, *OTHERS), EARNINGS, PROBLEM, WORLDS),
        ),
    ]
    return kept.tasks(effort, played)


def plan_settings(effort: Effort) -> list[Task]:
    """Return the task that plays some policies under each setting."""
    compute = partial(play_settings, PROBLEM, WORLDS)
    return kept.tasks(effort, [Task(label="all settings", table="settings", compute=compute)])


def times_of(problem: Problem) -> IndexArray:
    """Return the recorded times: evenly spaced, up to the end."""
    return np.arange(1, POINTS + 1) * (problem.horizon // POINTS)


@cache
def _play(problem: Problem, worlds: int) -> dict[str, Trace]:
    """Return all runs of all policies, for all tables. Many runs side by side cost little more than one."""

    def runs(settings: Iterable[Setting]) -> list[Run]:
        return [Run(setting=setting, world=world) for setting in settings for world in range(worlds)]

    others = runs(setting for setting in SETTINGS.values() if setting != Setting())
    alphas = runs(Setting(optimism=alpha) for alpha in ALPHAS[:-1])
    further = {"ucb": alphas} | dict.fromkeys(VARIED, others)
    games = [(team, runs([Setting()]) + further.get(team.members[0], [])) for team in TEAMS]
    return simulate_all(games, problem, times=times_of(problem), seed=SEED)


def _usual(trace: Trace) -> Trace:
    """Return the runs with the paper's setting."""
    return trace.part([run.setting == Setting() for run in trace.runs])


def play_all(problem: Problem, worlds: int) -> pa.Table:
    """Return the outcomes of all policies with the paper's setting, a row for each run."""
    played = _play(problem, worlds).items()
    return pa.concat_tables(summaries.outcomes(policy, _usual(trace), problem) for policy, trace in played)


def optimist(alpha: float) -> str:
    """Return the name of UCB with this α in the table of outcomes."""
    return f"UCB, α = {alpha:.3g}"


def play_optimists(problem: Problem, worlds: int) -> pa.Table:
    """Return the outcomes of UCB with each α."""
    trace = _play(problem, worlds)["ucb"]
    parts = {alpha: trace.part([run.setting.optimism == alpha for run in trace.runs]) for alpha in ALPHAS}
    found = [summaries.outcomes(optimist(alpha), part, problem) for alpha, part in parts.items()]
    names = [name for name in found[0].column_names if not name.startswith(("near", "close", "miss"))]
    return pa.concat_tables(found).select(names)


def play_curves(policies: Sequence[str], quantities: Sequence[str], problem: Problem, worlds: int) -> pa.Table:
    """Return the curves of some policies, with means over their runs."""
    played = _play(problem, worlds)
    return pa.concat_tables(summaries.curves(policy, _usual(played[policy]), quantities) for policy in policies)


def play_stuck(problem: Problem, worlds: int) -> pa.Table:
    """Return the curves of UCB with an α at which it stays on the old arm."""
    trace = _play(problem, worlds)["ucb"]
    part = trace.part([run.setting.optimism == STUCK_ALPHA for run in trace.runs])
    return summaries.curves(optimist(STUCK_ALPHA), part, EARNINGS)


def thin_rewards(problem: Problem, worlds: int) -> pa.Table:
    """Return what both arms pay in the first run: the private scores of single persons, one of each hundred."""
    steps = np.arange(0, problem.horizon, max(1, problem.horizon // 500))
    paid = problem.rewards(worlds, np.random.default_rng(SEED))[steps, 0].clip(0, 1).round(3)
    return pa.table({"time": steps + 1, "arm_0": paid[:, 0], "arm_1": paid[:, 1]})


def play_settings(problem: Problem, worlds: int) -> pa.Table:
    """Return regret and oracle's earnings of some policies under each setting, a row for each run."""
    played = _play(problem, worlds).items()
    return pa.concat_tables(_end(problem, policy, trace) for policy, trace in played if policy in VARIED)


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
            "regret_before": summaries.rounded(trace.regrets[shift], 6),
            "regret_after": summaries.rounded(trace.regrets[-1] - trace.regrets[shift], 6),
            "oracle_before": summaries.rounded(np.multiply(best, problem.shift), 6),
            "oracle_after": summaries.rounded(np.multiply(best, problem.horizon - problem.shift), 6),
        }
    )
