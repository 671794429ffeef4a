"""Scores with labels give labels; whatever could be read in two ways is refused with the call to make."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect as dps

MECHANISM = dps.GEM(2.0)
SEED = dps.Randomness.seeded(3)
SCORES = {"tea": 0.2, "rum": 0.9, "ale": 0.4}
WIDTHS = {"ale": 0.3, "tea": 1.0, "rum": 0.1}
SERIES, SERIES_WIDTHS = pd.Series(SCORES), pd.Series(WIDTHS)[list(SCORES)]
labelled = st.dictionaries(
    st.text(max_size=3),
    st.tuples(st.integers(-9, 9), st.integers(1, 9).map(lambda n: n / 4)),
    min_size=1,
    max_size=6,
)


@given(labelled, st.randoms(use_true_random=False), st.integers(0, 1000))
def test_a_mapping_gives_the_label_at_the_place_that_lists_give(numbers, order, seed):
    names = list(numbers)
    scores, widths = [[numbers[name][i] for name in names] for i in (0, 1)]
    shuffled = order.sample(names, len(names))
    randomness = dps.Randomness.seeded(seed)
    place = MECHANISM.select(scores, widths, randomness=randomness)
    for sensitivities in (
        {name: numbers[name][1] for name in shuffled},
        pd.Series([numbers[name][1] for name in shuffled], index=shuffled),
    ):
        found = MECHANISM.select(dict(zip(names, scores, strict=True)), sensitivities, randomness=randomness)
        assert found == names[place]
    series = pd.Series(scores, index=names)
    by_name = {name: numbers[name][1] for name in shuffled}
    assert MECHANISM.select(series, by_name, randomness=randomness) == names[place]
    for places in (names, shuffled):
        labelled_widths = pd.Series([numbers[name][1] for name in places], index=places)
        assert MECHANISM.select(series, labelled_widths, randomness=randomness) == names[place]
    frame = pd.DataFrame([scores, scores], columns=names)
    pd.testing.assert_frame_equal(MECHANISM.pmf(frame, labelled_widths), MECHANISM.pmf(frame, by_name))


def test_probabilities_and_errors_have_the_labels_of_the_scores():
    plain = MECHANISM.pmf(list(SCORES.values()), [WIDTHS[name] for name in SCORES])
    assert MECHANISM.pmf(SCORES, WIDTHS) == dict(zip(SCORES, plain.tolist(), strict=True))
    pd.testing.assert_series_equal(MECHANISM.pmf(SERIES, SERIES_WIDTHS), pd.Series(plain, index=list(SCORES)))
    error = dps.expected_error(MECHANISM, list(SCORES.values()), [WIDTHS[name] for name in SCORES])
    assert dps.expected_error(MECHANISM, SCORES, WIDTHS) == error
    assert dps.expected_error(MECHANISM, SERIES, WIDTHS) == error
    other = {name: score + 0.05 for name, score in SCORES.items()}
    loss = dps.auditing.privacy_loss(MECHANISM, SCORES, other, WIDTHS)
    assert loss == dps.auditing.privacy_loss(MECHANISM, SERIES, pd.Series(other), SERIES_WIDTHS)


def test_a_frame_whose_columns_are_known_to_be_candidates_gives_a_label_for_each_row():
    frame = pd.DataFrame([[0.0, 90.0, 0.0], [0.0, 0.0, 90.0]], columns=list(SCORES), index=["ann", "bob"])
    for widths in (WIDTHS, SERIES_WIDTHS, frame * 0 + 1, SERIES_WIDTHS[::-1], frame.iloc[::-1, ::-1] * 0 + 1):
        picks = MECHANISM.select(frame, widths, randomness=SEED)
        assert picks.to_dict() == {"ann": "rum", "bob": "ale"}
        assert MECHANISM.pmf(frame, widths).loc["bob", "ale"] > 0.99
    assert dps.expected_error(MECHANISM, frame, WIDTHS).shape == (2,)


def test_numbers_with_the_labels_of_the_scores_may_come_in_any_order():
    names = {"columns": list(SCORES), "index": ["ann", "bob"]}
    scores = pd.DataFrame([[0.2, 0.9, 0.4], [0.5, 0.1, 0.3]], **names)
    widths = pd.DataFrame([[1.0, 0.1, 0.3], [0.2, 0.4, 0.6]], **names)
    for here, there in ((scores, widths), (SERIES, SERIES_WIDTHS), (scores, SERIES_WIDTHS)):
        shuffled = there[::-1] if there.ndim == 1 else there.iloc[::-1, ::-1]
        expected = MECHANISM.pmf(here.to_numpy(), there.to_numpy())
        np.testing.assert_array_equal(MECHANISM.pmf(here, shuffled), expected)


def test_one_pick_is_a_plain_integer_that_json_can_write():
    for scores in ([0.0, 9.0], np.array([0.0, 9.0]), pl.Series([0.0, 9.0]), pd.Series([0.0, 9.0])):
        pick = dps.NoisyMax(50.0).select(scores, 0.1, randomness=SEED)
        assert type(pick) is int
        assert json.dumps(pick) == "1"
    assert json.dumps(MECHANISM.select(SERIES.rename(lambda name: len(name) + ord(name[0])), 0.1)).isdigit()


def test_a_polars_column_of_lists_is_read_like_arrow():
    rows = [[1.0, 2.0], [3.0], [0.5, 0.25, 4.0]]
    found = MECHANISM.select(pl.Series(rows), 0.5, randomness=SEED)
    assert found.tolist() == MECHANISM.select(pa.array(rows), 0.5, randomness=SEED).tolist()
    widths = pl.Series([[0.5] * len(row) for row in rows])
    assert MECHANISM.select(pa.array(rows), widths, randomness=SEED).tolist() == found.tolist()
    square = pl.Series([[1.0, 2.0], [3.0, 4.0]], dtype=pl.Array(pl.Float64, 2))
    assert MECHANISM.select(square, 0.5, randomness=SEED).shape == (2,)


FRAME = pd.DataFrame({"score": [0.2, 0.9], "sensitivity": [1.0, 0.1]})
UNCLEAR = {
    "a DataFrame": (FRAME, 1.0, r'pass a column, such as table\["score"\]'),
    "a DataFrame of one column": (FRAME[["score"]], [1.0, 1.0], "dps.select_table"),
    "sensitivities in a DataFrame": ([0.2, 0.9], FRAME[["sensitivity"]], "sensitivities must not be a table"),
    "a polars DataFrame": (pl.DataFrame(FRAME.to_dict("list")), 1.0, "dps.select_table"),
    "an Arrow table": (pa.Table.from_pandas(FRAME), 1.0, "dps.select_table"),
    "an Arrow column of numbers": (pa.array([0.2, 0.9]), 1.0, r"scores.to_numpy\(\)"),
    "a pandas column of lists": (pd.Series([[0.2], [0.9]]), 1.0, r"pyarrow.array\(scores\)"),
    "two lists of integers": (([3, 1], [0, 2]), 1.0, "may be two rows, or ragged rows"),
    "two lists of numbers": (([3.5, 1], [0, 2]), 1.0, "may be two rows, or ragged rows"),
    "two arrays of integers": ((np.array([3, 1]), np.array([0, 2])), 1.0, "may be two rows, or ragged rows"),
    "columns by name": ({"score": [0.2, 0.9], "sensitivity": [1.0, 0.1]}, 1.0, "dps.select_table"),
    "labels of sensitivities alone": ([0.2, 0.9], {"a": 1.0, "b": 1.0}, "pass both as mappings"),
    "a label too many": (SCORES, WIDTHS | {"gin": 1.0}, "must have the labels of scores"),
    "a label too few": (SCORES, {"tea": 1.0, "rum": 1.0}, "must have the labels of scores"),
    "another label": (SCORES, {"tea": 1.0, "rum": 1.0, "gin": 1.0}, "must have the labels of scores"),
    "a label twice for labelled scores": (SERIES, pd.Series([1.0] * 3, index=["tea", "tea", "rum"]), "each once"),
    "other rows of a DataFrame": (
        pd.DataFrame([SCORES], index=["ann"]),
        pd.DataFrame([WIDTHS], index=["bob"]),
        "must have the labels of scores",
    ),
    "a label twice": ({"a": 1.0}, pd.Series([1.0, 1.0], index=["a", "a"]), "one number for each label"),
}


@pytest.mark.parametrize(("scores", "widths", "hint"), UNCLEAR.values(), ids=UNCLEAR)
def test_what_may_be_read_in_two_ways_is_refused_with_the_call_to_make(scores, widths, hint):
    for call in (MECHANISM.select, MECHANISM.pmf):
        with pytest.raises(ValueError, match=hint):
            call(scores, widths)


def test_ragged_rows_stay_clear_where_types_or_lengths_differ():
    assert MECHANISM.select((np.array([3.0, 1.0]), np.array([0, 2])), 1.0).shape == (1,)
    assert MECHANISM.select(([3, 1, 2, 5], [0, 2, 4]), 1.0).shape == (2,)


@pytest.mark.parametrize("name", dps.MECHANISMS)
def test_every_mechanism_takes_epsilon_first_and_all_else_by_name(name):
    record = dps.MECHANISMS[name]
    assert record(1.5) == record(epsilon=1.5)
    assert record.constructor(1.5) == record(epsilon=1.5)
    with pytest.raises(TypeError):
        record(1.5, 0.1)
