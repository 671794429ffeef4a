"""The bandit's rewards, against SciPy's distributions."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from experiments.bandit.problem import Problem


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
