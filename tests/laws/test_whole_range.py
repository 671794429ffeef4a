"""Laws and picks over the whole accepted range: sensitivities 0 and 2^-300 to 2^300, offsets."""

import math
from fractions import Fraction

import numpy as np
import pytest
import reference
from gem import gem_scores
from hypothesis import given, settings
from hypothesis import strategies as st
from ranges import TILTS, offset_rows

import dpselect as dps
from dpselect.auditing import audit, privacy_loss
from dpselect.laws import base, noisy_max

WEIGHTS = st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.3, 2.0**40, -(2.0**-40)])

# --- Rows whose comparisons floats cannot decide ----------------------------------------------------------

OFFSETS = [0.0, 0.0, 0.0, -(2.0**-60), -(2.0**-50)]
WITH_OFFSETS = [2.0**-300, 2.0**-299, 2.0**-298, 1.0, 2.0]
SCORES = [-0.5, 0.0, 2.0**-120, -1.0, 1000.0]
NEIGHBOUR = [-0.5, 0.0, 2.0**-120, -(2.0**-70), 1000.0]
"""Candidate 3 moves by less than its sensitivity of 1. Its leads over the first three, and theirs, round alike."""


@pytest.mark.parametrize("scores", [SCORES, NEIGHBOUR])
def test_leads_that_offsets_round_are_not_taken_as_exact(scores):
    """The fourth candidate trails the last by a thousand over three, so e^-333 at most; it used to win 18 %."""
    mechanism = dps.GEM(epsilon=2.0, tilt=0.0)
    picks = mechanism.select(
        np.broadcast_to(scores, (300, 5)), WITH_OFFSETS, offsets=OFFSETS, randomness=dps.Randomness.seeded(1)
    )
    assert set(picks.tolist()) == {4}
    law = mechanism.pmf(scores, WITH_OFFSETS, offsets=OFFSETS)
    assert law == pytest.approx(
        [float(p) for p in reference.gem(scores, WITH_OFFSETS, epsilon=2.0, tilt=0.0, offsets=OFFSETS)], rel=1e-11
    )


def test_neighbours_whose_leads_offsets_round_have_a_loss_of_at_most_epsilon():
    loss = privacy_loss(dps.GEM(epsilon=2.0, tilt=0.0), SCORES, NEIGHBOUR, WITH_OFFSETS, offsets=OFFSETS)
    assert loss.epsilon <= 2.0


MINUTE = np.array([0, 1, 1.5, 0, 0]) * 1e-40
DECADES = [1e-40, 2e-40, 3e-40, 1.0, 10.0]


def test_an_undecided_comparison_does_not_spoil_probabilities():
    law = dps.GEM(epsilon=1.0, tilt=-1.0).pmf(MINUTE, DECADES)
    expected = [float(p) for p in reference.gem(MINUTE, DECADES, epsilon=1.0, tilt=-1.0)]
    assert law == pytest.approx(expected, rel=1e-11)
    assert law[4] == pytest.approx(0.974, abs=1e-3)
    batch, seed = np.broadcast_to(MINUTE, (500, 5)), dps.Randomness.seeded(1)
    picks = dps.GEM(epsilon=1.0, tilt=-1.0).select(batch, DECADES, randomness=seed)
    assert np.bincount(picks, minlength=5)[4] > 450


def test_an_undecided_comparison_does_not_spoil_gem_scores():
    found = gem_scores(MINUTE, DECADES, -7.0)
    assert found == pytest.approx([float(s) for s in reference.gem_scores(MINUTE, DECADES, -7.0)], rel=1e-14)


def test_an_audit_over_many_decades_finds_no_violation():
    mechanism = dps.GEM(epsilon=1.0, tilt=-1.0)
    neighbour = MINUTE + np.array([1, -1, 1, 0.5, -1]) * DECADES
    assert privacy_loss(mechanism, MINUTE, neighbour, DECADES).epsilon <= 1
    found = audit(mechanism, DECADES, restarts=4, sweeps=4)
    assert found.loss <= 1
    assert found.certain <= found.claimed == 1


# --- Anything that is accepted ----------------------------------------------------------------------------


def assert_law(found, expected):
    for p, truth in zip(found.tolist(), expected, strict=True):
        assert p == pytest.approx(float(truth), rel=1e-10, abs=1e-290)


