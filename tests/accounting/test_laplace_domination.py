"""What loses in proportion to distance composes like Laplace noise: exact laws, curves and Rényi divergences."""

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from compositions import DELTA, hockey_stick, laplace_curve
from hypothesis import example, given, settings
from hypothesis import strategies as st
from promises import APPROXIMATE, GUMBEL, PURE
from variants import PRIVATE, laws, losses_of, many_neighbours, paired_laws

import dpselect as dps
from dpselect import accounting
from dpselect.tuning import choice_guarantee, choice_pmf, tune

JUMPING = {"krr", "combined-gem", "combined-gem-curious", "top-share", "top-share-few", "top-share-most"}
CLAIMING = {name: m for name, m in PRIVATE.items() if m.guarantee.laplace_epsilon == m.guarantee.epsilon}
every_claiming_mechanism = pytest.mark.parametrize("mechanism", CLAIMING.values(), ids=CLAIMING)


def test_all_mechanisms_but_those_that_jump_make_the_claim():
    assert set(PRIVATE) - set(CLAIMING) == JUMPING
    assert PRIVATE["krr"].guarantee.laplace_epsilon == 0
    combined = PRIVATE["combined-gem"]
    assert combined.guarantee.laplace_epsilon == combined.pick_epsilon
    assert combined.guarantee.jumping_epsilon >= combined.sign_epsilon


# --- Exact laws -------------------------------------------------------------------------------------------


def shares(rng, rows):
    """Return a share of the way to its neighbour for each row: any, or a special one."""
    count = len(rows[0])
    special = rng.choice([0.0, 2.0**-40, 0.001, 0.5, 1.0], (count, 1))
    return np.where(rng.random((count, 1)) < 0.5, special, rng.random((count, 1)))


def largest_loss(mechanism, *row):
    first, second = np.log(laws(mechanism, *row))
    return np.abs(first - second).max(initial=0.0)


@every_claiming_mechanism
def test_a_share_of_the_way_costs_at_most_that_share_of_epsilon(mechanism):
    rng = np.random.default_rng(14)
    for rows in many_neighbours(mechanism):
        for _ in range(3):
            here, there = shares(rng, rows), shares(rng, rows)
            losses = losses_of(*paired_laws(mechanism, rows, here, there))
            assert (np.abs(losses) <= np.abs(here - there) * mechanism.guarantee.epsilon + 1e-9).all()


@every_claiming_mechanism
def test_curves_of_neighbours_lie_below_that_of_laplace_noise(mechanism):
    rng, epsilon = np.random.default_rng(15), mechanism.guarantee.epsilon
    for rows in many_neighbours(mechanism):
        share = shares(rng, rows)
        first, second = paired_laws(mechanism, rows, there=share)
        for loss in np.linspace(-1, 1, 11) * epsilon:
            bound = laplace_curve(share[:, 0] * epsilon, loss) + 1e-9
            assert (hockey_stick(first, second, loss) <= bound).all()
            assert (hockey_stick(second, first, loss) <= bound).all()


@pytest.mark.parametrize("name", sorted(JUMPING))
def test_mechanisms_that_jump_break_both(name):
    mechanism = PRIVATE[name]
    # The scores move by a millionth of the sensitivities: the best candidate changes, and so does the correlation.
    scores = np.array([[1e-6, 0.0, 0.0], [0.0, 1e-6, 0.0]])
    sensitivities = np.array([1.0, 2.0, 1.5])
    assert np.abs(scores[0] - scores[1]).max() <= 1e-6 * sensitivities.max()
    assert largest_loss(mechanism, scores, sensitivities, 0) > 0.01 * mechanism.epsilon
    first, second = laws(mechanism, scores, sensitivities, 0)
    assert hockey_stick(first, second, 0.0) > laplace_curve(1e-6 * mechanism.epsilon, 0.0)


def test_randomized_response_reaches_a_curve_above_that_of_laplace_noise():
    first, second = dps.RandomizedResponse(epsilon=1.0).pmf([[1.0, 0.0], [0.0, 1.0]], 1.0)
    assert hockey_stick(first, second, 0.0) == pytest.approx(math.tanh(0.5))
    assert laplace_curve(1.0, 0.0) < 0.9 * math.tanh(0.5)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_two_candidates_with_exponential_noise_reach_every_point_of_the_curve(epsilon, monotone):
    mechanism = dps.NoisyMax(epsilon=epsilon, monotone=monotone)
    way = 1.0 if monotone else 2.0  # by how much the difference of two scores can move
    for loss in np.linspace(-epsilon, epsilon, 9)[1:-1]:
        lead = (epsilon - loss) / 2 / epsilon * way
        first, second = mechanism.pmf([[lead, 0.0], [lead - way / 2, way / 2] if way == 2 else [lead, 1.0]], 1.0)
        assert hockey_stick(first, second, loss) == pytest.approx(laplace_curve(epsilon, loss), rel=1e-9)


