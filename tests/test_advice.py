"""Rankings that are exact, and notes that fit the numbers."""

import numpy as np
import pytest
from small_pools import tilted

import dpselect as dps
from dpselect.advice import advise
from dpselect.pools import default_pool
from experiments.scenarios import SCENARIOS

rng = np.random.default_rng(8)
WIDTHS = np.linspace(0.1, 1.0, 15)


@pytest.mark.parametrize("number", range(1, 9))
@pytest.mark.parametrize("epsilon", [0.1, 8.0])
def test_advice_from_a_public_sample_is_the_exact_ranking(number, epsilon):
    scenario = SCENARIOS[number]().first(12)
    pool = [*tilted(epsilon), dps.CombinedGEM(epsilon=epsilon), dps.RandomizedResponse(epsilon=epsilon)]
    advice = advise(scenario.sensitivities, epsilon, public_scores=scenario.scores, pool=pool)
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
        assert row.worst is None


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


# --- Whose data is in a row? ------------------------------------------------------------------------------


def test_one_persons_rows_are_for_top_share_and_many_peoples_for_a_ranking():
    one = advise(None, 2.0)
    assert one.best == dps.TopShare(2.0)
    assert one.ranking == ()
    assert "one person's data" in str(one)
    assert "give sensitivities" in str(one)
    assert "many people's data" in str(advise(WIDTHS, 2.0, pool=tilted(2.0)))


# --- Notes ------------------------------------------------------------------------------------------------


def test_a_simpler_mechanism_than_the_best_is_not_called_the_best():
    advice = advise([1.0, 0.5, 0.1], epsilon=0.5, correlation=0.8)
    assert advice.ranking[0].mechanism != advice.best
    assert " is the simplest within 1% of the best." in advice.notes[0]
    assert advice.notes[0].lower().startswith(advice.best.label.lower())


def test_of_equal_sensitivities_noisy_max_is_advised_and_gem_is_noisy_max_at_half_the_budget():
    advice = advise(np.ones(20), 1.0, correlation=0.5, pool=tilted(1.0))
    assert advice.best == dps.NoisyMax(epsilon=1.0)
    assert advice.notes[0] == "No mechanism beats plain noisy max by more than 1%."
    half = np.mean([row.error for row in advise(np.ones(20), 0.5, pool=[dps.NoisyMax(epsilon=0.5)]).ranking])
    full = {row.mechanism: row.error for row in advise(np.ones(20), 1.0, pool=tilted(1.0)).ranking}
    assert full[dps.GEM(epsilon=1.0)] == pytest.approx(half, rel=1e-9)


def test_a_budget_that_is_too_small_can_be_left_unspent():
    advice = advise(np.ones(50), 1e-3, pool=default_pool(1e-3, gammas=()))
    assert advice.best == dps.Uniform()
    assert "a random pick is free" in advice.notes[0]


def test_a_large_budget_is_left_to_randomised_response():
    sample = rng.normal(size=(30, 15))
    advice = advise(WIDTHS, 40.0, public_scores=sample, pool=default_pool(40.0, gammas=()))
    assert advice.best == dps.RandomizedResponse(epsilon=40.0)


def test_mechanisms_worse_than_random_have_the_exact_factor():
    scenario = SCENARIOS[1]()
    advice = advise(scenario.sensitivities, 1.0, public_scores=scenario.scores, pool=tilted(1.0))
    # The paper's numbers: GEM 3.447, random 2.
    [gem] = [row for row in advice.ranking if row.mechanism == dps.GEM(epsilon=1.0)]
    assert gem.of_random == pytest.approx(3.447 / 2, abs=5e-4)


def test_the_worst_case_is_that_of_the_other_sign():
    advice = advise(WIDTHS, 0.5, correlation=0.9, pool=tilted(0.5))
    other = advise(WIDTHS, 0.5, correlation=-0.9, pool=tilted(0.5))
    ratios = {row.mechanism: row.of_random for row in other.ranking}
    for row in advice.ranking:
        assert row.worst == pytest.approx(max(row.of_random, ratios[row.mechanism]), rel=1e-12)


def test_printing_shows_the_choice_the_table_and_the_notes():
    advice = advise(WIDTHS, 0.5, correlation=0.9, pool=[*tilted(0.5), dps.Uniform()])
    best = [row.mechanism.label for row in advice.ranking[:7]]
    for part in (
        "Use ",
        "Assumed: ",
        "of random",
        "worst case",
        *best,
        f"(8 of {len(advice.ranking)} mechanisms",
        *advice.notes,
    ):
        assert part in str(advice)


@pytest.mark.parametrize("correlation", [-0.9, -0.4, 0.0, 0.6, 1.0])
def test_drawn_scores_have_the_stated_correlation_and_spread(correlation):
    widths = np.linspace(0.1, 1.0, 200)
    scores = dps.advice.draw_scores(widths, correlation, 3.0)
    assert np.mean(dps.correlation.spearman(scores, widths)) == pytest.approx(correlation, abs=0.02)
    assert scores.std() == pytest.approx(3.0, rel=0.02)


SAMPLE = np.clip(WIDTHS + 0.1 * rng.normal(size=(30, 15)), 0.0, 1.0)
MONOTONE = dps.NoisyMax(epsilon=1.0, monotone=True)

# --- Bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"public_scores": SAMPLE, "correlation": 0.1}, "^correlation and spread must be absent"),
        ({"public_scores": SAMPLE, "spread": 0.1}, "^correlation and spread must be absent"),
        ({"public_scores": SAMPLE[:, :4]}, "^sensitivities must have one number for each"),
        ({"public_scores": SAMPLE[np.newaxis]}, "^public_scores must be an array"),
        ({"public_scores": SAMPLE[:0]}, "^public_scores must be an array"),
        ({"correlation": 1.5}, "^correlation must be between −1 and 1"),
        ({"correlation": float("nan")}, "^correlation must be finite"),
        ({"correlation": "positive"}, "^correlation must be a number"),
        ({"spread": 0.0}, "^spread must be positive"),
        ({"epsilon": 0.0}, "^epsilon must be positive"),
        ({"power": -1.0}, "^power must be positive"),
        ({"pool": []}, "^pool must hold at least one"),
        ({"pool": ["gem"]}, "^each member of pool must be a Mechanism such as .*, got str"),
        ({"pool": [dps.NoisyMax(epsilon=50.0)]}, "^pool must hold mechanisms that are ε-DP at epsilon = 1"),
        (
            {"pool": [dps.unsafe.NaiveHeterogeneousNoisyMax(epsilon=1.0)]},
            "^pool must hold mechanisms that are ε-DP",
        ),
        ({"pool": [MONOTONE]}, "^pool must hold mechanisms that are private for all scores within"),
        ({"sensitivities": None, "correlation": 0.1}, "^sensitivities must be given with correlation"),
        ({"sensitivities": None, "public_scores": SAMPLE}, "fit_top_share learns from public scores"),
        ({"sensitivities": 1.0}, "^sensitivities must be one number for each candidate"),
        ({"sensitivities": -WIDTHS}, "^sensitivities must be ≥ 0"),
        ({"sensitivities": WIDTHS[np.newaxis]}, "^sensitivities must be one number for each candidate"),
    ],
)
def test_bad_questions_are_refused_with_a_clear_message(changes, message):
    question = {"sensitivities": WIDTHS, "epsilon": 1.0} | changes
    with pytest.raises(ValueError, match=message):
        advise(**question)
