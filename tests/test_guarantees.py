"""Guarantees: their numbers, their composition, and exact probabilities that confirm them."""

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from promises import ANYWAY, APPROXIMATE, GUMBEL, MONOTONE, PURE
from variants import PRIVATE, UNSAFE, every_private_mechanism, losses_of, many_neighbours, paired_laws

import dpselect as dps
from dpselect.guarantees import ANY_SCORES, SAME_DIRECTION, WITHIN_SENSITIVITIES

# --- Exact probabilities ----------------------------------------------------------------------------------


@every_private_mechanism
def test_losses_grow_with_the_distance_no_faster_than_promised(mechanism):
    for rows in many_neighbours(mechanism):
        for distance in (0.25, 0.75, 1.5, 2.0, 5.0):
            losses = losses_of(*paired_laws(mechanism, rows, there=distance))
            assert np.abs(losses).max() <= mechanism.guarantee.at_distance(distance).epsilon + 1e-9


@every_private_mechanism
def test_renyi_divergences_stay_within_the_concentrated_loss(mechanism):
    for rows in many_neighbours(mechanism):
        first, second = paired_laws(mechanism, rows)
        losses = losses_of(first, second)
        for order in (1.01, 1.5, 2.0, 8.0, 64.0):
            divergence = np.log((first * np.exp((order - 1) * losses)).sum(axis=-1)) / (order - 1)
            assert divergence.max() <= order * mechanism.guarantee.rho + 1e-9


EVERY_SIZE = st.one_of(st.floats(-323, 90).map(lambda power: 10.0**power), st.floats(1e-4, 50))


def concentrated(epsilon):
    """Return ε·tanh(ε/2) to 50 digits."""
    with mpmath.workdps(50):
        return mpmath.mpf(epsilon) * mpmath.tanh(mpmath.mpf(epsilon) / 2)


@settings(max_examples=300)
@given(st.floats(1e-3, 1e3), st.floats(-9, 9))
def test_randomized_response_needs_epsilon_tanh_of_half_epsilon_and_no_more(epsilon, power):
    # Its Rényi divergences are the largest of all ε-DP mechanisms, and nowhere above α·ρ; the limit at α = 1 is ρ.
    with mpmath.workdps(50):
        order, likely = 1 + mpmath.mpf(10) ** power, 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        rare = mpmath.exp(-mpmath.mpf(epsilon)) * likely
        total = likely**order * rare ** (1 - order) + rare**order * likely ** (1 - order)
        divergence = mpmath.log(total) / (order - 1)
        limit = (likely - rare) * mpmath.mpf(epsilon)
        rho = replace(ANYWAY, epsilon=epsilon, flat_epsilon=0.0, rho=None).rho
        assert divergence <= order * rho
        assert limit == pytest.approx(concentrated(epsilon), rel=1e-40)
        assert limit <= rho <= limit * (1 + mpmath.mpf(2) ** -49)


@settings(max_examples=300)
@given(EVERY_SIZE)
@example(5e-324)
@example(1e-310)
@example(2.0**300)
def test_the_concentrated_loss_is_never_rounded_down(epsilon):
    rho = replace(ANYWAY, epsilon=epsilon, flat_epsilon=0.0, rho=None).rho
    assert concentrated(epsilon) <= rho <= concentrated(epsilon) * (1 + mpmath.mpf(2) ** -49) + 5e-324
    assert rho <= epsilon


WITH_BOUNDED_RANGE = {name: m for name, m in PRIVATE.items() if m.guarantee.bounded_range is not None}


@pytest.mark.parametrize("mechanism", WITH_BOUNDED_RANGE.values(), ids=WITH_BOUNDED_RANGE)
def test_gumbel_noise_keeps_losses_within_an_interval_of_length_epsilon(mechanism):
    assert mechanism.noise == "gumbel"
    for rows in many_neighbours(mechanism):
        first, second = paired_laws(mechanism, rows)
        losses = losses_of(first, second)
        impossible = (first == 0) & (second == 0)
        longest = np.where(impossible, -np.inf, losses).max(-1) - np.where(impossible, np.inf, losses).min(-1)
        assert longest.max() <= mechanism.guarantee.bounded_range + 1e-9


