"""Tails of distributions: SciPy's, without SciPy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaincinv
from scipy.stats import chi2

from dpselect.auditing.tails import binomial_quantile, chi_squared_tail


@given(st.integers(1, 10**6), st.floats(0, 1), st.floats(1e-9, 1 - 1e-9))
def test_binomial_quantiles_are_those_of_the_beta_distribution(draws, share, level):
    successes = max(1, round(share * draws))
    expected = betaincinv(successes, draws - successes + 1, level)
    assert binomial_quantile(successes, draws, level) == pytest.approx(expected, rel=1e-7, abs=1e-12)


@given(st.integers(1, 3000), st.floats(0.01, 4.0))
def test_chi_squared_tails_are_right_far_out_too(freedom, stretch):
    expected = chi2.sf(freedom * stretch, freedom)
    assert chi_squared_tail(freedom * stretch, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-13)


def test_at_zero_everything_exceeds_the_statistic():
    assert chi_squared_tail(0.0, 3) == 1.0
