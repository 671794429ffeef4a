"""The hull against the quadratic definition, to the last bits."""

from fractions import Fraction

import numpy as np
import pytest
import reference
from gem import gem_scores
from hypothesis import example, given, settings
from hypothesis import strategies as st


def assert_last_bits(scores, sensitivities, t):
    """Compare with the exact quadratic form.

    A score is one quotient, rounded in its numerator, its denominator and itself: 4 ulp are generous. The
    numerator is a sum of differences kept to 106 bits, and hull vertices are distinguished to about 100 bits of
    the products compared; where they cancel, what is left is an error of 2^-98 of the row's spread.
    """
    found = gem_scores(scores, sensitivities, t)
    exact = reference.gem_scores(scores, sensitivities, t)
    for a, (score, truth) in enumerate(zip(found.tolist(), exact, strict=True)):
        if truth is None:
            assert score == -np.inf
            continue
        assert np.isfinite(score)
        error = abs(Fraction(score) - truth)
        close = error <= abs(truth) * Fraction(4, 2**53)
        assert close or error <= cancellation(scores, sensitivities, t, a, truth), f"candidate {a}"
    assert found.max() == 0


def cancellation(scores, sensitivities, t, a, truth):
    """Return 2^-98 of the row's spread over Δ_a + Δ_b, b being the candidate that a is compared with."""
    y = reference.tilted(scores, sensitivities, t)
    q, deltas = reference.fractions(scores), reference.fractions(sensitivities)
    spread = max(q) - min(q) + abs(Fraction(t)) * (max(deltas) - min(deltas))
    runs = [deltas[a] + deltas[b] for b in range(len(y)) if y[a] - y[b] == truth * (deltas[a] + deltas[b])]
    return spread / max(runs) / 2**98


rng = np.random.default_rng(11)
ADVERSARIAL = {
    "random": (rng.normal(size=60), rng.uniform(0.1, 10, 60)),
    "one candidate": ([4.0], [2.0]),
    "collinear": (3.0 + 2.0 * np.arange(20), 1.0 + np.arange(20)),
    "collinear, inexact": (0.1 + 0.3 * np.arange(20), 0.7 * (1 + np.arange(20))),
    "collinear with the outside point": ([1.0, 2.0, 3.0, -1.0], [1.0, 2.0, 3.0, 1.0]),
    "duplicates": (np.tile([1.0, 5.0, 2.0], 7), np.tile([3.0, 1.0, 2.0], 7)),
    "equal sensitivities": (rng.normal(size=40), np.full(40, 0.3)),
    "equal scores": (np.full(30, 1e15), rng.uniform(0.1, 10, 30)),
    "pairs of equal sensitivity": (rng.normal(size=40), np.repeat(rng.uniform(0.1, 10, 20), 2)),
    "concave": (np.sqrt(np.arange(1.0, 60.0)), np.arange(1.0, 60.0)),
    "convex": (np.arange(1.0, 60.0) ** 2, np.arange(1.0, 60.0)),
    "a circle": (np.sin(np.linspace(0, np.pi, 50)), 2 - np.cos(np.linspace(0, np.pi, 50))),
    "twelve decades": (rng.normal(size=60), 10 ** rng.uniform(-6, 6, 60)),
    "twelve decades, scores alike": (10 ** rng.uniform(-6, 6, 60), 10 ** rng.uniform(-6, 6, 60)),
    "huge scores, last bits": (1e15 + 0.125 * rng.integers(-9, 9, 60), rng.uniform(0.1, 1, 60)),
    "huge scores, tiny sensitivities": (
        1e15 + 0.125 * rng.integers(-9, 9, 60),
        10 ** rng.uniform(-9, -3, 60),
    ),
    "sensitivities in the last bits": (rng.normal(size=40), 1 + 2.0**-52 * rng.integers(0, 50, 40)),
    "a slope at the limit of bits": (1.0 + (np.arange(9) + 1) * 2.0**-52, 1.0 + np.arange(9) * 2.0**-52),
    "one zero": (rng.normal(size=9), np.r_[0.0, rng.uniform(0.1, 1, 8)]),
    "some zeros": (rng.integers(0, 3, 30).astype(float), rng.integers(0, 3, 30).astype(float)),
    "tied zeros": ([1.0, 1.0, 0.0, 2.0], [0.0, 0.0, 0.0, 1.0]),
    "only zeros": ([1.0, 2.0, 2.0, 0.0], [0.0] * 4),
    "a zero and a speck": ([0.0, 1.0, 1.0 + 2.0**-52], [0.0, 2.0**-300, 1.0]),
    "the widest range allowed": ([2.0**300, -(2.0**300), 0.0], [2.0**-300, 2.0**300, 1.0]),
}


