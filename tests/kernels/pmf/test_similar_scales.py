"""The fast law of the heterogeneous noisy max with exponential noise, against the general quadrature."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.kernels.pmf.heterogeneous_noisy_max import fill
from dpselect.kernels.pmf.integrands import EXPONENTIAL, NoiseLaw
from dpselect.kernels.pmf.noisy_argmax import fill_by_cells
from dpselect.kernels.vectorised import exponential

FLOOR = 1e-250


def law(heights, shares):
    found = np.empty(heights.size)
    fill(heights, shares, found)
    return found


def assert_right(heights, shares):
    found, twin = law(heights, shares), np.empty(heights.size)
    fill_by_cells(NoiseLaw(EXPONENTIAL, False, 1.0, 1.0, 1.0), heights, shares, twin)
    assert abs(math.fsum(found) - 1) <= 1e-13
    high = twin >= FLOOR
    assert found[high] == pytest.approx(twin[high], rel=1e-11, abs=0)
    assert (found[~high] <= 1.001 * FLOOR).all()


SHARES = {
    "any": lambda random, size: random.uniform(0.5, 1.0, size),
    "half or one": lambda random, size: random.choice([0.5, 1.0], size),
    "one wide": lambda _, size: np.r_[1.0, np.full(size - 1, 0.5)],
    "one narrow": lambda _, size: np.r_[np.ones(size - 1), 0.5],
    "nearly alike": lambda random, size: 1.0 - 1e-9 * random.random(size),
    "mostly wide": lambda random, size: 1.0 - 0.5 * random.random(size) ** 8,
}
HEIGHTS = {
    "ties": lambda _, size: np.zeros(size),
    "epsilon tiny": lambda random, size: 1e-6 * random.normal(size=size),
    "epsilon small": lambda random, size: 0.1 * random.normal(size=size),
    "epsilon middling": lambda random, size: 2.0 * random.normal(size=size),
    "epsilon large": lambda random, size: 60.0 * random.normal(size=size),
    "down to 700": lambda _, size: -np.linspace(0.0, 700.0, size),
    "huge": lambda random, size: 1e6 * random.normal(size=size),
    "ranks": lambda _, size: -np.floor(np.arange(size) / 7.0),
    "crowd first": lambda _, size: np.r_[np.zeros(size // 2), np.full(size - size // 2, -90.0)],
    "crowd last": lambda _, size: np.r_[np.full(size - size // 2, -90.0), np.zeros(size // 2)],
}


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
@pytest.mark.parametrize("heights", HEIGHTS.values(), ids=HEIGHTS)
def test_hard_rows_of_any_length_are_right(heights, shares):
    for size in (2, 3, 17, 63, 100, 256, 257, 500, 3000):
        random = np.random.default_rng(size)
        assert_right(heights(random, size), shares(random, size))


@settings(max_examples=300)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 600),
    st.floats(-4, 3.5),
    st.floats(0.5, 1.0),
    st.sampled_from([0.0, 1.0, 30.0]),
)
def test_random_rows_are_right(seed, size, spread, least, curve):
    """With heights in any order, rounded for some seeds, and shares that may crowd at either end."""
    own = np.random.default_rng(seed)
    heights = own.normal(size=size) * 10**spread
    if seed % 3 == 0:
        heights = np.round(heights)
    place = own.random(size) ** curve
    assert_right(heights, np.where(seed % 2, 1.0 - (1.0 - least) * place, least + (1.0 - least) * place))


@pytest.mark.parametrize("heights", ["epsilon tiny", "epsilon middling", "epsilon large"])
def test_a_long_row_is_right(heights):
    random, size = np.random.default_rng(3), 100_000
    assert_right(HEIGHTS[heights](random, size), SHARES["any"](random, size))


@pytest.mark.parametrize("ties", [1, 40, 300, 20_000, 1_000_000])
def test_one_candidate_unlike_all_others_has_its_closed_form(ties):
    """At equal heights, one of rate n among m of rate 1 is picked with probability n B(n, m + 1)."""
    narrow = law(np.zeros(ties + 1), np.r_[np.ones(ties), 0.5])
    assert narrow[-1] == pytest.approx(2.0 / ((ties + 1.0) * (ties + 2.0)), rel=1e-12)
    wide = law(np.zeros(ties + 1), np.r_[1.0, np.full(ties, 0.5)])
    factors = np.log1p(0.5 / np.arange(1, ties + 1))  # ½ B(½, m + 1) = ∏ i/(i + ½)
    assert wide[0] == pytest.approx(math.exp(-math.fsum(factors)), rel=1e-12)
    for found in (narrow, wide):
        assert abs(math.fsum(found) - 1) <= 1e-13


def test_a_gap_beyond_all_floats_gives_zero():
    found = law(np.array([1e308, -1e308, 0.0]), np.array([0.5, 1.0, 0.75]))
    assert found == pytest.approx([1.0, 0.0, 0.0], rel=1e-14, abs=0)


def test_the_exponential_function_is_right_to_the_last_bits():
    for x in [0.0, -1e-300, -708.0, *-np.geomspace(1e-17, 708.0, 20_000)]:
        assert exponential(x) == pytest.approx(math.exp(x), rel=3e-16, abs=0)
    assert exponential(-708.1) == exponential(-1e300) == exponential(-math.inf) == 0.0
