"""How good a mechanism is on given scores: means, quantiles and probabilities from the exact pmf."""

import inspect

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect as dps

rng = np.random.default_rng(33)
SCORES, WIDTHS, PUBLIC_NUMBERS = (
    rng.normal(size=(5, 7)),
    rng.uniform(0.1, 1.0, (5, 7)),
    rng.normal(size=(5, 7)),
)


def direct(mechanism, scores, sensitivities, power, **public):
    """Return the sum by its definition, row by row."""
    probabilities = mechanism.pmf(scores, sensitivities, **public)
    return sum(p * (max(scores) - q) ** power for p, q in zip(probabilities, scores, strict=True))


@pytest.mark.parametrize("power", [2, 1, 0.5, 3.7])
def test_expected_errors_are_sums_over_the_candidates(power):
    mechanism = dps.NoisyMax(epsilon=2.0)
    found = dps.expected_error(mechanism, SCORES, WIDTHS, power)
    rows = [direct(mechanism, *row, power) for row in zip(SCORES, WIDTHS, strict=True)]
    assert found.shape == (5,)
    assert found == pytest.approx(rows, rel=1e-13)
    assert dps.expected_error(mechanism, SCORES[0], WIDTHS[0], power=power) == pytest.approx(rows[0], rel=1e-13)


def test_the_expected_error_of_a_random_pick_is_known():
    assert dps.expected_error(dps.Uniform(), [0.0, 1.0, 3.0], 1.0) == pytest.approx((9 + 4 + 0) / 3, rel=1e-15)
    assert dps.expected_error(dps.Uniform(), [0.0, 1.0, 3.0], 1.0, power=1) == pytest.approx(5 / 3, rel=1e-15)
    assert dps.expected_error(dps.RandomizedResponse(epsilon=np.log(3)), [0.0, 2.0], 1.0, 1) == pytest.approx(0.5)


def test_ragged_and_arrow_rows_have_the_same_expected_errors_as_dense_ones():
    mechanism = dps.GEM(epsilon=2.0)
    lengths = [3, 7, 1, 5, 2]
    rows = [scores[:n] for scores, n in zip(SCORES, lengths, strict=True)]
    widths = [numbers[:n] for numbers, n in zip(WIDTHS, lengths, strict=True)]
    exact = [direct(mechanism, q, d, 2) for q, d in zip(rows, widths, strict=True)]
    flat, bounds = np.concatenate(rows), np.r_[0, np.cumsum(lengths)]
    assert dps.expected_error(mechanism, (flat, bounds), np.concatenate(widths)) == pytest.approx(exact, rel=1e-13)
    for kind in (pa.list_(pa.float64()), pa.large_list(pa.float64())):
        column = pa.array([row.tolist() for row in [rows[0], *rows]], kind).slice(1)
        sensitivities = pa.array([row.tolist() for row in widths], kind)
        assert dps.expected_error(mechanism, column, sensitivities) == pytest.approx(exact, rel=1e-13)
    assert dps.expected_error(mechanism, (flat, bounds), 1.0, 1).shape == (5,)


def test_errors_are_measured_on_the_scores_and_not_on_offsets():
    mechanism = dps.NoisyMax(epsilon=3.0)
    found = dps.expected_error(mechanism, SCORES, WIDTHS, offsets=PUBLIC_NUMBERS)
    rows = zip(SCORES, WIDTHS, PUBLIC_NUMBERS, strict=True)
    exact = [direct(mechanism, q, d, 2, offsets=public) for q, d, public in rows]
    assert found == pytest.approx(exact, rel=1e-13)


def test_expected_errors_broadcast_like_probabilities():
    found = dps.expected_error(dps.GEM(epsilon=1.0), SCORES[:, None, :], WIDTHS[:2])
    assert found.shape == (5, 2)
    assert found[3, 1] == pytest.approx(direct(dps.GEM(epsilon=1.0), SCORES[3], WIDTHS[1], 2), rel=1e-13)
    offsets = rng.normal(size=(4, 1, 7))
    wide = dps.expected_error(dps.GEM(epsilon=1.0), SCORES, WIDTHS, offsets=offsets)
    assert wide.shape == (4, 5)
    assert wide[2, 3] == pytest.approx(
        direct(dps.GEM(epsilon=1.0), SCORES[3], WIDTHS[3], 2, offsets=offsets[2, 0]), rel=1e-13
    )


def test_narrow_scores_have_the_errors_of_wide_ones():
    narrow = SCORES.astype(np.float16)
    wide = dps.expected_error(dps.GEM(epsilon=1.0), narrow.astype(float), WIDTHS)
    assert (dps.expected_error(dps.GEM(epsilon=1.0), narrow, WIDTHS) == wide).all()


# --- The best --------------------------------------------------------------------------

FUNCTIONS = {
    "expected_error": dps.expected_error,
    "probability_of_best": dps.probability_of_best,
}
every_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)

rows = st.lists(st.tuples(st.integers(-6, 6), st.integers(0, 8).map(lambda n: n / 4)), min_size=1, max_size=12)


@given(row=rows)
def test_the_best_candidates_have_the_best_score(row):
    scores, sensitivities = (np.array(column, dtype=float) for column in zip(*row, strict=True))
    mechanism = dps.GEM(epsilon=2.0)
    best = dps.probability_of_best(mechanism, scores, sensitivities)
    chances = mechanism.pmf(scores, sensitivities)
    assert best == pytest.approx(chances[scores == scores.max()].sum(), rel=1e-14)


@every_function
def test_everything_broadcasts_and_takes_rows_of_every_form(function):
    mechanism, lengths = dps.NoisyMax(epsilon=2.0), [3, 7, 1, 5, 2]
    pairs = [(q[:n], d[:n]) for q, d, n in zip(SCORES, WIDTHS, lengths, strict=True)]
    loop = [function(mechanism, q, d) for q, d in pairs]
    flat, widths = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    ragged = function(mechanism, (flat, np.r_[0, np.cumsum(lengths)]), widths)
    assert ragged == pytest.approx(loop, rel=1e-14)
    arrow = [pa.array([row.tolist() for row in column]) for column in zip(*pairs, strict=True)]
    assert function(mechanism, *arrow) == pytest.approx(loop, rel=1e-14)
    outer = function(mechanism, SCORES[:, None, :], WIDTHS[:2], offsets=PUBLIC_NUMBERS[0])
    assert outer.shape == (5, 2)
    alone = function(mechanism, SCORES[3], WIDTHS[1], offsets=PUBLIC_NUMBERS[0])
    assert outer[3, 1] == pytest.approx(alone, rel=1e-14)
    assert np.ndim(alone) == 0
    wide = function(mechanism, SCORES[0], WIDTHS[0], offsets=PUBLIC_NUMBERS)
    assert wide.shape == (5,)
    assert wide[2] == pytest.approx(function(mechanism, SCORES[0], WIDTHS[0], offsets=PUBLIC_NUMBERS[2]), rel=1e-14)
    assert function(mechanism, np.empty((0, 4)), 1.0).shape == (0,)
    assert function(mechanism, (np.empty(0), np.zeros(1, dtype=int)), 1.0).shape == (0,)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_documentation_says_that_evaluations_are_not_private(name):
    assert "**Not private**" in inspect.getdoc(getattr(dps, name))
