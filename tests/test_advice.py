"""Advice: rankings that are exact, reasons that fit, and private samples that are paid for."""

import numpy as np
import pytest

import dpselect as dps
from dpselect.advice import PrivateSample, Public, advise
from dpselect.pools import TILTS, default_pool
from experiments.scenarios import SCENARIOS

rng = np.random.default_rng(8)
WIDTHS = np.linspace(0.1, 1.0, 15)


def tilted(epsilon):
    """Return a small pool whose members say by their tilt what they favour."""
    return [family(epsilon=epsilon, tilt=tilt) for family in (dps.NoisyMax, dps.GEM) for tilt in TILTS]


# --- Rankings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(1, 9))
@pytest.mark.parametrize("epsilon", [0.1, 8.0])
def test_advice_from_a_public_sample_is_the_exact_ranking(number, epsilon):
    scenario = SCENARIOS[number]().first(12)
    pool = [*tilted(epsilon), dps.CombinedGEM(epsilon=epsilon), dps.RandomizedResponse(epsilon=epsilon)]
    advice = advise(scenario.sensitivities, epsilon, prior=Public(scenario.scores), pool=pool)
    exact = {
        member: float(np.mean(dps.expected_error(member, scenario.scores, scenario.sensitivities)))
        for member in pool
    }
    assert [row.error for row in advice.rows] == sorted(row.error for row in advice.rows)
    assert {row.mechanism: row.error for row in advice.rows} == pytest.approx(exact, rel=1e-12)
    assert exact[advice.best] <= 1.01 * min(exact.values())
    blind = np.mean(dps.expected_error(dps.Uniform(), scenario.scores, scenario.sensitivities))
    for row in advice.rows:
        assert row.of_random == pytest.approx(row.error / blind, rel=1e-12)
        assert row.if_reversed is None


FAMILIES = {1: "below zero", 2: "above zero", 3: "plain", 4: "below zero", 5: "above zero", 6: "GEM"}


@pytest.mark.parametrize(("number", "family"), FAMILIES.items())
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_advice_from_a_stated_correlation_names_the_right_family_in_the_papers_scenarios(number, family, epsilon):
    scenario = SCENARIOS[number]().first(200)
    correlation = float(np.mean(dps.correlation.spearman(scenario.scores, scenario.sensitivities)))
    advice = advise(scenario.sensitivities, epsilon, correlation=correlation, pool=tilted(epsilon))
    right = {
        "below zero": advice.best.tilt < 0,
        "above zero": advice.best.tilt > 0,
        "plain": advice.best == dps.NoisyMax(epsilon=epsilon),
        "GEM": advice.best == dps.GEM(epsilon=epsilon),
    }
    assert right[family]
    # And it is good on the scenario itself, which it has not seen: next to the best of the pool.
    few = scenario.first(50)
    errors = dps.tuning.fleet_errors(tilted(epsilon), few.scores, few.sensitivities).mean(axis=1)
    advised = np.mean(dps.expected_error(advice.best, few.scores, few.sensitivities))
    assert advised <= 1.2 * errors.min()


