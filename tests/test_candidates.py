"""Dense, ragged and Arrow batches give the same results: all are rows of candidates."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import dpselect as dps
from dpselect.candidates import read_batch
from dpselect.engines import open_tables
from dpselect.exact.noisy_scores import NoisyScore
from dpselect.exact.partial_uniform import PartialUniform
from dpselect.explorer.views import read_setting
from dpselect.release.payment import Terms
from dpselect.tables.layout import Layout
from dpselect.tables.units import read_units

KEY = bytes(range(1, 33))
MECHANISMS = {name: make(epsilon=1.3) for name, make in dps.MECHANISMS.items()} | {
    "rnmh": dps.unsafe.NaiveHeterogeneousNoisyMax(epsilon=1.3, noise="laplace"),
}
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
NOISY_MAX, GEM = MECHANISMS["rnm"], MECHANISMS["gem"]
LENGTHS = [3, 1, 7, 2, 7, 5]
BOUNDS = np.r_[0, np.cumsum(LENGTHS)]
rng = np.random.default_rng(21)
VALUES, WIDTHS = rng.normal(size=BOUNDS[-1]), np.maximum(0, rng.uniform(-0.2, 2, BOUNDS[-1]))
PAIRS = list(pairwise(BOUNDS))
ROWS = [VALUES[a:b] for a, b in PAIRS]
ROW_WIDTHS = [WIDTHS[a:b] for a, b in PAIRS]


def lists(rows, kind):
    return pa.array([row.tolist() for row in rows], kind)


def units(rows, first=0):
    return dps.Randomness.keyed(KEY, range(first, first + rows))


# --- Dense batches ----------------------------------------------------------------------------------------


SHAPES = {
    "one row for all": ((4, 6), (6,)),
    "one number": ((4, 6), ()),
    "one number in a row": ((4, 6), (1,)),
    "one number for each row": ((4, 6), (4, 1)),
    "a row of its own axis": ((4, 6), (1, 6)),
    "one row of scores": ((6,), (5, 6)),
    "one row of scores, kept": ((1, 6), (4, 6)),
    "an outer product": ((4, 1, 6), (3, 6)),
    "an outer product of numbers": ((2, 1, 6), (2, 3, 1)),
    "four axes": ((2, 3, 4, 6), (3, 1, 6)),
}


@every_mechanism
@pytest.mark.parametrize(("left", "right"), SHAPES.values(), ids=SHAPES)
def test_sensitivities_broadcast_against_scores_as_numpy_would(mechanism, left, right):
    scores, sensitivities = rng.normal(size=left), rng.uniform(0.1, 1.0, right)
    shape = np.broadcast_shapes(left, right)
    full_scores = np.broadcast_to(scores, shape).reshape(-1, shape[-1])
    full_sensitivities = np.broadcast_to(sensitivities, shape).reshape(-1, shape[-1])
    probabilities = mechanism.pmf(scores, sensitivities)
    assert probabilities.shape == shape
    picks = mechanism.select(scores, sensitivities, randomness=units(len(full_scores)))
    assert picks.shape == shape[:-1]
    for row, flat in enumerate(probabilities.reshape(-1, shape[-1])):
        assert (flat == mechanism.pmf(full_scores[row], full_sensitivities[row])).all()
        alone = mechanism.select(full_scores[row], full_sensitivities[row], randomness=units(1, row))
        assert alone == picks.reshape(-1)[row]


def test_offsets_broadcast_as_well():
    scores, offsets = rng.normal(size=(4, 1, 6)), rng.normal(size=(3, 6))
    for mechanism in (NOISY_MAX, GEM):
        found = mechanism.pmf(scores, 0.5, offsets=offsets)
        assert found.shape == (4, 3, 6)
        for i, j in np.ndindex(4, 3):
            alone = mechanism.pmf(scores[i, 0], 0.5, offsets=offsets[j])
            assert (found[i, j] == alone).all()


def test_offsets_may_be_one_number_for_all():
    scores = rng.normal(size=(4, 6))
    assert (NOISY_MAX.pmf(scores, 0.5, offsets=3.0) == NOISY_MAX.pmf(scores, 0.5, offsets=np.full(6, 3.0))).all()


@pytest.mark.parametrize(
    "lay_out", [np.asfortranarray, lambda x: np.repeat(x, 2, 1)[:, ::2], lambda x: x[::-1][::-1]]
)
@every_mechanism
def test_the_layout_in_memory_does_not_matter(mechanism, lay_out):
    scores, sensitivities = rng.normal(size=(5, 8)), rng.uniform(0.1, 1.0, (5, 8))
    straight = mechanism.pmf(scores, sensitivities)
    assert (mechanism.pmf(lay_out(scores), lay_out(sensitivities)) == straight).all()
    assert (mechanism.pmf(scores[::-1], sensitivities[::-1]) == straight[::-1]).all()


def test_one_row_gives_an_array_of_probabilities_and_an_integer():
    assert NOISY_MAX.pmf([1.0, 2.0], 1.0).shape == (2,)
    assert np.ndim(NOISY_MAX.select([1.0, 2.0], 1.0)) == 0
    assert NOISY_MAX.select([[1.0, 2.0]], 1.0).shape == (1,)


def test_rows_that_share_sensitivities_do_not_share_anything_else():
    scores = rng.normal(size=(50, 20))
    shared = np.repeat(rng.uniform(0.1, 1, (5, 20)), 10, axis=0)
    assert (GEM.pmf(scores, shared) == [GEM.pmf(q, d) for q, d in zip(scores, shared, strict=True)]).all()
    assert (GEM.pmf(scores, shared[0]) == [GEM.pmf(q, shared[0]) for q in scores]).all()


# --- Ragged rows ------------------------------------------------------------------------------------------


def assert_rows(mechanism, flat, picks, first=0):
    """Compare flat probabilities and picks with a loop over the rows, bit for bit."""
    for row, (a, b) in enumerate(PAIRS):
        assert (flat[a:b] == mechanism.pmf(ROWS[row], ROW_WIDTHS[row])).all()
        assert picks[row] == mechanism.select(ROWS[row], ROW_WIDTHS[row], randomness=units(1, first + row))


@every_mechanism
@pytest.mark.parametrize("offset_type", [np.int32, np.int64, np.uint16])
def test_ragged_rows_equal_a_loop(mechanism, offset_type):
    scores = VALUES, BOUNDS.astype(offset_type)
    for sensitivities in ((WIDTHS, BOUNDS), WIDTHS, lists(ROW_WIDTHS, pa.list_(pa.float64()))):
        flat = mechanism.pmf(scores, sensitivities)
        assert isinstance(flat, np.ndarray)
        assert flat.shape == VALUES.shape
        assert_rows(mechanism, flat, mechanism.select(scores, sensitivities, randomness=units(len(LENGTHS))))


def test_ragged_rows_take_one_sensitivity_for_all_and_offsets():
    found = NOISY_MAX.pmf((VALUES, BOUNDS), 0.4, offsets=WIDTHS)
    for row, (a, b) in enumerate(PAIRS):
        assert (found[a:b] == NOISY_MAX.pmf(ROWS[row], 0.4, offsets=ROW_WIDTHS[row])).all()


def test_ragged_rows_may_be_lists():
    assert (NOISY_MAX.pmf((VALUES.tolist(), BOUNDS.tolist()), 1.0) == NOISY_MAX.pmf((VALUES, BOUNDS), 1.0)).all()


# --- Arrow ------------------------------------------------------------------------------------------------

ARROWS = {
    "list": lists(ROWS, pa.list_(pa.float64())),
    "large list": lists(ROWS, pa.large_list(pa.float64())),
    "chunked": pa.chunked_array([lists(ROWS[:2], pa.list_(pa.float64())), lists(ROWS[2:], pa.list_(pa.float64()))]),
    "sliced": lists([*ROWS[:3], *ROWS, *ROWS[1:]], pa.list_(pa.float64())).slice(3, len(ROWS)),
    "sliced and chunked": pa.chunked_array([lists([*ROWS, *ROWS], pa.large_list(pa.float64()))]).slice(6),
    "after a null": pa.array([None, *(row.tolist() for row in ROWS)], pa.list_(pa.float64())).slice(1),
}


@every_mechanism
@pytest.mark.parametrize("scores", ARROWS.values(), ids=ARROWS)
def test_arrow_rows_equal_a_loop_and_return_arrow_rows(mechanism, scores):
    widths = lists(ROW_WIDTHS, pa.large_list(pa.float64()))
    for sensitivities in (widths, WIDTHS, (WIDTHS, BOUNDS)):
        probabilities = mechanism.pmf(scores, sensitivities)
        assert isinstance(probabilities, pa.LargeListArray)
        probabilities.validate(full=True)
        assert [len(row) for row in probabilities] == LENGTHS
        picks = mechanism.select(scores, sensitivities, randomness=units(len(LENGTHS)))
        assert isinstance(picks, np.ndarray)
        assert_rows(mechanism, probabilities.flatten().to_numpy(), picks)


@pytest.mark.parametrize("start", [0, 2])
def test_fixed_size_lists_are_rows_too(start):
    scores, widths = rng.normal(size=(6, 4)), rng.uniform(0.1, 1.0, (6, 4))
    column = pa.FixedSizeListArray.from_arrays(scores.ravel(), 4).slice(start)
    found = GEM.pmf(column, pa.FixedSizeListArray.from_arrays(widths.ravel(), 4).slice(start))
    assert isinstance(found, pa.LargeListArray)
    assert (np.array(found.to_pylist()) == GEM.pmf(scores[start:], widths[start:])).all()


def test_an_empty_chunked_column_gives_no_rows():
    empty = pa.chunked_array([], pa.list_(pa.float64()))
    assert NOISY_MAX.pmf(empty, 1.0).to_pylist() == []
    assert NOISY_MAX.select(empty, 1.0).tolist() == []


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.int8(), pa.int64(), pa.uint32()])
def test_narrow_arrow_numbers_are_widened_exactly(kind):
    rows = [np.array([3, 1, 2]).astype(kind.to_pandas_dtype()), np.array([5]).astype(kind.to_pandas_dtype())]
    found = NOISY_MAX.pmf(pa.array(rows, pa.list_(kind)), 1.0)
    assert found.to_pylist() == [NOISY_MAX.pmf(row.astype(float), 1.0).tolist() for row in rows]


# --- Memory -----------------------------------------------------------------------------------------------


def test_float64_scores_are_not_copied():
    scores = rng.normal(size=(5, 6))
    assert np.shares_memory(read_batch(scores, 1.0).table.scores.values, scores)
    assert np.shares_memory(read_batch((VALUES, BOUNDS), 1.0).table.scores.values, VALUES)
    for name in ("list", "large list", "sliced"):
        column = ARROWS[name]
        flat = column.flatten().to_numpy(zero_copy_only=True)
        assert np.shares_memory(read_batch(column, 1.0).table.scores.values, flat), name


def test_shared_sensitivities_are_stored_once():
    widths = rng.uniform(0.1, 1.0, 6)
    column = read_batch(rng.normal(size=(1000, 6)), widths).table.sensitivities
    assert np.shares_memory(column.values, widths)
    assert column.values.size == 6


@every_mechanism
def test_inputs_are_never_modified(mechanism):
    scores, sensitivities = rng.normal(size=(4, 6)), rng.uniform(0.1, 1.0, (4, 6))
    before = scores.copy(), sensitivities.copy()
    for array in (scores, sensitivities):
        array.flags.writeable = False
    result = mechanism.pmf(scores, sensitivities)
    mechanism.select(scores, sensitivities)
    assert (scores == before[0]).all()
    assert (sensitivities == before[1]).all()
    result[...] = 0.0
    assert (scores == before[0]).all()


# --- What holds scores does not show them -----------------------------------------------------------------

SECRET = 123456789.0
"""Shown as 123456789.0, 1.23456789e+08 or 123456789; all of them hold the digits 23456789."""


def holders():
    scores = np.array([[SECRET, 0.0], [-SECRET, SECRET]])
    for form in (scores, (scores.reshape(-1), [0, 2, 4]), pa.array(scores.tolist())):
        batch = read_batch(form, 1.0)
        yield from (batch, batch.table, batch.table.scores)
    yield read_setting({"scores": scores[0].tolist(), "sensitivities": [1.0, 1.0], "names": ["a", "b"]})
    units = pa.record_batch({"user": [1, 2], "candidate": [[1, 2], [1, 2]], "score": scores.tolist()})
    yield read_units(units, Layout(sensitivity=1.0))
    tables = open_tables(units, Layout(sensitivity=1.0))
    yield from (tables, Terms(GEM, tables))
    yield NoisyScore(0, 1, PartialUniform(123456789, 32, iter(())), Fraction(1), Fraction(SECRET))


def test_objects_that_hold_scores_do_not_show_them():
    for holder in holders():
        for shown in (repr(holder), str(holder), f"{holder}", repr([holder])):
            assert "23456789" not in shown, type(holder)
            assert type(holder).__name__ in shown
