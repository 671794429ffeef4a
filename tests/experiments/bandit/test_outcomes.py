"""Confidence intervals of means and medians."""

import numpy as np
import pytest

from experiments.bandit.outcomes import estimate, median


def test_confidence_intervals_are_students():
    """For 1, 2, 3, 4: mean 2.5, standard error 0.6455; t with 3 degrees of freedom reaches 3.1824."""
    found = estimate(np.array([1.0, 2.0, 3.0, 4.0]))
    assert found.mean == 2.5
    assert found.margin == pytest.approx(0.645497 * 3.182446, rel=1e-5)
    assert not found._replace(margin=3.0).is_positive


@pytest.mark.parametrize(("count", "rank"), [(6, 0), (9, 1), (20, 5)])
def test_intervals_of_medians_are_between_order_statistics(count, rank):
    """The ranks of the textbook's table for 95 %: 1 and 6 of 6, 2 and 8 of 9, 6 and 15 of 20."""
    found = median(np.random.default_rng(1).permutation(count).astype(float))
    assert (found.middle, found.low, found.high) == ((count - 1) / 2, rank, count - 1 - rank)


def test_a_median_may_be_never():
    assert str(median(np.array([1.0, 2.0, 3.0, np.inf, np.inf, np.inf, np.inf]))) == "never (1 to never)"
    assert str(median(np.full(7, np.inf))) == "never"
