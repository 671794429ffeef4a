"""Rankings that are exact, and private samples that are paid for."""

import numpy as np
import pytest
from small_pools import tilted

import dpselect as dps
from dpselect.advice import PrivateSample, Public, advise
from experiments.scenarios import SCENARIOS

rng = np.random.default_rng(8)
WIDTHS = np.linspace(0.1, 1.0, 15)


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
    assert [row.error for row in advice.ranking] == sorted(row.error for row in advice.ranking)
    assert {row.mechanism: row.error for row in advice.ranking} == pytest.approx(exact, rel=1e-12)
    assert exact[advice.best] <= 1.01 * min(exact.values())
    blind = np.mean(dps.expected_error(dps.Uniform(), scenario.scores, scenario.sensitivities))
    for row in advice.ranking:
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
    # It also does well on the scenario itself, which it has not seen: close to the best of the pool.
    few = scenario.first(50)
    errors = dps.tuning.fleet_errors(tilted(epsilon), few.scores, few.sensitivities).mean(axis=1)
    advised = np.mean(dps.expected_error(advice.best, few.scores, few.sensitivities))
    assert advised <= 1.2 * errors.min()


def test_the_same_question_has_the_same_answer():
    first, second = (advise(WIDTHS, 1.0, correlation=0.5, pool=tilted(1.0)) for _ in range(2))
    assert first == second


def test_advice_covers_three_correlations_if_nothing_is_known():
    advice = advise(WIDTHS, 1.0, pool=tilted(1.0))
    each = [advise(WIDTHS, 1.0, correlation=value, pool=tilted(1.0)) for value in (-0.8, 0.0, 0.8)]
    errors = [{row.mechanism: row.error for row in one.ranking} for one in each]
    for row in advice.ranking:
        mean = np.mean([one[row.mechanism] for one in errors])
        assert row.error == pytest.approx(mean, rel=0.15)  # other draws from the same law
    assert "unknown correlation" in advice.assumption


# --- Private samples --------------------------------------------------------------------------------------

PRIVATE = np.clip(WIDTHS + 0.1 * rng.normal(size=(300, 15)), 0.0, 1.0)
PAID = PrivateSample(PRIVATE, tuning_epsilon=2.0, cap=1.0)
MONOTONE = dps.NoisyMax(epsilon=1.0, monotone=True)


@pytest.mark.parametrize(
    "sample", [PrivateSample(PRIVATE), PrivateSample(PRIVATE, tuning_epsilon=1.0), PrivateSample(PRIVATE, cap=1.0)]
)
def test_a_private_sample_is_refused_unless_the_look_is_paid_for(sample):
    with pytest.raises(ValueError, match=r"a release\. Pay for it with PrivateSample\(.*tuning\.tune"):
        advise(WIDTHS, 1.0, prior=sample)


def test_a_paid_look_is_a_tuning_and_shows_no_errors():
    sample = PrivateSample(PRIVATE, tuning_epsilon=2.0, cap=(1e-9, 1.0))
    advice = advise(WIDTHS, 0.5, prior=sample, pool=tilted(0.5), randomness=dps.Randomness.seeded(1))
    assert advice.best.tilt < 0  # of any other seed too, except one in a million
    assert advice.ranking == ()
    assert advice.guarantee.epsilon == 2.5
    assert advice.best.label in str(advice)
    assert "private and not shown" in str(advice)


def test_a_paid_look_repeats_itself_with_the_same_key_and_is_the_tuning_of_that_key():
    pool, chosen = tilted(0.5), set()
    for number in range(12):
        source = dps.Randomness.keyed(bytes([number] * 32), "tuning")
        sample = PrivateSample(PRIVATE[:2], tuning_epsilon=0.01, cap=1.0)  # so small that any may be chosen
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
        ({"correlation": 1.5}, "^correlation must be between −1 and 1"),
        ({"correlation": float("nan")}, "^correlation must be finite"),
        ({"correlation": "positive"}, "^correlation must be a number"),
        ({"spread": 0.0}, "^spread must be positive"),
        ({"anchors": WIDTHS}, "^anchors must come with prior"),
        ({"epsilon": 0.0}, "^epsilon must be positive"),
        ({"power": -1.0}, "^power must be positive"),
        ({"randomness": dps.Randomness.seeded(1)}, "^randomness must come with prior=PrivateSample"),
        ({"randomness": 7, "prior": PAID}, "^randomness must be a Randomness or None"),
        ({"pool": []}, "^pool must hold at least one"),
        ({"pool": ["gem"]}, "^pool must hold mechanisms, got str"),
        ({"pool": [dps.NoisyMax(epsilon=50.0)]}, "^pool must hold mechanisms that are ε-DP at epsilon = 1"),
        (
            {"pool": [dps.unsafe.NaiveHeterogeneousNoisyMax(epsilon=1.0)]},
            "^pool must hold mechanisms that are ε-DP",
        ),
        ({"pool": [MONOTONE]}, "^pool must hold mechanisms that are private for all scores within"),
        ({"pool": [MONOTONE], "prior": PAID}, "^pool must hold mechanisms that are private for all scores within"),
        ({"k": 14}, "^k must be the number of sensitivities, 15"),
        ({"sensitivities": 1.0}, "^k must be given"),
        ({"sensitivities": 1.0, "k": 0}, "^k must be ≥ 1"),
        ({"sensitivities": -WIDTHS}, "^sensitivities must be ≥ 0"),
        ({"sensitivities": WIDTHS[np.newaxis]}, "^sensitivities must be one number for each candidate"),
    ],
)
def test_bad_questions_are_refused_with_a_clear_message(changes, message):
    question = {"sensitivities": WIDTHS, "epsilon": 1.0} | changes
    with pytest.raises(ValueError, match=message):
        advise(**question)
