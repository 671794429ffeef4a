"""Probabilities far in the tails: relative errors below 1e-9, and no conclusions from values below the floor."""

from dataclasses import asdict
from fractions import Fraction

import numpy as np
import pytest
from expansions import assert_right, noisy_max_by_terms
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from twins import TWINS

import dpselect as dps
from dpselect.auditing import audit, privacy_loss
from dpselect.auditing.losses import FLOOR
from dpselect.unsafe import NaiveHeterogeneousNoisyMax

# --- Noisy max --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [50.0, 100.0, 147.0, 300.0, 600.0, 660.0])
def test_laplace_noise_is_right_far_behind_the_leader(gap):
    """Two candidates: ½ exp(−g) (1 + g/2)."""
    found = dps.NoisyMax(epsilon=2.0, noise="laplace").pmf([0.0, -gap], 1.0)[1]
    mp.dps = 30
    assert abs(found / (mp.exp(-gap) / 2 * (1 + mp.mpf(gap) / 2)) - 1) <= 1e-12


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 5),
    st.floats(-1, 3),
    st.sampled_from([0.0, 0.5, 2.0, 6.0]),
    st.booleans(),
)
def test_noise_of_any_scales_is_right_in_the_tails(noise, seed, size, spread, decades, with_atom):
    random = np.random.default_rng(seed)
    scores = random.normal(size=size) * 10**spread
    scores[: seed % size] = scores[0]
    sensitivities = 10 ** random.uniform(-decades, decades, size)
    sensitivities[-1] *= not with_atom
    scale = 1 if noise == "laplace" else 2
    exact = noisy_max_by_terms(noise, scores, [scale * Fraction(width) for width in sensitivities])
    assert_right(NaiveHeterogeneousNoisyMax(epsilon=1.0, noise=noise).pmf(scores, sensitivities), exact)


@pytest.mark.parametrize("ties", [30, 400, 2000])
def test_a_crowd_at_the_top_leaves_the_tail_of_others_right(ties):
    """With m tied at 0 and one at −g, all of scale 1: ∫ f F^m in three pieces."""
    gap = 40.0
    found = dps.NoisyMax(epsilon=2.0, noise="laplace").pmf(np.r_[np.zeros(ties), -gap], 1.0)
    mp.dps = 40
    decay = mp.exp(-gap)
    left = decay * mp.mpf(2) ** -ties / 2 * (1 - mp.exp(-(ties - 1) * gap)) / (ties - 1)
    below = mp.mpf(2) ** -(ties + 1) * mp.exp(-ties * gap) / (ties + 1)
    right = decay * (1 - mp.mpf(2) ** -(ties + 1)) / (ties + 1)
    assert abs(found[-1] / (left + below + right) - 1) <= 1e-11
    assert found[:-1] == pytest.approx((1 - found[-1]) / ties, rel=1e-11)


def test_narrow_noise_below_a_wide_crowd_is_right():
    """With m tied at 0 of scale 1 and one of scale 1/n at 0: exponential noise makes it n B(n, m + 1)."""
    for ties, narrowness in ((50, 20), (200, 60), (500, 100)):
        sensitivities = np.r_[np.ones(ties), 1 / narrowness]
        found = NaiveHeterogeneousNoisyMax(epsilon=2.0).pmf(np.zeros(ties + 1), sensitivities)[-1]
        mp.dps = 40
        rate = 1 / mp.mpf(sensitivities[-1])
        assert abs(found / (rate * mp.beta(rate, ties + 1)) - 1) <= 1e-10


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_exponential_and_gumbel_noise_are_right_in_the_tails(noise):
    mechanism = dps.NoisyMax(epsilon=1.0, noise=noise)
    scores = np.r_[np.linspace(0, -1300, 27), -1325.0]
    assert_right(mechanism.pmf(scores, 1.0), TWINS[dps.NoisyMax](scores, np.ones(28), **asdict(mechanism)))


# --- Random stopping --------------------------------------------------------------------------------------

STEEP = [(1e-20, 1.0), (1e-80, 1.0), (1e-5, 4.0), (1e-30, 4.0), (0.05, 40.0), (1e-3, 40.0), (2.0**-300, -0.5)]


@pytest.mark.parametrize(("gamma", "eta"), STEEP)
def test_random_stopping_is_right_in_the_tails(gamma, eta):
    mechanism = dps.RandomStopping(epsilon=2 + eta, gamma=gamma, eta=eta)
    for scores, sensitivities in (
        ([3.0, -20.0], [0.5, 0.125]),
        ([3.0, 2.0, -4.0], [0.5, 0.0, 1.0]),
    ):
        exact = TWINS[dps.RandomStopping](np.array(scores), sensitivities, **asdict(mechanism))
        assert_right(mechanism.pmf(scores, sensitivities), exact)


