"""Exponential or Gumbel noise, for many picks on one budget."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from compositions import DELTA

import dpselect as dps
from dpselect import accounting

SCORES = np.random.default_rng(3).normal(size=(5, 20))


@pytest.mark.parametrize("make", [dps.NoisyMax, partial(dps.GEM, tilt=0.0)], ids=["noisy-max", "gem"])
def test_exponential_noise_is_better_for_one_pick_and_gumbel_noise_for_many(make):
    one, few, many = accounting.compare_noises(
        SCORES, 0.02, total_epsilon=2.0, delta=DELTA, picks=[1, 10, 500], make=make
    )
    assert (one.better, many.better) == ("exponential", "gumbel")
    assert one.gumbel_epsilon / one.exponential_epsilon == pytest.approx(1, abs=0.01)
    assert 1.2 < few.gumbel_epsilon / few.exponential_epsilon < many.gumbel_epsilon / many.exponential_epsilon
    assert 1.7 < many.gumbel_epsilon / many.exponential_epsilon < 2.05
    law = make(epsilon=many.gumbel_epsilon, noise="gumbel").pmf(SCORES, 0.02)
    regrets = SCORES.max(axis=1, keepdims=True) - SCORES
    assert many.gumbel_error == pytest.approx((law * regrets**2).sum(axis=1).mean())


def test_budgets_do_not_depend_on_the_scores():
    [row] = accounting.compare_noises([0.0, 1.0], 1.0, total_epsilon=1.0, delta=DELTA, picks=[30], power=1)
    for noise, epsilon in (("exponential", row.exponential_epsilon), ("gumbel", row.gumbel_epsilon)):
        assert epsilon == accounting.epsilon_per_pick(1.0, delta=DELTA, picks=30, noise=noise)
    assert replace(row, gumbel_error=1.0, exponential_error=2.0).better == "gumbel"
