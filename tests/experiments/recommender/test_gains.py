"""The default against noisy max, user by user."""

import numpy as np
import pytest

import dpselect as dps
from experiments.recommender.gains import gain_rows
from experiments.recommender.protocol import Lists


def test_a_row_counts_the_users_that_are_worse_off(users):
    (row,) = gain_rows(users, (2.0,))
    errors = [
        np.array(
            [dps.expected_error(mechanism, *user) for user in zip(users.scores, users.sensitivities, strict=True)]
        )
        for mechanism in (dps.HeterogeneousNoisyMax(epsilon=2.0), dps.NoisyMax(epsilon=2.0))
    ]
    ratios = errors[0] / errors[1]
    # A row alone has offsets solved to 1e-6; rows of a batch have approximate ones.
    assert row["largest_ratio"] == pytest.approx(ratios.max(), rel=0.03)
    assert row["median_ratio"] == pytest.approx(np.median(ratios), rel=0.03)
    assert row["default"] / row["rnm"] == pytest.approx(errors[0].mean() / errors[1].mean(), rel=0.03)
    assert row["users"] == len(users)
    assert (row["worse"] > 0) == (row["largest_ratio"] > 1 + 1e-6)


def test_a_user_with_equal_scores_is_not_counted():
    scores = np.array([[0.5, 0.5, 0.5], [0.5, 0.2, 0.1]])
    users = Lists(scores=scores, sensitivities=np.array([[1.0, 0.2, 0.3]] * 2))
    (row,) = gain_rows(users, (1.0,))
    assert row["users"] == 2
    assert 0 < row["largest_ratio"] < 2


def test_with_equal_sensitivities_nobody_is_worse_or_better_off(users):
    equal = Lists(scores=users.scores, sensitivities=np.full_like(users.sensitivities, 0.5))
    for row in gain_rows(equal, (0.5, 8.0)):
        assert row["worse"] == 0
        assert row["median_ratio"] == pytest.approx(1.0, rel=1e-9)
