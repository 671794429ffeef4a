"""The search for rows on which the default loses to noisy max."""

import math

import numpy as np
import pytest

import dpselect as dps
from experiments.default.search import family_row, ratios, worst_row
from experiments.utility_bounds import error_quantile


def test_a_ratio_is_one_error_over_the_other():
    scores, sensitivities = np.array([0.0, -0.3, -2.0]), np.array([1.0, 0.2, 1.0])
    gaps = (scores.max() - scores) ** 2
    laws = [
        mechanism(epsilon=1.0).pmf(scores, sensitivities) for mechanism in (dps.HeterogeneousNoisyMax, dps.NoisyMax)
    ]
    expected = (laws[0] @ gaps) / (laws[1] @ gaps)
    assert ratios(scores, sensitivities) == pytest.approx(expected, rel=1e-12)


def test_the_budget_need_not_be_searched():
    row = worst_row(3, rounds=2, seed=1, population=50)
    errors = [
        dps.expected_error(mechanism(epsilon=4.0), row.scores / 4, row.sensitivities)
        for mechanism in (dps.HeterogeneousNoisyMax, dps.NoisyMax)
    ]
    assert errors[0] / errors[1] == pytest.approx(float(ratios(row.scores, row.sensitivities)), rel=1e-5)


def test_with_two_candidates_the_default_never_loses():
    row = worst_row(2, rounds=10, seed=1)
    assert float(ratios(row.scores, row.sensitivities)) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("candidates", "expected", "tolerance"), [(3, 9 / 8, 1e-3), (300, 3 * math.pi**0.5 / 8 * 300**0.5, 0.01)]
)
def test_the_family_of_bad_rows_loses_what_theory_predicts(candidates, expected, tolerance):
    row = family_row(candidates)
    assert float(ratios(row.scores, row.sensitivities)) == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("candidates", [3, 4])
def test_the_search_finds_the_family_and_nothing_worse(candidates):
    row, family = worst_row(candidates, rounds=25, seed=1), family_row(candidates)
    found, known = (float(ratios(each.scores, each.sensitivities)) for each in (row, family))
    assert found == pytest.approx(known, rel=0.01)


@pytest.mark.parametrize("candidates", [3, 10, 100])
def test_the_bound_on_the_error_is_noisy_maxs_even_on_bad_rows(candidates):
    family, random = family_row(candidates), np.random.default_rng(4)
    sensitivities = random.lognormal(0, 1.5, (50, candidates))
    rows = [(family.scores, family.sensitivities)]
    rows += [(random.normal(0, 5, candidates), row) for row in sensitivities]
    for scores, widths in rows:
        for beta in (0.3, 0.05, 0.001):
            reached = error_quantile(dps.HeterogeneousNoisyMax(epsilon=1.0), scores, widths, 1 - beta)
            assert reached <= 2 * widths.max() * np.log(candidates / beta)