@pytest.mark.parametrize("gamma", [1e-5, 1e-30, 1e-80])
def test_random_stopping_with_exponential_noise_is_right_in_the_tails(gamma):
    scores, sensitivities = np.array([3.0, -20.0, 1.0]), np.array([0.5, 0.125, 0.0])
    mechanism = dps.RandomStopping(epsilon=3.0, gamma=gamma, noise="exponential")
    exact = TWINS[dps.RandomStopping](scores, sensitivities, **asdict(mechanism))
    assert_right(mechanism.pmf(scores, sensitivities), exact)


def test_the_tail_is_right_where_single_draws_are_impossible_and_many_are_likely():
    """Candidate 2 needs noise of 770 scales, which 1e80 draws make likelier than 1e-255."""
    scores = np.array([37.61426424, -39.59184351, -0.98083668, 11.88415013])
    sensitivities = np.array([0.32779721, 0.5603017, 0.12809859, 0.14349019])
    mechanism = dps.RandomStopping(epsilon=6.0, gamma=1e-80, eta=4.0)
    exact = TWINS[dps.RandomStopping](scores, sensitivities, **asdict(mechanism))
    assert FLOOR / 1e10 < exact[2] < FLOOR
    assert_right(mechanism.pmf(scores, sensitivities), exact)


@pytest.mark.parametrize("epsilon", [1.0, 600.0])
def test_randomized_response_is_right_in_the_tails(epsilon):
    mechanism = dps.RandomizedResponse(epsilon=epsilon)
    scores = np.array([0.0, 1.0, -1.0])
    assert_right(mechanism.pmf(scores, 1.0), TWINS[dps.RandomizedResponse](scores, 1.0, epsilon=epsilon))


# --- The floor --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["exponential", "laplace", "gumbel"])
@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.floats(0, 3.5))
def test_no_tail_shows_a_loss_above_epsilon(noise, seed, size, spread):
    random = np.random.default_rng(seed)
    scores = random.normal(size=size) * 10**spread
    neighbour = scores + random.choice([-1.0, 1.0], size)
    neighbour = np.where(np.abs(neighbour - scores) > 1, np.nextafter(neighbour, scores), neighbour)
    loss = privacy_loss(dps.NoisyMax(epsilon=1.0, noise=noise), scores, neighbour, 1.0)
    assert loss.epsilon <= 1 + 1e-9


@dps.Mechanism.register
class Stated:
    """A mechanism whose law is given, by the first score. Like the library's own, it samples what it computes."""

    count = None

    def __init__(self, epsilon, laws):
        self.laws, self.guarantee = laws, dps.NoisyMax(epsilon=epsilon).guarantee

    def pmf(self, scores, sensitivities):  # noqa: ARG002
        return np.array([self.laws[int(row[0] > 0)] for row in np.atleast_2d(scores)]).reshape(np.shape(scores))


@pytest.mark.parametrize("digits", [(1e-260, 1e-270), (1e-251, 1e-320), (1e-260, 0.0)])
def test_two_probabilities_below_the_floor_are_not_compared(digits):
    mechanism = Stated(1.0, [[digits[0], 1.0], [digits[1], 1.0]])
    assert privacy_loss(mechanism, [0.0, 0.0], [1.0, 0.0], 1.0).epsilon == 0
    assert audit(mechanism, [1.0, 1.0], restarts=2, sweeps=1).verdict == "no violation found"


@pytest.mark.parametrize("small", [1e-260, 5e-324, 0.0])
def test_a_probability_below_the_floor_counts_as_the_floor_if_it_may_be_that_large(small):
    """At ε = 600 a probability of ½ here may be one of 1e-261 there."""
    mechanism = Stated(600.0, [[0.5, 0.5], [small, 1.0]])
    loss = privacy_loss(mechanism, [0.0, 0.0], [1.0, 0.0], 1.0).epsilon
    assert loss == pytest.approx(np.log(0.5 / FLOOR))
    assert loss < 600


def test_an_underflow_is_no_violation_at_a_large_budget():
    mechanism = dps.NoisyMax(epsilon=4000.0)
    loss = privacy_loss(mechanism, [0.0, 1.0], [1.0, 0.0], 1.0)
    assert mechanism.pmf([0.0, 1.0], 1.0)[0] == 0
    assert loss.epsilon <= 4000


def test_an_impossible_candidate_stays_impossible():
    mechanism = Stated(1.0, [[0.5, 0.5], [0.0, 1.0]])
    assert privacy_loss(mechanism, [0.0, 0.0], [1.0, 0.0], 1.0).epsilon == np.inf
    assert audit(mechanism, [1.0, 1.0], restarts=2, sweeps=1).verdict == "violated"
