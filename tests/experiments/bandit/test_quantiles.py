"""Private quantiles against the density that defines them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from experiments.bandit.quantiles import interval_log_weights, private_quantiles

REWARDS = st.lists(st.floats(0, 1).map(lambda x: round(x, 3)), min_size=1, max_size=12)


def log_density(values, level, epsilon, points):
    """Return the logarithm of the density at some points, from the intervals' weights."""
    edges, weights = interval_log_weights(
        np.array([values]), level, epsilon=epsilon, low=np.zeros(1), high=np.ones(1)
    )
    total = np.logaddexp.reduce(weights[0])
    lengths = np.diff(edges[0])
    place = np.searchsorted(edges[0], points, side="left") - 1
    return weights[0][place] - np.log(lengths[place]) - total


@given(REWARDS, st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from([0.1, 1.0, 5.0]))
def test_densities_are_those_of_the_exponential_mechanism(values, level, epsilon):
    # Points between all values: no reward has a fourth decimal.
    points = (np.arange(1000) + 0.5) / 1000
    below = (np.array(values)[:, np.newaxis] < points).sum(axis=0)
    weights = np.exp(-epsilon / 2 * np.abs(below - level * len(values)))
    # The density is constant on each thousandth, so a sum is the integral.
    expected = np.log(weights / weights.mean())
    np.testing.assert_allclose(log_density(values, level, epsilon, points), expected, atol=1e-9)


@given(REWARDS, st.data(), st.sampled_from([0.1, 0.5, 0.9]), st.sampled_from([0.1, 1.0, 5.0]))
def test_replacing_one_value_changes_no_density_by_more_than_epsilon(values, data, level, epsilon):
    neighbour = list(values)
    neighbour[data.draw(st.integers(0, len(values) - 1))] = data.draw(st.sampled_from([0.0, 0.25, 0.5, 1.0]))
    points = (np.arange(1000) + 0.5) / 1000
    ratio = log_density(values, level, epsilon, points) - log_density(neighbour, level, epsilon, points)
    assert np.abs(ratio).max() <= epsilon + 1e-9


@pytest.mark.parametrize("level", [0.1, 0.9])
def test_draws_follow_the_weights_also_with_ties_and_values_at_the_ends(level):
    """χ² over intervals and their halves; false alarms once in 1e6."""
    values = np.array([0.0, 0.0, 0.2, 0.2, 0.35, 0.7, 1.0, 1.0])
    ends = {"low": np.zeros(1), "high": np.ones(1)}
    draws = 60_000
    many = {name: np.repeat(end, draws) for name, end in ends.items()}
    found = private_quantiles(np.tile(values, (draws, 1)), level, epsilon=1.5, **many, rng=np.random.default_rng(3))
    cells = np.array([0.0, 0.1, 0.2, 0.275, 0.35, 0.525, 0.7, 0.85, 1.0])
    middles = (cells[:-1] + cells[1:]) / 2
    below = (values[:, np.newaxis] < middles).sum(axis=0)
    expected = np.diff(cells) * np.exp(-0.75 * np.abs(below - level * values.size))
    expected *= draws / expected.sum()
    counts = np.histogram(found, cells)[0]
    assert counts.sum() == draws
    assert ((counts - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-6, cells.size - 2)


def test_with_a_large_budget_the_estimate_is_next_to_the_sample_quantile():
    windows = np.sort(np.random.default_rng(4).uniform(2, 5, size=(50, 200)), axis=1)
    ends = {"low": np.full(50, 2.0), "high": np.full(50, 5.0)}
    found = private_quantiles(windows, 0.9, epsilon=1e4, **ends, rng=np.random.default_rng(5))
    assert ((windows[:, 179] <= found) & (found <= windows[:, 180])).all()


def test_rows_have_ranges_of_their_own():
    windows = np.array([[0.5, 0.5], [7.0, 7.5]])
    found = private_quantiles(
        windows,
        0.5,
        epsilon=0.1,
        low=np.array([0.0, 5.0]),
        high=np.array([1.0, 9.0]),
        rng=np.random.default_rng(6),
    )
    assert 0 <= found[0] <= 1
    assert 5 <= found[1] <= 9
