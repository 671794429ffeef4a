"""Mechanisms inside OpenDP: its own compositors, chains and measures."""

import math

import numpy as np
import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException
from promises import APPROXIMATE
from scipy.stats import chisquare
from variants import PRIVATE, UNSAFE, every_private_mechanism

import dpselect as dps
from dpselect import accounting
from dpselect.accounting import measurements

dp.enable_features("contrib", "honest-but-curious")

SENSITIVITIES = [1.0, 0.5, 2.0]
SCORES = [1.0, 2.0, 1.5]
COUNTS = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
DATA = [0, 1, 1, 2, 1, 0]

FALSE_ALARM = 1e-9
"""The probability that a correct run fails, because each invocation draws fresh randomness."""


def counts_then(measurement):
    """Return a measurement of people who each count for one candidate, so a score moves by at most 1."""
    count = dp.t.make_user_transformation(
        *COUNTS,
        measurement.input_domain,
        measurement.input_metric,
        lambda people: [float(people.count(candidate)) for candidate in range(3)],
        float,
    )
    return count >> measurement


@every_private_mechanism
def test_the_privacy_map_is_the_guarantee_at_a_distance(mechanism):
    for kind, loss in (("pure", "epsilon"), ("zcdp", "rho")):
        measurement = accounting.to_measurement(mechanism, SENSITIVITIES, kind)
        for distance in (0.0, 0.5, 1.0, 3.0):
            assert measurement.map(distance) == getattr(mechanism.guarantee.at_distance(distance), loss)
        assert measurement.check(1.0, getattr(mechanism.guarantee, loss))


@every_private_mechanism
def test_an_invocation_is_a_pick(mechanism):
    measurement = accounting.to_measurement(mechanism, SENSITIVITIES)
    assert measurement(SCORES) in range(3)
    with pytest.raises(OpenDPException, match="sensitivities must have one number for each of the 2 candidates"):
        measurement(SCORES[:2])


def test_invocations_follow_the_law_with_public_numbers_in_it():
    offsets = [0.0, 2.0, 1.0]
    mechanism = dps.GEM(epsilon=2.0)
    measurement = accounting.to_measurement(mechanism, SENSITIVITIES, offsets=offsets)
    counts = np.bincount([measurement(SCORES) for _ in range(5_000)], minlength=3)
    expected = 5_000 * mechanism.pmf(SCORES, SENSITIVITIES, offsets=offsets)
    assert chisquare(counts, expected).pvalue > FALSE_ALARM


def test_measurements_compose_in_opendp():
    gem = accounting.to_measurement(dps.GEM(epsilon=0.5), SENSITIVITIES)
    response = accounting.to_measurement(dps.RandomizedResponse(epsilon=0.25), SENSITIVITIES)
    both = dp.c.make_composition([gem, response])
    assert all(pick in range(3) for pick in both(SCORES))
    assert both.map(1.0) == pytest.approx(0.75)
    assert both.map(2.0) == pytest.approx(1.25)  # randomised response costs no more at distance 2


def test_a_chain_from_data_composes_adaptively_with_opendps_own_measurements():
    pick = counts_then(accounting.to_measurement(dps.GEM(epsilon=0.5), [1.0, 1.0, 1.0]))
    assert pick.map(1) == 0.5
    assert pick.map(3) == 1.5
    laplace = COUNTS >> dp.t.then_count() >> dp.m.then_laplace(2.0)
    session = dp.c.make_adaptive_composition(*COUNTS, dp.max_divergence(), d_in=1, d_mids=[0.5, 0.5, 0.4])
    assert session.map(1) == pytest.approx(1.4)
    ask = session(DATA)
    assert ask(pick) in range(3)
    assert isinstance(ask(laplace), int)
    with pytest.raises(OpenDPException, match="insufficient budget"):
        ask(pick)  # 0.4 are left, and it needs 0.5


def test_gumbel_noise_composes_in_zcdp_and_becomes_approximate_dp():
    mechanism = dps.NoisyMax(epsilon=0.4, noise="gumbel")
    measurement = accounting.to_measurement(mechanism, SENSITIVITIES, "zcdp")
    many = dp.c.make_composition([measurement] * 50)
    assert many.map(1.0) == pytest.approx(50 * 0.4**2 / 8)
    converted = dp.c.make_zCDP_to_approxDP(many).map(1.0).epsilon(1e-6)
    ours = accounting.total_guarantee([mechanism.guarantee] * 50, delta=1e-6).epsilon
    assert ours == pytest.approx(converted, rel=0.02)