@pytest.mark.parametrize(
    ("noise", "scores", "moves"),
    [("exponential", [0.0, 1.0], [1.0, -1.0]), ("laplace", [0.0, 1.0, 0.0, 1.0, 0.0], [1.0, -1.0, 1.0, -1.0, 1.0])],
)
def test_other_noises_do_not_have_bounded_range(noise, scores, moves):
    mechanism = dps.NoisyMax(epsilon=1.0, noise=noise)
    assert mechanism.guarantee.bounded_range is None
    pair = np.stack([scores, np.add(scores, moves)])
    first, second = mechanism.pmf(pair, 1.0)
    losses = np.log(first) - np.log(second)
    assert losses.max() - losses.min() > 1.1 * mechanism.epsilon
    assert abs((first * losses).sum()) > mechanism.epsilon**2 / 8  # the limit of Rényi divergences at order 1


def test_the_kinds_of_neighbours_are_those_the_mechanisms_need():
    named = {name: mechanism.guarantee.neighbours for name, mechanism in PRIVATE.items()}
    shares = {"top-share", "top-share-few", "top-share-most"}
    assert {name for name, relation in named.items() if relation == ANY_SCORES} == {"krr", "uniform"} | shares
    monotone = {name for name, mechanism in PRIVATE.items() if getattr(mechanism, "monotone", False)}
    assert {name for name, relation in named.items() if relation == SAME_DIRECTION} == monotone
    assert set(named.values()) == {ANY_SCORES, WITHIN_SENSITIVITIES, SAME_DIRECTION}


# --- Sums -------------------------------------------------------------------------------------------------

losses = st.floats(0, 1e3)


@given(st.lists(st.tuples(losses, losses, st.booleans()), min_size=1, max_size=6))
def test_losses_add_up_and_are_never_understated(drawn):
    parts = [
        dps.Guarantee(
            epsilon=epsilon,
            rho=rho,
            flat_epsilon=epsilon / 3 if flat else None,
            theorem="given",
            reference="none",
        )
        for epsilon, rho, flat in drawn
    ]
    whole = dps.Guarantee.compose(*parts)
    for name in ("epsilon", "rho"):
        exact = sum(Fraction(getattr(part, name)) for part in parts)
        assert exact <= Fraction(getattr(whole, name)) <= exact * (1 + Fraction(2) ** -52)
    assert (whole.flat_epsilon is None) == any(part.flat_epsilon is None for part in parts)
    assert whole.delta == 0
    assert whole.bounded_range is None


def test_a_sum_that_floats_round_down_is_rounded_up():
    third = replace(PURE, epsilon=1 / 3, laplace_epsilon=0.0, rho=None)
    whole = dps.Guarantee.compose(third, third, third)
    assert 1 / 3 + 1 / 3 + 1 / 3 == 1.0
    assert Fraction(whole.epsilon) >= 3 * Fraction(1 / 3)
    tenth = replace(PURE, epsilon=0.1, laplace_epsilon=0.0, rho=None)
    assert Fraction(dps.Guarantee.compose(*[tenth] * 10).epsilon) >= 10 * Fraction(0.1)


def test_one_guarantee_alone_stays_as_it_is():
    assert dps.Guarantee.compose(GUMBEL) is GUMBEL


def test_deltas_add_up_and_leave_no_concentrated_loss():
    whole = dps.Guarantee.compose(PURE, APPROXIMATE, APPROXIMATE)
    assert whole.epsilon == pytest.approx(2.3)
    assert whole.delta == pytest.approx(2e-6)
    assert whole.rho is None
    hopeless = replace(APPROXIMATE, delta=0.7)
    assert dps.Guarantee.compose(hopeless, hopeless).delta == 1.0


def test_a_guarantee_for_more_neighbours_covers_fewer():
    assert dps.Guarantee.compose(ANYWAY, ANYWAY).neighbours == ANY_SCORES
    assert dps.Guarantee.compose(ANYWAY, PURE).neighbours == WITHIN_SENSITIVITIES
    assert dps.Guarantee.compose(MONOTONE, ANYWAY, GUMBEL).neighbours == SAME_DIRECTION


def test_other_neighbours_are_refused():
    user = PURE.with_neighbours("one user more or less")
    rating = PURE.with_neighbours("one rating more or less")
    for other in (rating, PURE, ANYWAY):
        with pytest.raises(ValueError, match=r"same neighbours.*one user more or less.*with_neighbours"):
            dps.Guarantee.compose(user, other)
    assert dps.Guarantee.compose(user, user).neighbours == "one user more or less"
    with pytest.raises(ValueError, match="neighbours must say"):
        PURE.with_neighbours("")


@pytest.mark.parametrize("mechanism", UNSAFE.values(), ids=UNSAFE)
def test_a_part_without_a_guarantee_leaves_the_whole_without_one(mechanism):
    whole = dps.Guarantee.compose(PURE, mechanism.guarantee, GUMBEL)
    assert not whole.is_private
    assert whole.epsilon == math.inf
    assert whole.rho is None
    assert mechanism.guarantee.theorem in whole.theorem


