"""The tuned mechanism."""

import pytest
from naive import naive_error

import dpselect as dps
from experiments.recommender import tuned


def test_the_tuned_mechanism_is_private_and_errs_as_it_says(users):
    row = tuned.tuned_row(users, 1.0, seed=3)
    assert row["mgem"] == pytest.approx(naive_error(dps.ModifiedGEM(epsilon=1.0), users))
    assert "with one pick each, ε = 1.1" in row["chosen"]
    assert all(member.guarantee.epsilon == 1.0 for member in tuned.pool(1.0))
