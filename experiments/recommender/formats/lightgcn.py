"""train.txt and test.txt as in the repositories of NGCF and LightGCN: a line for each user, with all items."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments.recommender.formats.errors import LARGEST_ID, refuse
from experiments.recommender.interactions import Batch

__all__ = ["read_lightgcn"]

LINES = 4096


def read_lightgcn(folder: Path, *, users: int = LARGEST_ID, items: int = LARGEST_ID) -> Iterator[Batch]:
    """Yield the interactions of both files.

    A line is ``user item item …``, with ids from 0. A user without items may have a line or not.

    Args:
        folder: The folder of train.txt and test.txt.
        users: The number of users; larger ids are refused.
        items: The number of items; larger ids are refused.
    """
    for name, test in (("train.txt", False), ("test.txt", True)):
        yield from _read(folder / name, test=test, users=users, items=items)


def _read(path: Path, *, test: bool, users: int, items: int) -> Iterator[Batch]:
    rows: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    number = 0
    with path.open(encoding="ascii", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            try:
                ids = np.array(line.split(), dtype=np.int64)
            except (ValueError, OverflowError):
                refuse(path, f"line {number}", "expected whole numbers separated by spaces: a user, then its items")
            if ids.size == 0:
                continue
            _check(path, number, "user", ids[:1], users)
            _check(path, number, "item", ids[1:], items)
            rows.append(ids)
            if len(rows) == LINES:
                yield _batch(rows, test=test)
                rows = []
    if number == 0:
        refuse(path, "", "is empty")
    if rows:
        yield _batch(rows, test=test)


def _check(path: Path, number: int, what: str, ids: np.ndarray[tuple[int], np.dtype[np.int64]], limit: int) -> None:
    wrong = (ids < 0) | (ids >= limit)
    if wrong.any():
        refuse(
            path, f"line {number}", f"{what} {ids[wrong.argmax()]} is out of range: ids go from 0 to {limit - 1}"
        )


def _batch(rows: list[np.ndarray[tuple[int], np.dtype[np.int64]]], *, test: bool) -> Batch:
    users = np.repeat([row[0] for row in rows], [row.size - 1 for row in rows]).astype(np.int32)
    items = np.concatenate([row[1:] for row in rows]).astype(np.int32)
    return Batch(users=users, items=items, test=np.full(users.size, test))
