"""Every mechanism's probabilities against the slow, exact twins of :mod:`reference`."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import TWINS

import dpselect as dps
from dpselect.unsafe import NaiveHeterogeneousNoisyMax

NOISES = ("exponential", "laplace", "gumbel")
STOPPING = ("laplace", "exponential")
"""The noises of random stopping."""


def members(epsilon):
    """Return one mechanism for each formula of the library."""
    return [
        dps.HeterogeneousNoisyMax(epsilon=epsilon, tilt=0.3),
        dps.HeterogeneousNoisyMax(epsilon=epsilon, keep=(0.0, 0.6)),
        *(dps.NoisyMax(epsilon=epsilon, noise=noise, tilt=0.3) for noise in NOISES),
        dps.NoisyMax(epsilon=epsilon, monotone=True, tilt=-2.0, beta=0.5),
        *(dps.GEM(epsilon=epsilon, noise=noise) for noise in NOISES),
        dps.GEM(epsilon=epsilon, tilt=-3.5, beta=0.9),
        dps.ModifiedGEM(epsilon=epsilon),
        *(dps.RandomStopping(epsilon=epsilon, eta=eta, noise=noise) for noise in STOPPING for eta in (1.0, 0.0)),
        dps.CombinedGEM(epsilon=epsilon),
        dps.RandomizedResponse(epsilon=epsilon),
        dps.TopShare(epsilon=epsilon),
        dps.TopShare(epsilon=epsilon, share=0.3),
        dps.Uniform(),
        *(NaiveHeterogeneousNoisyMax(epsilon=epsilon, noise=noise) for noise in STOPPING),
    ]


def assert_exact(mechanism, scores, sensitivities, **public):
    found = mechanism.pmf(scores, sensitivities, **public)
    twin = TWINS[type(mechanism)](scores, sensitivities, **asdict(mechanism), **public)
    assert found.shape == np.shape(scores)
    assert abs(found.sum() - 1) <= 1e-12
    assert (found >= 0).all()
    for a, (probability, exact) in enumerate(zip(found.tolist(), twin, strict=True)):
        if exact > 1e-12:
            assert abs(probability / exact - 1) <= 1e-10, f"candidate {a} of {mechanism}"
        else:
            assert probability <= 1e-12 * (1 + 1e-10), f"candidate {a} of {mechanism}"


def named(mechanisms):
    return pytest.mark.parametrize("mechanism", mechanisms, ids=repr)


def random_candidates(size, seed=0, decades=1.0):
    rng = np.random.default_rng(seed)
    return 3 * rng.normal(size=size), 10 ** rng.uniform(-decades, decades, size)


@named(members(1.0))
@pytest.mark.parametrize("size", [1, 3, 10])
def test_random_candidates_have_their_exact_probabilities(mechanism, size):
    assert_exact(mechanism, *random_candidates(size, seed=size))


@named(members(2.0))
def test_two_dozen_random_candidates_have_their_exact_probabilities(mechanism):
    # The slow twins take twice as long for 40 candidates.
    assert_exact(mechanism, *random_candidates(24, decades=0.5))


CHEAP = [m for m in members(1.0) if getattr(m, "noise", "") in {"exponential", "gumbel"}]
SCALED = (dps.RandomStopping, dps.HeterogeneousNoisyMax, NaiveHeterogeneousNoisyMax)
"""Their noises differ in scale."""
CHEAP = [m for m in CHEAP if not isinstance(m, SCALED)]
QUADRATURES = [m for m in members(1.0) if getattr(m, "noise", "") == "laplace" or isinstance(m, SCALED)]


@named([*CHEAP, dps.ModifiedGEM(epsilon=1.0), dps.CombinedGEM(epsilon=1.0), dps.RandomizedResponse(epsilon=1.0)])
@pytest.mark.parametrize("size", [100, pytest.param(500, marks=pytest.mark.statistics)])
def test_hundreds_of_distinct_candidates_have_their_exact_probabilities(mechanism, size):
    assert_exact(mechanism, *random_candidates(size))


@named(QUADRATURES)
def test_hundreds_of_candidates_in_a_few_groups_have_their_exact_probabilities(mechanism):
    scores, sensitivities = random_candidates(5)
    group = np.random.default_rng(1).integers(5, size=500)
    assert_exact(mechanism, scores[group], sensitivities[group])


# --- Extremes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 30.0, 1e3])
def test_any_budget_gives_exact_probabilities(epsilon):
    for mechanism in members(epsilon):
        assert_exact(mechanism, *random_candidates(4, seed=4))


CORNERS = {
    "ties": ([1.0, 1.0, 0.0, 0.0, 1.0], [1.0, 2.0, 1.0, 1.0, 1.0]),
    "all scores equal": ([2.5] * 6, [0.5, 1.0, 1.0, 3.0, 0.25, 7.0]),
    "all candidates equal": ([-7.0] * 5, [0.3] * 5),
    "huge scores": ([1e15, -1e15, 0.0, 1e15 - 1, 1e15 + 0.125], [1.0, 1e3, 2.0, 0.5, 3.0]),
    "last bits": ([1e15, 1e15 + 0.125, 1e15 + 0.25, 1e15 - 0.125], [0.1, 0.2, 0.4, 0.3]),
    "last bits, tiny sensitivities": ([1e15, 1e15 + 0.125, 1e15 + 0.25, 1e15], [1e-3, 2e-3, 0.5, 1e-6]),
    "negative last bits": ([-1e15, -1e15 - 0.125, -1e15 + 0.125], [0.1, 0.3, 0.05]),
    "wide scores, wide sensitivities": ([1e15, 0.3, -0.2, 1e7], [1e15, 1.0, 1e-3, 1e8]),
    "twelve decades": ([0.0, 0.5, 1.0, -3.0, 2.0, 0.1, 0.9], [1e-6, 1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6]),
    "twelve decades, high and steady": ([4.0, 3.0, 2.0, 1.0], [1e-6, 1e-2, 1e2, 1e6]),
    "three decades, few candidates": ([0.90347018, 0.0940123, -0.74349925], [0.03162278, 31.6227766, 23.01484866]),
    "one zero sensitivity": ([0.5, 0.2, 1.0, -0.5], [0.0, 1.0, 2.0, 0.5]),
    "two zero sensitivities": ([0.5, 0.2, 1.0, 0.7], [0.0, 0.0, 2.0, 0.5]),
    "tied zero sensitivities": ([0.5, 0.5, 1.0, 0.2, 0.5], [0.0, 0.0, 2.0, 0.0, 1.0]),
    "zero sensitivities that lead": ([5.0, 4.0, 5.0, 0.0], [0.0, 0.0, 0.0, 1.0]),
    "zero sensitivities at nothing": ([0.0, 0.0, -1.0, 1.0], [0.0, 0.0, 1.0, 2.0]),
    "zero sensitivities below": ([-1.0, -2.0, 1.0, 2.0], [0.0, 0.0, 1.0, 2.0]),
    "all sensitivities zero": ([0.5, 0.7, 0.7, -1.0], [0.0] * 4),
    "one candidate": ([-3.0], [2.0]),
    "one certain candidate": ([-3.0], [0.0]),
    "collinear": ([0.0, 1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0, 5.0]),
}


@pytest.mark.parametrize("corner", CORNERS.values(), ids=CORNERS)
def test_corner_cases_have_their_exact_probabilities(corner):
    for mechanism in members(1.0):
        assert_exact(mechanism, *map(np.array, corner))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("tilt", [-8.0, -1e-3, 0.0, 1.0, 1e3])
def test_any_tilt_gives_exact_probabilities(noise, tilt):
    for corner in (
        "huge scores",
        "last bits, tiny sensitivities",
        "twelve decades",
        "two zero sensitivities",
    ):
        scores, sensitivities = map(np.array, CORNERS[corner])
        for family in (dps.NoisyMax, dps.GEM):
            assert_exact(family(epsilon=0.5, tilt=tilt, noise=noise), scores, sensitivities)


@pytest.mark.parametrize("family", [dps.NoisyMax, dps.GEM])
@pytest.mark.parametrize("step", [1e-6, 1e-9])
def test_a_steep_tilt_tells_nearly_equal_sensitivities_apart(family, step):
    sensitivities = np.array([1.0, 1.0 + step, 1.0 + 2 * step])
    assert_exact(family(epsilon=1.0, tilt=1 / step), np.array([0.0, 0.5, 1.0]), sensitivities)


@pytest.mark.parametrize("noise", NOISES)
def test_offsets_enter_exactly(noise):
    for corner in ("ties", "huge scores", "last bits", "twelve decades", "tied zero sensitivities"):
        scores, sensitivities = map(np.array, CORNERS[corner])
        public = np.random.default_rng(3).normal(size=scores.size) * np.abs(scores).max()
        assert_exact(dps.NoisyMax(epsilon=1.0, noise=noise, tilt=0.5), scores, sensitivities, offsets=public)
        assert_exact(dps.GEM(epsilon=1.0, noise=noise), scores, sensitivities, offsets=public)


def test_modified_gem_takes_offsets():
    scores, sensitivities = random_candidates(6)
    assert_exact(dps.ModifiedGEM(epsilon=2.0), scores, sensitivities, offsets=np.arange(6.0))


@pytest.mark.parametrize("noise", STOPPING)
@pytest.mark.parametrize("eta", [-0.999, -0.5, 0.5, 3.0, 40.0, 250.0, 1e5])
def test_random_stopping_is_exact_for_every_shape(noise, eta):
    for corner in ("ties", "tied zero sensitivities", "zero sensitivities that lead"):
        assert_exact(dps.RandomStopping(epsilon=2.0, eta=eta, noise=noise), *map(np.array, CORNERS[corner]))


@pytest.mark.parametrize("noise", STOPPING)
@pytest.mark.parametrize("eta", [5e-324, -1e-320, 1e-300, 1e-12, -1e-12])
def test_random_stopping_is_exact_for_shapes_next_to_the_logarithmic(noise, eta):
    mechanism = dps.RandomStopping(epsilon=2.0, eta=eta, noise=noise)
    assert_exact(mechanism, *map(np.array, CORNERS["tied zero sensitivities"]))


@pytest.mark.parametrize("noise", STOPPING)
@pytest.mark.parametrize("gamma", [1.0, 1 - 2**-53, 0.5, 1e-3, 1e-20, 1e-30])
def test_random_stopping_is_exact_for_every_stopping_probability(noise, gamma):
    for corner in ("ties", "tied zero sensitivities"):
        scores, sensitivities = map(np.array, CORNERS[corner])
        for eta in (1.0, 0.0, -0.5):
            mechanism = dps.RandomStopping(epsilon=2.0, gamma=gamma, eta=eta, noise=noise)
            assert_exact(mechanism, scores, sensitivities)


@pytest.mark.parametrize("share", [1e-6, 0.3, 1 - 2**-53])
def test_combined_gem_is_exact_for_every_share(share):
    for corner in ("ties", "collinear", "tied zero sensitivities", "all sensitivities zero"):
        mechanism = dps.CombinedGEM(epsilon=3.0, correlation_share=share, beta=0.2)
        scores, sensitivities = map(np.array, CORNERS[corner])
        assert_exact(mechanism, scores, sensitivities)
        assert_exact(mechanism, -scores, sensitivities)


magnitudes = st.floats(-1e3, 1e3).map(lambda x: x if abs(x) > 1e-9 else 0.0)
candidate = st.tuples(magnitudes, st.one_of(st.just(0.0), st.floats(1e-4, 1e4)))
candidates = st.lists(candidate, min_size=1, max_size=8)
budgets = st.floats(-6, 3).map(lambda exponent: 10.0**exponent)


@given(candidates, budgets, st.floats(-20, 20), st.sampled_from(["exponential", "gumbel"]))
def test_drawn_candidates_have_their_exact_probabilities(drawn, epsilon, tilt, noise):
    scores, sensitivities = np.array(drawn).T
    for family in (dps.NoisyMax, dps.GEM):
        assert_exact(family(epsilon=epsilon, tilt=tilt, noise=noise), scores, sensitivities)
    assert_exact(dps.CombinedGEM(epsilon=epsilon), scores, sensitivities)


@pytest.mark.parametrize("seed", range(30))
def test_the_sign_of_the_correlation_is_exact(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    scores, sensitivities = rng.integers(0, 4, size).astype(float), rng.integers(0, 4, size).astype(float)
    assert_exact(dps.CombinedGEM(epsilon=5.0), scores, sensitivities)
