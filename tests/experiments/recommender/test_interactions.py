"""Likes from ratings."""

import numpy as np
import pytest
from rating_files import ITEMS, RATINGS, USERS, write_csv, write_dat, write_parquet

from experiments.recommender.formats import (
    read_parquet,
    read_ratings_csv,
    read_ratings_dat,
)
from experiments.recommender.interactions import Counts, collect


@pytest.mark.parametrize(
    ("write", "read"),
    [(write_csv, read_ratings_csv), (write_dat, read_ratings_dat), (write_parquet, read_parquet)],
)
def test_ratings_are_read_as_written_and_likes_are_those_of_four_and_more(write, read, tmp_path):
    batches = list(read(write(tmp_path)))
    for name, expected in (("users", USERS), ("items", ITEMS), ("ratings", RATINGS)):
        np.testing.assert_array_equal(np.concatenate([getattr(batch, name) for batch in batches]), expected)
    likes = collect(batches, least_rating=4)
    np.testing.assert_array_equal(likes.users, [1, 2, 3])
    np.testing.assert_array_equal(likes.items, [10, 10, 10])
    assert likes.counts == Counts(rows=6, users=3, items=4)
