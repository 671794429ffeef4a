"""Parquet files."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rating_files import ITEMS, USERS, write_parquet

from experiments.recommender.formats import (
    BadDataError,
    read_parquet,
)


def test_a_parquet_split_is_read(tmp_path):
    split = np.array([0, 0, 1, 0, 1, 0], np.int8)
    batch = next(read_parquet(write_parquet(tmp_path, split=split)))
    np.testing.assert_array_equal(batch.test, split == 1)


@pytest.mark.parametrize(
    ("columns", "place"),
    [
        ({"user": USERS}, "column item: is missing"),
        ({"user": USERS, "item": ITEMS.astype(float)}, "column item: must be integers"),
        ({"user": USERS, "item": ITEMS, "rating": ["a"] * 6}, "column rating: must be numbers"),
        ({"user": USERS, "item": ITEMS, "split": [0, 1, 0, 1, 2, 0]}, "column split, row 5: 2 is out of range"),
        ({"user": [1, None, 1, 1, 1, 1], "item": ITEMS}, "column user: has missing values"),
        ({"user": USERS - 2, "item": ITEMS}, "column user, row 1: -1 is out of range"),
        ({"user": USERS, "item": ITEMS + 90}, "column item, row 1: 100 is out of range"),
    ],
)
def test_a_bad_parquet_file_is_refused_with_its_column(columns, place, tmp_path):
    path = tmp_path / "own.parquet"
    pq.write_table(pa.table(columns), path)
    with pytest.raises(BadDataError, match=rf"own\.parquet, {place}"):
        list(read_parquet(path, users=100, items=100))


def test_a_truncated_parquet_file_is_refused(tmp_path):
    path = write_parquet(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadDataError, match=r"own\.parquet: is not a complete Parquet file"):
        list(read_parquet(path))
