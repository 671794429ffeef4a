"""Netflix' files."""

import numpy as np
import pytest
from rating_files import ITEMS, RATINGS, USERS, write_netflix

from experiments.recommender.formats import (
    BadDataError,
    read_netflix,
)


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 20])
def test_netflix_reads_the_same_whatever_the_size_of_its_pieces(chunk, tmp_path):
    batches = list(read_netflix(write_netflix(tmp_path), chunk=chunk))
    found = {(int(u), int(i), int(r)) for b in batches for u, i, r in zip(b.users, b.items, b.ratings, strict=True)}
    assert found == set(zip(USERS.tolist(), ITEMS.tolist(), np.round(RATINGS).astype(int).tolist(), strict=True))


def test_netflix_is_read_in_pieces_that_are_yielded_before_the_file_ends(tmp_path):
    for number in range(1, 5):
        lines = ["1:", *(f"{user},5,2005-09-06" for user in range(1000))]
        (tmp_path / f"combined_data_{number}.txt").write_text("\n".join(lines), encoding="ascii")
    sizes = [batch.users.size for batch in read_netflix(tmp_path, chunk=2048)]
    assert sum(sizes) == 4000
    assert max(sizes) < 250


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"1:\n5,3,2005-09-06\n6,7,2005-09-06\n", ", line 3: expected"),
        (b"1:\n5,3,2005-09-06\n6,3,2005-0", ", line 3: expected .* cut off"),
        (b"5,3,2005-09-06\n", ", line 1: ratings before the first"),
        (b"1:\n\xff\n", ", line 2: is not plain text"),
        (b"", ": is empty"),
    ],
)
@pytest.mark.parametrize("chunk", [4, 1 << 20])
def test_a_bad_netflix_file_is_refused_with_its_line(text, place, chunk, tmp_path):
    (tmp_path / "combined_data_1.txt").write_bytes(text)
    with pytest.raises(BadDataError, match=rf"combined_data_1\.txt{place}"):
        list(read_netflix(tmp_path, chunk=chunk))
