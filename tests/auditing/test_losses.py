"""Exact privacy losses and privacy profiles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpselect as dps
from dpselect.auditing import privacy_loss
from dpselect.auditing.losses import certain_losses
from dpselect.unsafe import NaiveHeterogeneousNoisyMax

dyadic = st.integers(-64, 64).map(lambda number: number / 16)
shares = st.integers(-16, 16).map(lambda number: number / 16)


@st.composite
def neighbours(draw):
    k = draw(st.integers(2, 5))
    scores = np.array(draw(st.lists(dyadic, min_size=k, max_size=k)))
    sensitivities = np.abs(draw(st.lists(dyadic, min_size=k, max_size=k)))
    moves = np.array(draw(st.lists(shares, min_size=k, max_size=k)))
    return scores, scores + moves * sensitivities, sensitivities


@given(pair=neighbours(), name=st.sampled_from(sorted(dps.MECHANISMS)))
@settings(deadline=None, max_examples=60)
def test_the_loss_is_the_largest_log_ratio_in_each_direction(pair, name):
    scores, neighbour, sensitivities = pair
    mechanism = dps.MECHANISMS[name](epsilon=0.8)
    here, there = mechanism.pmf(scores, sensitivities), mechanism.pmf(neighbour, sensitivities)
    possible = [a for a in range(scores.size) if max(here[a], there[a]) > 1e-200]
    loss = privacy_loss(mechanism, scores, neighbour, sensitivities)
    assert loss.forward == pytest.approx(max(np.log(here[a] / there[a]) for a in possible), abs=1e-12)
    assert loss.backward == pytest.approx(max(np.log(there[a] / here[a]) for a in possible), abs=1e-12)
    assert loss.epsilon == max(loss.forward, loss.backward)
    turned = privacy_loss(mechanism, neighbour, scores, sensitivities)
    assert (turned.forward, turned.backward) == (loss.backward, loss.forward)


def test_losses_of_a_batch_are_those_of_its_rows():
    rng = np.random.default_rng(3)
    sensitivities = rng.uniform(0.1, 2, 6)
    scores = rng.normal(size=(2, 4, 6))
    there = scores + rng.uniform(-1, 1, scores.shape) * sensitivities
    mechanism = dps.ModifiedGEM(epsilon=1.0)
    together = privacy_loss(mechanism, scores, there, sensitivities)
    assert together.forward.shape == (2, 4)
    for row in np.ndindex(2, 4):
        alone = privacy_loss(mechanism, scores[row], there[row], sensitivities)
        assert (together.forward[row], together.backward[row]) == (alone.forward, alone.backward)


def test_an_impossible_candidate_is_an_infinite_loss_and_two_negligible_ones_are_none():
    naive = NaiveHeterogeneousNoisyMax(epsilon=1.0)
    assert privacy_loss(naive, [0.0, 0.5], [0.0, -0.5], [0.0, 1.0]).epsilon == np.inf
    far = privacy_loss(dps.NoisyMax(epsilon=1.0), [0.0, -1e6], [1.0, -1e6 - 1], 1.0)
    assert far.epsilon == 0


def test_accuracy_makes_a_loss_smaller_never_larger():
    pair = [0.0, 30.0], [1.0, 29.0], 1.0
    exact = privacy_loss(dps.NoisyMax(epsilon=1.0), *pair).epsilon
    assert exact == pytest.approx(1)
    laws = (dps.NoisyMax(epsilon=1.0).pmf(scores, 1.0) for scores in pair[:2])
    assert np.max(certain_losses(*laws, accuracy=1e-9)) < exact - 1e-3


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (([0.0, 1.0], [0.0], 1.0), "neighbour must have the shape of scores"),
        (([0.0, 1.0], [0.0, 2.5], 1.0), "neighbour must be within the sensitivities"),
        (([0.0, 1.0], [0.0, np.nan], 1.0), "neighbour must be finite"),
        (([0.0, np.inf], [0.0, 1.0], 1.0), "scores must be finite"),
        (([0.0, 1.0], [0.0, 1.0], [1.0]), None),
        (([0.0, 1.0], [0.0, 1.0], [1.0, 1.0, 1.0]), "sensitivities must have one number"),
        (([0.0, 1.0], [0.0, 1.0], -1.0), "sensitivities must be ≥ 0"),
        ((([0.0, 1.0], [0, 2]), [0.0, 1.0], 1.0), "not ragged"),
    ],
)
def test_scores_that_are_not_neighbours_are_refused(arguments, rule):
    if rule is None:
        privacy_loss(dps.NoisyMax(epsilon=1.0), *arguments)
        return
    with pytest.raises(ValueError, match=rule):
        privacy_loss(dps.NoisyMax(epsilon=1.0), *arguments)
