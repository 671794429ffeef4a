"""Tuning on a fleet: its law, its privacy, and the effect of rounding."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import dpselect as dps
from dpselect.pools import default_pool
from dpselect.tuning import choice, choice_pmf, fleet_errors, fleets, tune
from dpselect.tuning.choice import UNIT

EPSILON = 1.0
POOL = [
    dps.NoisyMax(epsilon=EPSILON),
    *(dps.GEM(epsilon=EPSILON, tilt=tilt) for tilt in (-4.0, -1.0, 1.0, 4.0)),
    dps.CombinedGEM(epsilon=EPSILON),
    dps.RandomStopping(epsilon=EPSILON),
    dps.RandomizedResponse(epsilon=EPSILON),
    dps.Uniform(),
]
MONOTONE = dps.NoisyMax(epsilon=EPSILON, monotone=True)
rng = np.random.default_rng(5)
WIDTHS = np.linspace(0.2, 1.0, 12)
SCORES = np.clip(WIDTHS + 0.2 * rng.normal(size=(80, 12)), 0.0, 1.0)


# --- Errors -----------------------------------------------------------------------------------------------


def test_errors_are_those_of_each_mechanism_on_each_row():
    found = fleet_errors(POOL, SCORES, WIDTHS)
    assert found.shape == (len(POOL), 80)
    for place, mechanism in enumerate(POOL):
        direct = [dps.expected_error(mechanism, row, WIDTHS) for row in SCORES]
        assert found[place] == pytest.approx(direct, rel=1e-12)
    regrets = fleet_errors(POOL[:1], SCORES, WIDTHS, power=1)[0]
    assert regrets == pytest.approx(dps.expected_error(POOL[0], SCORES, WIDTHS, power=1), rel=1e-12)


@pytest.mark.parametrize("mechanism", POOL, ids=repr)
def test_a_users_error_is_the_same_to_the_last_bit_in_every_fleet(mechanism, monkeypatch):
    alone = np.concatenate([fleet_errors([mechanism], row[np.newaxis], WIDTHS)[0] for row in SCORES])
    order = rng.permutation(80)
    assert (fleet_errors([mechanism], SCORES, WIDTHS)[0] == alone).all()
    assert (fleet_errors([mechanism], SCORES[order], WIDTHS)[0] == alone[order]).all()
    assert (fleet_errors([mechanism], SCORES[3:41], np.tile(WIDTHS, (38, 1)))[0] == alone[3:41]).all()
    monkeypatch.setenv("DPSELECT_THREADS", "3")
    monkeypatch.setattr(fleets, "BLOCK", 50)
    assert (fleet_errors([mechanism], SCORES, WIDTHS)[0] == alone).all()


ROUTE = """
import numpy as np, dpselect as dps
from dpselect.tuning import choice
whole = choice._whole_errors
def shown(errors, caps):
    print(*(error.hex() for error in errors.tolist()))
    return whole(errors, caps)