def test_the_same_question_has_the_same_answer():
    first, second = (advise(WIDTHS, 1.0, correlation=0.5, pool=tilted(1.0)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("correlation", [-0.9, -0.4, 0.0, 0.6, 1.0])
def test_drawn_scores_have_the_stated_correlation_and_spread(correlation):
    widths = np.linspace(0.1, 1.0, 200)
    scores = dps.advice.priors.draw_scores(widths, (correlation,), 3.0)
    assert np.mean(dps.correlation.spearman(scores, widths)) == pytest.approx(correlation, abs=0.02)
    assert scores.std() == pytest.approx(3.0, rel=0.02)


def test_where_nothing_is_known_three_correlations_are_prepared_for():
    advice = advise(WIDTHS, 1.0, pool=tilted(1.0))
    each = [advise(WIDTHS, 1.0, correlation=value, pool=tilted(1.0)) for value in (-0.8, 0.0, 0.8)]
    errors = [{row.mechanism: row.error for row in one.rows} for one in each]
    for row in advice.rows:
        mean = np.mean([one[row.mechanism] for one in errors])
        assert row.error == pytest.approx(mean, rel=0.15)  # other draws of the same law
    assert "unknown correlation" in advice.assumption


# --- Words ------------------------------------------------------------------------------------------------


def test_positive_and_negative_correlation_are_explained():
    up, down = (advise(WIDTHS, 1.0, correlation=value, pool=tilted(1.0)) for value in (0.9, -0.4))
    assert "the sensitive ones (strong positive correlation, +0.9" in up.reasons[0]
    assert "the steady ones (moderate negative correlation, −0." in down.reasons[0]
    assert "GEM is drawn the wrong way" in up.reasons[0]


def test_a_simpler_mechanism_than_the_best_is_not_called_the_best():
    advice = advise([1.0, 0.5, 0.1], epsilon=0.5, correlation=0.8)
    assert advice.rows[0].mechanism != advice.best
    assert any(reason.startswith("The simplest within 1% of the best is noisy max") for reason in advice.reasons)


def test_equal_sensitivities_are_explained_and_noisy_max_is_advised():
    advice = advise(1.0, 1.0, k=20, correlation=0.5, pool=tilted(1.0))
    assert advice.best == dps.NoisyMax(epsilon=1.0)
    assert "GEM is noisy max at half of its budget" in advice.reasons[0]
    half = np.mean([row.error for row in advise(1.0, 0.5, k=20, pool=[dps.NoisyMax(epsilon=0.5)]).rows])
    full = {row.mechanism: row.error for row in advise(1.0, 1.0, k=20, pool=tilted(1.0)).rows}
    assert full[dps.GEM(epsilon=1.0)] == pytest.approx(half, rel=1e-9)


def test_a_budget_too_small_is_called_that_and_costs_nothing_to_leave_unspent():
    advice = advise(1.0, 1e-3, k=50, pool=default_pool(1e-3, gammas=()))
    assert advice.best == dps.Uniform()
    assert any("too small to do much better than a random pick" in reason for reason in advice.reasons)
    assert any("that is free" in reason for reason in advice.reasons)


def test_a_large_budget_is_left_to_randomised_response():
    sample = rng.normal(size=(30, 15))
    advice = advise(WIDTHS, 40.0, prior=Public(sample), pool=default_pool(40.0, gammas=()))
    assert advice.best == dps.RandomizedResponse(epsilon=40.0)
    assert any("large enough" in reason for reason in advice.reasons)
    assert any("exceeds log k" in reason for reason in advice.reasons)


def test_opposite_signs_are_seen_although_they_cancel():
    sample = np.concatenate([WIDTHS + 0.05 * rng.normal(size=(20, 15)), -WIDTHS + 0.05 * rng.normal(size=(20, 15))])
    advice = advise(WIDTHS, 3.0, prior=Public(sample), pool=default_pool(3.0, gammas=()))
    assert "positive in 50% of the examples only" in advice.reasons[0]


def test_who_would_lose_to_random_is_named_with_the_exact_factor():
    scenario = SCENARIOS[1]()
    advice = advise(scenario.sensitivities, 1.0, prior=Public(scenario.scores), pool=tilted(1.0))
    # The paper's numbers: GEM 3.447, random 2.
    assert "GEM would lose to a random pick: 1.72 times its error." in advice.warnings
    losers = sum(row.of_random > 1.001 for row in advice.rows)
    assert any(f"In all, {losers} of {len(advice.rows)} mechanisms" in warning for warning in advice.warnings)
    assert not any("noisy max would lose" in warning for warning in advice.warnings)


def test_what_happens_if_the_sign_is_wrong_is_told():
    advice = advise(WIDTHS, 0.5, correlation=0.9, pool=tilted(0.5))
    other = advise(WIDTHS, 0.5, correlation=-0.9, pool=tilted(0.5))
    expected = {row.mechanism: row.of_random for row in other.rows}
    assert {row.mechanism: row.if_reversed for row in advice.rows} == pytest.approx(expected, rel=1e-12)
    assert any("opposite sign" in warning for warning in advice.warnings)


def test_printing_shows_the_choice_the_table_the_reasons_and_the_warnings():
    text = str(advise(WIDTHS, 0.5, correlation=0.9, pool=[*tilted(0.5), dps.Uniform()]))
    for part in ("Use ", "Assumed: ", "of random", "if reversed", "Why:", "Beware:", "modified GEM", "100.00%"):
        assert part in text


# --- Private samples --------------------------------------------------------------------------------------

PRIVATE = np.clip(WIDTHS + 0.1 * rng.normal(size=(300, 15)), 0.0, 1.0)
PAID = PrivateSample(PRIVATE, tuning_epsilon=2.0, cap=1.0)
MONOTONE = dps.NoisyMax(epsilon=1.0, monotone=True)


@pytest.mark.parametrize(
    "sample", [PrivateSample(PRIVATE), PrivateSample(PRIVATE, tuning_epsilon=1.0), PrivateSample(PRIVATE, cap=1.0)]
)
def test_a_private_sample_is_refused_unless_the_look_is_paid_for(sample):
    with pytest.raises(ValueError, match=r"a release: say how it is paid for, PrivateSample\(.*tuning\.tune"):
        advise(WIDTHS, 1.0, prior=sample)


def test_a_paid_look_is_a_tuning_and_shows_no_errors():
    sample = PrivateSample(PRIVATE, tuning_epsilon=2.0, cap=(1e-9, 1.0))
    advice = advise(WIDTHS, 0.5, prior=sample, pool=tilted(0.5))
    assert advice.best.tilt < 0  # but for a chance below 1e-6
    assert advice.rows == ()
    assert advice.guarantee.epsilon == 2.5
    assert advice.best.label in str(advice)
    assert "private, and not shown" in str(advice)


def test_a_paid_look_repeats_itself_with_the_same_key_and_is_the_tuning_of_that_key():
    pool, chosen = tilted(0.5), set()
    for number in range(12):
        source = dps.Randomness.keyed(bytes([number] * 32), "tuning")
        sample = PrivateSample(PRIVATE[:2], tuning_epsilon=0.01, cap=1.0)  # next to nothing: any may be chosen
        first, again = (advise(WIDTHS, 0.5, prior=sample, pool=pool, randomness=source) for _ in range(2))
        assert first == again
        assert any("another release" in warning for warning in first.warnings)
        tuned = dps.tuning.tune(
            PRIVATE[:2], WIDTHS, 0.5, 0.01, cap=1.0, pool=pool, randomness=source, progress=False
        )
        assert first.best == tuned.mechanism
        chosen.add(first.best)
    assert len(chosen) > 1


def test_a_private_sample_does_not_show_its_scores():
    assert repr(PrivateSample(PRIVATE, tuning_epsilon=2.0)) == "PrivateSample(tuning_epsilon=2.0, cap=None)"


# --- Bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prior": PRIVATE}, r"^prior must be Public\(scores\) or PrivateSample"),
        ({"prior": Public(PRIVATE), "correlation": 0.1}, "^correlation and spread must be absent"),
        ({"prior": Public(PRIVATE), "spread": 0.1}, "^correlation and spread must be absent"),
        ({"prior": Public(PRIVATE[:, :4])}, "^sensitivities must have one number for each"),
        ({"prior": Public(PRIVATE[np.newaxis])}, "^prior must hold an array"),
        ({"prior": Public(PRIVATE[:0])}, "^prior must hold an array"),
        ({"correlation": 1.5}, "^correlation must lie between −1 and 1"),
        ({"correlation": float("nan")}, "^correlation must be finite"),
        ({"correlation": "positive"}, "^correlation must be a number"),
        ({"spread": 0.0}, "^spread must be positive"),
        ({"anchors": WIDTHS}, "^anchors must come with prior"),
        ({"epsilon": 0.0}, "^epsilon must be positive"),
        ({"power": -1.0}, "^power must be positive"),
        ({"randomness": dps.Randomness.seeded(1)}, "^randomness must come with prior=PrivateSample"),
        ({"randomness": 7, "prior": PAID}, "^randomness must be a Randomness or None"),
        ({"pool": []}, "^pool must hold at least one"),
        ({"pool": ["gem"]}, "^pool must hold mechanisms, not str"),
        ({"pool": [dps.NoisyMax(epsilon=50.0)]}, "^pool must hold mechanisms that are ε-DP at epsilon = 1"),
        ({"pool": [dps.unsafe.HeterogeneousNoisyMax(epsilon=1.0)]}, "^pool must hold mechanisms that are ε-DP"),
        ({"pool": [MONOTONE]}, "^pool must hold mechanisms that are private for all scores within"),
        ({"pool": [MONOTONE], "prior": PAID}, "^pool must hold mechanisms that are private for all scores within"),
        ({"k": 14}, "^k must be the number of sensitivities, 15"),
        ({"sensitivities": 1.0}, "^k must be given"),
        ({"sensitivities": 1.0, "k": 0}, "^k must be at least 1"),
        ({"sensitivities": -WIDTHS}, "^sensitivities must be ≥ 0"),
        ({"sensitivities": WIDTHS[np.newaxis]}, "^sensitivities must be one number for each candidate"),
    ],
)
def test_bad_questions_are_refused_in_words(changes, message):
    question = {"sensitivities": WIDTHS, "epsilon": 1.0} | changes
    with pytest.raises(ValueError, match=message):
        advise(**question)
