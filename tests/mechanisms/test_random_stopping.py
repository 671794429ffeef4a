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


NOISES = ("laplace", "exponential")
either_noise = pytest.mark.parametrize("noise", NOISES)


def density(x, score, scale):
    """Return the density of Laplace noise."""
    return mp.exp(-abs(x - score) / scale) / (2 * scale)


def survival(noise, x, score, scale):
    """Return the probability of a value above x."""
    if scale == 0:
        return mp.mpf(bool(score > x))
    if noise == "exponential":
        return mp.exp(-max(x - score, mp.zero) / scale)
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


def weight(noise, x, scores, scales_, gamma):
    mean = mp.fsum(survival(noise, x, q, b) for q, b in zip(scores, scales_, strict=True)) / len(scores)
    return gamma + (1 - gamma) * mean


def is_within(first, second, loss):
    return abs(mp.log(first) - mp.log(second)) <= loss + ROUNDING


@either_noise
@settings(max_examples=150)
@given(neighbours(), budgets, shapes, st.integers(-200, 200))
def test_densities_survival_weights_and_slopes_change_by_the_factors_of_the_proofs(
    noise, drawn, epsilon, shape, place
):
    here, there, widths = drawn
    eta, gamma = shape
    cost = mp.mpf(epsilon) / (2 + mp.mpf(eta))
    spread = scales(widths, cost)
    for x in (mp.mpf(place) / 16, *map(mp.mpf, here), *map(mp.mpf, there)):
        for q, r, b in zip(here, there, spread, strict=True):
            if b > 0:
                assert is_within(survival(noise, x, q, b), survival(noise, x, r, b), cost)
            else:
                assert survival(noise, x, q, b) == survival(noise, x, r, b)
            if b > 0 and noise == "laplace":
                assert is_within(density(x, q, b), density(x, r, b), cost)
        first, second = (weight(noise, x, scores, spread, mp.mpf(gamma)) for scores in (here, there))
        assert is_within(first, second, cost)
        if gamma < 1:
            rise = [slope(each, mp.mpf(eta), mp.mpf(gamma)) for each in (first, second)]
            assert is_within(*rise, (1 + mp.mpf(eta)) * cost)


@settings(max_examples=25, deadline=None)
@given(neighbours(), budgets, st.sampled_from(SHAPES[:-1]))
def test_moving_a_score_with_exponential_noise_changes_its_mean_slope_by_the_factor_of_the_proof(
    drawn, epsilon, shape
):
    """The mean of g = φ'(F̄) with g held fixed, where the density itself drops to zero."""
    here, there, widths = drawn
    eta, gamma = (mp.mpf(number) for number in shape)
    spread = scales(widths, epsilon / (2 + eta))
    kinks = sorted({mp.mpf(float(q)) for q in here})

    def mean_slope(score, scale):
        def part(x):
            return mp.exp((score - x) / scale) / scale * weight("exponential", x, here, spread, gamma) ** (-1 - eta)

        start = mp.mpf(float(score))
        ends = [start, *(x for x in kinks if x > start)]
        return mp.quad(part, [*ends, *(ends[-1] + scale * t for t in (2, 8, 40, 120)), mp.inf])

    with mp.workdps(15):
        for q, r, b in zip(here, there, spread, strict=True):
            if b > 0:
                low, high = sorted((q, r))
                ratio = mean_slope(high, b) / mean_slope(low, b)
                assert 1 - 1e-6 <= ratio <= mp.exp(epsilon / (2 + eta)) * (1 + 1e-6)


def weight_at_an_atom(noise, u, x, scores, spread, gamma):
    """Return w_u = 1 − (1−γ)(F̄(x−) + u), by the limit from the left of F̄."""
    just_below = mp.fsum(
        mp.mpf(bool(q < x)) if b == 0 else 1 - survival(noise, x, q, b) for q, b in zip(scores, spread, strict=True)
    )
    return 1 - (1 - gamma) * (just_below / len(scores) + u)