choice._whole_errors = shown
rng = np.random.default_rng(5)
widths = np.linspace(0.2, 1.0, 12)
scores = np.clip(widths + 0.2 * rng.normal(size=(40, 12)), 0.0, 1.0)
pool = [dps.NoisyMax(1.0), dps.HeterogeneousNoisyMax(1.0), dps.GEM(1.0), dps.RandomStopping(1.0)]
dps.tuning.tune(scores, widths, 1.0, 1.0, cap=1.0, pool=pool)
"""


def test_the_errors_behind_a_choice_are_the_same_to_the_last_bit_whether_a_process_prefers_to_compile_or_not():
    shown = [
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", ROUTE],
            env=os.environ | {"DPSELECT_COMPILE": setting},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for setting in ("never", "always")
    ]
    assert shown[0] == shown[1]
    assert shown[0].count("0x") == 160


def test_ragged_and_arrow_fleets_have_the_errors_of_their_rows():
    lengths = rng.integers(1, 12, 30)
    rows = [row[:size] for row, size in zip(SCORES, lengths, strict=False)]
    widths = [WIDTHS[:size] for size in lengths]
    flat, bounds = np.concatenate(rows), np.r_[0, np.cumsum(lengths)]
    for mechanism in (dps.GEM(epsilon=1.0), dps.NoisyMax(epsilon=1.0)):
        direct = [dps.expected_error(mechanism, q, d) for q, d in zip(rows, widths, strict=True)]
        ragged = fleet_errors([mechanism], (flat, bounds), np.concatenate(widths))[0]
        assert ragged == pytest.approx(direct, rel=1e-12)
        arrow = fleet_errors([mechanism], pa.array([row.tolist() for row in rows]), np.concatenate(widths))[0]
        assert (arrow == ragged).all()
        same = [dps.expected_error(mechanism, q, 0.5) for q in rows]
        assert fleet_errors([mechanism], (flat, bounds), 0.5)[0] == pytest.approx(same, rel=1e-12)


# --- The law of the choice --------------------------------------------------------------------------------


def law_by_definition(errors, budget, caps):
    """Return the choice's law from plain integers and the slow law of noisy max."""
    sums = [[sum(round(min(1.0, e / cap) * 2**24) for e in row) for row in errors.tolist()] for cap in caps]
    users = errors.shape[1]
    if len(caps) == 1:
        return noisy_max(sums[0], budget)
    fits = noisy_max([abs(min(row) - 2**24 * users / 4) for row in sums], budget / 2)
    return sum(fit * noisy_max(row, budget / 2) for fit, row in zip(fits, sums, strict=True))


def noisy_max(losses, budget):
    scores = [-float(loss) for loss in losses]
    return np.array([float(p) for p in reference.noisy_max(scores, [2.0**24] * len(scores), epsilon=budget)])


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.125, 0.5, 2.0]))
def test_the_law_of_the_choice_is_that_of_its_definition(seed, budget):
    random = np.random.default_rng(seed)
    errors = random.exponential(size=(random.integers(2, 5), random.integers(1, 8))) ** 3
    assert choice_pmf(errors, budget, cap=1.5) == pytest.approx(law_by_definition(errors, budget, [1.5]), rel=1e-9)
    found = choice_pmf(errors, budget, cap=(0.1, 6.4))
    assert found == pytest.approx(law_by_definition(errors, budget, [6.4, 1.6, 0.4, 0.1]), rel=1e-9)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)


def test_copies_stand_for_users_with_the_same_scores():
    errors = rng.exponential(size=(4, 9))
    for cap in (2.0, (1e-3, 8.0)):
        assert (
            choice_pmf(errors, 0.3, cap=cap, copies=5) == choice_pmf(np.repeat(errors, 5, 1), 0.3, cap=cap)
        ).all()


@pytest.mark.parametrize("cap", [1.0, (1e-4, 1.0)])
def test_choices_are_made_by_their_law(cap):
    # False alarms: 1e-6 for each of the two caps.
    pool, scores = POOL[:5], SCORES[:6]
    law = choice_pmf(fleet_errors(pool, scores, WIDTHS), 2.0, cap=cap)
    counts = np.zeros(len(pool))
    for seed in range(400):
        tuned = tune(scores, WIDTHS, EPSILON, 2.0, cap=cap, pool=pool, randomness=dps.Randomness.seeded(seed))
        counts[pool.index(tuned.mechanism)] += 1
    assert chisquare(counts, 400 * law).pvalue > 1e-6


@pytest.mark.parametrize("form", ["ragged", "arrow", "blocks"])
def test_the_choice_does_not_depend_on_the_form_of_the_fleet(form, monkeypatch):
    settings_ = {"cap": (1e-6, 1.0), "pool": POOL}
    expected = [
        tune(SCORES, WIDTHS, EPSILON, 0.3, randomness=dps.Randomness.seeded(seed), **settings_) for seed in range(5)
    ]
    fleet, widths = SCORES, WIDTHS
    if form == "ragged":
        fleet, widths = (SCORES.ravel(), np.arange(81) * 12), np.tile(WIDTHS, 80)
    elif form == "arrow":
        fleet, widths = pa.array(SCORES.tolist()), pa.array([WIDTHS.tolist()] * 80)
    else:
        monkeypatch.setattr(choice, "BLOCK", 100)
    for seed, tuned in enumerate(expected):
        found = tune(fleet, widths, EPSILON, 0.3, randomness=dps.Randomness.seeded(seed), **settings_)
        assert found == tuned


