"""What is kept of a run."""

import numpy as np
import pytest
from bandit_runs import PROBLEM, story

from experiments.bandit import runs
from experiments.bandit.problem import Problem
from experiments.bandit.summaries import curves, half_times, outcomes


def test_half_times_count_from_the_shift_and_may_be_never():
    np.testing.assert_array_equal(half_times(story(0.5, 0.5, rise=40), PROBLEM), [40.0] * 6)
    assert np.isinf(half_times(story(0.5, 0.5), PROBLEM)).all()


def test_outcomes_are_split_at_the_shift():
    row = outcomes("mgem", story(0.75, 0.25), PROBLEM).to_pylist()[0]
    assert (row["reward_before"], row["reward_after"]) == (600 * 0.75, 400 * 0.25)
    assert row["regret_after"] == pytest.approx(400 * 0.506)
    # The arms' mean rewards after clipping are 0.2 (nearly) and 0.7562.
    assert row["old_arm"] == pytest.approx(0.506 / 0.556, rel=0.01)


@pytest.mark.parametrize(("error", "share"), [(0.0, 1.0), (0.05, 1.0), (0.15, 0.0)])
def test_quantiles_are_near_within_a_tenth(error, share):
    row = outcomes("gem", story(0.4, 0.4, error=error), PROBLEM).to_pylist()[0]
    assert [row[f"near_{name}"] for name in ("p10_0", "p90_0", "p10_1", "p90_1")] == [share] * 4
    assert row["miss"] == pytest.approx(error, abs=1e-4)


@pytest.mark.parametrize(("error", "narrow", "wide"), [(0.05, 1.0, 1.0), (0.1, 0.0, 1.0), (0.13, 0.0, 0.0)])
def test_quantiles_are_close_within_a_fifth_of_the_arm_s_range(error, narrow, wide):
    row = outcomes("gem", story(0.4, 0.4, error=error), PROBLEM).to_pylist()[0]
    # Each arm is the narrow one (range 0.256) in one phase, and the wide one (0.584) in the other.
    for name in ("p10_0", "p90_0", "p10_1", "p90_1"):
        assert row[f"close_{name}"] == pytest.approx((narrow + wide) / 2, abs=0.12)


def test_curves_have_means_and_percentiles_over_runs():
    told = story(0.5, 0.5, worlds=11)
    last = curves("mgem", told, ["reward"]).to_pylist()[-1]
    assert last["time"] == 1000
    # The rewards are 500 · (1 + 0.0001 w) for w = 0, …, 10.
    assert (last["reward_low"], last["reward"], last["reward_high"]) == (500.1, 500.2, 500.4)


def test_the_points_are_what_the_arms_pay():
    short = Problem(horizon=1000, shift=500)
    table = runs.thin_rewards(short, 2)
    times, first, second = (table[name].to_numpy() for name in ("time", "arm_0", "arm_1"))
    assert (np.diff(times) == 2).all()
    assert min(first.min(), second.min()) >= 0
    assert max(first.max(), second.max()) <= 1
    before = times <= 500
    assert first[before].mean() == pytest.approx(0.2, abs=0.03)
    assert first[~before].mean() == pytest.approx(0.756, abs=0.06)
    assert second[before].mean() == pytest.approx(0.756, abs=0.06)
