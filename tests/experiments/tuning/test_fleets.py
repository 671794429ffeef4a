"""Fleets of users."""

import os
from pathlib import Path

import numpy as np
import pytest

from experiments.scenarios import SCENARIOS
from experiments.tuning.fleets import movielens, scenario_fleet


@pytest.mark.parametrize("number", SCENARIOS)
def test_a_scenarios_fleet_has_5000_users_within_the_largest_error(number):
    fleet = scenario_fleet(number, 250)
    assert fleet.users == 5000
    assert len(fleet.scores) == (1 if number <= 3 else 250)
    worst = np.ptp(fleet.scores, axis=1).max() ** 2
    assert worst <= fleet.largest_error <= 100 * worst


@pytest.mark.skipif("DPSELECT_DATA" not in os.environ, reason="needs the folder of ml-1m.parquet in DPSELECT_DATA")
def test_movielens_users_have_scores_within_the_ranges_of_their_items():
    fleet = movielens(Path(os.environ["DPSELECT_DATA"]), 30)
    assert fleet.scores.shape == fleet.sensitivities.shape == (30, 100)
    assert np.ptp(fleet.scores, axis=1).max() ** 2 <= fleet.largest_error