# --- Privacy ----------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 5.0]), st.sampled_from([1.0, (1e-3, 1.0)]))
def test_changing_or_removing_one_user_costs_the_choice_at_most_its_budget(seed, budget, cap):
    random = np.random.default_rng(seed)
    errors = random.choice([0.0, 1e-3, 0.1, 1.0, 7.0], size=(3, 5)) * random.uniform(size=(3, 5))
    changed = errors.copy()
    changed[:, 2] = random.choice([0.0, 1e-3, 0.3, 100.0], size=3)
    removed = np.delete(errors, 2, axis=1)
    law = np.log(choice_pmf(errors, budget, cap=cap))
    for neighbour in (changed, removed):
        assert np.abs(law - np.log(choice_pmf(neighbour, budget, cap=cap))).max() <= budget * (1 + 1e-9)


@pytest.mark.parametrize("budget", [0.1, 1.0, 5.0])
def test_the_budget_is_not_more_than_needed(budget):
    errors = np.array([[0.0] * 9, [1.0] * 9])
    changed = errors.copy()
    changed[:, 0] = [1.0, 0.0]
    loss = np.log(choice_pmf(changed, budget, cap=1.0)) - np.log(choice_pmf(errors, budget, cap=1.0))
    assert loss[1] == pytest.approx(budget, rel=1e-9)


@settings(max_examples=200)
@given(st.lists(st.floats(), min_size=1, max_size=8), st.floats(1e-9, 1e9))
def test_errors_are_counted_in_whole_numbers_up_to_the_unit_even_if_they_overflow(errors, cap):
    counted = choice._whole_errors(np.array(errors), np.array([cap]))
    assert counted.dtype == np.int64
    assert ((counted >= 0) & (counted <= UNIT)).all()
    assert (counted[0][np.isnan(errors)] == UNIT).all()


@pytest.mark.parametrize("power", [0.5, 2, 3.5, 4, 1000])
def test_scores_of_any_size_count_up_to_the_cap_and_raise_nothing(power):
    extreme = np.array([[0.0, 2.0**299, -(2.0**299)], [2.0**300, -(2.0**300), 2.0**300], [-(2.0**300), 0.0, 1.0]])
    pool = default_pool(EPSILON)
    errors = fleet_errors(pool, extreme, 1.0, power=power)  # warnings are errors here
    counted = np.array([choice._whole_errors(row, np.array([1.0]))[0] for row in errors])
    assert ((counted >= 0) & (counted <= UNIT)).all()
    assert not np.isnan(errors).any()
    assert (errors[pool.index(dps.NoisyMax(epsilon=EPSILON))] == 0)[:2].all()  # all others are impossible
    assert (counted[pool.index(dps.Uniform())] == UNIT).all()
    for seed in range(3):
        source = dps.Randomness.seeded(seed)
        tune(extreme, 1.0, EPSILON, 0.1, cap=1.0, pool=pool, power=power, randomness=source)


@pytest.mark.parametrize("budget", [0.1, 0.3, 1 / 3, 1e-7, 123.4])
def test_the_parts_of_the_budget_do_not_exceed_it(budget):
    from fractions import Fraction  # noqa: PLC0415

    first, second = choice._budgets(2, budget)
    assert 0 <= Fraction(budget) - Fraction(first) - Fraction(second) <= Fraction(budget) / 2**50
    assert choice._budgets(1, budget) == (None, budget)


def like_laplace(epsilon):
    """Return the ρ of Laplace noise."""
    return epsilon + np.expm1(-epsilon)


