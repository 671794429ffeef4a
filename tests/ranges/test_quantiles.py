"""Ranges from private scores: their exact law, their privacy together with picks, and their account."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpselect as dps
from dpselect.guarantees import ONE_USER_CHANGED
from dpselect.ranges import Ranges, from_private_scores
from dpselect.ranges.quantiles import UNIT, _read
from dpselect.ranges.values import LEVELS

NONE = math.nan
CUTS = [0.0, 0.5, 1.0]


def cut_pmf(scores, cuts, *, epsilon, levels=LEVELS, contributions=None):
    """Return the exact probability of each cut, for each candidate and level, from the laws of the picks."""
    task = _read(scores, cuts, epsilon, levels, contributions)
    return np.array([task.mechanism.pmf(ranks, UNIT) for ranks in task.qualities()])


def expected_chances(column, cuts, level, epsilon):
    """Return the exponential mechanism's probabilities, by the definition of rank."""
    held = [score for score in column if not math.isnan(score)]
    wanted = level * len(held)
    weights = []
    for cut in cuts:
        ranks = sum(score < cut for score in held), sum(score <= cut for score in held)
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
    """Return the logarithm of the probability of each outcome: the cuts of all ranges, then all users' picks.

    A user's missing scores count as the lower end of the range.
    """
    scores = np.array(scores)
    users, size = scores.shape
    logs = np.log(cut_pmf(scores, CUTS, **choice).reshape(2 * size, len(CUTS)))
    outcomes = []
    for cuts in itertools.product(range(len(CUTS)), repeat=2 * size):
        ends = np.sort(np.array(CUTS)[list(cuts)].reshape(size, 2), axis=1)
        ranges = Ranges(lows=ends[:, 0], highs=ends[:, 1])
        clipped = ranges.clip(np.where(np.isnan(scores), ranges.lows, scores))
        with np.errstate(divide="ignore"):  # picks among constant scores are certain
            chances = np.log(mechanism.pmf(clipped.scores, clipped.sensitivities))
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


def test_a_user_with_bounded_contributions_may_move_twice_that_many_columns():
    """m = 1: the old row scores one candidate and the new row another.

    More than half of ε is lost. If ε were divided by m columns in place of 2m, the loss would exceed it.
    """
    others = [
        [score if place == column else NONE for place in range(3)]
        for column in range(2)
        for score in [0.25] * 4 + [0.75] * 4 + [2.0] * 31
    ]
    epsilon, choice = 400.0, {"epsilon": 400.0, "contributions": 1, "levels": (0.1, 0.2)}
    rows = [[-1.0, NONE, NONE], [NONE, -1.0, NONE], [2.0, NONE, NONE], [NONE, NONE, 0.5], [NONE] * 3]
    laws = [np.log(cut_pmf([row, *others], CUTS, **choice)) for row in rows]
    losses = [np.abs(one - other).max(axis=-1).sum() for one, other in itertools.combinations(laws, 2)]
    assert 0.75 * epsilon < max(losses) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_no_row_replaced_costs_more_than_the_budget_at_any_bound_on_contributions(seed):
    rng = np.random.default_rng(seed)
    size, epsilon = int(rng.integers(1, 5)), float(rng.choice([0.5, 4.0, 50.0]))
    levels = tuple(np.sort(rng.uniform(size=2)))
    scores = rng.choice([-1.0, 0.0, 0.25, 0.5, 1.0, 2.0, NONE], size=(6, size))
    choice = {"epsilon": epsilon, "contributions": int(rng.integers(1, size + 1)), "levels": levels}
    before = np.log(cut_pmf(scores, CUTS, **choice))
    for _ in range(20):
        changed = scores.copy()
        changed[2] = rng.choice([-1.0, 0.0, 0.25, 0.5, 1.0, 2.0, NONE], size=size)
        after = np.log(cut_pmf(changed, CUTS, **choice))
        assert np.abs(before - after).max(axis=-1).sum() <= epsilon * (1 + 1e-9)


