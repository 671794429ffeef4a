"""Guarantees as loss distributions of dp_accounting, against exact laws."""

import math
from dataclasses import replace

import numpy as np
import pytest
from compositions import (
    DELTA,
    REPEATED,
    gumbel,
    hockey_stick,
    pure,
    repeated_bit,
    smallest_epsilon,
)
from dp_accounting import LaplaceDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from promises import APPROXIMATE, GUMBEL, PURE
from variants import PRIVATE, UNSAFE, every_private_mechanism, many_neighbours, paired_laws

import dpselect as dps
from dpselect import accounting

# --- Curves -----------------------------------------------------------------------------------------------


def claims(promise):
    """Return the same guarantee with less and less known about it: each has a curve of its own."""
    smooth = replace(promise, bounded_range=None)
    return promise, smooth, replace(smooth, laplace_epsilon=0.0)


@every_private_mechanism
def test_distributions_dominate_the_exact_laws_on_neighbours(mechanism):
    distributions = [accounting.to_pld(promise, interval=0.01) for promise in claims(mechanism.guarantee)]
    pairs = [paired_laws(mechanism, rows) for rows in many_neighbours(mechanism)]
    for loss in np.linspace(-2, 2, 11):
        delta = max(hockey_stick(*each, loss).max() for each in pairs)
        assert all(delta <= each.get_delta_for_epsilon(loss) + 1e-9 for each in distributions)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
def test_two_candidates_with_gumbel_noise_reach_every_point_of_the_bounded_range_curve(epsilon):
    mechanism = dps.NoisyMax(epsilon=epsilon, noise="gumbel")
    distribution = accounting.to_pld(mechanism.guarantee, interval=epsilon / 200)
    scores = np.zeros((4001, 2))
    scores[:, 0] = np.linspace(-8, 8, 4001) * 2 / epsilon
    first, second = mechanism.pmf(scores, 1.0), mechanism.pmf(scores + np.array([-1.0, 1.0]), 1.0)
    for loss in np.linspace(-0.9, 0.9, 7) * epsilon:
        reached = np.maximum(first - math.exp(loss) * second, 0).sum(axis=-1).max()
        assert reached == pytest.approx(distribution.get_delta_for_epsilon(loss), rel=1e-3)


@pytest.mark.parametrize(("times", "epsilon"), REPEATED)
def test_pure_distributions_compose_to_randomized_response_exactly(times, epsilon):
    composed = accounting.to_pld(pure(epsilon), interval=epsilon / 100).self_compose(times)
    truth = 1 / (1 + math.exp(-epsilon))
    first, second = repeated_bit((truth, 1 - truth), times)
    for loss in np.linspace(0, times * epsilon, 9):
        exact = hockey_stick(first, second, loss)
        assert composed.get_delta_for_epsilon(loss) == pytest.approx(exact, rel=1e-6, abs=1e-12)


@settings(max_examples=60)
@given(st.lists(st.floats(0.02, 0.98), min_size=3, max_size=3), st.floats(-1.5, 1.5))
def test_a_second_pick_chosen_by_the_first_is_covered(places, loss):
    """The adaptive case: the leader's margin in the second pick depends on the first."""
    epsilon = 1.0
    tops = [epsilon * place for place in places]
    pairs = [((math.exp(epsilon) - math.exp(top)) / math.expm1(epsilon), top) for top in tops]
    first, second = [], []
    for outcome, (chance, top) in enumerate([(pairs[0][0], tops[0]), (1 - pairs[0][0], tops[0] - epsilon)]):
        then, after = pairs[1 + outcome]
        for other, drop in ((then, after), (1 - then, after - epsilon)):
            first.append(chance * other)
            second.append(chance * other * math.exp(-top - drop))
    assert sum(second) == pytest.approx(1)
    twice = accounting.to_pld(gumbel(epsilon), interval=1e-3).self_compose(2)
    assert hockey_stick(np.array(first), np.array(second), loss) <= twice.get_delta_for_epsilon(loss) + 1e-9


@pytest.mark.parametrize("epsilon", [1e-80, 1e-9, 50.0, 2000.0])
def test_extreme_losses_are_handled(epsilon):
    at_zero = (math.tanh(epsilon / 4), -math.expm1(-epsilon / 2), math.tanh(epsilon / 2))
    for guarantee, delta in zip(claims(gumbel(epsilon)), at_zero, strict=True):  # which has all three curves
        distribution = accounting.to_pld(guarantee, interval=epsilon / 50)
        assert distribution.get_epsilon_for_delta(0.0) <= epsilon * (1 + 1e-6)
        assert distribution.get_delta_for_epsilon(0.0) == pytest.approx(delta, rel=1e-6)


def test_a_laplace_event_would_understate_what_randomized_response_loses():
    laplace = PLDAccountant().compose(LaplaceDpEvent(1 / 0.5), 30).get_epsilon(DELTA)
    bit = dps.RandomizedResponse(epsilon=0.5)
    chances = bit.pmf([[1.0, 0.0], [0.0, 1.0]], 1.0)[:, 0]
    exact = smallest_epsilon(*repeated_bit(chances, 30), DELTA)
    assert laplace < 0.97 * exact
    assert accounting.total_guarantee([bit.guarantee] * 30, delta=DELTA).epsilon >= exact * (1 - 1e-9)


def test_a_pick_that_ignores_the_scores_loses_nothing():
    assert accounting.to_pld(dps.Uniform().guarantee).get_delta_for_epsilon(0.0) == 0


EXPORTS = {
    "distribution": accounting.to_pld,
    "total": lambda guarantee: accounting.total_guarantee([PURE, guarantee], delta=DELTA),
}
every_export = pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)


@every_export
@pytest.mark.parametrize("mechanism", UNSAFE.values(), ids=UNSAFE)
def test_what_is_not_private_is_not_exported(export, mechanism):
    with pytest.raises(ValueError, match="must be a private one") as caught:
        export(mechanism.guarantee)
    assert mechanism.guarantee.theorem in str(caught.value)


@every_export
def test_what_has_a_delta_is_not_exported(export):
    with pytest.raises(ValueError, match="δ > 0"):
        export(APPROXIMATE)


@every_export
def test_a_mechanism_is_not_a_guarantee(export):
    with pytest.raises(ValueError, match="Guarantee objects"):
        export(dps.GEM(epsilon=1.0))


@pytest.mark.parametrize("name", [name for name, m in PRIVATE.items() if m.guarantee.bounded_range is None])
def test_without_a_proven_bounded_range_its_curve_is_not_used(name):
    promise = PRIVATE[name].guarantee
    found = accounting.to_pld(promise).get_delta_for_epsilon(0.0)
    assert found >= 1.01 * math.tanh(promise.epsilon / 4)  # that of bounded range


def test_bounded_ranges_do_not_compose_by_addition():
    both = dps.Guarantee.compose(GUMBEL, GUMBEL)
    assert accounting.to_pld(both).get_delta_for_epsilon(0.0) >= 1.01 * math.tanh(both.epsilon / 4)