@pytest.mark.parametrize("t", [0.0, 1.0, -1.0, 0.3, -7.7, 1 + 2.0**-52, 1e-12, 1e6, -1e6, 1e15, -1e15, 2.0**300])
@pytest.mark.parametrize("points", ADVERSARIAL.values(), ids=ADVERSARIAL)
def test_adversarial_points_have_the_scores_of_the_quadratic_definition(points, t):
    assert_last_bits(*map(np.array, points), t)


@pytest.mark.parametrize("size", [300, 1000])
def test_many_candidates_have_the_scores_of_the_quadratic_definition(size):
    source = np.random.default_rng(size)
    assert_last_bits(source.normal(size=size), source.lognormal(size=size), 3.3)


grid = st.integers(-8, 8).map(float)
wild = st.floats(-1e15, 1e15).map(lambda x: x if abs(x) > 1e-12 else 0.0)
close = st.integers(-20, 20).map(lambda n: 1e15 + n / 8)
sensitivity = st.one_of(
    st.just(0.0),
    st.integers(1, 9).map(float),
    st.floats(-6, 6).map(lambda x: 10.0**x),
    st.integers(0, 9).map(lambda n: 1 + n * 2.0**-52),
)
slopes = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.5]),
    st.floats(-1e3, 1e3).map(lambda x: x if abs(x) > 1e-12 else 0.0),
    st.floats(-20, 20).map(lambda x: 10.0**x),
)


@settings(max_examples=400)
@given(st.lists(st.tuples(st.one_of(grid, wild, close), sensitivity), min_size=1, max_size=12), slopes)
@example([(0.0, 0.0), (0.0, 0.0)], 1.0)
def test_drawn_points_have_the_scores_of_the_quadratic_definition(points, t):
    assert_last_bits(*np.array(points).T, t)


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.integers(-99, 99), st.integers(1, 60)), min_size=3, max_size=9),
    st.integers(-40, 40),
    st.floats(-40, 40),
    st.sampled_from([0.1, 1.0, 1 / 3, 1e-7]),
)
def test_the_best_score_is_zero_even_where_rounding_could_set_candidates_against_each_other(points, t, e, unit):
    heights, widths = np.array(points, dtype=float).T
    sensitivities = widths * unit * 2.0 ** np.round(e * np.arange(widths.size) / widths.size)
    slope = t * 0.7
    scores = slope * sensitivities + heights * 2.0**-60
    found = gem_scores(scores, sensitivities, slope)
    assert found.max() == 0
    assert not np.isnan(found).any()


@st.composite
def neighbours(draw):
    """Draw dyadic scores and neighbours, so that |q − q'| ≤ Δ holds exactly."""
    size = draw(st.integers(1, 8))
    widths = draw(st.lists(st.integers(0, 64), min_size=size, max_size=size))
    levels = draw(st.lists(st.integers(-256, 256), min_size=size, max_size=size))
    moves = [draw(st.one_of(st.sampled_from([-width, width]), st.integers(-width, width))) for width in widths]
    levels, widths, moves = (np.array(numbers) / 64 for numbers in (levels, widths, moves))
    return levels, levels + moves, widths


@settings(max_examples=300)
@given(neighbours(), st.floats(-100, 100))
def test_a_score_moves_by_at_most_one_between_neighbours(pair, t):
    scores, others, sensitivities = pair
    before = gem_scores(scores, sensitivities, t)
    after = gem_scores(others, sensitivities, t)
    assert (np.isinf(before) == np.isinf(after)).all()
    finite = np.isfinite(before)
    room = 1 + 2.0**-50 * (1 + np.abs(before[finite]))
    assert (np.abs(before[finite] - after[finite]) <= room).all()


def test_two_candidates_of_sensitivity_zero_are_compared_directly():
    assert gem_scores([1.0, 2.0, 2.0], [0.0, 0.0, 0.0], 5.0).tolist() == [-np.inf, 0.0, 0.0]
    assert gem_scores([1.0, 2.0, 0.0], [0.0, 0.0, 1.0], 0.0).tolist() == [-np.inf, 0.0, -2.0]
    assert gem_scores([2.0, 2.0, 4.0], [0.0, 0.0, 1.0], 0.0).tolist() == [-2.0, -2.0, 0.0]


def test_scores_without_differences_are_positive_zeros():
    assert not np.signbit(gem_scores([1.0, 1.0], [1.0, 2.0], 0.0)).any()


def test_batches_and_ragged_rows_are_read_as_by_any_mechanism():
    scores, sensitivities = rng.normal(size=(4, 6)), rng.uniform(0.1, 1.0, 6)
    batch = gem_scores(scores, sensitivities, 2.0)
    assert batch.shape == (4, 6)
    ragged = gem_scores((scores.ravel(), [0, 6, 12, 18, 24]), np.tile(sensitivities, 4), 2.0)
    for row in range(4):
        alone = gem_scores(scores[row], sensitivities, 2.0)
        assert (alone == batch[row]).all()
        assert (alone == ragged[6 * row : 6 * row + 6]).all()
