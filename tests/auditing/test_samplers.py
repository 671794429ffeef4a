"""What draws can show."""

import math
from fractions import Fraction

import numpy as np
import pytest

import dpselect as dps
from dpselect.auditing import samplers

PAIR = ([0.0, 2.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0])


def tail(draws, share, least, most):
    """Return Pr[least ≤ Binomial(draws, share) ≤ most], exactly."""
    p = Fraction(share)
    return sum(math.comb(draws, n) * p**n * (1 - p) ** (draws - n) for n in range(least, most + 1))


@pytest.mark.parametrize("error", [0.4, 0.005, 1e-9])
@pytest.mark.parametrize("seen", [0, 1, 9, 39, 40])
def test_the_bounds_of_a_share_hold_by_exact_binomial_tails_and_are_not_far_off(seen, error):
    lower, upper = samplers._bound(seen, 40, error, 0.0), samplers._bound(seen, 40, error, 1.0)
    assert lower <= seen / 40 <= upper
    assert tail(40, lower, seen, 40) <= error * (1 + 1e-6) or seen == 0
    assert tail(40, upper, 0, seen) <= error * (1 + 1e-6) or seen == 40
    if 0 < seen < 40:  # Chernoff's bound is at most a polynomial factor from the tail
        assert tail(40, lower, seen, 40) >= error / 40
        assert tail(40, upper, 0, seen) >= error / 40


def test_the_bound_of_the_loss_comes_near_the_truth_and_is_above_it_no_more_often_than_it_says():
    """300 bounds at an error of 20 %: more than 29 % wrong ones happen once in 10,000 runs."""
    mechanism = dps.RandomizedResponse(epsilon=0.5)
    truth = dps.auditing.privacy_loss(mechanism, *PAIR).epsilon
    here, there = (mechanism.pmf(scores, 1.0) for scores in PAIR[:2])
    best = int(np.abs(np.log(here / there)).argmax())
    more, less = (here, there) if here[best] > there[best] else (there, here)
    rng = np.random.default_rng(1)
    counts = rng.binomial(20_000, [more[best], less[best]], (300, 2)).tolist()
    bounds = [samplers.epsilon_shown(*pair, 20_000, 0.2) for pair in counts]
    assert sum(bound > truth for bound in bounds) <= 87
    assert np.median(bounds) > 0.7 * truth
    assert samplers.epsilon_shown(0, 10, 100, 0.01) == 0
    assert samplers.epsilon_shown(10, 10, 100, 0.01) == 0


def test_the_divergence_of_two_coins():
    assert samplers.divergence(0.5, 0.25) == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    assert samplers.divergence(0.0, 0.25) == pytest.approx(-math.log(0.75))
    assert samplers.divergence(0.5, 0.0) == samplers.divergence(0.5, 1.0) == math.inf
    assert samplers.divergence(0.0, 0.0) == samplers.divergence(1.0, 1.0) == 0


def test_laws_that_draws_follow_are_refused_no_more_often_than_they_may_be():
    """400 tests at an error of 10 % that are each conservative: more than 60 false alarms once in 1,000 runs."""
    rng = np.random.default_rng(2)
    law = np.array([0.5, 0.3, 0.2, 0.0])
    counts = rng.multinomial(500, law, 800)
    assert sum(not samplers.fits(drawn, law, 0.1) for drawn in counts[:400]) <= 60
    pairs = zip(counts[:400], counts[400:], strict=True)
    assert sum(not samplers.are_alike(first, second, 0.1) for first, second in pairs) <= 60
    sequences = rng.choice(4, p=law, size=(400, 400))
    assert sum(not samplers.are_independent(picks, rng, 0.1) for picks in sequences) <= 60


def test_draws_from_another_law_do_not_fit():
    counts = np.random.default_rng(3).multinomial(20_000, [0.5, 0.3, 0.2])
    assert not samplers.fits(counts, np.array([0.46, 0.33, 0.21]), 1e-9)
    assert not samplers.fits(counts, np.array([0.6, 0.4, 0.0]), 1e-9)
    assert not samplers.are_alike(counts, counts[::-1], 1e-9)
    assert not samplers.are_independent(np.arange(400) % 3, np.random.default_rng(4), 1e-9)
    assert not samplers.are_independent(np.arange(400) // 4 % 3, np.random.default_rng(4), 1e-9)


@pytest.mark.parametrize("answer", [None, "b", 0.5, 3, -1, True, [0]])
def test_answers_that_are_not_candidates_are_shown(answer):
    with pytest.raises(samplers.BrokenError, match="which is not the position of a candidate, 0 to 2"):
        samplers.draw(lambda *_: answer, np.zeros(3), np.ones(3), 2, 0)


def test_a_function_that_returns_probabilities_is_told_of_from_pmf():
    with pytest.raises(samplers.BrokenError, match="if these are probabilities, use dps"):
        samplers.draw(lambda *_: np.full(3, 1 / 3), np.zeros(3), np.ones(3), 2, 0)


def test_a_selector_of_batches_must_answer_for_each_row():
    class OfOneRow:
        def select(self, scores, sensitivities):  # noqa: ARG002
            return 0

    with pytest.raises(samplers.BrokenError, match="if it takes one row, pass it as a function"):
        samplers.draw(OfOneRow(), np.zeros(3), np.ones(3), 2, 0)


def test_large_batches_are_drawn_in_blocks(monkeypatch):
    monkeypatch.setattr(samplers, "DRAWS_AT_ONCE", 12)
    picks = samplers.draw(dps.Uniform(), np.zeros(4), np.ones(4), 100, 0)
    assert picks.shape == (100,)
    assert np.unique(picks[:12]).size > 1
