"""Small files in the published formats of ratings."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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
