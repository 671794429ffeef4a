"""Ranges as values: their widths are sensitivities, and clipping makes them true."""

import dataclasses
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect as dps
from dpselect.ranges import Ranges, from_bounds, from_private_scores, from_public_sample

SECRET = 73.21943
numbers = st.floats(-(2.0**299), 2.0**299)
pairs = st.tuples(numbers, numbers).map(sorted)


@given(st.lists(pairs, min_size=1, max_size=6))
def test_a_sensitivity_is_the_smallest_accepted_float_that_is_no_less_than_the_width(ends):
    lows, highs = map(list, zip(*ends, strict=True))
    for low, high, width in zip(lows, highs, from_bounds(lows, highs).sensitivities, strict=True):
        exact = Fraction(high) - Fraction(low)
        assert Fraction(width) >= exact
        if exact >= Fraction(2) ** -300:
            assert Fraction(np.nextafter(width, 0.0)) < exact
        else:
            assert width == (2.0**-300 if exact else 0.0)


@given(st.lists(st.tuples(pairs, numbers, numbers), min_size=1, max_size=6))
def test_any_two_clipped_scores_are_within_the_sensitivity_of_each_other(rows):
    ends, one, other = zip(*rows, strict=True)
    ranges = from_bounds(*map(list, zip(*ends, strict=True)))
    for here, there, width in zip(
        ranges.clip(list(one)).scores, ranges.clip(list(other)).scores, ranges.sensitivities, strict=True
    ):
        assert abs(Fraction(here) - Fraction(there)) <= Fraction(width)


def test_a_width_that_floats_would_round_down_is_rounded_up():
    low, high = -(2.0**-60), 1.0
    assert high - low == 1.0
    assert from_bounds(low, high).sensitivities == np.nextafter(1.0, 2.0)


def test_clipping_keeps_what_is_inside_and_counts_what_is_not():
    clipped = from_bounds([0.0, -1.0], [1.0, 2.0]).clip([[0.5, 5.0], [-3.0, 2.5], [9.0, -1.0]])
    np.testing.assert_array_equal(clipped.scores, [[0.5, 2.0], [0.0, 2.0], [1.0, -1.0]])
    np.testing.assert_array_equal(clipped.sensitivities, [1.0, 3.0])
    assert (clipped.below, clipped.above) == (1, 3)


def test_every_form_of_scores_keeps_its_form():
    for_all, ragged = from_bounds(0.0, 1.0), (np.array([0.5, 2.0, -1.0]), [0, 1, 3])
    values, offsets = for_all.clip(ragged).scores
    assert (values.tolist(), offsets.tolist()) == ([0.5, 1.0, 0.0], [0, 1, 3])
    lists = for_all.clip(pa.array([[0.5], [2.0, -1.0]])).scores
    assert lists.to_pylist() == [[0.5], [1.0, 0.0]]
    assert for_all.clip(np.full((2, 3, 4), 7.0)).scores.tolist() == np.ones((2, 3, 4)).tolist()
    assert for_all.clip((np.empty(0), [0])).scores[0].size == 0


def test_ragged_rows_have_a_range_for_each_flat_score():
    highs = np.array([1.0, 2.0, 3.0])[[2, 0, 2]]
    ranges = from_bounds(np.zeros(3), highs)
    values, offsets = ranges.clip((np.array([9.0, 9.0, 1.5]), [0, 2, 3])).scores
    assert values.tolist() == [3.0, 1.0, 1.5]
    assert dps.GEM(epsilon=1.0).select((values, offsets), ranges.sensitivities).shape == (2,)


def test_quantiles_of_a_public_sample_are_those_of_each_column():
    sample = np.arange(11.0)[:, np.newaxis] * [1.0, 10.0]
    ranges = from_public_sample(sample, levels=(0.1, 0.8))
    np.testing.assert_allclose(ranges.lows, [1.0, 10.0])
    np.testing.assert_allclose(ranges.highs, [8.0, 80.0])
    assert ranges.guarantee.epsilon == 0.0


def test_public_ranges_cost_nothing_and_the_pick_holds_for_any_two_score_vectors():
    ranges, mechanism = from_bounds([0.0, 0.0], [1.0, 3.0]), dps.GEM(epsilon=1.5)
    whole = ranges.guarantee_with(mechanism)
    assert (whole.epsilon, whole.rho) == (1.5, mechanism.guarantee.rho)
    far = [ranges.clip(scores) for scores in ([-1e9, 1e9], [1e9, -1e9])]
    loss = dps.auditing.privacy_loss(mechanism, far[0].scores, far[1].scores, ranges.sensitivities)
    assert 0.7 < loss.epsilon <= 1.5 + 1e-9


def test_a_monotone_mechanism_is_refused_because_clipped_scores_move_both_ways():
    with pytest.raises(ValueError, match=r"^mechanism must be private for all"):
        from_bounds(0.0, 1.0).guarantee_with(dps.NoisyMax(epsilon=1.0, monotone=True))


