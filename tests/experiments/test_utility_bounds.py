"""Utility bounds against exact probabilities."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect as dps
from experiments import utility_bounds as bounds
from experiments.utility_bounds import error_quantile

NOISES = ("exponential", "gumbel", "laplace")
every_noise = pytest.mark.parametrize("noise", NOISES)

scores = st.integers(-20, 20).map(lambda n: n / 4)
sensitivities = st.one_of(st.just(0.0), st.integers(1, 12).map(lambda n: n / 4))
rows = st.lists(st.tuples(scores, sensitivities), min_size=1, max_size=12)
betas = st.sampled_from([1e-6, 0.01, 0.05, 0.3, 0.7])
budgets = st.sampled_from([0.1, 1.0, 4.0, 30.0])
slopes = st.sampled_from([-3.0, -1.0, 0.0, 0.4, 1.0, 2.0])


def columns(pairs):
    left, right = zip(*pairs, strict=True)
    return np.array(left), np.array(right)


def chance_below(mechanism, q, deltas, floor, **public):
    """Return the exact probability of a score below the floor, which is one number or one for each candidate."""
    slack = 1e-9 * (1 + np.abs(floor))  # for rounding in the bound itself
    return mechanism.pmf(q, deltas, **public)[q < floor - slack].sum()


# --- Reach ------------------------------------------------------------------------------------------------


@every_noise
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-3, 1e-6])
@pytest.mark.parametrize("size", [2, 3, 20, 500])
def test_the_reach_fails_with_probability_at_most_beta_in_the_worst_case(noise, beta, size):
    """The scale is 2/ε = 1, so gaps of scores are gaps of levels. They are slightly closer, so that failing means
    reaching.
    """
    distance = bounds.reach(size, beta=beta, noise=noise)
    levels = np.r_[0.0, np.full(size - 1, -distance)]
    failure = dps.NoisyMax(epsilon=2.0, noise=noise).pmf(levels, 1.0)[1:].sum()
    assert failure <= beta * (1 + 1e-9)
    loosest = {"exponential": 1 - 0.67 * beta, "gumbel": 1 - 1e-9, "laplace": 0.3}[noise]
    assert failure >= beta * loosest


@every_noise
def test_the_worst_levels_are_one_best_candidate_and_all_others_behind(noise):
    """Random rows in which some are good, some bad, some far behind."""
    rng = np.random.default_rng(4)
    mechanism, distance = dps.NoisyMax(epsilon=2.0, noise=noise), 2.0
    worst = mechanism.pmf(np.r_[0.0, np.full(9, -distance)], 1.0)[1:].sum()
    levels = np.where(rng.random((300, 10)) < 0.3, rng.uniform(-distance, 0, (300, 10)), -distance)
    levels = np.where(rng.random((300, 10)) < 0.2, rng.uniform(-9, -distance, (300, 10)), levels)
    levels[:, 0] = 0.0
    bad = np.where(levels <= -distance, mechanism.pmf(levels, 1.0), 0.0).sum(axis=1)
    assert (bad <= worst + 1e-12).all()


def test_the_textbook_reach_is_safe_except_for_laplace_noise():
    size, beta = 100, 0.05
    levels = np.r_[0.0, np.full(size - 1, -math.log(size / beta))]
    failures = {n: dps.NoisyMax(epsilon=2.0, noise=n).pmf(levels, 1.0)[1:].sum() for n in NOISES}
    assert failures["exponential"] < 0.5 * beta
    assert failures["gumbel"] < beta
    assert failures["laplace"] > 1.1 * beta
    for noise in ("exponential", "gumbel"):
        for k in (1, 2, 7, 10**6):
            for chance in (0.9, 0.05, 1e-9):
                assert bounds.reach(k, beta=chance, noise=noise) <= math.log(k / chance)


def test_the_reach_of_a_single_candidate_is_zero():
    assert [bounds.reach(1, noise=noise) for noise in NOISES] == [0, 0, 0]


def test_a_noise_of_which_no_bound_is_known_is_refused():
    with pytest.raises(ValueError, match=r"noise must be .*normal"):
        bounds.reach(3, noise="normal")


# --- Guaranteed scores ------------------------------------------------------------------------------------


@every_noise
@given(row=rows, epsilon=budgets, tilt=slopes, beta=betas, own=betas, seed=st.integers(0, 3))
def test_noisy_max_satisfies_its_bound(noise, row, epsilon, tilt, beta, own, seed):
    q, deltas = columns(row)
    offsets = np.random.default_rng(seed).integers(-4, 5, q.size) / 2.0
    for monotone in (False, True):
        mechanism = dps.NoisyMax(epsilon=epsilon, noise=noise, tilt=tilt, beta=own, monotone=monotone)
        for public in ({}, {"offsets": offsets}):
            floor = bounds.guaranteed_score(mechanism, q, deltas, beta=beta, **public)
            assert chance_below(mechanism, q, deltas, floor, **public) <= beta + 1e-12


@every_noise
@given(row=rows, epsilon=budgets, tilt=slopes, beta=betas, own=betas, seed=st.integers(0, 3))
def test_gem_of_any_tilt_satisfies_its_bound(noise, row, epsilon, tilt, beta, own, seed):
    q, deltas = columns(row)
    mechanism = dps.GEM(epsilon=epsilon, noise=noise, tilt=tilt, beta=own)
    offsets = np.random.default_rng(seed).integers(-4, 5, q.size) / 2.0
    for public in ({}, {"offsets": offsets}):
        floor = bounds.guaranteed_score(mechanism, q, deltas, beta=beta, **public)
        assert chance_below(mechanism, q, deltas, floor, **public) <= beta + 1e-12


@given(row=rows, epsilon=budgets, beta=betas, own=betas)
def test_modified_and_combined_gem_satisfy_their_bounds(row, epsilon, beta, own):
    q, deltas = columns(row)
    for mechanism in (
        dps.ModifiedGEM(epsilon=epsilon, beta=own),
        dps.CombinedGEM(epsilon=epsilon, beta=own, correlation_share=0.3),
    ):
        floor = bounds.guaranteed_score(mechanism, q, deltas, beta=beta)
        assert chance_below(mechanism, q, deltas, floor) <= beta + 1e-12


def test_the_bounds_are_attained_so_that_no_better_ones_of_this_kind_exist():
    """Equal sensitivities, one best candidate, the rest just below the bound: picked with probability almost β."""
    size, beta, epsilon = 50, 0.05, 0.7
    for mechanism in (dps.NoisyMax(epsilon=epsilon), dps.GEM(epsilon=epsilon, beta=0.3)):
        depth = -bounds.guaranteed_score(mechanism, np.zeros(size), 1.0, beta=beta)
        q = np.r_[0.0, np.full(size - 1, -depth - 1e-6)]
        floor = bounds.guaranteed_score(mechanism, q, 1.0, beta=beta)
        assert 0.95 * beta <= chance_below(mechanism, q, np.ones(size), floor) <= beta


def test_noisy_max_without_tilt_errs_by_a_public_number():
    rng = np.random.default_rng(0)
    q, deltas = rng.normal(size=(5, 30)), rng.uniform(size=30)
    floor = bounds.guaranteed_score(dps.NoisyMax(epsilon=0.5), q, deltas)
    error = 2 * deltas.max() / 0.5 * math.log(29 / 0.1)
    assert q.max(axis=1) - floor == pytest.approx(np.full(5, error), rel=1e-12)


def test_other_mechanisms_have_no_bound():
    for mechanism in (dps.Uniform(), dps.RandomStopping(epsilon=1.0), dps.RandomizedResponse(epsilon=1.0)):
        with pytest.raises(ValueError, match=r"^mechanism must be "):
            bounds.guaranteed_score(mechanism, [1.0, 2.0], 1.0)


# --- What is published ------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@given(row=rows, epsilon=budgets, tilt=slopes, beta=betas)
def test_the_published_bound_for_any_tilt_holds_for_exponential_and_gumbel_noise(noise, row, epsilon, tilt, beta):
    q, deltas = columns(row)
    mechanism = dps.GEM(epsilon=epsilon, beta=beta, tilt=tilt, noise=noise)
    floors = bounds.gem_floors(q, deltas, epsilon=epsilon, tilt=tilt, beta=beta)
    assert chance_below(mechanism, q, deltas, floors) <= beta + 1e-12
    guaranteed = bounds.guaranteed_score(mechanism, q, deltas, beta=beta)
    assert guaranteed >= floors.min() - 1e-9 * (1 + abs(floors.min()))


@given(row=rows, epsilon=budgets, beta=betas, tilt=slopes)
def test_published_floors_are_those_of_the_formula(row, epsilon, beta, tilt):
    q, deltas = columns(row)
    spread = math.log(q.size / beta) / epsilon
    floors = bounds.gem_floors(q, deltas, epsilon=epsilon, beta=beta, tilt=tilt)
    for floor, delta in zip(floors, deltas, strict=True):
        t = tilt * 2 * spread
        direct = max(a - delta * (2 * spread - t) - d * (2 * spread + t) for a, d in zip(q, deltas, strict=True))
        assert floor == pytest.approx(direct, rel=1e-12, abs=1e-9)
    proper = bounds.gem_floors(q, deltas, epsilon=epsilon, beta=beta)
    assert proper == pytest.approx(np.full(q.size, (q - 4 * deltas * spread).max()), rel=1e-12, abs=1e-9)


def test_the_published_bound_does_not_hold_for_laplace_noise():
    size, beta = 100, 0.05
    depth = 4 * math.log(size / beta)
    q = np.r_[0.0, np.full(size - 1, -depth - 1e-6)]
    floors = bounds.gem_floors(q, 1.0, epsilon=1.0, beta=beta)
    assert chance_below(dps.GEM(epsilon=1.0, beta=beta), q, np.ones(size), floors) < 0.5 * beta
    assert chance_below(dps.GEM(epsilon=1.0, beta=beta, noise="laplace"), q, np.ones(size), floors) > 1.1 * beta


@given(row=rows, epsilon=budgets, beta=betas)
def test_the_published_conditions_are_necessary(row, epsilon, beta):
    q, deltas = columns(row)
    keywords = {"epsilon": epsilon, "beta": beta}
    if bounds.gem_worse_than_noisy_max(q, deltas, **keywords):
        assert bounds.published_gem_worse_than_noisy_max(q, deltas)
    if bounds.gem_worse_than_uniform(q, deltas, **keywords):
        assert bounds.published_gem_worse_than_uniform(q, deltas, **keywords)


@given(row=rows, epsilon=budgets, beta=betas)
def test_comparisons_compare_bounds(row, epsilon, beta):
    q, deltas = columns(row)
    keywords = {"epsilon": epsilon, "beta": beta}
    gem = bounds.gem_floors(q, deltas, **keywords)[0]
    noisy_max = q.max() - 2 * deltas.max() * math.log(q.size / beta) / epsilon
    slack = 1e-9 * (1 + abs(gem))
    if abs(gem - noisy_max) > slack:
        assert bounds.gem_worse_than_noisy_max(q, deltas, **keywords) == (gem < noisy_max)
    if abs(gem - q.min()) > slack:
        assert bounds.gem_worse_than_uniform(q, deltas, **keywords) == (gem < q.min())


def test_the_published_conditions_are_not_sufficient():
    """The best candidate is sensitive, but one of small sensitivity is almost as good."""
    q, deltas = [1.0, 0.9, 0.0], [1.0, 0.01, 1.0]
    assert bounds.published_gem_worse_than_noisy_max(q, deltas)
    assert bounds.published_gem_worse_than_uniform(q, deltas, epsilon=1.0)
    assert not bounds.gem_worse_than_noisy_max(q, deltas, epsilon=1.0)
    assert not bounds.gem_worse_than_uniform(q, deltas, epsilon=1.0)
    assert bounds.gem_floors(q, deltas, epsilon=1.0)[0] > 0.7
    assert 1.0 - 2 * math.log(3 / 0.05) < -7


def test_the_conditions_can_be_met():
    assert bounds.gem_worse_than_noisy_max([1.0, 0.0], [1.0, 1.0], epsilon=1.0)
    assert bounds.gem_worse_than_uniform([1.0, 0.0], [1.0, 1.0], epsilon=1.0)
    assert not bounds.gem_worse_than_uniform([1.0, 0.0], [1.0, 1.0], epsilon=100.0)


def test_the_least_sensitive_of_several_best_candidates_counts():
    assert not bounds.published_gem_worse_than_noisy_max([1.0, 1.0, 0.0], [1.0, 0.1, 1.0])
    assert not bounds.gem_worse_than_noisy_max([1.0, 1.0, 0.0], [1.0, 0.1, 1.0], epsilon=1.0)


# --- Layouts ----------------------------------------------------------------------------------------------

CALLS = {
    "noisy max": lambda q, d: bounds.guaranteed_score(dps.NoisyMax(epsilon=1.0, tilt=0.5), q, d),
    "gem": lambda q, d: bounds.guaranteed_score(dps.GEM(epsilon=1.0), q, d),
    "combined": lambda q, d: bounds.guaranteed_score(dps.CombinedGEM(epsilon=1.0), q, d),
    "against noisy max": lambda q, d: bounds.gem_worse_than_noisy_max(q, d, epsilon=3.0),
    "against uniform": lambda q, d: bounds.gem_worse_than_uniform(q, d, epsilon=9.0),
    "published against noisy max": bounds.published_gem_worse_than_noisy_max,
    "published against uniform": lambda q, d: bounds.published_gem_worse_than_uniform(q, d, epsilon=9.0),
    "floors": lambda q, d: bounds.gem_floors(q, d, epsilon=1.0, tilt=0.5),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_batches_are_loops_over_rows(call):
    rng = np.random.default_rng(2)
    q, deltas = rng.normal(size=(4, 1, 6)), rng.uniform(0.01, 1.0, (3, 6))
    loop = np.array([[call(q[i, 0], deltas[j]) for j in range(3)] for i in range(4)])
    found = call(q, deltas)
    assert found.shape == loop.shape
    assert found == pytest.approx(loop, rel=1e-14)


# --- Exact quantiles -----------------------------------------------------------------------------------------

levels = st.one_of(st.floats(1e-9, 1.0), st.sampled_from([0.25, 0.5, 1.0, 1 - 1e-9, 1 - 2**-53]))


def direct_quantile(mechanism, scores, sensitivities, level):
    """Return the smallest error that is exceeded with probability at most 1 − level, in fractions of the pmf."""
    chances = [Fraction(float(p)) for p in mechanism.pmf(scores, sensitivities)]
    errors = [max(scores) - q for q in scores]
    allowed = (1 - Fraction(level)) * (1 + Fraction(1, 10**12))
    for x in sorted(set(errors)):
        if sum(p for p, e in zip(chances, errors, strict=True) if e > x) <= allowed:
            return x
    raise AssertionError


@given(row=rows, level=levels, epsilon=st.sampled_from([0.1, 1.0, 10.0]))
def test_a_quantile_is_the_smallest_error_that_is_exceeded_rarely_enough(row, level, epsilon):
    scores, sensitivities = (np.array(column, dtype=float) for column in zip(*row, strict=True))
    for mechanism in (dps.NoisyMax(epsilon=epsilon), dps.GEM(epsilon=epsilon), dps.Uniform()):
        found = error_quantile(mechanism, scores, sensitivities, level)
        assert found == direct_quantile(mechanism, scores, sensitivities, level)


def test_quantiles_of_a_random_pick_are_known():
    """Ten candidates with errors 0 … 9: level n/10 is reached by error n − 1, however 1 − level is rounded."""
    scores = np.arange(10.0)
    for n in range(1, 11):
        assert error_quantile(dps.Uniform(), scores, 1.0, n / 10) == n - 1
        if n < 10:
            assert error_quantile(dps.Uniform(), scores, 1.0, n / 10 + 1e-9) == n
    assert error_quantile(dps.Uniform(), [1.0, 1.0, 0.0, 0.0], 1.0, 0.5) == 0
    assert error_quantile(dps.Uniform(), [1.0, 1.0, 0.0, 0.0], 1.0, 0.51) == 1


def test_levels_next_to_one_see_errors_of_tiny_probability():
    mechanism = dps.NoisyMax(epsilon=2.0)
    scores = [0.0, -30.0]  # the second has probability e^−30/2 ≈ 5e-14
    assert error_quantile(mechanism, scores, 1.0, 1 - 1e-13) == 0
    assert error_quantile(mechanism, scores, 1.0, 1 - 1e-14) == 30
    assert error_quantile(mechanism, scores, 1.0, 1.0) == 30
    never = error_quantile(dps.GEM(epsilon=1.0), [0.0, -1.0], 0.0, 1.0)  # public scores: only the best is picked
    assert never == 0
