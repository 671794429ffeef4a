"""The error of lists: about the mean of many, and a function of their row alone."""

import numpy as np
import pytest

import dpselect as dps
from dpselect.lists.quality import list_errors

SENSITIVITIES = np.array([1.0, 0.5, 2.0, 0.25, 1.0])


@pytest.mark.parametrize("power", [1, 2])
def test_the_error_of_a_list_depends_on_its_row_alone_and_is_about_its_mean(power):
    top = dps.TopK(dps.GEM(1.0), count=2)
    rows = np.random.default_rng(0).normal(size=(300, 5))
    errors = list_errors(top, top.read(rows, SENSITIVITIES), power)
    some = [250, 3, 77]
    assert (list_errors(top, top.read(rows[some], SENSITIVITIES), power) == errors[some]).all()
    lists = top.select(np.repeat(rows, 50, axis=0), SENSITIVITIES, randomness=dps.Randomness.seeded(5))
    picked = np.take_along_axis(np.repeat(rows, 50, axis=0), lists, axis=1).mean(axis=1)
    regrets = (np.repeat(np.sort(rows)[:, -2:].mean(axis=1), 50) - picked) ** power
    spread = regrets.reshape(300, 50).std(axis=1).mean()
    assert abs(errors.mean() - regrets.mean()) < 6 * spread / np.sqrt(300 * 8)


def test_ragged_rows_have_the_errors_of_dense_ones():
    top = dps.TopK(dps.NoisyMax(1.0), count=2)
    rows, bounds = np.random.default_rng(1).normal(size=(4, 5)), np.arange(5) * 5
    widths = np.tile(SENSITIVITIES, 4)
    dense = list_errors(top, top.read(rows, SENSITIVITIES), 2)
    assert (list_errors(top, top.read((rows.reshape(-1), bounds), (widths, bounds)), 2) == dense).all()
