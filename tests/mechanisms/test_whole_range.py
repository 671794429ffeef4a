"""Scores and sensitivities anywhere from 2^−300 to 2^300, and zeros: probabilities and picks stay exact.

GEM and its variants are elsewhere.
"""

from dataclasses import asdict
from fractions import Fraction

import numpy as np
import pytest
import reference
from expansions import assert_right, noisy_max_by_terms
from forcing import assert_same_picks
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import TWINS

import dpselect as dps
from dpselect.unsafe import NaiveHeterogeneousNoisyMax

NOISES = ("exponential", "laplace", "gumbel")
STOPPING = ("laplace", "exponential")
"""The noises of random stopping."""
DIGITS = 1500
"""Scales that are 2^600 apart cancel this many digits in products of four."""

exponents = st.floats(-300, 300)
sizes = exponents.map(lambda exponent: 2.0**exponent)
magnitudes = st.one_of(sizes, sizes, sizes, st.just(0.0), st.sampled_from([2.0**-300, 1.0, 2.0**300]))
signed = st.tuples(magnitudes, st.sampled_from([-1.0, 1.0])).map(np.prod)


@st.composite
def candidates(draw, most=4):
    """Draw scores and sensitivities; some scores lie within some noise of each other, or tie."""
    count = draw(st.integers(1, most))
    sensitivities = np.array(draw(st.lists(magnitudes, min_size=count, max_size=count)))
    scores = np.array(draw(st.lists(signed, min_size=count, max_size=count)))
    if draw(st.booleans()):
        unit = sensitivities[draw(st.integers(0, count - 1))]
        scores = unit * np.array(draw(st.lists(st.floats(-200, 200), min_size=count, max_size=count)))
    if draw(st.booleans()):
        sensitivities = np.full(count, sensitivities[0])
    if draw(st.booleans()):
        scores[draw(st.integers(0, count - 1))] = scores[0]
    return np.clip(scores, -(2.0**300), 2.0**300), sensitivities


def laplace_law(levels):
    """Return noisy max with Laplace noise over levels, of which None is −∞."""
    kept = [level for level in levels if level is not None]
    law = iter(noisy_max_by_terms("laplace", kept, [1] * len(kept)))
    return [0 if level is None else next(law) for level in levels]


@pytest.mark.parametrize("noise", NOISES)
@given(candidates(), st.sampled_from([2.0**-20, 1.0, 40.0]), st.sampled_from([0.0, 0.0, 0.7, -3.0]))
def test_noisy_max_is_exact(noise, drawn, epsilon, tilt):
    scores, sensitivities = drawn
    mechanism = dps.NoisyMax(epsilon=epsilon, noise=noise, tilt=tilt)
    if noise == "laplace":
        t = reference.tilt_slope(tilt, scores.size, mechanism.beta, epsilon)
        exact = laplace_law(reference.global_levels(scores, sensitivities, Fraction(epsilon) / 2, t))
    else:
        exact = TWINS[dps.NoisyMax](scores, sensitivities, **asdict(mechanism))
    assert_right(mechanism.pmf(scores, sensitivities), exact)


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
@settings(max_examples=25)
@given(candidates(most=3), st.sampled_from([2.0**-20, 1.0, 40.0]))
def test_noise_of_individual_scales_is_exact(noise, drawn, epsilon):
    scores, sensitivities = drawn
    scale = Fraction(1 if noise == "laplace" else 2) / Fraction(epsilon)
    exact = noisy_max_by_terms(noise, scores, [scale * Fraction(width) for width in sensitivities], DIGITS)
    assert_right(NaiveHeterogeneousNoisyMax(epsilon=epsilon, noise=noise).pmf(scores, sensitivities), exact)


@settings(max_examples=25)
@given(candidates(most=3), st.sampled_from([2.0**-20, 1.0, 40.0]))
def test_noise_that_fits_each_candidate_is_exact(drawn, epsilon):
    scores, sensitivities = drawn
    mechanism = dps.HeterogeneousNoisyMax(epsilon=epsilon)
    widths = [Fraction(width) for width in sensitivities]
    means = [
        (width + max([w for b, w in enumerate(widths) if b != a], default=0)) / Fraction(epsilon)
        for a, width in enumerate(widths)
    ]
    heights = [
        Fraction(q) + Fraction(n)
        for q, n in zip(scores, reference.neutral_offsets(mechanism, sensitivities), strict=True)
    ]
    assert_right(mechanism.pmf(scores, sensitivities), noisy_max_by_terms("exponential", heights, means, DIGITS))