PARTLY = {name: m for name, m in PRIVATE.items() if m.guarantee.laplace_epsilon > 0}


@pytest.mark.parametrize("mechanism", PARTLY.values(), ids=PARTLY)
def test_the_exported_distribution_dominates_the_exact_laws_on_neighbours(mechanism):
    promise = replace(mechanism.guarantee, bounded_range=None)
    distribution = accounting.to_pld(promise, interval=0.01)
    pairs = [paired_laws(mechanism, rows) for rows in many_neighbours(mechanism)]
    for loss in np.linspace(-2, 2, 11):
        delta = max(hockey_stick(*each, loss).max() for each in pairs)
        assert delta <= distribution.get_delta_for_epsilon(loss) + 1e-9


# --- What does not have it --------------------------------------------------------------------------------


def test_rounded_scores_must_not_claim_it():
    mechanism = dps.NoisyMax(epsilon=1.0)
    close = np.rint([[0.49, 0.51], [0.51, 0.49]])  # 0.02 sensitivities apart before they are rounded
    first, second = mechanism.pmf(close, 1.0)
    assert np.abs(np.log(first / second)).max() > 30 * 0.02 * mechanism.epsilon
    assert hockey_stick(first, second, 0.0) > 10 * laplace_curve(0.02 * mechanism.epsilon, 0.0)


def test_a_flat_part_of_epsilon_does_not_split_the_curve():
    # Noisy max loses at most d ≤ ½ + d/2 at distance d ≤ 1: "½ at once, the rest in proportion" holds for it.
    first, second = dps.NoisyMax(epsilon=1.0).pmf([[1.0, 0.0], [0.0, 1.0]], 1.0)
    truth = 1 / (1 + math.exp(-0.5))
    split = truth * laplace_curve(0.5, -0.5) + (1 - truth) * laplace_curve(0.5, 0.5)
    assert split == pytest.approx(math.tanh(0.25))
    assert hockey_stick(first, second, 0.0) > 1.6 * split


@pytest.mark.parametrize("cap", [4.0, (1.0, 64.0)])
def test_tuning_is_dominated_though_its_law_jumps(cap):
    # One user's errors may be anything: they jump where the best candidate changes, and the sums with them.
    rng, reached = np.random.default_rng(0), 0.0
    for _ in range(200):
        errors = rng.choice([0.0, 1.0, 4.0, 1e3], (3, 2)) * rng.random((3, 2))
        changed = np.column_stack([rng.choice([0.0, 1.0, 4.0, 1e3], 3), errors[:, 1]])
        first, second = (choice_pmf(each, 1.0, cap=cap) for each in (errors, changed))
        for loss in np.linspace(-1, 0.8, 19):
            delta = hockey_stick(first, second, loss)
            assert delta <= laplace_curve(1.0, loss) + 1e-9
            reached = max(reached, delta / laplace_curve(1.0, loss))
    assert reached > (0.9 if cap == 4.0 else 0.4)  # the fleets differ enough to tell


def test_a_choice_and_its_picks_have_it_if_the_whole_pool_does():
    gem, response = dps.GEM(epsilon=1.0), dps.RandomizedResponse(epsilon=1.0)
    settings_ = {"cap": 1.0}
    assert choice_guarantee(0.25).laplace_epsilon == 0.25
    assert choice_guarantee(0.25).flat_epsilon is None
    smooth = tune([[0.0, 1.0]], 1.0, 1.0, 0.25, pool=[gem, dps.Uniform()], **settings_).guarantee
    assert (smooth.epsilon, smooth.laplace_epsilon) == (1.25, 1.25)
    mixed = tune([[0.0, 1.0]], 1.0, 1.0, 0.25, pool=[gem, response], **settings_).guarantee
    assert (mixed.epsilon, mixed.laplace_epsilon) == (1.25, 0.25)


# --- The concentrated loss --------------------------------------------------------------------------------