def test_the_guarantee_of_the_whole_does_not_depend_on_the_choice():
    settings_ = {"cap": 1.0, "randomness": dps.Randomness.seeded(0)}
    tuned = tune(SCORES, WIDTHS, EPSILON, 0.25, pool=[dps.Uniform(), dps.Uniform(), POOL[0]], **settings_)
    for seed in range(20):
        settings_["randomness"] = dps.Randomness.seeded(seed)
        other = tune(SCORES[:1], WIDTHS, EPSILON, 0.25, pool=[dps.Uniform(), POOL[0]], **settings_)
        assert other.guarantee == tuned.guarantee
    assert tuned.guarantee.epsilon == 1.25
    assert tuned.tuning.epsilon == 0.25
    assert tuned.guarantee.rho == pytest.approx(like_laplace(0.25) + like_laplace(1.0))
    assert "in any way" in tuned.tuning.neighbours
    assert "Δ_a" in tuned.guarantee.neighbours


@pytest.mark.parametrize("cap", [1.0, (1e-3, 1.0)])
def test_the_number_of_users_is_published_and_the_guarantees_say_so(cap):
    here, there = (
        tune(fleet, WIDTHS, EPSILON, 0.25, cap=cap, pool=POOL, randomness=dps.Randomness.seeded(0))
        for fleet in (SCORES, SCORES[1:])
    )
    assert (here.users, there.users) == (80, 79)  # which distinguishes fleets of different sizes with certainty,
    assert "80 users" in str(here)
    for guarantee in (here.tuning, here.guarantee):  # so no guarantee may cover them
        assert guarantee.neighbours.startswith(
            "fleets of the same public number of users that differ in one user's"
        )


def test_every_number_of_the_whole_is_the_largest_of_the_pool():
    gumbel, exponential = dps.NoisyMax(epsilon=1.0, noise="gumbel"), dps.NoisyMax(epsilon=1.0)
    steep = dps.NoisyMax(epsilon=0.75)  # the larger ρ at the smaller ε: 0.22 against 0.125
    large, small = like_laplace(1.0), like_laplace(0.75)
    for pool, rho in (([gumbel, exponential], large), ([exponential, gumbel], large), ([gumbel, steep], small)):
        whole = tune(SCORES[:1], WIDTHS, 1.0, 0.25, cap=1.0, pool=pool).guarantee
        assert whole.epsilon == 1.25
        assert whole.rho == pytest.approx(like_laplace(0.25) + rho)


@pytest.mark.parametrize("member", [*POOL, *default_pool(EPSILON)], ids=repr)
def test_every_member_satisfies_the_guarantee_of_the_whole_if_scores_move_in_opposite_directions(member):
    here, there = (np.log(member.pmf(scores, 1.0)) for scores in ([0.0, 2.0], [1.0, 1.0]))
    tuned = tune([[0.0, 2.0]], 1.0, EPSILON, 0.1, cap=1.0, pool=[member])
    assert np.abs(here - there).max() <= tuned.guarantee.epsilon - tuned.tuning.epsilon + 1e-9
    with pytest.raises(ValueError, match=r"^pool must hold"):  # which would lose twice its budget
        tune([[0.0, 2.0]], 1.0, EPSILON, 0.1, cap=1.0, pool=[member, MONOTONE])


# --- What comes out ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cap", [1.0, (1e-9, 1.0)])
def test_a_fleet_whose_good_candidates_are_sensitive_is_tuned_to_a_tilt_below_zero(cap):
    pool = [dps.NoisyMax(epsilon=0.1, tilt=tilt) for tilt in (-4.0, 0.0, 4.0)]
    for fleet, tilt in ((SCORES, -4.0), (1 - SCORES, 4.0)):
        errors = fleet_errors(pool, fleet, WIDTHS)
        assert choice_pmf(errors, 5.0, cap=cap)[[m.tilt for m in pool].index(tilt)] > 0.999
        seed = dps.Randomness.seeded(2)
        tuned = tune(fleet, WIDTHS, 0.1, 5.0, cap=cap, pool=pool, randomness=seed)
        assert tuned.mechanism.tilt == tilt
        assert tuned.users == 80
        assert f"tilt {tilt:g}".replace("-", "−") in str(tuned)