def test_no_guarantee_stays_none():
    naive = dps.unsafe.NaiveHeterogeneousNoisyMax(epsilon=1.0)
    assert not from_bounds(0.0, 1.0).guarantee_with(naive).is_private


def test_what_was_clipped_never_shows():
    clipped = from_bounds(-100.0, 50.0).clip([SECRET, SECRET, 0.5])
    for text in (repr(clipped), str(clipped), f"{clipped}"):
        assert text == "Clipped(private scores, Ranges(one range for all candidates, ε = 0))"


def test_ranges_are_values():
    one, two = (from_bounds([0.0, 1.0], [1.0, 2.0]) for _ in range(2))
    assert one == two == pickle.loads(pickle.dumps(one))  # noqa: S301 - our own bytes
    assert len({one, two}) == 1
    assert one != from_bounds([0.0, 1.0], [1.0, 2.5])
    assert from_bounds(0.0, 1.0) != from_bounds([0.0], [1.0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.lows = np.zeros(2)
    with pytest.raises(ValueError, match="read-only"):
        one.lows[0] = 5.0
    assert repr(one) == "Ranges(2 candidates, ε = 0)"


def test_changing_an_argument_later_changes_no_range():
    lows = np.zeros(2)
    ranges = from_bounds(lows, 1.0)
    lows[:] = -5.0
    assert ranges.lows.tolist() == [0.0, 0.0]


def test_labels_in_another_order_are_refused():
    lows, highs = (pd.Series({"tea": end, "rum": 2 * end}) for end in (0.0, 1.0))
    ranges = from_bounds(lows, highs)
    assert ranges.clip(pd.Series({"tea": 5.0, "rum": 5.0})).scores.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"^scores must have the candidates of the ranges in the same order"):
        ranges.clip(pd.Series({"rum": 5.0, "tea": 5.0}))
    with pytest.raises(ValueError, match=r"^highs must have the labels of lows"):
        from_bounds(lows, highs[["rum", "tea"]])


@pytest.mark.parametrize(
    "make", [from_public_sample, lambda frame: from_private_scores(frame, [0.0, 2.0], epsilon=1.0)]
)
def test_ranges_clip_the_frame_they_were_made_from_and_picks_have_its_labels(make):
    frame = pd.DataFrame({"tea": [0.1, 0.2, 5.0], "rum": [0.3, 0.4, -5.0]}, index=["ann", "bob", "cem"])
    ranges = make(frame)
    clipped = ranges.clip(frame)
    expected = np.clip(frame.to_numpy(), ranges.lows, ranges.highs)
    pd.testing.assert_frame_equal(clipped.scores, pd.DataFrame(expected, frame.index, frame.columns))
    assert list(clipped.sensitivities.values()) == ranges.sensitivities.tolist()
    picks = dps.GEM(epsilon=1.0).select(clipped.scores, clipped.sensitivities)
    assert picks.index.tolist() == frame.index.tolist()
    assert set(picks) <= {"tea", "rum"}


TWO = from_bounds([0.0, 0.0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: from_bounds([0.0, 2.0], 1.0), "lows must be ≤ highs"),
        (lambda: from_bounds([0.0, 0.0], [1.0, 1.0, 1.0]), "lows and highs must have one number for the same"),
        (lambda: from_bounds([[0.0]], 1.0), "lows and highs must be one number for each candidate"),
        (lambda: from_bounds([], []), "lows and highs must be one number for each candidate"),
        (lambda: from_bounds(np.nan, 1.0), "lows must be finite"),
        (lambda: from_bounds(0.0, np.inf), "highs must be finite"),
        (lambda: from_bounds(-(2.0**300), 2.0**300), "highs − lows must be at most 2\\^300"),
        (lambda: from_bounds("a", 1.0), "lows must hold numbers"),
        (lambda: Ranges(lows=0.0, highs=1.0, guarantee=1.0), "guarantees must be Guarantee objects"),
        (lambda: from_public_sample([1.0, 2.0]), "sample must have two axes"),
        (lambda: from_public_sample([[1.0, np.nan]]), "sample must be finite"),
        (lambda: from_public_sample([[1.0, 2.0]], levels=(0.9, 0.1)), "levels must have low < high"),
        (lambda: TWO.clip([SECRET]), "scores must have the 2 candidates of the ranges, got 1"),
        (lambda: TWO.clip(([SECRET], [0, 1])), "scores must have the 2 candidates of the ranges, got 1"),
        (lambda: TWO.clip([SECRET, np.nan]), "scores must be finite"),
        (lambda: TWO.clip(SECRET), "scores must have a last axis of candidates"),
        (
            lambda: TWO.guarantee_with(dps.GEM),
            "mechanism must be a Mechanism such as dps.GEM(1.0), got the class GEM",
        ),
    ],
)
def test_bad_input_names_the_argument_and_the_rule_and_shows_no_score(call, message):
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        call()
    assert "73.2" not in str(caught.value)
