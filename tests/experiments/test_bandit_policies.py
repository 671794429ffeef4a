"""The bandit's loop: the same picks as outside it, and slow twins of its parallel computations."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2, norm

import dpselect as dps
from experiments.bandit.estimates import RunningMeans, Windows
from experiments.bandit.policies import BUDGETS, MECHANISMS, TEAMS, Budget, PrivateLearner, Setting, private_team
from experiments.bandit.problem import Problem
from experiments.bandit.simulation import Run, simulate, simulate_all
from experiments.bandit.styles import POLICY_STYLES
from experiments.bandit.sums import hybrid_noise

SHORT = Problem(horizon=1500, shift=900)
RUNS = [Run(setting=Setting(), world=world) for world in range(3)]
ENDS = np.array([900, 1500])


def team_of(policy):
    return next(team for team in TEAMS if policy in team.members)


# --- The problem ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clip", [(0.0, 1.0), (-1.0, 2.0), (0.25, 0.75)])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("arm", [0, 1])
def test_clipped_means_and_quantiles_are_those_of_the_clipped_distribution(arm, shifted, clip):
    problem = Problem()
    mean, deviation = ((0.2, 0.1), (0.8, 0.3))[arm if not shifted else 1 - arm]
    low, high = clip
    inside = quad(lambda x: x * norm.pdf(x, mean, deviation), low, high, points=[mean], epsabs=1e-12)[0]
    expected = inside + low * norm.cdf(low, mean, deviation) + high * norm.sf(high, mean, deviation)
    assert problem.clipped_mean(arm, clip, shifted=shifted) == pytest.approx(expected, abs=1e-9)
    for level in (0.1, 0.9):
        quantile = np.clip(norm.ppf(level, mean, deviation), low, high)
        assert problem.clipped_quantile(arm, level, clip, shifted=shifted) == pytest.approx(quantile)


def test_the_arms_change_places_at_the_shift():
    """Means of 2000 rewards each, within 6 standard errors."""
    table = Problem(horizon=2000, shift=1000).rewards(2, np.random.default_rng(1))
    for steps, order in ((slice(1000), (0, 1)), (slice(1000, None), (1, 0))):
        for arm, place in enumerate(order):
            rewards = table[steps, :, arm]
            deviation = (0.1, 0.3)[place]
            assert abs(rewards.mean() - (0.2, 0.8)[place]) < 6 * deviation / 2000**0.5
            assert rewards.std() == pytest.approx(deviation, rel=0.1)


# --- Picks inside the loop are picks outside it ------------------------------------------------------------


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
    """The same bits: released means and ranges alone reproduce the picks, so they are post-processing."""
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
                randomness=dps.Randomness.seeded(5).lane(f"player {i}").lane(f"step {step}"),
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


# --- Estimates --------------------------------------------------------------------------------------------


def test_private_means_are_noisy_sums_over_exact_counts():
    clips = np.array([[0.0, 1.0], [-1.0, 3.0]])
    estimates = RunningMeans.private(50, clips, epsilon=0.8, rng=np.random.default_rng(2))
    rng = np.random.default_rng(2)
    noise = np.concatenate([hybrid_noise(2, 50, epsilon=0.8, rng=rng) * (high - low) for low, high in clips])
    draws = np.random.default_rng(3)
    sums, counts = np.zeros(4), np.zeros(4, dtype=int)
    for _ in range(50):
        places = np.array([0, 2]) + draws.integers(0, 2, size=2)
        rewards = draws.uniform(size=2)
        estimates.add(places, rewards)
        sums[places] += rewards
        counts[places] += 1
        np.testing.assert_allclose(
            estimates.means.reshape(-1)[places],
            (sums[places] + noise[places, counts[places]]) / counts[places],
            rtol=1e-5,
        )


def test_windows_are_disjoint_and_each_reward_is_looked_at_once():
    """With a huge budget the estimate is close to the sample quantile of exactly the last full window."""
    clips = np.array([[0.0, 1.0], [0.0, 1.0]])
    windows = Windows(clips, np.array([20, 50]), epsilon=1e6, rng=np.random.default_rng(1))
    rewards = np.random.default_rng(2).uniform(size=(110, 2))
    seen = {0: [], 3: []}  # arm 0 of the first run, arm 1 of the second
    for paid in rewards:
        windows.add(np.array([0, 3]), paid)
        for place, reward in zip(seen, paid, strict=True):
            seen[place].append(reward)
    for place, size in ((0, 20), (3, 50)):
        full = len(seen[place]) // size * size
        last = np.sort(seen[place][full - size : full])
        for found, level in zip(windows.quantiles.reshape(-1, 2)[place], (0.1, 0.9), strict=True):
            rank = round(level * size)
            assert last[rank - 1] <= found <= last[rank]
    np.testing.assert_allclose(windows.widths, windows.quantiles[:, :, 1] - windows.quantiles[:, :, 0])


def test_before_a_window_is_full_the_sensitivity_is_the_range():
    windows = Windows(np.array([[-1.0, 2.0]]), np.array([5]), epsilon=1.0, rng=np.random.default_rng(1))
    for _ in range(4):
        windows.add(np.array([1]), np.array([0.5]))
    np.testing.assert_array_equal(windows.widths, [[3.0, 3.0]])
    windows.add(np.array([1]), np.array([0.5]))
    assert windows.widths[0, 0] == 3.0
    assert windows.widths[0, 1] != 3.0


# --- Policies against slow twins -----------------------------------------------------------------------------


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
        hopes = [np.mean(paid) + alpha * math.sqrt(math.log(horizon) / len(paid)) for paid in seen]
        return int(hopes[1] > hopes[0])

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
            hopes = [m + 2 * math.sqrt(0.6 * math.log(sum(counts)) / c) for m, c in zip(means, counts, strict=True)]
            arm = int(hopes[1] > hopes[0])
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


@pytest.mark.parametrize("policy", [name for name in POLICY_STYLES if name != "private-ucb"])
def test_regret_is_the_gap_times_the_pulls_of_the_worse_arm(policy):
    short = Problem(horizon=300, shift=300)  # no shift, so that only the pulls of one arm matter
    trace = simulate(team_of(policy), short, RUNS, times=np.array([300]), seed=6)[policy]
    gap = short.clipped_mean(1, (0.0, 1.0), shifted=False) - short.clipped_mean(0, (0.0, 1.0), shifted=False)
    np.testing.assert_allclose(trace.regrets[0], gap * trace.pulls[:, 0])
    assert (trace.pulls.sum(axis=1) == 300).all()


# --- Simulations ------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_story_and_another_one_another():
    team = private_team("mgem", "rs")
    first, again, other = (simulate(team, SHORT, RUNS, times=ENDS, seed=seed)["mgem"].rewards for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_settings_change_only_their_own_runs():
    """A run's rewards come from its world and do not depend on the other players."""
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


def test_every_policy_has_a_style_and_every_private_one_a_budget():
    members = [member for team in TEAMS for member in team.members]
    assert sorted(members) == sorted(POLICY_STYLES)
    assert set(BUDGETS) == {name for name, style in POLICY_STYLES.items() if style.private}