def test_scores_beyond_the_contributions_do_not_count():
    rng = np.random.default_rng(8)
    scores = rng.uniform(size=(40, 6))
    kept = dps.ranges.quantiles._bounded(scores, np.isnan(scores), 2)
    assert ((~np.isnan(kept)).sum(axis=1) == 2).all()
    assert ((~np.isnan(kept)).sum(axis=0) > 3).all()  # no candidate is starved
    changed = scores.copy()
    changed[7] = NONE
    other = dps.ranges.quantiles._bounded(changed, np.isnan(changed), 2)
    np.testing.assert_array_equal(np.delete(kept, 7, axis=0), np.delete(other, 7, axis=0))


def test_a_user_with_fewer_scores_than_the_contributions_keeps_all():
    scores = np.array([[NONE, 0.5, NONE, 0.25], [NONE] * 4])
    np.testing.assert_array_equal(dps.ranges.quantiles._bounded(scores, np.isnan(scores), 2), scores)


# --- The account ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "contributions", "picks"), [(5, None, 10), (5, 1, 4), (5, 2, 8), (5, 3, 10), (1, 1, 2)]
)
def test_the_account_counts_two_picks_for_each_column_that_a_user_can_move(size, contributions, picks):
    promise = from_private_scores(np.zeros((3, size)), CUTS, epsilon=1.0, contributions=contributions).guarantee
    assert (promise.epsilon, promise.delta, promise.neighbours) == (1.0, 0.0, ONE_USER_CHANGED)
    assert promise.rho == pytest.approx(picks * (1 / picks) ** 2 / 8)


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0, 3.3])
@pytest.mark.parametrize("size", [3, 7, 11])
def test_the_exact_sum_of_all_picks_never_exceeds_the_budget(epsilon, size):
    share = dps.ranges.quantiles._share(epsilon, 2 * size)
    assert Fraction(share) * 2 * size <= Fraction(epsilon)
    assert share == pytest.approx(epsilon / (2 * size))


def test_the_same_key_gives_the_same_ranges_and_another_key_others():
    scores, cuts = np.random.default_rng(2).uniform(size=(20, 4)), np.linspace(0, 1, 101)
    keys = [dps.Randomness.keyed(bytes([number]) * 32, "ranges") for number in (1, 1, 2)]
    one, again, other = (from_private_scores(scores, cuts, epsilon=1.0, randomness=key) for key in keys)
    assert one == again != other


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


def test_a_frame_names_the_candidates():
    frame = pd.DataFrame({"tea": [0.1, 0.2], "rum": [0.3, 0.4]})
    found = from_private_scores(frame, CUTS, epsilon=1.0)
    with pytest.raises(ValueError, match="in the same order"):
        found.clip(frame[["rum", "tea"]])


SCORES = [[73.21943, 0.5], [0.25, 0.75]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [0.5]}, "scores must have two axes"),
        ({"scores": np.empty((0, 2))}, "scores must have two axes"),
        ({"scores": [[73.21943, NONE]]}, "scores must not have NaN; .* pass contributions="),
        ({"scores": [[73.21943, math.inf]]}, "scores must be finite"),
        ({"scores": [[73.21943, math.inf]], "contributions": 1}, "scores must be finite"),
        ({"cuts": [0.5]}, "cuts must be a list of at least two numbers"),
        ({"cuts": np.zeros((3, 4))}, "cuts must be a list of at least two numbers, or such a row for each of 2"),
        ({"cuts": [0.0, 0.0, 1.0]}, "cuts must increase strictly"),
        ({"cuts": [0.0, NONE]}, "cuts must be finite"),
        ({"cuts": [-(2.0**300), 2.0**300]}, "cuts must span at most"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"levels": (0.5, 0.5)}, "levels must have low < high"),
        ({"levels": 0.5}, "levels must be a list"),
        ({"contributions": 0}, "contributions must be ≥ 1"),
        ({"contributions": 3}, "contributions must be ≤ 2"),
        ({"randomness": 5}, "randomness must be a Randomness"),
        ({"randomness": dps.Randomness.keyed(bytes(32), [1, 2])}, "units must have one identifier"),
    ],
)
def test_bad_input_names_the_argument_and_the_rule_and_shows_no_score(arguments, message):
    given = {"scores": SCORES, "cuts": CUTS, "epsilon": 1.0} | arguments
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        from_private_scores(given.pop("scores"), given.pop("cuts"), **given)
    assert "73.2" not in str(caught.value)
