"""Pools: their members, and mechanisms with public anchors."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpselect as dps
from dpselect import Anchored
from dpselect.pools import ANCHOR_WEIGHTS, TILTS, default_pool

rng = np.random.default_rng(11)
SCORES, WIDTHS, GUESSES = rng.normal(size=(4, 6)), rng.uniform(0.1, 2.0, (4, 6)), rng.normal(size=(4, 6))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("anchors", [False, True])
def test_no_member_of_the_default_pool_exceeds_the_budget(epsilon, anchors):
    budgets = {member.guarantee.epsilon for member in default_pool(epsilon, anchors=anchors)}
    assert budgets == {0.0, epsilon}
    assert all(member.guarantee.delta == 0 for member in default_pool(epsilon, anchors=anchors))


def test_the_default_pool_has_the_papers_mechanisms_and_all_tilts_of_three_normalisations():
    pool = default_pool(2.0)
    assert {-8, -1, 0, 1, 8} <= set(TILTS)
    for family in (dps.NoisyMax, dps.StandardizedNoisyMax, dps.GEM):
        assert {member.tilt for member in pool if isinstance(member, family)} == set(TILTS)
    assert {member.gamma for member in pool if isinstance(member, dps.RandomStopping)} == {0.05, 0.008, 0.001}
    assert dps.RandomStopping(epsilon=2.0, gamma=0.001, noise="exponential") in pool
    assert {member.eta for member in pool if isinstance(member, dps.RandomStopping)} == {0.0, 1.0}
    assert dps.CombinedGEM(epsilon=2.0) in pool
    assert dps.RandomizedResponse(epsilon=2.0) in pool
    assert dps.Uniform() in pool


def test_anchors_widen_the_pool_by_four_families_at_each_weight():
    narrow, wide = default_pool(2.0), default_pool(2.0, anchors=True)
    assert set(narrow) < set(wide)
    extra = [member for member in wide if "anchors" in member.needs]
    assert len(extra) == 4 * len(ANCHOR_WEIGHTS) == len(wide) - len(narrow)
    assert not any(member.needs for member in narrow)


def test_members_have_distinct_descriptions():
    names = [member.label for member in default_pool(1.0, anchors=True)]
    assert len(set(names)) == len(names)
    assert dps.ModifiedGEM(epsilon=1.0).label == "modified GEM"
    assert "gumbel" not in dps.NoisyMax(epsilon=1.0, noise="gumbel").label


def offsets_by_definition(mechanism, sensitivities, guesses, weight):
    """Return weight · log(k/β) · 2 max Δ/ε · c/max|c| for one row."""
    reach = weight * np.log(len(guesses) / mechanism.beta) * 2 * max(sensitivities) / mechanism.epsilon
    return [reach * guess / max(abs(other) for other in guesses) for guess in guesses]


@pytest.mark.parametrize("mechanism", [dps.NoisyMax(epsilon=0.7), dps.GEM(epsilon=2.0, tilt=0.0, beta=0.2)])
@pytest.mark.parametrize("weight", [-1.0, 0.5, 3.0])
def test_anchored_mechanisms_have_the_offsets_of_their_definition_in_every_form(mechanism, weight):
    anchored = Anchored(mechanism=mechanism, weight=weight)
    found = anchored.pmf(SCORES, WIDTHS, anchors=GUESSES)
    for row in range(4):
        offsets = offsets_by_definition(mechanism, WIDTHS[row], GUESSES[row], weight)
        assert found[row] == pytest.approx(mechanism.pmf(SCORES[row], WIDTHS[row], offsets=offsets), rel=1e-12)
        assert anchored.pmf(SCORES[row], WIDTHS[row], anchors=GUESSES[row]) == pytest.approx(found[row], rel=1e-12)
    bounds = np.arange(5) * 6
    ragged = anchored.pmf((SCORES.ravel(), bounds), WIDTHS.ravel(), anchors=GUESSES.ravel())
    assert ragged == pytest.approx(found.ravel(), rel=1e-12)
    arrow = anchored.pmf(pa.array(SCORES.tolist()), pa.array(WIDTHS.tolist()), anchors=pa.array(GUESSES.tolist()))
    assert np.array(arrow.to_pylist()) == pytest.approx(found, rel=1e-12)
    shared = anchored.pmf(SCORES, WIDTHS[0], anchors=GUESSES[0])
    assert shared[2] == pytest.approx(anchored.pmf(SCORES[2], WIDTHS[0], anchors=GUESSES[0]), rel=1e-12)
    assert anchored.guarantee == mechanism.guarantee


def test_anchors_of_zero_change_nothing():
    plain = dps.NoisyMax(epsilon=1.0)
    found = Anchored(mechanism=plain, weight=4.0).pmf(SCORES, WIDTHS, anchors=0.0)
    assert (found == plain.pmf(SCORES, WIDTHS)).all()
    assert Anchored(mechanism=plain, weight=4.0).pmf(SCORES[:0], WIDTHS[0], anchors=0.0).shape == (0, 6)


def test_an_anchored_pick_is_the_pick_with_those_offsets(monkeypatch):
    anchored = Anchored(mechanism=dps.NoisyMax(epsilon=1.0), weight=1.0)
    offsets = [offsets_by_definition(anchored.mechanism, w, g, 1.0) for w, g in zip(WIDTHS, GUESSES, strict=True)]
    seed = dps.Randomness.seeded(3)
    monkeypatch.setattr(dps.Randomness, "serving", lambda self, _: self)  # one stream for both laws
    found = anchored.select(SCORES, WIDTHS, anchors=GUESSES, randomness=seed)
    assert (found == anchored.mechanism.select(SCORES, WIDTHS, offsets=offsets, randomness=seed)).all()


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 4.0]), st.sampled_from([dps.NoisyMax, dps.GEM]))
def test_anchored_mechanisms_lose_at_most_their_budget(seed, epsilon, family):
    random = np.random.default_rng(seed)
    scores, widths, guesses = random.normal(size=(3, 5))
    widths = np.abs(widths) + 0.01
    neighbour = scores + widths * random.choice([-1.0, 1.0], 5)
    anchored = Anchored(mechanism=family(epsilon=epsilon), weight=2.0)
    laws = [anchored.pmf(values, widths, anchors=guesses) for values in (scores, neighbour)]
    assert np.abs(np.log(laws[0]) - np.log(laws[1])).max() <= epsilon * (1 + 1e-9) + 1e-9


def test_bad_pools_are_refused_with_a_clear_message():
    with pytest.raises(ValueError, match="mechanism must be a HeterogeneousNoisyMax, NoisyMax or GEM"):
        Anchored(mechanism=dps.Uniform(), weight=1.0)
    with pytest.raises(ValueError, match="weight must be"):
        Anchored(mechanism=dps.NoisyMax(epsilon=1.0), weight=float("nan"))
    with pytest.raises(ValueError, match="anchors must be given"):
        Anchored(mechanism=dps.NoisyMax(epsilon=1.0), weight=1.0).pmf(SCORES, WIDTHS)
    for epsilon in (0.0, -1.0, float("inf")):
        with pytest.raises(ValueError, match="epsilon must be"):
            default_pool(epsilon)
    with pytest.raises(ValueError, match="anchors must be True or False"):
        default_pool(1.0, anchors=[0.0])