EVERY_SIZE = st.one_of(
    st.floats(-323, 90).map(lambda power: 10.0**power), st.floats(1e-9, 1e-7), st.floats(1e-4, 150)
)


def proportional(epsilon):
    """Return a guarantee whose loss grows in proportion to distance."""
    return replace(PURE, epsilon=epsilon, laplace_epsilon=epsilon, rho=None)


def exact_rho(epsilon):
    """Return ε + e^(−ε) − 1 to 40 digits, whatever cancels."""
    with mpmath.workdps(700):
        return +(mpmath.mpf(epsilon) + mpmath.expm1(-mpmath.mpf(epsilon)))


@settings(max_examples=300)
@given(EVERY_SIZE)
@example(5e-324)
@example(1e-8)
@example(math.nextafter(1e-8, 0))
@example(100.0)
@example(2.0**300)
def test_the_concentrated_loss_is_never_rounded_down(epsilon):
    rho = proportional(epsilon).rho
    with mpmath.workdps(700):
        assert exact_rho(epsilon) <= rho <= exact_rho(epsilon) * (1 + mpmath.mpf(2) ** -52) + 5e-324
    assert rho <= replace(PURE, epsilon=epsilon, laplace_epsilon=0.0, rho=None).rho


@settings(max_examples=300)
@given(st.floats(1e-3, 1e3), st.floats(-9, 9))
def test_laplace_noise_needs_this_concentrated_loss_and_no_more(epsilon, power):
    with mpmath.workdps(60):
        e, order = mpmath.mpf(epsilon), 1 + mpmath.mpf(10) ** power
        ends = order * mpmath.exp((order - 1) * e) + (order - 1) * mpmath.exp(-order * e)
        divergence = mpmath.log(ends / (2 * order - 1)) / (order - 1)
        rho = proportional(epsilon).rho
        assert divergence <= order * rho
        if power < -8:
            assert divergence == pytest.approx(rho, rel=1e-4)  # the limit at order 1


def test_the_formula_of_the_divergence_is_that_of_laplace_densities():
    for epsilon, order in ((0.3, 1.5), (1.0, 2.0), (2.0, 7.0)):
        pieces = [-40, 0, epsilon, epsilon + 40]
        moment = mpmath.quad(
            lambda x, e=epsilon, a=order: mpmath.exp(-a * abs(x) - (1 - a) * abs(x - e)) / 2, pieces
        )
        ends = order * math.exp((order - 1) * epsilon) + (order - 1) * math.exp(-order * epsilon)
        assert float(moment) == pytest.approx(ends / (2 * order - 1), rel=1e-9)


def test_a_part_of_epsilon_that_jumps_costs_what_randomized_response_costs():
    promise = dps.CombinedGEM(epsilon=4.0, correlation_share=0.25).guarantee
    assert promise.rho == pytest.approx(math.tanh(0.5) + 3 + math.exp(-3) - 1)
    assert promise.rho < 4 * math.tanh(2)


def test_bounded_range_stays_where_it_is_better():
    assert GUMBEL.laplace_epsilon == GUMBEL.epsilon
    assert GUMBEL.rho == GUMBEL.epsilon**2 / 8
    large = dps.NoisyMax(epsilon=20.0, noise="gumbel").guarantee
    assert large.rho == pytest.approx(19.0)  # ε²/8 is 50


# --- Sums and distances -----------------------------------------------------------------------------------

part = st.tuples(st.floats(0, 50), st.floats(0, 1))


@given(st.lists(part, min_size=1, max_size=6))
def test_neither_part_of_a_sum_is_understated(drawn):
    parts = [
        dps.Guarantee(epsilon=epsilon, laplace_epsilon=share * epsilon, theorem="given", reference="none")
        for epsilon, share in drawn
    ]
    whole = dps.Guarantee.compose(*parts)
    smooth = sum(Fraction(each.laplace_epsilon) for each in parts)
    total = sum(Fraction(each.epsilon) for each in parts)
    assert smooth <= Fraction(whole.laplace_epsilon)
    assert total - smooth <= Fraction(whole.epsilon) - Fraction(whole.laplace_epsilon) <= whole.jumping_epsilon
    assert Fraction(whole.epsilon) <= total * (1 + Fraction(2) ** -50)


def test_a_sum_with_a_delta_or_without_a_guarantee_claims_nothing():
    assert dps.Guarantee.compose(PURE, PURE).laplace_epsilon == pytest.approx(0.6)
    assert dps.Guarantee.compose(PURE, APPROXIMATE).laplace_epsilon == 0
    nothing = dps.Guarantee(epsilon=math.inf, theorem="none", reference="none")
    assert dps.Guarantee.compose(PURE, nothing).laplace_epsilon == 0
    assert nothing.jumping_epsilon == math.inf


