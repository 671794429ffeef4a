"""Averages over trials, and the grid of budgets."""

import numpy as np
import pytest

from experiments.experiment import FAST, FULL
from experiments.synthetic.bimodal import BIMODAL
from experiments.trials import summary


def test_the_standard_error_of_groups_in_turn_is_that_of_their_rounds():
    values = np.array([1.0, 9.0, 2.0, 12.0, 3.0, 9.0])
    rounds = np.array([5.0, 7.0, 6.0])
    assert summary(values, groups=2) == pytest.approx((6.0, rounds.std(ddof=1) / 3**0.5))
    assert summary(np.array([4.0])) == (4.0, 0.0)


@pytest.mark.parametrize("effort", [FAST, FULL])
def test_the_grid_of_epsilons_runs_from_a_hundredth_to_a_hundred_through_each_power_of_ten(effort):
    task = next(task for task in BIMODAL.plan(effort) if task.table == "errors")
    epsilons = task.compute()["epsilon"].to_pylist()
    assert len(epsilons) == effort.epsilon_points
    assert (epsilons[0], epsilons[-1]) == (0.01, 100.0)
    assert {0.1, 1.0, 10.0} <= set(epsilons)
