"""Errors in data files, with the file and the line or column."""

from pathlib import Path
from typing import NoReturn

__all__ = ["BadDataError", "refuse"]

LARGEST_ID = 2**31 - 1


class BadDataError(ValueError):
    """A damaged or incomplete file. The message shows the last two parts of its path, never the whole path."""


def refuse(path: Path, place: str, problem: str) -> NoReturn:
    """Raise a :class:`BadDataError` for a place in a file.

    >>> refuse(Path("data/ml-1m/ratings.dat"), "line 7", "needs 4 fields, has 3")
    Traceback (most recent call last):
        ...
    experiments.recommender.formats.errors.BadDataError: ml-1m/ratings.dat, line 7: needs 4 fields, has 3
    """
    name = "/".join(path.parts[-2:])
    raise BadDataError(f"{name}, {place}: {problem}" if place else f"{name}: {problem}")
