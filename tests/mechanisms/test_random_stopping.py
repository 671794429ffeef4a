"""The steps of the proof that random stopping is private, docs/theory/random-stopping.md, on random neighbours.

The steps are computed to 50 digits from the definitions. Scores, sensitivities and moves are whole numbers of
sixteenths, so that neighbours are within the sensitivities exactly; about a third of the candidates have none.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

import dpselect as dps

DIGITS = 50
ROUNDING = 1e-30
"""A generous bound on the errors of rounding and of numerical derivatives with 50 digits."""

SHAPES = [(1.0, 0.05), (0.0, 0.05), (-0.5, 0.3), (3.0, 0.01), (1.0, 1.0)]
"""(η, γ)."""


@pytest.fixture(autouse=True)
def precise():
    with mp.workdps(DIGITS):
        yield


@st.composite
def neighbours(draw):
    size = draw(st.integers(2, 6))
    widths = draw(st.lists(st.one_of(st.just(0), st.integers(0, 40)), min_size=size, max_size=size))
    scores = draw(st.lists(st.integers(-24, 24), min_size=size, max_size=size))
    moves = [draw(st.one_of(st.just(w), st.just(-w), st.integers(-w, w))) for w in widths]
    return [np.array(numbers) / 16 for numbers in (scores, np.add(scores, moves), widths)]


budgets = st.sampled_from([0.1, 1.0, 7.0])
shapes = st.sampled_from(SHAPES)


def density(x, score, scale):
    return mp.exp(-abs(x - score) / scale) / (2 * scale)


def survival(x, score, scale):
    """Return the probability of a value above x."""
    if scale == 0:
        return mp.mpf(bool(score > x))
    tail = mp.exp(-abs(x - score) / scale) / 2
    return tail if x >= score else 1 - tail


def generating(s, eta, gamma):
    """Return φ(s)."""
    base = 1 - (1 - gamma) * s
    return mp.log(base) / mp.log(gamma) if eta == 0 else (base**-eta - 1) / (mp.mpf(gamma) ** -eta - 1)


def slope(weight, eta, gamma):
    """Return φ' where 1 − (1−γ)s is the weight, by a numerical derivative that is independent of the proof."""
    return mp.diff(lambda s: generating(s, eta, gamma), (1 - weight) / (1 - gamma))


def scales(widths, cost):
    return [mp.mpf(float(width)) / cost for width in widths]


def weight(x, scores, scales_, gamma):
    mean = mp.fsum(survival(x, q, b) for q, b in zip(scores, scales_, strict=True)) / len(scores)
    return gamma + (1 - gamma) * mean


def is_within(first, second, loss):
    return abs(mp.log(first) - mp.log(second)) <= loss + ROUNDING


@settings(max_examples=150)
@given(neighbours(), budgets, shapes, st.integers(-200, 200))
def test_densities_survival_weights_and_slopes_change_by_the_factors_of_the_proof(drawn, epsilon, shape, place):
    here, there, widths = drawn
    eta, gamma = shape
    cost = mp.mpf(epsilon) / (2 + mp.mpf(eta))
    noise = scales(widths, cost)
    for x in (mp.mpf(place) / 16, *map(mp.mpf, here), *map(mp.mpf, there)):
        for q, r, b in zip(here, there, noise, strict=True):
            if b > 0:
                assert is_within(density(x, q, b), density(x, r, b), cost)
                assert is_within(survival(x, q, b), survival(x, r, b), cost)
            else:
                assert survival(x, q, b) == survival(x, r, b)
        first, second = (weight(x, scores, noise, mp.mpf(gamma)) for scores in (here, there))
        assert is_within(first, second, cost)
        if gamma < 1:
            rise = [slope(each, mp.mpf(eta), mp.mpf(gamma)) for each in (first, second)]
            assert is_within(*rise, (1 + mp.mpf(eta)) * cost)


def weight_at_an_atom(u, x, scores, noise, gamma):
    """Return w_u = 1 − (1−γ)(F̄(x−) + u), by the limit from the left of F̄."""
    just_below = mp.fsum(
        mp.mpf(bool(q < x)) if b == 0 else 1 - survival(x, q, b) for q, b in zip(scores, noise, strict=True)
    )
    return 1 - (1 - gamma) * (just_below / len(scores) + u)


@settings(max_examples=100)
@given(neighbours(), budgets, shapes, st.fractions(0, 1))
def test_weights_at_a_score_without_noise_change_by_the_factor_of_the_proof(drawn, epsilon, shape, part):
    here, there, widths = drawn
    eta, gamma = (mp.mpf(number) for number in shape)
    cost = epsilon / (2 + eta)
    noise = scales(widths, cost)
    for x in {q for q, width in zip(here, widths, strict=True) if width == 0}:
        ties = sum(1 for q, width in zip(here, widths, strict=True) if width == 0 and q == x)
        u = mp.mpf(part.numerator) / part.denominator * ties / len(here)
        first, second = (weight_at_an_atom(u, mp.mpf(float(x)), scores, noise, gamma) for scores in (here, there))
        assert is_within(first, second, cost)


@settings(max_examples=60)
@given(neighbours(), budgets, st.sampled_from(SHAPES[:-1]))
def test_probabilities_without_noise_are_the_integral_of_the_proof(drawn, epsilon, shape):
    scores, _, widths = drawn
    widths[0] = 0
    eta, gamma = (mp.mpf(number) for number in shape)
    noise = scales(widths, epsilon / (2 + eta))
    law = dps.RandomStopping(epsilon=epsilon, eta=shape[0], gamma=shape[1]).pmf(scores, widths)
    x = mp.mpf(float(scores[0]))
    tied = (widths == 0) & (scores == scores[0])
    most = mp.mpf(int(tied.sum())) / len(scores)
    mass = mp.quad(lambda u: slope(weight_at_an_atom(u, x, scores, noise, gamma), eta, gamma), [0, most])
    assert law[tied] == pytest.approx(float(mass / int(tied.sum())), rel=1e-9)


@settings(max_examples=200)
@given(neighbours(), budgets, shapes)
def test_candidates_without_noise_lose_one_part_of_the_budget_less_than_those_with_it(drawn, epsilon, shape):
    here, there, widths = drawn
    eta, gamma = shape
    mechanism = dps.RandomStopping(epsilon=epsilon, eta=eta, gamma=gamma)
    loss = np.abs(np.subtract(*np.log(mechanism.pmf(np.stack([here, there]), widths))))
    assert (loss <= np.where(widths > 0, epsilon, epsilon * (1 + eta) / (2 + eta)) + 1e-9).all()


def test_the_bound_without_noise_is_nearly_reached():
    # One candidate without noise and a thousand rivals far below: for tiny γ, w is nearly their survival alone.
    eta, size = 1.0, 1000
    mechanism = dps.RandomStopping(epsilon=1.0, eta=eta, gamma=1e-8)
    scores = np.zeros((2, size))
    scores[0, 1:], scores[1, 1:] = -2.0, -3.0
    loss = np.subtract(*np.log(mechanism.pmf(scores, np.r_[0.0, np.ones(size - 1)])))[0]
    assert 0.95 * (1 + eta) / (2 + eta) < abs(loss) <= (1 + eta) / (2 + eta)
