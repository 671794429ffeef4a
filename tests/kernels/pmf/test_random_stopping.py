"""The panels of random stopping, which may hold any number of scores, against the line cut at every score."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.kernels.pmf.integrands import EXPONENTIAL, LAPLACE, NoiseLaw
from dpselect.kernels.pmf.noisy_argmax import fill_by_cells
from dpselect.kernels.pmf.random_stopping import ONE_SIDED, TWO_SIDED, fill_stopping_pmf
from dpselect.laws.random_stopping import RandomStoppingLaw

PEAKS = {LAPLACE: TWO_SIDED, EXPONENTIAL: ONE_SIDED}
either_noise = pytest.mark.parametrize("noise", [LAPLACE, EXPONENTIAL], ids=["laplace", "exponential"])


def mean_draws(gamma, eta):
    return RandomStoppingLaw("laplace", Fraction(1), gamma, eta).mean_draws


def by_panels(noise, scores, scales, gamma, eta):
    found = np.empty(scores.size)
    fill_stopping_pmf(PEAKS[noise], scores, scales, gamma, eta, mean_draws(gamma, eta), found)
    return found


def by_cells(noise, scores, scales, gamma, eta):
    """Return the same law from cells that end at every score and half-way between neighbours."""
    found = np.empty(scores.size)
    fill_by_cells(NoiseLaw(noise, True, gamma, eta, mean_draws(gamma, eta) ** 0.5), scores, scales, found)
    return found


@either_noise
@settings(max_examples=300)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 8),
    st.floats(0, 6),
    st.floats(-0.2, 1.2),
    st.sampled_from([1.0, 0.3, 0.05, 0.008, 1e-5]),
    st.sampled_from([1.0, 0.0, -0.5, 4.0]),
)
def test_panels_agree_with_cells_whatever_the_scales(noise, seed, size, decades, spread, gamma, eta):
    """Scores between the smallest and the largest scale apart: many scales of some, a fraction of others."""
    random = np.random.default_rng(seed)
    scores = random.normal(size=size) * 10 ** (-decades * spread)
    if seed % 3 == 0:
        scores[: size // 2] = scores[0]
    scales = 10 ** random.uniform(-decades, 0, size)
    found = by_panels(noise, scores, scales, gamma, eta)
    assert abs(found.sum() - 1) <= 1e-13
    assert found == pytest.approx(by_cells(noise, scores, scales, gamma, eta), rel=1e-11, abs=1e-15)


@either_noise
def test_panels_sum_to_one_where_few_candidates_have_scales_decades_apart(noise):
    """Panels that are too wide and hold scores miss about one in 500 of these rows by 1e-13 or more."""
    random = np.random.default_rng(7)
    misses = []
    for _ in range(6000):
        size = int(random.integers(1, 8))
        scales = 10 ** random.uniform(-random.uniform(0, 6), random.uniform(0, 2), size)
        scores = random.normal(size=size) * 10 ** random.uniform(-2, 2)
        gamma, eta = random.choice([0.05, 0.008, 0.3, 1e-3, 1e-5]), random.choice([1.0, 0.0, -0.5, 4.0])
        misses.append(abs(by_panels(noise, scores, scales, gamma, eta).sum() - 1))
    assert max(misses) <= 1e-13
    known = np.array([0.90347018, 0.0940123, -0.74349925]), 1.5 * np.array([0.03162278, 31.6227766, 23.01484866])
    assert by_panels(noise, *known, 0.05, 1.0) == pytest.approx(by_cells(noise, *known, 0.05, 1.0), rel=1e-12)


@either_noise
@pytest.mark.parametrize("magnitude", [1e6, 1e12])
def test_scores_far_from_zero_cost_no_precision(noise, magnitude):
    scores = np.array([0.0, 0.25, 0.5, 4.0])
    scales = np.array([0.01, 1.0, 0.125, 8.0])
    near, far = (by_panels(noise, shift + scores, scales, 0.05, 1.0) for shift in (0.0, magnitude))
    assert far == pytest.approx(near, rel=1e-12)