@pytest.fixture
def exactly(monkeypatch):
    """Return a function that selects in fractions, with the same random bits."""

    def select(mechanism, *arguments, **settings):
        with monkeypatch.context() as patch:
            patch.setattr(base, "FILTER_ERROR", 1e300)
            return mechanism.select(*arguments, **settings)

    return select


def assert_twin(exactly, mechanism, scores, sensitivities, **public):
    batch, randomness = np.broadcast_to(scores, (8, len(scores))), dps.Randomness.seeded(5)
    found = mechanism.select(batch, sensitivities, randomness=randomness, **public)
    assert found.tolist() == exactly(mechanism, batch, sensitivities, randomness=randomness, **public).tolist()


@settings(max_examples=400)
@given(offset_rows(), TILTS)
def test_gem_scores_are_those_of_fractions(row, t):
    scores, _, sensitivities = row
    found = gem_scores(scores, sensitivities, t)
    for score, truth in zip(found.tolist(), reference.gem_scores(scores, sensitivities, t), strict=True):
        if truth is None:
            assert score == -math.inf
        else:
            assert abs(Fraction(score) - truth) <= max(Fraction(1), abs(truth)) / 2**42
    assert found.max() == 0


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@settings(max_examples=150)
@given(row=offset_rows(), tilt=WEIGHTS, data=st.data())
def test_gem_has_the_law_of_fractions(noise, row, tilt, data):
    scores, offsets, sensitivities = row
    epsilon = data.draw(st.sampled_from([0.1, 1.0, 20.0]))
    given_offsets = {"offsets": offsets} if any(offsets) else {}
    found = dps.GEM(epsilon=epsilon, tilt=tilt, noise=noise).pmf(scores, sensitivities, **given_offsets)
    assert_law(
        found, reference.gem(scores, sensitivities, epsilon=epsilon, tilt=tilt, noise=noise, offsets=offsets)
    )


@settings(max_examples=100)
@given(row=offset_rows(), tilt=WEIGHTS)
def test_noisy_max_with_offsets_has_the_law_of_fractions(row, tilt):
    scores, offsets, sensitivities = row
    found = dps.NoisyMax(epsilon=1.0, tilt=tilt).pmf(scores, sensitivities, offsets=offsets)
    assert_law(found, reference.noisy_max(scores, sensitivities, epsilon=1.0, tilt=tilt, offsets=offsets))


@pytest.mark.parametrize("noise", ["exponential", "gumbel", "laplace"])
def test_picks_are_those_of_the_exact_twin(exactly, noise):
    @settings(max_examples=60)
    @given(row=offset_rows(), tilt=WEIGHTS)
    def check(row, tilt):
        scores, offsets, sensitivities = row
        for family in (dps.GEM, dps.NoisyMax):
            mechanism = family(epsilon=1.0, tilt=tilt, noise=noise)
            assert_twin(exactly, mechanism, scores, sensitivities)
            assert_twin(exactly, mechanism, scores, sensitivities, offsets=offsets)

    check()


# --- Ordinary rows stay fast ------------------------------------------------------------------------------


def test_ordinary_rows_and_ties_are_weighed_by_floats(monkeypatch):
    def refuse(*_):
        raise AssertionError("a row went to fractions")

    monkeypatch.setattr(noisy_max.NoisyMaxLaw, "exact_gaps", refuse)
    rng = np.random.default_rng(3)
    counts, offsets = rng.integers(0, 9, (40, 60)), rng.integers(-3, 3, 60)
    for scores in (counts, counts / 8, rng.normal(size=(40, 60)), np.zeros((40, 60)), 1e15 + counts):
        for sensitivities in (1.0, rng.integers(0, 5, 60), rng.lognormal(0, 3, 60), rng.choice([0.3, 0.7], 60)):
            for tilt in (0.0, 1.0, -1.0):
                dps.GEM(epsilon=1.0, tilt=tilt).pmf(scores, sensitivities)
                dps.GEM(epsilon=1.0, tilt=tilt).pmf(scores, sensitivities, offsets=offsets)
                dps.NoisyMax(epsilon=1.0, tilt=tilt).pmf(scores, sensitivities, offsets=offsets)
                gem_scores(scores, sensitivities, tilt)
