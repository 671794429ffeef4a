"""The policies: their picks are the library's, and slow twins play the same."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

import dpselect as dps
from experiments.bandit.policies import BUDGETS, MECHANISMS, TEAMS, Budget, PrivateLearner, Setting
from experiments.bandit.problem import Problem
from experiments.bandit.simulation import Run, simulate

SHORT = Problem(horizon=1500, shift=900)


RUNS = [Run(setting=Setting(), world=world) for world in range(3)]


ENDS = np.array([900, 1500])


def team_of(policy):
    return next(team for team in TEAMS if policy in team.members)


class Recording(PrivateLearner):
    """Keeps what was released before each pick, and the pick."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.released = []

    def choose(self, step):
        before = (step, self.scores().copy(), self.sensitivities.copy())
        picks = super().choose(step)
        self.released.append((*before, picks))
        return picks


def test_each_pick_is_select_on_what_was_released_and_on_nothing_else():
    """Same bits: the picks come again from released means and ranges alone, so they are post-processing."""
    names = ("rnm", "rs", "gem", "mgem", "combined-gem")
    problem = Problem(horizon=700, shift=400)
    settings = [Setting(), Setting(window=50), Setting(clips_scores=True)] * len(names)
    learner = Recording([MECHANISMS[name] for name in names], BUDGETS["gem"], problem, settings, 5)
    rng = np.random.default_rng(9)
    for step in range(problem.horizon):
        arms = learner.choose(step) if step >= 2 else np.full(len(settings), step)
        learner.learn(2 * np.arange(len(settings)) + arms, rng.uniform(size=len(settings)))
    assert learner.windows.widths.min() < 1  # quantiles have been estimated
    for step, scores, sensitivities, picks in learner.released:
        for i, name in enumerate(names):
            rows = slice(3 * i, 3 * i + 3)
            again = MECHANISMS[name].select(
                scores[rows],
                sensitivities[rows],
                randomness=dps.Randomness.seeded(5).substream(f"player {i}").substream(f"step {step}"),
            )
            np.testing.assert_array_equal(picks[rows], again)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_law_of_picks_in_the_loop_is_the_mechanisms(name):
    """χ² with 1 degree of freedom on 2,000 runs in the same state, 40 times; false alarms once in 1e6."""
    rows, steps = 2000, 40
    budget = Budget(means=1.0)
    learner = PrivateLearner([MECHANISMS[name]], budget, Problem(horizon=1, shift=1), [Setting()] * rows, 3)
    learner.means[:] = [0.3, 0.7]
    learner.sensitivities[:] = [0.5, 0.2]
    expected = steps * rows * MECHANISMS[name].pmf([0.3, 0.7], [0.5, 0.2])
    counts = sum(np.bincount(learner.choose(step), minlength=2) for step in range(steps))
    assert ((counts - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-6, 1)


def worlds_of(problem, seed, count=3):
    return np.clip(problem.rewards(count, np.random.default_rng(seed)), 0, 1)


def play(table, world, choose):
    """Play one run by hand; ``choose(t, rewards by arm)`` names an arm."""
    seen = ([], [])
    arms = []
    for t, paid in enumerate(table[:, world].tolist()):
        arm = t if t < 2 else choose(t, seen)
        seen[arm].append(paid[arm])
        arms.append((arm, t))
    return sum(seen[0]) + sum(seen[1]), [len(rewards) for rewards in seen]


def ucb(alpha, horizon):
    def choose(_, seen):
        bounds = [np.mean(paid) + alpha * math.sqrt(math.log(horizon) / len(paid)) for paid in seen]
        return int(bounds[1] > bounds[0])

    return choose


@pytest.mark.parametrize(("policy", "alpha"), [("ucb", math.sqrt(2)), ("greedy", 0.0)])
def test_ucb_plays_as_printed(policy, alpha):
    trace = simulate(team_of(policy), SHORT, RUNS, times=ENDS, seed=4)[policy]
    table = worlds_of(SHORT, 4)
    for world in range(3):
        reward, pulls = play(table, world, ucb(alpha, SHORT.horizon))
        assert trace.rewards[-1, world] == pytest.approx(reward)
        assert trace.pulls[world].tolist() == pulls


def test_discounted_ucb_weighs_rewards_by_their_age():
    table = worlds_of(SHORT, 4)
    keep = 1 - 1 / (4 * math.sqrt(SHORT.horizon))
    trace = simulate(team_of("discounted-ucb"), SHORT, RUNS, times=ENDS, seed=4)["discounted-ucb"]
    history = []
    for t in range(SHORT.horizon):
        if t < 2:
            arm = t
        else:
            ages = keep ** (t - 1 - np.arange(t))
            arms, paid = np.array(history).T
            counts = [ages[arms == a].sum() for a in (0, 1)]
            means = [(ages * paid)[arms == a].sum() / counts[a] for a in (0, 1)]
            bounds = [
                m + 2 * math.sqrt(0.6 * math.log(sum(counts)) / c) for m, c in zip(means, counts, strict=True)
            ]
            arm = int(bounds[1] > bounds[0])
        history.append((arm, table[t, 1, arm]))
    assert trace.rewards[-1, 1] == pytest.approx(sum(paid for _, paid in history))


def test_the_oracle_loses_only_its_first_look():
    trace = simulate(team_of("oracle"), SHORT, RUNS, times=ENDS, seed=4)["oracle"]
    table = worlds_of(SHORT, 4)
    gap = SHORT.clipped_mean(1, (0.0, 1.0), shifted=False) - SHORT.clipped_mean(0, (0.0, 1.0), shifted=False)
    np.testing.assert_allclose(trace.regrets, gap)
    expected = table[0, :, 0] + table[1:900, :, 1].sum(axis=0) + table[900:, :, 0].sum(axis=0)
    np.testing.assert_allclose(trace.rewards[-1], expected)


def test_thompson_sampling_prefers_the_better_arm():
    trace = simulate(team_of("thompson"), SHORT, RUNS, times=ENDS, seed=4)["thompson"]
    assert (trace.regrets[0] < 0.05 * 900).all()
