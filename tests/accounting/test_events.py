"""Guarantees as events and loss distributions of dp_accounting, against exact laws."""

import math

import numpy as np
import pytest
from compositions import (
    DELTA,
    REPEATED,
    exact_epsilon_of_randomized_response,
    exponential,
    gumbel,
    hockey_stick,
    pure,
    repeated_bit,
    smallest_epsilon,
)
from dp_accounting import LaplaceDpEvent, NoOpDpEvent
from dp_accounting.dp_event import DiscreteLaplaceDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
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


# --- Events -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("times", "epsilon"), REPEATED)
def test_pure_events_compose_to_randomized_response(times, epsilon):
    event = accounting.to_event(pure(epsilon), "pure")
    accountant = PLDAccountant(value_discretization_interval=epsilon / 100).compose(event, times)
    exact = exact_epsilon_of_randomized_response(epsilon, times)
    assert accountant.get_epsilon(DELTA) == pytest.approx(exact, rel=1e-6)


def test_a_laplace_event_would_understate_what_randomized_response_loses():
    laplace = PLDAccountant().compose(LaplaceDpEvent(1 / 0.5), 30).get_epsilon(DELTA)
    bit = dps.RandomizedResponse(epsilon=0.5)
    chances = bit.pmf([[1.0, 0.0], [0.0, 1.0]], 1.0)[:, 0]
    exact = smallest_epsilon(*repeated_bit(chances, 30), DELTA)
    assert laplace < 0.97 * exact
    assert accounting.total_guarantee([bit.guarantee] * 30, delta=DELTA).epsilon >= exact * (1 - 1e-9)


@pytest.mark.parametrize(("times", "epsilon"), REPEATED)
def test_laplace_events_compose_like_the_total(times, epsilon):
    event = accounting.to_event(exponential(epsilon), "laplace")
    assert isinstance(event, LaplaceDpEvent)
    assert 1 / event.noise_multiplier >= epsilon
    accountant = PLDAccountant(value_discretization_interval=epsilon / 100).compose(event, times)
    total = accounting.total_guarantee([exponential(epsilon)] * times, delta=DELTA)
    assert accountant.get_epsilon(DELTA) == pytest.approx(total.epsilon, rel=1e-3)


def test_the_event_of_combined_gem_has_two_parts():
    promise = dps.CombinedGEM(epsilon=1.0, correlation_share=0.5).guarantee
    event = accounting.to_event(promise, "laplace")
    assert [type(part) for part in event.events] == [DiscreteLaplaceDpEvent, LaplaceDpEvent]
    epsilon = PLDAccountant(value_discretization_interval=0.005).compose(event, 40).get_epsilon(DELTA)
    assert epsilon == pytest.approx(accounting.total_guarantee([promise] * 40, delta=DELTA).epsilon, rel=2e-3)


@pytest.mark.parametrize("export", [accounting.to_event, accounting.to_pld])
def test_laplace_is_refused_where_losses_jump(export):
    with pytest.raises(ValueError, match="kind must be 'pure'"):
        export(pure(0.5), "laplace")


def test_concentrated_events_have_the_concentrated_loss():
    event = accounting.to_event(gumbel(0.5), "zcdp")
    assert event.rho == pytest.approx(0.5**2 / 8)
    assert accounting.to_event(pure(0.5), "zcdp").rho == pytest.approx(0.5 * math.tanh(0.25))
    epsilon = RdpAccountant().compose(event, 100).get_epsilon(DELTA)
    rho = 100 * 0.5**2 / 8
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / DELTA))  # the textbook's conversion


@pytest.mark.parametrize("kind", ["pure", "laplace", "zcdp"])
def test_a_pick_that_ignores_the_scores_is_a_no_op_event(kind):
    assert accounting.to_event(dps.Uniform().guarantee, kind) == NoOpDpEvent()
    for distribution in ("pure", "laplace"):
        assert accounting.to_pld(dps.Uniform().guarantee, distribution).get_delta_for_epsilon(0.0) == 0


EXPORTS = {
    "event": lambda guarantee: accounting.to_event(guarantee, "pure"),
    "laplace-event": lambda guarantee: accounting.to_event(guarantee, "laplace"),
    "zcdp-event": lambda guarantee: accounting.to_event(guarantee, "zcdp"),
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


@pytest.mark.parametrize("convert", [accounting.to_event, accounting.to_pld])
def test_unknown_kinds_are_refused(convert):
    with pytest.raises(ValueError, match="kind must be"):
        convert(PURE, "gaussian")
