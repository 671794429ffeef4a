"""Guarantees as loss distributions of dp_accounting, against exact laws."""

import math

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


@every_private_mechanism
def test_distributions_dominate_the_exact_laws_on_neighbours(mechanism):
    promise = mechanism.guarantee
    kinds = ["pure"] if promise.bounded_range is None else ["pure", "bounded-range"]
    distributions = [accounting.to_pld(promise, kind, interval=0.01) for kind in kinds]
    pairs = [paired_laws(mechanism, rows) for rows in many_neighbours(mechanism)]
    for loss in np.linspace(-2, 2, 11):
        delta = max(hockey_stick(*each, loss).max() for each in pairs)
        assert all(delta <= each.get_delta_for_epsilon(loss) + 1e-9 for each in distributions)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
def test_two_candidates_with_gumbel_noise_reach_every_point_of_the_bounded_range_curve(epsilon):
    mechanism = dps.NoisyMax(epsilon=epsilon, noise="gumbel")
    distribution = accounting.to_pld(mechanism.guarantee, "bounded-range", interval=epsilon / 200)
    scores = np.zeros((4001, 2))
    scores[:, 0] = np.linspace(-8, 8, 4001) * 2 / epsilon
    first, second = mechanism.pmf(scores, 1.0), mechanism.pmf(scores + np.array([-1.0, 1.0]), 1.0)
    for loss in np.linspace(-0.9, 0.9, 7) * epsilon:
        reached = np.maximum(first - math.exp(loss) * second, 0).sum(axis=-1).max()
        assert reached == pytest.approx(distribution.get_delta_for_epsilon(loss), rel=1e-3)


@pytest.mark.parametrize(("times", "epsilon"), REPEATED)
def test_pure_distributions_compose_to_randomized_response_exactly(times, epsilon):
    composed = accounting.to_pld(pure(epsilon), "pure", interval=epsilon / 100).self_compose(times)
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
    twice = accounting.to_pld(gumbel(epsilon), "bounded-range", interval=1e-3).self_compose(2)
    assert hockey_stick(np.array(first), np.array(second), loss) <= twice.get_delta_for_epsilon(loss) + 1e-9


@pytest.mark.parametrize("epsilon", [1e-80, 1e-9, 50.0, 2000.0])
def test_extreme_losses_are_handled(epsilon):
    at_zero = {
        "pure": math.tanh(epsilon / 2),
        "laplace": -math.expm1(-epsilon / 2),
        "bounded-range": math.tanh(epsilon / 4),
    }
    for kind, delta in at_zero.items():
        guarantee = gumbel(epsilon)  # which has all three
        distribution = accounting.to_pld(guarantee, kind, interval=epsilon / 50)
        assert distribution.get_epsilon_for_delta(0.0) <= epsilon * (1 + 1e-6)
        assert distribution.get_delta_for_epsilon(0.0) == pytest.approx(delta, rel=1e-6)


def test_a_laplace_event_would_understate_what_randomized_response_loses():
    laplace = PLDAccountant().compose(LaplaceDpEvent(1 / 0.5), 30).get_epsilon(DELTA)
    bit = dps.RandomizedResponse(epsilon=0.5)
    chances = bit.pmf([[1.0, 0.0], [0.0, 1.0]], 1.0)[:, 0]
    exact = smallest_epsilon(*repeated_bit(chances, 30), DELTA)
    assert laplace < 0.97 * exact
    assert accounting.total_guarantee([bit.guarantee] * 30, delta=DELTA).epsilon >= exact * (1 - 1e-9)


def test_laplace_is_refused_where_losses_jump():
    with pytest.raises(ValueError, match="kind must be 'pure'"):
        accounting.to_pld(pure(0.5), "laplace")


def test_a_pick_that_ignores_the_scores_loses_nothing():
    for kind in ("pure", "laplace"):
        assert accounting.to_pld(dps.Uniform().guarantee, kind).get_delta_for_epsilon(0.0) == 0


EXPORTS = {
    "distribution": lambda guarantee: accounting.to_pld(guarantee, "pure"),
    "laplace-distribution": lambda guarantee: accounting.to_pld(guarantee, "laplace"),
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
def test_bounded_range_is_refused_where_it_is_not_proven(name):
    with pytest.raises(ValueError, match="no bounded range is proven"):
        accounting.to_pld(PRIVATE[name].guarantee, "bounded-range")


def test_bounded_ranges_do_not_compose_by_addition():
    with pytest.raises(ValueError, match="no bounded range is proven"):
        accounting.to_pld(dps.Guarantee.compose(GUMBEL, GUMBEL), "bounded-range")


def test_unknown_kinds_are_refused():
    with pytest.raises(ValueError, match="kind must be"):
        accounting.to_pld(PURE, "gaussian")
