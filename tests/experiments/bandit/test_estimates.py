"""Running means and windows, against direct evaluation."""

import numpy as np

from experiments.bandit.estimates import RunningMeans, Windows
from experiments.bandit.sums import hybrid_noise


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
    """With a huge budget the estimate is next to the sample quantile of exactly the last full window."""
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
