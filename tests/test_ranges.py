"""Ranges: clipping makes their widths true sensitivities, and private ones have the stated law and account."""

import dataclasses
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect as dps
from dpselect.guarantees import ONE_USER_CHANGED
from dpselect.ranges import LEVELS, UNIT, Ranges, _read, from_private_scores

SECRET = 73.21943
numbers = st.floats(-(2.0**299), 2.0**299)
pairs = st.tuples(numbers, numbers).map(sorted)


@given(st.lists(pairs, min_size=1, max_size=6))
def test_a_sensitivity_is_the_smallest_accepted_float_that_is_no_less_than_the_width(ends):
    lows, highs = map(list, zip(*ends, strict=True))
    for low, high, width in zip(lows, highs, Ranges(lows, highs).sensitivities, strict=True):
        exact = Fraction(high) - Fraction(low)
        assert Fraction(width) >= exact
        if exact >= Fraction(2) ** -300:
            assert Fraction(np.nextafter(width, 0.0)) < exact
        else:
            assert width == (2.0**-300 if exact else 0.0)


@given(st.lists(st.tuples(pairs, numbers, numbers), min_size=1, max_size=6))
def test_any_two_clipped_scores_are_within_the_sensitivity_of_each_other(rows):
    ends, one, other = zip(*rows, strict=True)
    ranges = Ranges(*map(list, zip(*ends, strict=True)))
    for here, there, width in zip(
        ranges.clip(list(one)), ranges.clip(list(other)), ranges.sensitivities, strict=True
    ):
        assert abs(Fraction(here) - Fraction(there)) <= Fraction(width)


def test_a_width_that_floats_would_round_down_is_rounded_up():
    low, high = -(2.0**-60), 1.0
    assert high - low == 1.0
    assert Ranges(low, high).sensitivities == np.nextafter(1.0, 2.0)


def test_clipping_keeps_what_is_inside():
    ranges = Ranges([0.0, -1.0], [1.0, 2.0])
    clipped = ranges.clip([[0.5, 5.0], [-3.0, 2.5], [9.0, -1.0]])
    np.testing.assert_array_equal(clipped, [[0.5, 2.0], [0.0, 2.0], [1.0, -1.0]])
    np.testing.assert_array_equal(ranges.sensitivities, [1.0, 3.0])


def test_every_form_of_scores_keeps_its_form():
    for_all, ragged = Ranges(0.0, 1.0), (np.array([0.5, 2.0, -1.0]), [0, 1, 3])
    values, offsets = for_all.clip(ragged)
    assert (values.tolist(), offsets.tolist()) == ([0.5, 1.0, 0.0], [0, 1, 3])
    lists = for_all.clip(pa.array([[0.5], [2.0, -1.0]]))
    assert lists.to_pylist() == [[0.5], [1.0, 0.0]]
    assert for_all.clip(np.full((2, 3, 4), 7.0)).tolist() == np.ones((2, 3, 4)).tolist()
    assert for_all.clip((np.empty(0), [0]))[0].size == 0


def test_ragged_rows_have_a_range_for_each_flat_score():
    highs = np.array([1.0, 2.0, 3.0])[[2, 0, 2]]
    ranges = Ranges(np.zeros(3), highs)
    values, offsets = ranges.clip((np.array([9.0, 9.0, 1.5]), [0, 2, 3]))
    assert values.tolist() == [3.0, 1.0, 1.5]
    assert dps.GEM(epsilon=1.0).select((values, offsets), ranges.sensitivities).shape == (2,)


def test_public_ranges_cost_nothing_and_the_pick_holds_for_any_two_score_vectors():
    ranges, mechanism = Ranges([0.0, 0.0], [1.0, 3.0]), dps.GEM(epsilon=1.5)
    whole = ranges.guarantee_with(mechanism)
    assert (whole.epsilon, whole.rho) == (1.5, mechanism.guarantee.rho)
    far = [ranges.clip(scores) for scores in ([-1e9, 1e9], [1e9, -1e9])]
    loss = dps.auditing.privacy_loss(mechanism, far[0], far[1], ranges.sensitivities)
    assert 0.7 < loss.epsilon <= 1.5 + 1e-9


def test_a_monotone_mechanism_is_refused_because_clipped_scores_move_both_ways():
    with pytest.raises(ValueError, match=r"^mechanism must be private for all"):
        Ranges(0.0, 1.0).guarantee_with(dps.NoisyMax(epsilon=1.0, monotone=True))