@either_noise
@settings(max_examples=100)
@given(neighbours(), budgets, shapes, st.fractions(0, 1))
def test_weights_at_a_score_without_noise_change_by_the_factor_of_the_proof(noise, drawn, epsilon, shape, part):
    here, there, widths = drawn
    eta, gamma = (mp.mpf(number) for number in shape)
    cost = epsilon / (2 + eta)
    spread = scales(widths, cost)
    for x in {q for q, width in zip(here, widths, strict=True) if width == 0}:
        ties = sum(1 for q, width in zip(here, widths, strict=True) if width == 0 and q == x)
        u = mp.mpf(part.numerator) / part.denominator * ties / len(here)
        first, second = (
            weight_at_an_atom(noise, u, mp.mpf(float(x)), scores, spread, gamma) for scores in (here, there)
        )
        assert is_within(first, second, cost)


@either_noise
@settings(max_examples=60)
@given(neighbours(), budgets, st.sampled_from(SHAPES[:-1]))
def test_probabilities_without_noise_are_the_integral_of_the_proof(noise, drawn, epsilon, shape):
    scores, _, widths = drawn
    widths[0] = 0
    eta, gamma = (mp.mpf(number) for number in shape)
    spread = scales(widths, epsilon / (2 + eta))
    law = dps.RandomStopping(epsilon=epsilon, eta=shape[0], gamma=shape[1], noise=noise).pmf(scores, widths)
    x = mp.mpf(float(scores[0]))
    tied = (widths == 0) & (scores == scores[0])
    most = mp.mpf(int(tied.sum())) / len(scores)
    mass = mp.quad(lambda u: slope(weight_at_an_atom(noise, u, x, scores, spread, gamma), eta, gamma), [0, most])
    assert law[tied] == pytest.approx(float(mass / int(tied.sum())), rel=1e-9)


@either_noise
@settings(max_examples=200)
@given(neighbours(), budgets, shapes)
def test_candidates_without_noise_lose_one_part_of_the_budget_less_than_those_with_it(noise, drawn, epsilon, shape):
    here, there, widths = drawn
    eta, gamma = shape
    mechanism = dps.RandomStopping(epsilon=epsilon, eta=eta, gamma=gamma, noise=noise)
    loss = np.abs(np.subtract(*np.log(mechanism.pmf(np.stack([here, there]), widths))))
    assert (loss <= np.where(widths > 0, epsilon, epsilon * (1 + eta) / (2 + eta)) + 1e-9).all()


@either_noise
def test_the_bound_without_noise_is_nearly_reached(noise):
    # One candidate without noise and a thousand rivals far below: for tiny γ, w is nearly their survival alone.
    eta, size = 1.0, 1000
    mechanism = dps.RandomStopping(epsilon=1.0, eta=eta, gamma=1e-8, noise=noise)
    scores = np.zeros((2, size))
    scores[0, 1:], scores[1, 1:] = -2.0, -3.0
    loss = np.subtract(*np.log(mechanism.pmf(scores, np.r_[0.0, np.ones(size - 1)])))[0]
    assert 0.95 * (1 + eta) / (2 + eta) < abs(loss) <= (1 + eta) / (2 + eta)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("eta", [0.0, 1.0, 3.0])
def test_the_loss_with_exponential_noise_approaches_the_budget_as_gamma_falls(epsilon, eta):
    """One candidate rises, 999 rivals of 1 + η times its sensitivity fall; all start from the same score."""
    widths = np.r_[1.0, np.full(999, 1 + eta)]
    pair = np.stack([np.zeros(1000), np.r_[1.0, -widths[1:]]])
    losses = []
    for gamma in (0.05, 1e-3, 1e-5, 1e-8):
        law = dps.RandomStopping(epsilon=epsilon, eta=eta, gamma=gamma, noise="exponential").pmf(pair, widths)
        losses.append(np.abs(np.subtract(*np.log(law))).max())
    assert (np.diff(losses) > 0).all()
    assert 0.9 * epsilon < losses[-1] <= epsilon
    if (epsilon, eta) == (1.0, 1.0):
        assert losses[1:] == pytest.approx([0.91, 0.95, 0.97], abs=0.01)  # as the theory page says


def test_a_smaller_scale_of_exponential_noise_would_break_the_budget():
    """At ε the noise has mean 3Δ/ε; what is ε-DP with it is not 0.9 ε-DP."""
    widths = np.r_[1.0, np.full(999, 2.0)]
    pair = np.stack([np.zeros(1000), np.r_[1.0, -widths[1:]]])
    careless = dps.RandomStopping(epsilon=1 / 0.9, gamma=1e-8, noise="exponential").pmf(pair, widths)
    assert np.abs(np.subtract(*np.log(careless))).max() > 1
