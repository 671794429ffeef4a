"""MovieLens' files."""

import pytest

from experiments.recommender.formats import (
    BadDataError,
    read_ratings_csv,
    read_ratings_dat,
)


def test_a_later_line_of_a_long_csv_file_is_named(tmp_path):
    # Longer than one block of the reader, which counts anew in each.
    rows = [f"{user},7,4.0,1" for user in range(200_000)]
    rows[150_000] = "x,7,4.0,1"
    path = tmp_path / "ratings.csv"
    path.write_text("userId,movieId,rating,timestamp\n" + "\n".join(rows) + "\n", encoding="utf-8")
    with pytest.raises(BadDataError, match=r"ratings\.csv, line 150002: .*'x'"):
        list(read_ratings_csv(path))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("userId,rating,timestamp\n1,5,0\n", "line 1: the header has no column movieId"),
        ("userId,movieId,rating,timestamp\n1,2,5,0\n1,2\n", "line 3: needs 4 fields"),
        ("userId,movieId,rating,timestamp\n1,2,good,0\n", "line 2: "),
        ("userId,movieId,rating,timestamp\n1,2,4,0\n-1,2,4,0\n", "line 3: ids must be 0 or more"),
        ("userId,movieId,rating,timestamp\n1,2,4,0\n1,2,55,0\n", "line 3: .*ratings between 0 and 5"),
        ("userId,movieId,rating,timestamp\n1,2,,0\n", "line 2: "),
        ("", "line 1: the header has no column userId"),
    ],
)
def test_a_bad_ratings_csv_is_refused_with_its_line(text, place, tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadDataError, match=rf"{tmp_path.name}/ratings\.csv, {place}"):
        list(read_ratings_csv(path))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("1::2::5::0\n1::2::5\n", ", line 2: needs 4 fields"),
        ("1::2::5::0\n1,2,5,0\n", ", line 2: needs 4 fields"),
        ("1::2::5::0\n1::two::5::0\n", ", line 2: .*'two'"),
        ("1::2::9::0\n", ", line 1: .*ratings between 0 and 5"),
        ("", ": is empty"),
    ],
)
def test_a_bad_ratings_dat_is_refused_with_its_line(text, place, tmp_path):
    path = tmp_path / "ratings.dat"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadDataError, match=rf"ratings\.dat{place}"):
        list(read_ratings_dat(path))
