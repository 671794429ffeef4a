"""The privacy loss of one reward."""

import numpy as np
import pytest

from experiments.bandit.exposure import account, window_losses
from experiments.bandit.policies import BUDGETS


@pytest.mark.parametrize(
    ("policy", "total", "printed"),
    [("mgem", 2.0, 4.0), ("rnm", 2.0, 4.0), ("krr", 1.0, 5.0), ("uniform", 0.0, 0.0)],
)
def test_one_reward_costs_its_arms_means_and_one_window(policy, total, printed):
    found = account(BUDGETS[policy], horizon=5000, window=200)
    assert found.total == pytest.approx(total)
    assert found.as_printed == pytest.approx(printed)


def test_the_account_does_not_grow_with_time():
    totals = {account(BUDGETS["gem"], horizon=horizon, window=200).total for horizon in (1000, 4000, 16_000)}
    assert totals == {2.0}


def test_only_full_windows_cost():
    np.testing.assert_array_equal(window_losses(7, 3, epsilon=0.5), [0.5] * 6 + [0.0])
    np.testing.assert_array_equal(window_losses(2, 3, epsilon=0.5), [0.0, 0.0])