def test_no_guarantee_stays_none():
    naive = dps.unsafe.NaiveHeterogeneousNoisyMax(epsilon=1.0)
    assert not Ranges(0.0, 1.0).guarantee_with(naive).is_private


def test_ranges_are_values():
    one = Ranges([0.0, 1.0], [1.0, 2.0])
    assert repr(pickle.loads(pickle.dumps(one))) == repr(one)  # noqa: S301 - our own bytes
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.lows = np.zeros(2)
    with pytest.raises(ValueError, match="read-only"):
        one.lows[0] = 5.0
    assert repr(one) == "Ranges(2 candidates, ε = 0)"


def test_changing_an_argument_later_changes_no_range():
    lows = np.zeros(2)
    ranges = Ranges(lows, 1.0)
    lows[:] = -5.0
    assert ranges.lows.tolist() == [0.0, 0.0]


TWO = Ranges([0.0, 0.0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Ranges([0.0, 2.0], 1.0), "lows must be ≤ highs"),
        (lambda: Ranges([0.0, 0.0], [1.0, 1.0, 1.0]), "lows and highs must have one number for the same"),
        (lambda: Ranges([[0.0]], 1.0), "lows and highs must be one number for each candidate"),
        (lambda: Ranges([], []), "lows and highs must be one number for each candidate"),
        (lambda: Ranges(np.nan, 1.0), "lows must be finite"),
        (lambda: Ranges(0.0, np.inf), "highs must be finite"),
        (lambda: Ranges(-(2.0**300), 2.0**300), "highs − lows must be at most 2\\^300"),
        (lambda: Ranges("a", 1.0), "lows must hold numbers"),
        (lambda: Ranges(0.0, 1.0, 1.0), "guarantees must be Guarantee objects"),
        (lambda: TWO.clip([SECRET]), "scores must have the 2 candidates of the ranges, got 1"),
        (lambda: TWO.clip(([SECRET], [0, 1])), "scores must have the 2 candidates of the ranges, got 1"),
        (lambda: TWO.clip([SECRET, np.nan]), "scores must be finite"),
        (
            lambda: TWO.clip(pd.Series([SECRET, 1.0])),
            r"scores must be an array without labels: pass scores.to_numpy\(\)",
        ),
        (lambda: Ranges(pd.Series([0.0, 1.0]), 2.0), "lows must be an array without labels"),
        (lambda: TWO.clip(SECRET), "scores must have a last axis of candidates"),
        (
            lambda: TWO.guarantee_with(dps.GEM),
            r"mechanism must be a Mechanism such as dps.GEM\(1.0\), got the class GEM",
        ),
    ],
)
def test_bad_ranges_name_the_argument_and_the_rule_and_show_no_score(call, message):
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        call()
    assert "73.2" not in str(caught.value)


# --- From private scores ---------------------------------------------------------------------------------

NONE = math.nan
CUTS = [0.0, 0.5, 1.0]


def cut_pmf(scores, cuts, *, epsilon, levels=LEVELS):
    """Return the exact probability of each cut, for each candidate and level, from the laws of the picks."""
    task = _read(scores, cuts, epsilon, levels)
    return np.array([task.mechanism.pmf(ranks, UNIT) for ranks in task.qualities()])


def expected_chances(column, cuts, level, epsilon):
    """Return the exponential mechanism's probabilities, by the definition of rank."""
    wanted = level * len(column)
    weights = []
    for cut in cuts:
        ranks = sum(score < cut for score in column), sum(score <= cut for score in column)
        away = 0 if ranks[0] <= wanted <= ranks[1] else min(abs(rank - wanted) for rank in ranks)
        weights.append(math.exp(-epsilon * away / 2))
    return np.array(weights) / sum(weights)


def test_cuts_are_picked_by_the_exponential_mechanism_over_ranks():
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 6, size=(30, 3)) / 4
    cuts = np.array([[-1.0, 0.25, 0.5, 0.6, 2.0], [0.0, 0.1, 0.2, 1.0, 1.25], [0.3, 0.5, 0.75, 1.0, 1.1]])
    levels = (0.25, 0.875)
    found = cut_pmf(scores, cuts, epsilon=3.0, levels=levels)
    for a, (end, level) in itertools.product(range(3), enumerate(levels)):
        np.testing.assert_allclose(found[a, end], expected_chances(scores[:, a], cuts[a], level, 0.5), rtol=1e-9)


