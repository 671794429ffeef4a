"""Reasons and warnings that fit the numbers."""

import numpy as np
import pytest
from small_pools import tilted

import dpselect as dps
from dpselect.advice import Public, advise
from dpselect.pools import default_pool
from experiments.scenarios import SCENARIOS

rng = np.random.default_rng(8)
WIDTHS = np.linspace(0.1, 1.0, 15)


def test_positive_and_negative_correlation_are_explained():
    up, down = (advise(WIDTHS, 1.0, correlation=value, pool=tilted(1.0)) for value in (0.9, -0.4))
    assert "The sensitive candidates have the high scores (strong positive correlation, +0.9" in up.reasons[0]
    assert "small sensitivity have the high scores (moderate negative correlation, −0." in down.reasons[0]
    assert "suits mechanisms that favour large sensitivities: negative tilts" in up.reasons[0]
    assert "suits mechanisms that favour small sensitivities: positive tilts" in down.reasons[0]


def test_a_simpler_mechanism_than_the_best_is_not_called_the_best():
    advice = advise([1.0, 0.5, 0.1], epsilon=0.5, correlation=0.8)
    assert advice.ranking[0].mechanism != advice.best
    assert any(
        reason.startswith(f"The simplest mechanism within 1% of the best is {advice.best.label}")
        for reason in advice.reasons
    )


def test_equal_sensitivities_are_explained_and_noisy_max_is_advised():
    advice = advise(1.0, 1.0, k=20, correlation=0.5, pool=tilted(1.0))
    assert advice.best == dps.NoisyMax(epsilon=1.0)
    assert "GEM is noisy max at half of its budget" in advice.reasons[0]
    half = np.mean([row.error for row in advise(1.0, 0.5, k=20, pool=[dps.NoisyMax(epsilon=0.5)]).ranking])
    full = {row.mechanism: row.error for row in advise(1.0, 1.0, k=20, pool=tilted(1.0)).ranking}
    assert full[dps.GEM(epsilon=1.0)] == pytest.approx(half, rel=1e-9)


def test_a_budget_that_is_too_small_is_reported_and_can_be_left_unspent():
    advice = advise(1.0, 1e-3, k=50, pool=default_pool(1e-3, gammas=()))
    assert advice.best == dps.Uniform()
    assert any("too small to do much better than a random pick" in reason for reason in advice.reasons)
    assert any("a random pick is free" in reason for reason in advice.reasons)


def test_a_large_budget_is_left_to_randomised_response():
    sample = rng.normal(size=(30, 15))
    advice = advise(WIDTHS, 40.0, prior=Public(sample), pool=default_pool(40.0, gammas=()))
    assert advice.best == dps.RandomizedResponse(epsilon=40.0)
    assert any("large enough" in reason for reason in advice.reasons)
    assert any("far above log k" in reason for reason in advice.reasons)


def test_opposite_signs_are_detected_although_they_cancel():
    sample = np.concatenate([WIDTHS + 0.05 * rng.normal(size=(20, 15)), -WIDTHS + 0.05 * rng.normal(size=(20, 15))])
    advice = advise(WIDTHS, 3.0, prior=Public(sample), pool=default_pool(3.0, gammas=()))
    assert "positive in 50% of the examples and negative in the others" in advice.reasons[0]


def test_mechanisms_worse_than_random_are_named_with_the_exact_factor():
    scenario = SCENARIOS[1]()
    advice = advise(scenario.sensitivities, 1.0, prior=Public(scenario.scores), pool=tilted(1.0))
    # The paper's numbers: GEM 3.447, random 2.
    assert "GEM is worse than a random pick: its error is 1.72 times that of one." in advice.warnings
    losers = sum(row.of_random > 1.001 for row in advice.ranking)
    assert any(
        f"In all, {losers} of the {len(advice.ranking)} mechanisms" in warning for warning in advice.warnings
    )
    assert not any("noisy max is worse" in warning for warning in advice.warnings)


def test_a_wrong_sign_gives_a_warning():
    advice = advise(WIDTHS, 0.5, correlation=0.9, pool=tilted(0.5))
    other = advise(WIDTHS, 0.5, correlation=-0.9, pool=tilted(0.5))
    expected = {row.mechanism: row.of_random for row in other.ranking}
    assert {row.mechanism: row.if_reversed for row in advice.ranking} == pytest.approx(expected, rel=1e-12)
    assert any("opposite sign" in warning for warning in advice.warnings)


def test_printing_shows_the_choice_the_table_the_reasons_and_the_warnings():
    text = str(advise(WIDTHS, 0.5, correlation=0.9, pool=[*tilted(0.5), dps.Uniform()]))
    for part in ("Use ", "Assumed: ", "of random", "if reversed", "Why:", "Warnings:", "modified GEM", "100.00%"):
        assert part in text
