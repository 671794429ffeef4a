"""LightGCN's files."""

import pytest
from rating_files import write_lightgcn

from experiments.recommender.formats import (
    BadDataError,
    read_lightgcn,
)
from experiments.recommender.interactions import collect


def test_lightgcn_files_keep_their_own_split_and_users_without_items(tmp_path):
    likes = collect(read_lightgcn(write_lightgcn(tmp_path), users=3, items=3), least_rating=4)
    pairs = set(zip(likes.users.tolist(), likes.items.tolist(), likes.test.tolist(), strict=True))
    assert pairs == {(0, 1, False), (0, 2, False), (1, 0, False), (0, 0, True), (2, 1, True)}


@pytest.mark.parametrize(
    ("train", "place"),
    [
        ("0 1\n3 1\n", ", line 2: user 3 is out of range: ids go from 0 to 2"),
        ("0 1\n1 0 7\n", ", line 2: item 7 is out of range"),
        ("0 1\n1 -1\n", ", line 2: item -1 is out of range"),
        ("0 1\n1 a\n", ", line 2: expected whole numbers"),
        ("0 1\n1 1.5\n", ", line 2: expected whole numbers"),
        ("", ": is empty"),
    ],
)
def test_a_bad_lightgcn_file_is_refused_with_its_line(train, place, tmp_path):
    with pytest.raises(BadDataError, match=rf"train\.txt{place}"):
        list(read_lightgcn(write_lightgcn(tmp_path, train=train), users=3, items=3))