def test_distances_that_differ_are_not_mixed():
    one = accounting.to_measurement(dps.GEM(epsilon=0.5), SENSITIVITIES)
    other_sensitivities = accounting.to_measurement(dps.GEM(epsilon=0.5), [1.0, 0.5, 2.5])
    one_direction = accounting.to_measurement(dps.NoisyMax(epsilon=0.5, monotone=True), SENSITIVITIES)
    for other in (other_sensitivities, one_direction):
        with pytest.raises(OpenDPException, match=r"[Mm]etric"):
            dp.c.make_composition([one, other])
    together = dp.c.make_composition([one, accounting.to_measurement(dps.Uniform(), SENSITIVITIES)])
    assert together.map(1.0) == pytest.approx(0.5)


def test_an_epsilon_is_never_reported_as_a_rho():
    assert APPROXIMATE.rho is None
    assert measurements._loss(APPROXIMATE, "pure") == APPROXIMATE.epsilon
    with pytest.raises(ValueError, match="no ρ"):
        measurements._loss(APPROXIMATE, "zcdp")


def test_monotone_noisy_max_keeps_its_map_for_moves_in_both_directions():
    """Its metric adds positive and negative moves: a pair (+1, −1) has distance 2."""
    mechanism = dps.NoisyMax(epsilon=1.0, monotone=True)
    measurement = accounting.to_measurement(mechanism, [1.0, 1.0])
    leads = np.linspace(-4, 4, 801)
    pairs = np.stack([leads, np.zeros(801)], axis=-1)
    before, after = mechanism.pmf(pairs, 1.0), mechanism.pmf(pairs + np.array([-1.0, 1.0]), 1.0)
    loss = np.abs(np.log(before) - np.log(after)).max()
    assert measurement.map(1.0) < loss <= measurement.map(2.0) + 1e-9


@pytest.mark.parametrize("mechanism", UNSAFE.values(), ids=UNSAFE)
def test_a_mechanism_that_is_not_private_is_not_a_measurement(mechanism):
    with pytest.raises(ValueError, match="must be a private one"):
        accounting.to_measurement(mechanism, SENSITIVITIES)


class Approximate:
    """A mechanism with a δ, which no mechanism of the library has."""

    guarantee = APPROXIMATE

    def select(self, *_):
        return 0

    def pmf(self, scores, _):
        return [1.0] + [0.0] * (len(scores) - 1)


def test_what_the_measure_cannot_express_is_refused():
    with pytest.raises(ValueError, match="δ > 0"):
        accounting.to_measurement(Approximate(), SENSITIVITIES)
    with pytest.raises(ValueError, match="no ρ"):
        accounting.to_measurement(Approximate(), SENSITIVITIES, "zcdp")
    with pytest.raises(ValueError, match="kind must be"):
        accounting.to_measurement(dps.GEM(epsilon=1.0), SENSITIVITIES, "renyi")


@pytest.mark.parametrize("sensitivities", [1.0, [[1.0, 2.0]], [-1.0, 1.0], [math.nan], []])
def test_bad_sensitivities_are_refused_before_any_release(sensitivities):
    with pytest.raises(ValueError, match=r"sensitivities|scores must hold at least one"):
        accounting.to_measurement(dps.GEM(epsilon=1.0), sensitivities)


def test_randomness_cannot_be_fixed():
    with pytest.raises(ValueError, match="randomness must not be set"):
        accounting.to_measurement(dps.GEM(epsilon=1.0), SENSITIVITIES, randomness=dps.Randomness.seeded(1))


def test_impossible_distances_are_refused():
    measurement = accounting.to_measurement(PRIVATE["gem"], SENSITIVITIES)
    for distance in (-1.0, math.nan, math.inf):
        with pytest.raises(OpenDPException, match="distance"):
            measurement.map(distance)
    assert measurement.map(2) == 2 * PRIVATE["gem"].epsilon  # whole numbers are accepted


def test_messages_do_not_show_scores():
    measurement = accounting.to_measurement(dps.GEM(epsilon=1.0), SENSITIVITIES)
    with pytest.raises(OpenDPException, match="scores must be finite") as caught:
        measurement([1.0, math.inf, 1234.5678])
    assert "1234.5678" not in str(caught.value)