def test_ties_at_a_cut_make_it_the_quantile():
    """All scores are 1, so 1 is every quantile; a count of smaller scores alone would not know it."""
    chances = cut_pmf(np.ones((1000, 1)), [0.0, 1.0, 2.0], epsilon=2.0, levels=(0.3, 0.7))
    assert (chances[0, :, 1] > 1 - 1e-12).all()


def test_draws_follow_the_law():
    """False alarms once in 1e6: five standard deviations."""
    scores, draws = np.array([[0.1, 0.9], [0.4, 0.2], [0.7, 0.6]]), 2000
    chances = cut_pmf(scores, CUTS, epsilon=6.0)
    joint = np.zeros((2, 3, 3))
    for a, low, high in itertools.product(range(2), range(3), range(3)):
        joint[a, min(low, high), max(low, high)] += chances[a, 0, low] * chances[a, 1, high]
    counts = np.zeros_like(joint)
    for seed in range(draws):
        found = from_private_scores(scores, CUTS, epsilon=6.0, randomness=dps.Randomness.seeded(seed))
        for a in range(2):
            counts[a, CUTS.index(found.lows[a]), CUTS.index(found.highs[a])] += 1
    deviations = np.sqrt(np.maximum(draws * joint * (1 - joint), 1.0))
    assert (np.abs(counts - draws * joint) <= 5 * deviations).all()


# --- Privacy ----------------------------------------------------------------------------------------------


def log_joint_law(scores, mechanism, **choice):
    """Return the logarithm of the probability of each outcome: the cuts of all ranges, then all users' picks."""
    scores = np.array(scores)
    users, size = scores.shape
    logs = np.log(cut_pmf(scores, CUTS, **choice).reshape(2 * size, len(CUTS)))
    outcomes = []
    for cuts in itertools.product(range(len(CUTS)), repeat=2 * size):
        ends = np.sort(np.array(CUTS)[list(cuts)].reshape(size, 2), axis=1)
        ranges = Ranges(ends[:, 0], ends[:, 1])
        with np.errstate(divide="ignore"):  # picks among constant scores are certain
            chances = np.log(mechanism.pmf(ranges.clip(scores), ranges.sensitivities))
        log_cuts = sum(logs[place, cut] for place, cut in enumerate(cuts))
        outcomes += [
            log_cuts + sum(chances[user, pick] for user, pick in enumerate(picks))
            for picks in itertools.product(range(size), repeat=users)
        ]
    return np.array(outcomes)


def loss(one, other):
    possible = np.isfinite(one) | np.isfinite(other)
    return np.abs(one[possible] - other[possible]).max()


OTHERS = {"low": [[0.2, 0.1]], "apart": [[0.0, 1.0]], "two": [[0.4, 0.4], [0.9, 0.6]]}


@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("mechanism", [dps.GEM(epsilon=1.0), dps.NoisyMax(epsilon=1.0)], ids=["gem", "rnm"])
def test_ranges_and_picks_together_lose_no_more_than_the_sum_of_their_budgets(mechanism, others):
    """One user's row is replaced by each of sixteen; every outcome of ranges and picks is enumerated."""
    rows = list(itertools.product([-1.0, 0.3, 0.5, 2.0], repeat=2))
    laws = [log_joint_law([row, *others], mechanism, epsilon=2.0) for row in rows]
    for law in laws:
        assert np.exp(law).sum() == pytest.approx(1.0)
    worst = max(loss(one, other) for one, other in itertools.combinations(laws, 2))
    stated = from_private_scores(np.array([rows[0], *others]), CUTS, epsilon=2.0).guarantee_with(mechanism)
    assert stated.epsilon == 3.0
    assert 0.5 < worst <= stated.epsilon + 1e-9


def test_the_audit_finds_ranges_that_cost_more_than_they_state():
    laws = [log_joint_law([row, [0.2, 0.1]], dps.GEM(epsilon=1.0), epsilon=60.0) for row in ([-1, -1], [2, 2])]
    assert loss(*laws) > 3.0