def test_a_range_of_caps_sees_differences_that_one_cap_hides():
    errors = np.array([[1e-7] * 500, [2e-7] * 500])
    assert choice_pmf(errors, 1.0, cap=1.0)[0] < 0.51
    assert choice_pmf(errors, 1.0, cap=(1e-12, 1.0))[0] > 0.99


def test_the_default_pool_is_used_without_a_pool():
    for seed in range(3):
        settings_ = {"cap": 1.0, "randomness": dps.Randomness.seeded(seed)}
        fleet = SCORES[:2, :4]
        found = tune(fleet, WIDTHS[:4], 2.0, 0.01, **settings_)
        assert found == tune(fleet, WIDTHS[:4], 2.0, 0.01, pool=default_pool(2.0), **settings_)


# --- Bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0.0}, "^epsilon must be positive"),
        ({"tuning_epsilon": -1.0}, "^tuning_epsilon must be positive"),
        ({"tuning_epsilon": float("nan")}, "^tuning_epsilon must be finite"),
        ({"cap": 0.0}, "^cap must be positive"),
        ({"cap": (1.0, 0.5)}, r"^cap must be a range \(lowest, highest\)"),
        ({"cap": (1.0, 2.0, 3.0)}, "^cap must be a number or a range"),
        ({"cap": (0.0, 2.0)}, "^cap must be positive"),
        ({"power": 0.0}, "^power must be positive"),
        ({"pool": []}, "^pool must hold at least one mechanism"),
        ({"pool": ["gem"]}, "^each member of pool must be a Mechanism such as .*, got str"),
        ({"pool": [dps.GEM(epsilon=1.5)]}, "^pool must hold mechanisms that are ε-DP at epsilon = 1: GEM is not"),
        (
            {"pool": [dps.unsafe.NaiveHeterogeneousNoisyMax(epsilon=0.1)]},
            "^pool must hold mechanisms that are ε-DP",
        ),
        ({"pool": [POOL[0], MONOTONE]}, "^pool must hold mechanisms that are private for all scores within"),
        ({"scores": SCORES[0]}, "^scores must have two axes"),
        ({"scores": SCORES[np.newaxis]}, "^scores must have two axes"),
        ({"scores": SCORES[:0]}, "^scores must hold at least one user"),
        ({"scores": np.where(SCORES[0, 0] == SCORES, np.nan, SCORES)}, "^scores must be finite"),
        ({"sensitivities": -WIDTHS}, "^sensitivities must be ≥ 0"),
        ({"randomness": 7}, "^randomness must be"),
        (
            {"randomness": dps.Randomness.keyed(bytes(32), ["a", "b"])},
            "^units must have one identifier for each row",
        ),
    ],
)
def test_bad_input_is_refused_before_any_work(changes, message, monkeypatch):
    monkeypatch.setattr(fleets, "mean_errors", lambda *_, **__: pytest.fail("worked before it checked"))
    given_ = {
        "scores": SCORES,
        "sensitivities": WIDTHS,
        "epsilon": 1.0,
        "tuning_epsilon": 1.0,
        "cap": 1.0,
    } | changes
    with pytest.raises(ValueError, match=message) as caught:
        tune(**given_)
    assert f"{SCORES[0, 0]:.4f}"[2:] not in str(caught.value)


def test_more_users_than_sums_can_hold_exactly_are_refused(monkeypatch):
    assert fleets.MOST_USERS * UNIT < 2**53
    monkeypatch.setattr(fleets, "MOST_USERS", 64)
    with pytest.raises(ValueError, match=r"^scores must hold at most 2\^6 users"):
        tune(SCORES, WIDTHS, 1.0, 1.0, cap=1.0)
