"""The exact law of a list: against brute force, against closed forms, and against drawn lists."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from variants import candidates, every_private_mechanism

import dpselect as dps


def all_lists(size, count):
    return np.array(list(itertools.permutations(range(size), count)))


def by_hand(mechanism, order, scores, sensitivities, public):
    """Return the probability of a list, round by round, with the candidates that are left in their own order.

    Neutral offsets stay those of the whole row, in units of the largest noise that is left; where noise does not
    differ, there are none.
    """
    left, product, kept = list(range(len(scores))), 1.0, None
    if getattr(mechanism, "neutral", False) and mechanism.keep == (0.0, 1.0):
        law = mechanism.law(np.array([len(scores)]))
        kept = law.neutral_offsets(mechanism.read(scores, sensitivities), 0) / mechanism.epsilon
        mechanism = replace(mechanism, neutral=False)
    for pick in order:
        rest = {name: numbers[left] for name, numbers in public.items()}
        if kept is not None:
            noises = {sensitivities[a] + max((sensitivities[b] for b in left if b != a), default=0) for a in left}
            rest["offsets"] = rest.get("offsets", 0.0) + kept[left] * (max(noises) if len(noises) > 1 else 0.0)
        product *= mechanism.pmf(scores[left], sensitivities[left], **rest)[left.index(pick)]
        left.remove(pick)
    return product


@every_private_mechanism
def test_the_probability_of_a_list_is_the_product_of_its_rounds(mechanism):
    scores, sensitivities, public = candidates(mechanism, 4, seed=5)
    lists = all_lists(4, 3)
    rows = {name: np.tile(numbers, (len(lists), 1)) for name, numbers in public.items()}
    top = dps.TopK(mechanism, count=3)
    found = top.probability(lists, np.tile(scores, (len(lists), 1)), sensitivities, **rows)
    expected = [by_hand(mechanism, order, scores, sensitivities, public) for order in lists]
    assert found == pytest.approx(expected, abs=1e-12)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("widths", [[0.25, 2.0, 1.0, 0.5], [1.0, 1.0, 3.0, 1.0]], ids=str)
def test_lists_keep_neutral_offsets_until_noise_becomes_equal(widths):
    top, scores, lists = (
        dps.TopK(dps.HeterogeneousNoisyMax(2.0), 4),
        np.array([0.5, -1.0, 2.0, 0.0]),
        all_lists(4, 4),
    )
    found = top.probability(lists, np.tile(scores, (len(lists), 1)), widths)
    expected = [by_hand(top.mechanism, order, scores, np.array(widths), {}) for order in lists]
    assert found == pytest.approx(expected, rel=1e-9)


@every_private_mechanism
def test_a_list_of_one_has_the_law_of_a_pick(mechanism):
    scores, sensitivities, public = candidates(mechanism, (3, 5), seed=7)
    pmf = mechanism.pmf(scores, sensitivities, **public)
    for pick in range(5):
        found = dps.TopK(mechanism, count=1).probability([[pick]] * 3, scores, sensitivities, **public)
        assert found == pytest.approx(pmf[:, pick], abs=1e-15)


def test_gumbel_noise_with_equal_sensitivities_gives_the_law_of_noise_added_once():
    # The c largest of scores with Gumbel noise: Plackett and Luce's product of weights over those that are left.
    scores = np.array([0.0, 1.5, 0.75, -0.5])
    weights = np.exp(0.5 * 3.0 * scores / 2.0)  # ε q/(2Δ)
    top = dps.TopK(dps.NoisyMax(3.0, noise="gumbel"), count=3)
    for order in all_lists(4, 3):
        left = weights.sum() - np.concatenate([[0.0], np.cumsum(weights[order])[:-1]])
        expected = np.prod(weights[order] / left)
        assert top.probability(order, scores, 2.0) == pytest.approx(expected, rel=1e-12)


def test_gumbel_noise_added_once_is_another_law_if_the_most_sensitive_candidate_can_leave():
    # Peeling shrinks the noise once the sensitive candidate has left; noise added once cannot.
    scores, sensitivities = np.array([4.0, 1.0, 0.0]), np.array([4.0, 1.0, 1.0])
    weights = np.exp(scores / 8.0)
    top = dps.TopK(dps.NoisyMax(1.0, noise="gumbel"), count=2)
    once = weights[0] / weights.sum() * weights[1] / weights[1:].sum()
    first, second = np.exp(0.5), math.e**0.5 / (math.e**0.5 + 1)
    peeled = first / weights.sum() * second
    assert top.probability([0, 1], scores, sensitivities) == pytest.approx(peeled, rel=1e-12)
    assert peeled > once * 1.05


@pytest.mark.parametrize("mechanism", [dps.GEM(2.0), dps.HeterogeneousNoisyMax(2.0), dps.NoisyMax(2.0, tilt=-1.0)])
def test_lists_are_drawn_as_often_as_their_probabilities_say(mechanism):
    scores, sensitivities = np.array([0.0, 1.0, 2.0, 0.5]), np.array([1.0, 0.5, 0.25, 2.0])
    top, lists, draws = dps.TopK(mechanism, count=2), all_lists(4, 2), 40_000
    drawn = top.select(np.tile(scores, (draws, 1)), sensitivities, randomness=dps.Randomness.seeded(9))
    expected = draws * top.probability(lists, np.tile(scores, (12, 1)), sensitivities)
    found = np.array([(drawn == order).all(axis=1).sum() for order in lists])
    statistic = ((found - expected) ** 2 / expected).sum()
    assert statistic < 60  # chi-squared with 11 degrees of freedom: above 60 with probability 1e-8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda top: top.probability([0, 3], [0.0, 1.0, 2.0], 1.0), "lists must hold positions from 0 to 2"),
        (lambda top: top.probability([0], [0.0, 1.0, 2.0], 1.0), r"lists must be whole numbers of shape \(2,\)"),
        (lambda top: top.probability([0.0, 1.0], [0.0, 1.0, 2.0], 1.0), "lists must be whole numbers"),
        (
            lambda top: top.probability([[0, 1]] * 2, (np.zeros(4), np.array([0, 2, 4])), 1.0),
            "scores must be an array",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(dps.TopK(dps.GEM(1.0), count=2))


def test_a_list_with_a_candidate_twice_is_impossible():
    assert dps.TopK(dps.GEM(1.0), count=2).probability([1, 1], [0.0, 1.0, 2.0], 1.0) == 0.0