def test_paths_join_up_and_jumps_do_not():
    assert PURE.at_distance(2.5).laplace_epsilon == PURE.at_distance(2.5).epsilon == pytest.approx(0.75)
    assert PURE.at_distance(0).laplace_epsilon == 0
    choice = choice_guarantee(0.5)  # jumps with the scores, so a part of a step may cost a whole one
    assert choice.at_distance(0.1).laplace_epsilon == choice.at_distance(0.1).epsilon == 0.5
    assert choice.at_distance(1.5).laplace_epsilon == choice.at_distance(1.5).epsilon == 1.0
    assert PRIVATE["combined-gem"].guarantee.at_distance(2).laplace_epsilon == 0
    assert dps.Guarantee.compose(PURE, PRIVATE["krr"].guarantee).at_distance(2).laplace_epsilon == 0


@pytest.mark.parametrize(
    "numbers",
    [
        {"laplace_epsilon": -0.1},
        {"laplace_epsilon": 1.5},
        {"laplace_epsilon": None},
        {"delta": 0.1, "laplace_epsilon": 0.5},
        {"epsilon": math.inf, "laplace_epsilon": 0.5},
    ],
    ids=str,
)
def test_impossible_claims_are_refused(numbers):
    with pytest.raises(ValueError, match="laplace_epsilon must be"):
        dps.Guarantee(**{"epsilon": 1.0, "theorem": "given", "reference": "none"} | numbers)


# --- Many picks -------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.lists(st.floats(-3, 3), min_size=7, max_size=7), st.floats(-2.5, 2.5))
def test_three_picks_each_chosen_by_those_before_are_covered(leads, loss):
    """Binary noisy max with exponential noise: its two laws are Laplace's distribution function, one step apart."""
    epsilon = 1.0

    def chance(lead):
        return 0.5 * math.exp(lead) if lead < 0 else 1 - 0.5 * math.exp(-lead)

    first, second = [], []
    for outcome in range(8):
        p = q = 1.0
        node = 1
        for step in range(3):
            here, there = chance(leads[node - 1]), chance(leads[node - 1] + epsilon * (-1) ** node)
            won = outcome >> step & 1
            p, q = (p * here, q * there) if won else (p * (1 - here), q * (1 - there))
            node = 2 * node + won
        first.append(p)
        second.append(q)
    thrice = accounting.to_pld(dps.NoisyMax(epsilon=epsilon).guarantee, interval=0.01).self_compose(3)
    assert hockey_stick(np.array(first), np.array(second), loss) <= thrice.get_delta_for_epsilon(loss) + 1e-9


@pytest.mark.parametrize(
    ("times", "epsilon", "before", "now"),
    [
        (100, 0.1, 4.77, 4.69),
        (100, 0.5, 33.3, 30.5),
        (30, 1.0, 30.0, 27.8),
        (100, 1.0, 83.5, 71.5),
        (10, 1.0, 10, 10),
    ],
)
def test_totals_fall_as_computed_independently(times, epsilon, before, now):
    def total(mechanism):
        return accounting.total_guarantee([mechanism(epsilon=epsilon).guarantee] * times, delta=DELTA).epsilon

    assert total(dps.RandomizedResponse) == pytest.approx(before, rel=2e-3)
    assert total(dps.NoisyMax) == pytest.approx(now, rel=2e-3)


def test_two_parts_of_combined_gem_compose_apart():
    mechanism = dps.CombinedGEM(epsilon=1.0, correlation_share=0.5)
    total = accounting.total_guarantee([mechanism.guarantee] * 100, delta=DELTA)
    halves = [dps.RandomizedResponse(epsilon=0.5).guarantee] * 100 + [dps.GEM(epsilon=0.5).guarantee] * 100
    assert total.epsilon == pytest.approx(accounting.total_guarantee(halves, delta=DELTA).epsilon, rel=2e-3)
    pure = accounting.total_guarantee([dps.RandomizedResponse(epsilon=1.0).guarantee] * 100, delta=DELTA)
    assert total.epsilon < 0.7 * pure.epsilon
    sign_alone = accounting.total_guarantee(halves[:100], delta=DELTA)
    assert total.epsilon > sign_alone.epsilon
