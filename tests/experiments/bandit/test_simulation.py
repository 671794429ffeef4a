"""The loop: seeds, settings and processes."""

import numpy as np
import pytest

from experiments.bandit.policies import TEAMS, Setting, private_team
from experiments.bandit.problem import Problem
from experiments.bandit.simulation import Run, simulate, simulate_all
from experiments.bandit.styles import POLICY_STYLES

SHORT = Problem(horizon=1500, shift=900)


RUNS = [Run(setting=Setting(), world=world) for world in range(3)]


ENDS = np.array([900, 1500])


def team_of(policy):
    return next(team for team in TEAMS if policy in team.members)


@pytest.mark.parametrize("policy", [name for name in POLICY_STYLES if name != "private-ucb"])
def test_regret_is_the_gap_times_the_pulls_of_the_worse_arm(policy):
    short = Problem(horizon=300, shift=300)  # no shift, so that pulls of one arm are all that counts
    trace = simulate(team_of(policy), short, RUNS, times=np.array([300]), seed=6)[policy]
    gap = short.clipped_mean(1, (0.0, 1.0), shifted=False) - short.clipped_mean(0, (0.0, 1.0), shifted=False)
    np.testing.assert_allclose(trace.regrets[0], gap * trace.pulls[:, 0])
    assert (trace.pulls.sum(axis=1) == 300).all()


def test_the_same_seed_gives_the_same_story_and_another_one_another():
    team = private_team("mgem", "rs")
    first, again, other = (simulate(team, SHORT, RUNS, times=ENDS, seed=seed)["mgem"].rewards for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_settings_change_only_their_own_runs():
    """A run's rewards come from its world, regardless of the other policies."""
    wide = Setting(clip=(-1.0, 2.0))
    runs = [Run(setting=Setting(), world=0), Run(setting=wide, world=0)]
    both = simulate(team_of("ucb"), SHORT, runs, times=ENDS, seed=4)["ucb"]
    alone = simulate(team_of("ucb"), SHORT, runs[:1], times=ENDS, seed=4)["ucb"]
    np.testing.assert_array_equal(both.rewards[:, 0], alone.rewards[:, 0])
    assert both.rewards[-1, 0] != both.rewards[-1, 1]


def test_processes_return_what_one_process_returns(monkeypatch):
    games = [(team_of("ucb"), RUNS), (private_team("gem"), RUNS[:2])]
    short = Problem(horizon=250, shift=150)
    arguments = {"times": np.array([150, 250]), "seed": 3}
    serial = simulate_all(games, short, **arguments)
    monkeypatch.setattr("experiments.bandit.simulation.WORTH_A_PROCESS", 0)
    parallel = simulate_all(games, short, **arguments)
    assert list(serial) == list(parallel) == ["ucb", "gem"]
    for name, trace in serial.items():
        np.testing.assert_array_equal(trace.rewards, parallel[name].rewards)
