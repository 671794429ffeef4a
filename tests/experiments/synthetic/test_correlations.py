"""Pearson's and the weighted correlation: against SciPy, and against fractions."""

import math

import numpy as np
import pytest
import reference
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from experiments.synthetic.correlations import pearson, weighted

few = st.lists(st.tuples(st.integers(-8, 8), st.integers(0, 6)), min_size=2, max_size=15)
TWINS = {pearson: reference.correlation, weighted: reference.weighted_correlation}


def columns(pairs):
    scores, sensitivities = zip(*pairs, strict=True)
    return np.array(scores, dtype=float), np.array(sensitivities, dtype=float)


@pytest.mark.parametrize("measure", TWINS)
@given(pairs=few)
def test_a_correlation_is_that_of_its_definition_ties_and_zeros_and_constants_included(measure, pairs):
    scores, sensitivities = columns(pairs)
    found, exact = measure(scores, sensitivities), TWINS[measure](scores, sensitivities)
    assert math.isnan(found) if exact is None else found == pytest.approx(exact, rel=1e-12, abs=1e-12)


@given(pairs=st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3)), min_size=2, max_size=10))
def test_the_weighted_correlation_is_that_of_its_definition_away_from_borders(pairs):
    scores, sensitivities = columns(pairs)
    low, high = scores.min(), scores.max()
    assume(high - low > 1e-3)
    assume(np.ptp(sensitivities) > 1e-3)
    places = 5 * ((scores[(scores > low) & (scores < high)] - low) / (high - low))
    assume((np.abs(places - places.round()) > 1e-9).all())
    exact = reference.weighted_correlation(scores, sensitivities)
    assert weighted(scores, sensitivities) == pytest.approx(exact, rel=1e-6, abs=1e-6)


def test_scipy_agrees():
    rng = np.random.default_rng(1)
    for _ in range(40):
        scores = rng.normal(size=300)
        sensitivities = np.abs(0.2 * scores + rng.normal(size=300))
        assert pearson(scores, sensitivities) == pytest.approx(
            stats.pearsonr(scores, sensitivities).statistic, rel=1e-12, abs=1e-14
        )


def test_the_correlation_is_undefined_where_those_that_count_are_all_equal():
    assert math.isnan(pearson(np.full(7, 0.1), np.arange(7.0)))
    assert math.isnan(pearson(np.arange(7.0), np.full(7, 0.1)))
    assert math.isnan(weighted(np.array([0.0, 0.1, 1.0]), np.array([0.0, 2.0, 2.0])))  # the first has weight zero


def test_buckets_are_half_open_except_for_the_last():
    """Scores 0 … 5 have borders 1, 2, 3 and 4: only 4 and 5 share a bucket, so only their weights are smaller."""
    scores, sensitivities = np.arange(6.0), np.array([1.0, 4.0, 2.0, 8.0, 3.0, 6.0])
    covariance = np.cov(scores, sensitivities, aweights=np.array([1, 1, 1, 1, 0.5, 1]))
    exact = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert weighted(scores, sensitivities) == pytest.approx(exact, rel=1e-14)


def test_buckets_of_one_candidate_make_it_pearson_and_one_bucket_weighs_by_sensitivity():
    scores, sensitivities = np.arange(30.0), np.random.default_rng(2).uniform(0.1, 1, 30)
    assert weighted(scores, sensitivities, buckets=100) == pytest.approx(pearson(scores, sensitivities), rel=1e-13)
    covariance = np.cov(scores, sensitivities, aweights=sensitivities)
    exact = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert weighted(scores, sensitivities, buckets=1) == pytest.approx(exact, rel=1e-13)


def test_a_bucket_without_sensitivity_weighs_like_one_of_small_equal_ones():
    scores, sensitivities = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 0.0, 1.0, 2.0])
    nearly = weighted(scores, np.maximum(sensitivities, 1e-12))
    assert weighted(scores, sensitivities) == pytest.approx(nearly, rel=1e-9)
