"""Gaps: fractions against the definitions, and floats against fractions over everything that is accepted.

A gap is how far a candidate trails the leader, in units of the noise.
"""

from fractions import Fraction

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from ranges import TILTS, frozen, offset_rows

from dpselect import kernels
from dpselect.exact import gaps as exact
from dpselect.kernels import lazy_gaps
from dpselect.kernels.arrays import Points
from dpselect.kernels.gaps import FAR

GAP_ERROR = Fraction(1, 2**42)
"""What a trusted gap may be off by below FAR, and relative to itself beyond."""


# --- Gaps in fractions ------------------------------------------------------------------------------------

SIXTEENTHS = st.integers(-64, 64).map(lambda n: n / 16)
WIDTHS = st.one_of(st.just(0.0), st.integers(0, 64).map(lambda n: n / 16))


def columns(*kinds, most=9):
    rows = st.lists(st.tuples(*kinds), min_size=1, max_size=most)
    return rows.map(lambda rows: [np.array(column) for column in zip(*rows, strict=True)])


def behind(levels, factor=1):
    """Return the distance of each level from the largest, ``None`` for −∞."""
    best = max(level for level in levels if level is not None)
    return [None if level is None else (best - level) * factor for level in levels]


@given(columns(SIXTEENTHS, SIXTEENTHS, WIDTHS), st.floats(-9, 9), st.floats(0.01, 9))
def test_exact_gaps_are_those_of_the_definitions(rows, t, budget):
    scores, offsets, sensitivities = rows
    found = exact.global_gaps(scores, offsets, sensitivities, t, budget)
    assert found == behind(reference.global_levels(scores, sensitivities, budget, t, offsets))
    found = exact.pairwise_gaps(scores, offsets, sensitivities, t, budget)
    quotients = reference.gem_scores(scores, sensitivities, t, offsets)
    assert found == [None if q is None else -q * Fraction(budget) for q in quotients]


@given(columns(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), WIDTHS, most=30), st.floats(-99, 99))
def test_exact_gaps_of_many_unrelated_candidates_are_those_of_all_pairs(rows, t):
    scores, offsets, sensitivities = rows
    quotients = reference.gem_scores(scores, sensitivities, t, offsets)
    found = exact.pairwise_gaps(scores, offsets, sensitivities, t, 1.0)
    assert found == [None if q is None else -q for q in quotients]


# --- Gaps in floats ---------------------------------------------------------------------------------------


def assert_near(found, true):
    """Compare gaps with fractions, of which ``None`` is infinite."""
    for gap, fraction in zip(found.tolist(), true, strict=True):
        if fraction is None or gap == np.inf:
            assert fraction is None
            assert gap == np.inf
        else:
            assert abs(Fraction(gap) - fraction) <= GAP_ERROR * (Fraction(gap) if gap >= FAR else 1)


def all_gaps(scores, public, sensitivities, t, budget):
    """Yield (trusted, gaps in floats, gaps in fractions) of both normalisations."""
    q, o, d = frozen(scores), frozen(public), frozen(sensitivities)
    points = Points(q, o, d)
    gaps = np.empty(q.size)
    trusted = kernels.gaps.fill_global_gaps(points, t, budget, gaps)
    yield trusted, gaps, behind(reference.global_levels(q, d, budget, t, o))
    order, hull = np.argsort(d), np.empty(q.size, np.int64)
    trusted = kernels.gaps.fill_pairwise_gaps(points, order, t, budget, hull, gaps)
    quotients = reference.gem_scores(q, d, t, o)
    yield trusted, gaps, [None if v is None else -v * Fraction(budget) for v in quotients]


def hard_rows(family, rng):
    """Return scores, public numbers, sensitivities and t that lose digits if anything can make them."""
    size = int(rng.integers(2, 25))
    scores, public, widths, t = rng.normal(size=size), np.zeros(size), rng.uniform(0.1, 2, size), 0.0
    if family == "far from zero":
        scores = 1e15 + rng.integers(-40, 40, size) / 8
    elif family == "twelve decades":
        widths = 10 ** rng.uniform(-6, 6, size)
        scores, t = scores * widths, rng.normal() * 10
    elif family == "offsets undo scores":
        public = -np.round(scores * 1e9)
        scores = scores - public + rng.normal(size=size)
    elif family == "steep":
        t = rng.normal() * 1e6
        scores = t * widths + rng.normal(size=size)
    elif family == "collinear":
        widths = rng.integers(0, 12, size) / 4
        scores, t = 0.1 * widths + rng.choice([0, 0, -1], size), 0.1
    else:
        scores, widths = scores * 10 ** rng.uniform(-250, 80), np.where(rng.random(size) < 0.2, 0, widths)
    return scores, public, widths, t


FAMILIES = ["far from zero", "twelve decades", "offsets undo scores", "steep", "collinear", "any size"]