def test_the_bound_is_nearly_reached():
    """One user moves from below all cuts to above all. The best cuts gain a rank, and the lowest cut loses one.

    Given the ranges, the other users' picks have the same law, so they cancel.
    """
    others = [[0.25] * 2] * 2 + [[0.75] * 2] * 3 + [[2.0] * 2] * 4
    epsilon, choice = 400.0, {"epsilon": 400.0, "levels": (0.2, 0.5)}
    below, above = (np.log(cut_pmf([[x, x], *others], CUTS, **choice)) for x in (-1.0, 2.0))
    assert 0.99 * epsilon < np.abs(below - above).max(axis=-1).sum() <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_no_row_replaced_costs_more_than_the_budget(seed):
    rng = np.random.default_rng(seed)
    size, epsilon = int(rng.integers(1, 5)), float(rng.choice([0.5, 4.0, 50.0]))
    levels = tuple(np.sort(rng.uniform(size=2)))
    scores = rng.choice([-1.0, 0.0, 0.25, 0.5, 1.0, 2.0], size=(6, size))
    choice = {"epsilon": epsilon, "levels": levels}
    before = np.log(cut_pmf(scores, CUTS, **choice))
    for _ in range(20):
        changed = scores.copy()
        changed[2] = rng.choice([-1.0, 0.0, 0.25, 0.5, 1.0, 2.0], size=size)
        after = np.log(cut_pmf(changed, CUTS, **choice))
        assert np.abs(before - after).max(axis=-1).sum() <= epsilon * (1 + 1e-9)


# --- The account ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 5])
def test_the_account_counts_two_picks_for_each_column(size):
    promise = from_private_scores(np.zeros((3, size)), CUTS, epsilon=1.0).guarantee
    picks = 2 * size
    assert (promise.epsilon, promise.delta, promise.neighbours) == (1.0, 0.0, ONE_USER_CHANGED)
    assert promise.rho == pytest.approx(picks * (1 / picks) ** 2 / 8)


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0, 3.3])
@pytest.mark.parametrize("size", [3, 7, 11])
def test_the_exact_sum_of_all_picks_never_exceeds_the_budget(epsilon, size):
    share = dps.ranges._share(epsilon, 2 * size)
    assert Fraction(share) * 2 * size <= Fraction(epsilon)
    assert share == pytest.approx(epsilon / (2 * size))


def test_the_same_key_gives_the_same_ranges_and_another_key_others():
    scores, cuts = np.random.default_rng(2).uniform(size=(20, 4)), np.linspace(0, 1, 101)
    keys = [dps.Randomness.keyed(bytes([number]) * 32, "ranges") for number in (1, 1, 2)]
    one, again, other = (from_private_scores(scores, cuts, epsilon=1.0, randomness=key) for key in keys)
    assert one.lows.tolist() == again.lows.tolist() != other.lows.tolist()


def test_candidates_with_the_same_scores_have_independent_noise():
    found = from_private_scores(np.zeros((2, 50)), np.arange(1000.0), epsilon=0.1)
    assert len(np.unique(found.lows)) > 10


def test_many_users_give_ranges_close_to_the_true_quantiles():
    rng = np.random.default_rng(5)
    scores = rng.uniform(size=(20_000, 2)) * [1.0, 8.0]
    found = from_private_scores(
        scores, np.linspace(-10, 10, 2001), epsilon=1.0, randomness=dps.Randomness.seeded(1)
    )
    np.testing.assert_allclose(found.lows, [0.05, 0.4], atol=0.05)
    np.testing.assert_allclose(found.highs, [0.95, 7.6], atol=0.05)


SCORES = [[73.21943, 0.5], [0.25, 0.75]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [0.5]}, "scores must have two axes"),
        ({"scores": np.empty((0, 2))}, "scores must have two axes"),
        ({"scores": [[73.21943, NONE]]}, "scores must be finite"),
        ({"scores": pd.DataFrame({"tea": [73.21943]})}, "scores must be an array without labels"),
        ({"scores": [[73.21943, math.inf]]}, "scores must be finite"),
        ({"cuts": [0.5]}, "cuts must be a list of at least two numbers"),
        ({"cuts": np.zeros((3, 4))}, "cuts must be a list of at least two numbers, or such a row for each of 2"),
        ({"cuts": [0.0, 0.0, 1.0]}, "cuts must increase strictly"),
        ({"cuts": [0.0, NONE]}, "cuts must be finite"),
        ({"cuts": [-(2.0**300), 2.0**300]}, "cuts must span at most"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"levels": (0.5, 0.5)}, "levels must have low < high"),
        ({"levels": 0.5}, "levels must be a list"),
        ({"randomness": 5}, "randomness must be a Randomness"),
        ({"randomness": dps.Randomness.keyed(bytes(32), [1, 2])}, "units must have one identifier"),
    ],
)
def test_bad_input_names_the_argument_and_the_rule_and_shows_no_score(arguments, message):
    given = {"scores": SCORES, "cuts": CUTS, "epsilon": 1.0} | arguments
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        from_private_scores(given.pop("scores"), given.pop("cuts"), **given)
    assert "73.2" not in str(caught.value)
