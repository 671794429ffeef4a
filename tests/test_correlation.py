"""The rank correlation of scores and sensitivities: against SciPy, against fractions, and in every layout."""

import inspect
import math

import numpy as np
import pyarrow as pa
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpselect as dps
from dpselect.ranks import centred_ranks, rank_covariances

spearman = dps.correlation.spearman

whole = st.integers(-8, 8)
few = st.lists(st.tuples(whole, st.integers(0, 6)), min_size=1, max_size=15)
wild_scores = st.floats(-(2.0**300), 2.0**300)
wild_sensitivities = st.one_of(st.just(0.0), st.floats(2.0**-300, 2.0**300))
wild = st.lists(st.tuples(wild_scores, wild_sensitivities), min_size=1, max_size=10)


def columns(pairs):
    scores, sensitivities = zip(*pairs, strict=True)
    return np.array(scores, dtype=float), np.array(sensitivities, dtype=float)


def assert_same(found, exact, error=1e-14):
    if exact is None:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(exact, rel=error, abs=error)
        assert -1 <= found <= 1


# --- The numbers ------------------------------------------------------------------------------------------


@given(pairs=few)
def test_a_correlation_is_that_of_its_definition_ties_and_zeros_and_constants_included(pairs):
    scores, sensitivities = columns(pairs)
    assert_same(spearman(scores, sensitivities), reference.spearman(scores, sensitivities))


@given(pairs=wild)
def test_numbers_of_any_size_keep_their_precision(pairs):
    scores, sensitivities = columns(pairs)
    assert_same(spearman(scores, sensitivities), reference.spearman(scores, sensitivities))


@pytest.mark.parametrize("decimals", [0, 1, 15])
def test_scipy_agrees_row_by_row(decimals):
    rng = np.random.default_rng(decimals)
    scores = rng.normal(size=(40, 300)).round(decimals)
    sensitivities = (0.2 * scores + rng.normal(size=scores.shape)).round(decimals)
    sensitivities -= sensitivities.min()
    exact = [stats.spearmanr(q, d).statistic for q, d in zip(scores, sensitivities, strict=True)]
    assert spearman(scores, sensitivities) == pytest.approx(exact, rel=1e-12, abs=1e-14)


@given(
    pairs=few,
    shift=st.sampled_from([0.0, 1.0, -(2.0**40), 2.0**52 - 64]),
    scale=st.sampled_from([2.0**-200, 0.125, 1.0, 2.0**200]),
    seed=st.integers(0, 10),
)
def test_permuting_rescaling_and_far_offsets_change_nothing(pairs, shift, scale, seed):
    """Shifts and scales keep floats exact, so only summation may round differently."""
    scores, sensitivities = columns(pairs)
    order = np.random.default_rng(seed).permutation(scores.size)
    before = spearman(scores, sensitivities)
    after = spearman((scores[order] + shift) * scale, sensitivities[order] / scale)
    assert after == pytest.approx(before, rel=1e-14, abs=1e-15, nan_ok=True)
    shifted = spearman(scores, sensitivities + abs(shift))
    assert shifted == pytest.approx(before, rel=1e-14, abs=1e-15, nan_ok=True)


def test_perfect_agreement_is_one():
    scores = np.random.default_rng(1).normal(size=1000)
    sensitivities = 2.0 * (scores - scores.min())
    assert spearman(scores, sensitivities) == 1.0
    assert spearman(-scores, sensitivities) == -1.0


def test_the_correlation_is_undefined_where_scores_or_sensitivities_are_all_equal():
    for scores, sensitivities in (([0.1], 1.0), ([0.1] * 7, range(7)), (range(7), 0.1), ([1e300 / 1e215] * 3, 0.0)):
        found = spearman(list(scores), list(sensitivities) if isinstance(sensitivities, range) else sensitivities)
        assert np.isnan(found)


# --- Layouts ----------------------------------------------------------------------------------------------

rng = np.random.default_rng(9)
LENGTHS = [3, 1, 70, 2, 70, 5]
BOUNDS = np.r_[0, np.cumsum(LENGTHS)]
VALUES = rng.normal(size=BOUNDS[-1]).round(1)
WIDTHS = np.maximum(0, rng.uniform(-0.2, 2, BOUNDS[-1]).round(1))


def test_ragged_and_arrow_rows_are_a_loop_over_rows():
    rows = list(zip(np.split(VALUES, BOUNDS[1:-1]), np.split(WIDTHS, BOUNDS[1:-1]), strict=True))
    loop = [spearman(q, d) for q, d in rows]
    assert np.isnan(loop[1])
    assert np.array_equal(spearman((VALUES, BOUNDS), WIDTHS), loop, equal_nan=True)
    assert np.array_equal(spearman((VALUES, BOUNDS), (WIDTHS, BOUNDS)), loop, equal_nan=True)
    for kind in (pa.list_(pa.float64()), pa.large_list(pa.float64())):
        scores, sensitivities = (
            pa.array([row[column].tolist() for row in [rows[0], *rows]], kind).slice(1) for column in (0, 1)
        )
        assert np.array_equal(spearman(scores, sensitivities), loop, equal_nan=True)


def test_leading_axes_broadcast():
    scores, sensitivities = rng.normal(size=(4, 1, 30)), rng.uniform(size=(3, 30))
    found = spearman(scores, sensitivities)
    assert found.shape == (4, 3)
    assert all(found[i, j] == spearman(scores[i, 0], sensitivities[j]) for i, j in np.ndindex(4, 3))
    assert spearman(np.empty((0, 5)), np.arange(5.0)).shape == (0,)
    assert np.ndim(spearman(scores[0, 0], sensitivities[0])) == 0


def test_the_number_of_threads_changes_nothing(monkeypatch):
    scores, sensitivities = rng.normal(size=(300, 20)), rng.uniform(size=(300, 20))
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("DPSELECT_THREADS", threads)
        found.append(spearman(scores, sensitivities))
        found.append(spearman(scores, sensitivities[0]))
    assert np.array_equal(found[0], found[2])
    assert np.array_equal(found[1], found[3])


def test_bad_scores_are_refused_without_being_shown():
    for bad in (np.nan, np.inf, 2.0**301):
        with pytest.raises(ValueError, match=r"^scores must be finite") as caught:
            spearman([73.25, bad], 1.0)
        assert "73" not in str(caught.value)
    with pytest.raises(ValueError, match=r"^sensitivities must be ≥ 0"):
        spearman([1.0, 2.0], [1.0, -1.0])


def test_the_documentation_says_that_a_correlation_is_not_private():
    text = inspect.getdoc(spearman)
    assert "**Not private**: a diagnostic" in text


# --- Ranks ------------------------------------------------------------------------------------------------


@given(st.lists(st.one_of(wild_scores, st.sampled_from([-0.0, 0.0, 5e-324, -5e-324])), min_size=1, max_size=60))
def test_ranks_are_scipys_with_ties_averaged(values):
    found = centred_ranks(np.array(values), np.array([0, len(values)]))
    assert np.array_equal(found, 2 * stats.rankdata(values) - (len(values) + 1))


def test_sums_of_products_of_ranks_may_exceed_64_bits():
    size = 3 * 10**6
    up = np.arange(-(size - 1), size, 2)
    total = size * (size**2 - 1) // 3
    assert total > 2**62
    assert rank_covariances(up, up, np.array([0])) == float(total)
    assert rank_covariances(up, -up, np.array([0])) == -float(total)