@pytest.mark.parametrize("family", FAMILIES)
def test_gaps_that_are_trusted_are_right(family):
    rng = np.random.default_rng(11)
    trusted_rows = 0
    for _ in range(150):
        scores, public, widths, t = hard_rows(family, rng)
        for trusted, found, true in all_gaps(scores, public, widths, t, rng.uniform(0.1, 10)):
            trusted_rows += trusted
            if trusted:
                assert_near(found, true)
    assert trusted_rows > 150


@settings(max_examples=1000)
@given(offset_rows(), TILTS, st.sampled_from([0.5, 2.0**-300, 2.0**299]))
def test_trusted_gaps_are_right_over_the_whole_range_of_sensitivities(row, t, budget):
    scores, offsets, sensitivities = row
    for trusted, found, true in all_gaps(scores, offsets, sensitivities, t, budget):
        if trusted:
            assert_near(found, true)


TIED = {
    "all alike": ([0.1] * 4, [0.0] * 4, [0.3, 0.7, 0.7, 1.1]),
    "two levels": ([0.1, 0.3, 0.3, 0.1, 0.3], [0.0] * 5, [0.3, 0.7, 0.9, 1.1, 1.3]),
    "levels made by offsets": ([0.1, 0.5, 7.0, 3.0], [4.0, 3.6, -2.9, 1.1], [0.3, 0.7, 0.9, 1.1]),
    "collinear counts": ([1.0, 2.0, 3.0, 4.0], [0.0] * 4, [2.0, 4.0, 6.0, 8.0]),
    "collinear after offsets": ([9.0, 8.0, 9.0, 7.0], [-8.0, -6.0, -6.0, -3.0], [2.0, 4.0, 6.0, 8.0]),
    "collinear with the outside point": ([1.0, 2.0, 3.0, -1.0], [0.0] * 4, [1.0, 2.0, 3.0, 1.0]),
    "public ones": ([1.0, 1.0, 0.0, 2.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]),
}


@pytest.mark.parametrize("t", [0.0, 1.0, -0.5])
@pytest.mark.parametrize("row", TIED.values(), ids=TIED)
def test_rows_with_true_ties_are_trusted(row, t):
    for trusted, found, true in all_gaps(*row, t, 0.5):
        assert trusted
        assert_near(found, true)


def test_gaps_that_cancel_out_of_enormous_tilts_are_not_trusted():
    scores, offsets = [5.309898847263254e50, 1.0953145439253448e33], [-2.854730060739379e16, 0.0]
    sensitivities, t = [0.827455489077999, 1.8188464568021556e-11], 6.417141365871634e50
    for trusted, found, true in all_gaps(scores, offsets, sensitivities, t, 1.5):
        if trusted:
            assert_near(found, true)


def lazy_gaps_of_row(scores, sensitivities, t, budget):
    heights = np.empty(scores.size)
    top, width, narrowest, error = lazy_gaps.fill_heights(scores, sensitivities, t, heights)
    return lazy_gaps.LazyGaps(heights, top, budget, lazy_gaps.LAZY, sensitivities, width, narrowest, error)


@settings(max_examples=400)
@given(
    columns(
        st.one_of(st.floats(-100, 100), st.floats(-1e15, 1e15), st.integers(-9, 9).map(float)),
        st.one_of(st.floats(1e-6, 1e6), st.floats(0.5, 2), st.sampled_from([0.5, 1.0])),
        most=25,
    ),
    st.one_of(st.floats(-1e4, 1e4), st.just(0.0)),
    st.floats(0.05, 32),
)
def test_lazy_gaps_are_right_or_unknown_and_their_bounds_hold(rows, t, budget):
    scores, sensitivities = map(frozen, rows)
    gaps_of_row = lazy_gaps_of_row(scores, sensitivities, t, budget)
    true = [-quotient * Fraction(budget) for quotient in reference.gem_scores(scores, sensitivities, t)]
    for a, gap in enumerate(true):
        assert Fraction(lazy_gaps.gap_bound(gaps_of_row, a)) <= gap
    found = np.array([lazy_gaps.exact_gap(gaps_of_row, a) for a in range(scores.size)])
    near = found < FAR  # and not NaN
    assert_near(found[near], [gap for gap, sure in zip(true, near, strict=True) if sure])
    assert all(gap >= FAR - 1 for gap, far in zip(true, found >= FAR, strict=True) if far)


def test_lazy_gaps_of_ordinary_rows_are_known():
    rng = np.random.default_rng(12)
    scores, sensitivities = frozen(rng.normal(size=50)), frozen(rng.uniform(0.1, 1, 50))
    gaps_of_row = lazy_gaps_of_row(scores, sensitivities, 5.0, 1.0)
    assert not any(np.isnan(lazy_gaps.exact_gap(gaps_of_row, a)) for a in range(50))
