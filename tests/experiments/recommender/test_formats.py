import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.recommender.datasets import DATASETS, load, runs_in
from experiments.recommender.formats import (
    BadDataError,
    read_lightgcn,
    read_netflix,
    read_parquet,
    read_ratings_csv,
    read_ratings_dat,
)
from experiments.recommender.interactions import Counts, collect

USERS = np.array([1, 1, 2, 3, 3, 3], np.int32)
ITEMS = np.array([10, 11, 10, 12, 10, 13], np.int32)
RATINGS = np.array([5, 3.5, 4, 1, 4.5, 2], np.float32)


def write_csv(folder):
    path = folder / "ratings.csv"
    rows = [f"{u},{i},{r:g},1112486027" for u, i, r in zip(USERS, ITEMS, RATINGS, strict=True)]
    path.write_text("\n".join(["userId,movieId,rating,timestamp", *rows]) + "\n", encoding="utf-8")
    return path


def write_dat(folder):
    path = folder / "ratings.dat"
    rows = [f"{u}::{i}::{r:g}::978300760" for u, i, r in zip(USERS, ITEMS, RATINGS, strict=True)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def write_parquet(folder, **columns):
    path = folder / "own.parquet"
    pq.write_table(pa.table({"user": USERS, "item": ITEMS, "rating": RATINGS} | columns), path)
    return path


def write_netflix(folder):
    ratings = np.round(RATINGS).astype(int)
    rows = sorted(zip(ITEMS.tolist(), USERS.tolist(), ratings.tolist(), strict=True))
    for number in range(1, 5):
        lines, last = [], None
        for item, user, rating in rows[number - 1 :: 4]:
            if item != last:
                lines.append(f"{item}:")
                last = item
            lines.append(f"{user},{rating},2005-09-06")
        (folder / f"combined_data_{number}.txt").write_text("\n".join(lines or ["99:"]) + "\n", encoding="ascii")
    return folder


def write_lightgcn(folder, train="0 1 2\n1 0\n2\n", test="0 0\n2 1 \n"):
    (folder / "train.txt").write_text(train, encoding="ascii")
    (folder / "test.txt").write_text(test, encoding="ascii")
    return folder


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


def test_lightgcn_files_keep_their_own_split_and_users_without_items(tmp_path):
    likes = collect(read_lightgcn(write_lightgcn(tmp_path), users=3, items=3), least_rating=4)
    pairs = set(zip(likes.users.tolist(), likes.items.tolist(), likes.test.tolist(), strict=True))
    assert pairs == {(0, 1, False), (0, 2, False), (1, 0, False), (0, 0, True), (2, 1, True)}


def test_a_parquet_split_is_read(tmp_path):
    split = np.array([0, 0, 1, 0, 1, 0], np.int8)
    batch = next(read_parquet(write_parquet(tmp_path, split=split)))
    np.testing.assert_array_equal(batch.test, split == 1)


def test_a_later_line_of_a_long_csv_file_is_named(tmp_path):
    # Longer than one block of the reader, which counts lines from 1 in each.
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


@pytest.mark.parametrize(
    ("columns", "place"),
    [
        ({"user": USERS}, "column item: is missing"),
        ({"user": USERS, "item": ITEMS.astype(float)}, "column item: must be whole numbers"),
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
    with pytest.raises(BadDataError, match=r"own\.parquet: is not a whole Parquet file"):
        list(read_parquet(path))


@pytest.mark.parametrize("name", list(DATASETS))
def test_a_missing_set_is_named_with_where_to_get_it(name, tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        load(name, tmp_path)
    assert DATASETS[name].source in str(raised.value)
    assert str(tmp_path) not in str(raised.value)


def test_a_set_with_too_few_rows_is_refused_with_both_counts(tmp_path):
    (tmp_path / "ml-1m").mkdir()
    write_dat(tmp_path / "ml-1m")
    with pytest.raises(
        BadDataError, match=r"ratings\.dat: 6 interactions .* has 1,000,209 interactions of 6,040 users"
    ):
        load("ml-1m", tmp_path)


def test_a_set_without_any_like_is_refused(tmp_path):
    write_parquet(tmp_path, rating=np.ones(6, np.float32))
    with pytest.raises(BadDataError, match="no interactions rated 4 or better"):
        load("own", tmp_path)


def test_every_set_in_a_folder_is_found_under_all_its_forms(tmp_path):
    for dataset in DATASETS.values():
        for number, form in enumerate(dataset.forms):
            folder = tmp_path / f"{dataset.name}-{number}"
            path = folder / form
            path.parent.mkdir(parents=True)
            path.touch()
            assert {run.dataset for run in runs_in(folder)} == {dataset.name}


def test_any_other_parquet_file_is_a_set_of_its_own(tmp_path):
    write_parquet(tmp_path)
    assert [run.name for run in runs_in(tmp_path)] == ["own"]
    assert load("own", tmp_path).counts.rows == 6
