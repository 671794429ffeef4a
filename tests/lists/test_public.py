"""Lists for the price of one pick: one of public lists, and random sets with most of the best."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare, hypergeom

import dpselect as dps
from dpselect.lists import TopSet, public, public_lists, score_lists, select_list
from dpselect.lists.top_set import terms

# --- Public lists -----------------------------------------------------------------------------------------


def test_public_lists_are_the_best_of_each_row_once_and_in_public_order():
    scores = np.random.default_rng(1).normal(size=(30, 6))
    lists = public_lists(scores, count=3)
    assert {frozenset(row) for row in lists.tolist()} == {
        frozenset(row) for row in np.argsort(-scores)[:, :3].tolist()
    }
    assert len({frozenset(row) for row in lists.tolist()}) == len(lists)
    means = scores.mean(axis=0)
    assert (np.diff(means[lists], axis=1) <= 0).all()


def test_a_list_is_one_pick_by_the_sum_of_its_scores_in_blocks_or_not(monkeypatch):
    source = np.random.default_rng(2)
    scores, lists = source.normal(size=(5, 4, 9)), np.array(list(itertools.combinations(range(9), 3)))
    mechanism, weights = dps.TopShare(3.0), source.random(len(lists))
    totals = np.array([[[row[list(members)].sum() for members in lists] for row in rows] for rows in scores])
    np.testing.assert_allclose(score_lists(scores.reshape(20, 9), lists).reshape(5, 4, -1), totals, rtol=1e-12)
    key = dps.Randomness.keyed(bytes(32), range(20))
    picks = mechanism.select(totals.reshape(20, -1), weights=weights, randomness=key)
    for block in (1, 300, 1 << 22):
        monkeypatch.setattr(public, "BLOCK", block)
        found = select_list(scores, lists, mechanism, weights=weights, randomness=key)
        assert (found.reshape(20, 3) == lists[picks]).all()
    assert (
        dps.select_list(scores[0, 0], lists, dps.TopShare(300.0)).tolist() == lists[totals[0, 0].argmax()].tolist()
    )


def test_bad_lists_are_refused_by_name():
    lists = [[0, 1], [1, 2]]
    with pytest.raises(ValueError, match="mechanism must be private for any change of the scores"):
        select_list([0.0, 1.0, 2.0], lists, dps.GEM(1.0))
    with pytest.raises(ValueError, match="lists must hold positions from 0 to 2"):
        select_list([0.0, 1.0, 2.0], [[0, 3]], dps.TopShare(1.0))
    with pytest.raises(ValueError, match="lists must be positions"):
        select_list([0.0, 1.0, 2.0], [0, 1], dps.TopShare(1.0))
    with pytest.raises(ValueError, match="count must be ≤ 3, got 4"):
        public_lists([[0.0, 1.0, 2.0]], count=4)
    with pytest.raises(ValueError, match="public_scores must be finite"):
        public_lists([[0.0, math.nan]], count=1)
    with pytest.raises(ValueError, match="scores must be finite"):
        select_list([0.0, math.nan, 2.0], lists, dps.TopShare(1.0))


# --- Random sets ------------------------------------------------------------------------------------------


def law_of(scores, mechanism):
    """Return the probability of each set, from the definition."""
    size = len(scores)
    least, share = terms(mechanism, size)
    top = set(sorted(range(size), key=lambda a: -scores[a])[: mechanism.count])
    sets = list(itertools.combinations(range(size), mechanism.count))
    good = [len(top & set(members)) >= least for members in sets]
    assert share == sum(good) / len(sets) or float(share) == pytest.approx(sum(good) / len(sets))
    chance = 1 / (1 + float(share) * math.expm1(mechanism.epsilon))
    return {
        members: chance / len(sets) + (1 - chance) * ok / sum(good) for members, ok in zip(sets, good, strict=True)
    }


@pytest.mark.parametrize("epsilon", [0.5, 1.5, 3.0, 6.0])
def test_sets_are_as_frequent_as_their_law_says(epsilon):
    scores = [0.3, 0.9, 0.3, 0.3, 0.1, 0.7]  # ties go to the first
    mechanism = TopSet(epsilon, count=3)
    drawn = mechanism.select(np.tile(scores, (4000, 1)), randomness=dps.Randomness.seeded(3))
    assert (np.diff(drawn, axis=1) > 0).all()
    law = law_of(scores, mechanism)
    counts = [int((drawn == members).all(axis=1).sum()) for members in law]
    assert chisquare(counts, 4000 * np.array(list(law.values()))).pvalue > 1e-6


def test_sets_lose_at_most_epsilon_for_any_change_of_the_scores():
    for epsilon in (0.5, 0.8, 3.0, 6.0):
        mechanism = TopSet(epsilon, count=3)
        laws = np.array([list(law_of(row, mechanism).values()) for row in itertools.product([0, 1, 2], repeat=6)])
        assert np.log(laws.max(axis=0) / laws.min(axis=0)).max() <= epsilon + 1e-12


def test_the_share_of_good_sets_is_the_tail_of_a_hypergeometric_distribution():
    for size, epsilon in ((100, 4.0), (30, 9.0), (500, 2.0), (12, 20.0)):
        least, share = terms(TopSet(epsilon), size)
        assert float(share) == pytest.approx(hypergeom(size, 10, 10).sf(least - 1), rel=1e-9)


def test_more_budget_asks_for_more_of_the_best():
    asked = [terms(TopSet(epsilon), 50)[0] for epsilon in (0.5, 4.0, 10.0, 20.0, 40.0)]
    assert asked == sorted(asked)
    assert asked[-1] == 10
    sets = TopSet(2.0**300).select(np.tile(np.arange(50.0), (3, 1)))
    assert sets.tolist() == [list(range(40, 50))] * 3


def test_bad_settings_of_a_set_are_refused_by_name():
    with pytest.raises(ValueError, match="count must be at most the number of candidates, 2, got 3"):
        TopSet(1.0, count=3).select([0.0, 1.0])
    with pytest.raises(ValueError, match="no probability for each candidate"):
        TopSet(1.0, count=2).pmf([0.0, 1.0])
    with pytest.raises(ValueError, match="scores must be finite"):
        TopSet(1.0, count=2).select([0.0, math.nan, 1.0])
