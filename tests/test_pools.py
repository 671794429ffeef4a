"""Pools and their members."""

import pytest

import dpselect as dps
from dpselect.pools import TILTS, default_pool


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_no_member_of_the_default_pool_exceeds_the_budget(epsilon):
    budgets = {member.guarantee.epsilon for member in default_pool(epsilon)}
    assert budgets == {0.0, epsilon}
    assert all(member.guarantee.delta == 0 for member in default_pool(epsilon))


def test_the_default_pool_has_the_papers_mechanisms_and_all_tilts_of_both_normalisations():
    pool = default_pool(2.0)
    assert {-8, -1, 0, 1, 8} <= set(TILTS)
    for family in (dps.NoisyMax, dps.GEM):
        assert {member.tilt for member in pool if isinstance(member, family)} == set(TILTS)
    assert {member.gamma for member in pool if isinstance(member, dps.RandomStopping)} == {0.05, 0.008, 0.001}
    assert dps.RandomStopping(epsilon=2.0, gamma=0.001, noise="exponential") in pool
    assert {member.eta for member in pool if isinstance(member, dps.RandomStopping)} == {0.0, 1.0}
    assert dps.CombinedGEM(epsilon=2.0) in pool
    assert dps.RandomizedResponse(epsilon=2.0) in pool
    assert dps.Uniform() in pool


def test_members_have_distinct_descriptions():
    names = [member.label for member in default_pool(1.0)]
    assert len(set(names)) == len(names)
    assert dps.ModifiedGEM(epsilon=1.0).label == "modified GEM"
    assert "gumbel" not in dps.NoisyMax(epsilon=1.0, noise="gumbel").label


def test_bad_pools_are_refused_with_a_clear_message():
    for epsilon in (0.0, -1.0, float("inf")):
        with pytest.raises(ValueError, match="epsilon must be"):
            default_pool(epsilon)