@settings(max_examples=50)
@given(candidates(most=8), st.sampled_from([(0.05, 1.0), (0.05, 0.0), (1e-3, 4.0), (1e-30, 1.0), (0.3, 40.0)]))
def test_laws_of_eight_candidates_add_up_to_1(drawn, stopping):
    """``pmf`` raises an error if they do not sum to 1."""
    gamma, eta = stopping
    for mechanism in (
        *(NaiveHeterogeneousNoisyMax(epsilon=1.0, noise=noise) for noise in STOPPING),
        dps.HeterogeneousNoisyMax(epsilon=1.0),
        *(dps.RandomStopping(epsilon=1.0, gamma=gamma, eta=eta, noise=noise) for noise in STOPPING),
    ):
        assert np.isfinite(mechanism.pmf(*drawn)).all()


@pytest.mark.parametrize("noise", STOPPING)
@settings(max_examples=12)
@given(candidates(most=3), st.sampled_from([(0.05, 1.0), (0.05, 0.0), (1e-3, 4.0), (1e-30, 1.0)]))
def test_random_stopping_is_exact(noise, drawn, stopping):
    gamma, eta = stopping
    mechanism = dps.RandomStopping(epsilon=1.0, gamma=gamma, eta=eta, noise=noise)
    assert_right(mechanism.pmf(*drawn), TWINS[dps.RandomStopping](*drawn, **asdict(mechanism)))


@given(candidates(most=8), st.sampled_from([2.0**-300, 1.0, 600.0, 2.0**300]))
def test_randomized_response_and_uniform_choice_are_exact(drawn, epsilon):
    mechanism = dps.RandomizedResponse(epsilon=epsilon)
    if epsilon < 1e4:
        assert_right(mechanism.pmf(*drawn), TWINS[dps.RandomizedResponse](*drawn, epsilon=epsilon))
    best = drawn[0] == drawn[0].max()
    if epsilon > 1e4:
        assert mechanism.pmf(*drawn).tolist() == (best / best.sum()).tolist()
    assert_right(dps.Uniform().pmf(*drawn), TWINS[dps.Uniform](*drawn))


# --- Samplers against their twins in exact arithmetic -----------------------------------------------------

SAMPLERS = [
    *(dps.HeterogeneousNoisyMax(epsilon=e) for e in (1.0, 30.0)),
    dps.HeterogeneousNoisyMax(epsilon=1.0, tilt=0.5, keep=(0.25, 1.0)),
    dps.RandomStopping(epsilon=1.0),
    dps.RandomStopping(epsilon=1.0, gamma=0.2, eta=0.0),
    dps.RandomStopping(epsilon=30.0, gamma=0.3, eta=4.0),
    dps.RandomStopping(epsilon=1.0, noise="exponential"),
    dps.RandomStopping(epsilon=30.0, gamma=0.3, eta=4.0, noise="exponential"),
    dps.RandomizedResponse(epsilon=1.0),
    dps.RandomizedResponse(epsilon=600.0),
    dps.Uniform(),
]


@pytest.mark.parametrize("mechanism", SAMPLERS, ids=repr)
def test_picks_are_those_of_the_exact_twins(forced, mechanism):
    random = np.random.default_rng(14)
    for seed in range(25):
        size = int(random.integers(1, 9))
        sensitivities = 2.0 ** random.uniform(-300, 300, size) * (random.random(size) < 0.85)
        if seed % 2:
            sensitivities = 2.0 ** np.clip(random.uniform(-300, 300) + random.uniform(-5, 5, size), -300, 300)
        scores = 2.0 ** random.uniform(-300, 300, (6, size)) * random.choice([-1.0, 0.0, 1.0], (6, size))
        scores[3:] = np.clip(random.normal(size=(3, size)) * sensitivities.max(), -(2.0**300), 2.0**300)
        assert_same_picks(forced, mechanism, scores, sensitivities, seed)