def test_only_guarantees_are_composed():
    with pytest.raises(ValueError, match="at least one"):
        dps.Guarantee.compose()
    with pytest.raises(ValueError, match=r"mechanism\.guarantee; got GEM"):
        dps.Guarantee.compose(PURE, dps.GEM(epsilon=1.0))


# --- Distances --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "at_half", "at_two"),
    [
        (dps.NoisyMax(epsilon=1.0), 0.5, 2.0),
        (dps.NoisyMax(epsilon=1.0, monotone=True), 0.5, 2.0),
        (dps.GEM(epsilon=1.0), 0.5, 2.0),
        (dps.RandomStopping(epsilon=1.0), 0.5, 2.0),
        (dps.CombinedGEM(epsilon=1.0, correlation_share=0.25), 0.25 + 0.375, 0.25 + 1.5),
        (dps.RandomizedResponse(epsilon=1.0), 1.0, 1.0),
        (dps.Uniform(), 0.0, 0.0),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "guarantee") else "",
)
def test_guarantees_at_other_distances_have_the_right_losses(mechanism, at_half, at_two):
    promise = mechanism.guarantee
    for distance, epsilon in [(0, 0.0), (0.5, at_half), (1, promise.epsilon), (2, at_two)]:
        scaled = promise.at_distance(distance)
        assert scaled.epsilon == pytest.approx(epsilon)
        if isinstance(mechanism, dps.CombinedGEM):
            assert scaled.rho <= epsilon * math.tanh(epsilon / 2) * (1 + 1e-12)
        elif promise.laplace_epsilon == 0:
            assert scaled.rho == pytest.approx(epsilon * math.tanh(epsilon / 2))
        else:
            assert scaled.rho == pytest.approx(epsilon + math.expm1(-epsilon))
    assert promise.at_distance(1) is promise
    composed = dps.Guarantee.compose(promise, PURE).at_distance(2)
    assert composed.epsilon == pytest.approx(at_two + 0.6)


def test_bounded_range_grows_in_proportion():
    far = GUMBEL.at_distance(3)
    assert far.bounded_range == pytest.approx(1.5)
    assert far.rho == pytest.approx(1.5**2 / 8)
    assert far.neighbours != GUMBEL.neighbours


def test_without_knowing_how_losses_grow_only_whole_steps_count():
    unknown = replace(PURE, flat_epsilon=None, laplace_epsilon=0.0, rho=0.01)
    assert unknown.at_distance(0.1).epsilon == PURE.epsilon
    assert unknown.at_distance(1.1).epsilon == pytest.approx(0.6)
    assert unknown.at_distance(1.1).rho == pytest.approx(0.04)
    assert unknown.at_distance(0).epsilon == 0
    assert APPROXIMATE.at_distance(0.5).delta == APPROXIMATE.delta
    with pytest.raises(ValueError, match="distance must be ≤ 1 if δ > 0"):
        APPROXIMATE.at_distance(2)
    for distance in (-1.0, math.nan, math.inf, "1"):
        with pytest.raises(ValueError, match="distance"):
            PURE.at_distance(distance)


def test_no_guarantee_is_none_at_any_distance():
    nothing = UNSAFE["rnmh-exponential"].guarantee
    assert nothing.at_distance(0.1) is nothing


@pytest.mark.parametrize(
    "numbers",
    [
        {"epsilon": -1.0},
        {"epsilon": math.nan},
        {"delta": 1.5},
        {"delta": -0.1},
        {"rho": -1.0},
        {"bounded_range": -1.0},
        {"flat_epsilon": 1.5},
        {"delta": 0.1, "flat_epsilon": 0.5},
        {"delta": 0.1, "bounded_range": 1.0},
        {"epsilon": math.inf, "rho": 1.0},
    ],
    ids=str,
)
def test_impossible_guarantees_are_refused(numbers):
    with pytest.raises(ValueError, match=list(numbers)[-1]):
        dps.Guarantee(**{"epsilon": 1.0, "theorem": "given", "reference": "none"} | numbers)


def test_a_flat_part_leaves_nothing_like_laplace_noise_at_another_distance():
    both = replace(PURE, epsilon=1.0, flat_epsilon=0.5, laplace_epsilon=1.0, rho=None)
    for distance in (0.5, 2, 3.5):
        found = both.at_distance(distance)
        assert found.epsilon == 0.5 + 0.5 * distance
        assert found.laplace_epsilon == 0
    smooth = replace(both, flat_epsilon=0.0, rho=None)
    assert smooth.at_distance(2).laplace_epsilon == 2
