"""Interactions of users with items: the common form of all file formats."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from experiments.arrays import BoolArray

__all__ = ["Batch", "Counts", "Interactions", "collect"]

Ids: TypeAlias = NDArray[np.int32]
Flags: TypeAlias = BoolArray


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Some rows of a file."""

    users: Ids
    items: Ids
    ratings: NDArray[np.float32] | None = None
    test: Flags | None = None
    """True for the test interactions of the dataset's own split; None if it has no split."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The numbers of rows, users and items of a dataset before anything is left out."""

    rows: int
    users: int
    items: int

    def __str__(self) -> str:
        return f"{self.rows:,} interactions of {self.users:,} users with {self.items:,} items"


@dataclass(frozen=True, kw_only=True)
class Interactions:
    """Likes: pairs of user and item, and the counts of the dataset."""

    users: Ids
    items: Ids
    test: Flags | None
    counts: Counts


@dataclass
class _Tally:
    """Counts rows and distinct ids without keeping the rows."""

    rows: int = 0
    users: Ids = field(default_factory=lambda: np.empty(0, np.int32))
    items: Ids = field(default_factory=lambda: np.empty(0, np.int32))

    def add(self, batch: Batch) -> None:
        self.rows += batch.users.size
        self.users = np.union1d(self.users, batch.users)
        self.items = np.union1d(self.items, batch.items)

    @property
    def counts(self) -> Counts:
        return Counts(rows=self.rows, users=self.users.size, items=self.items.size)


def collect(batches: Iterable[Batch], *, least_rating: float) -> Interactions:
    """Keep the rows rated ``least_rating`` or better (all rows if there are no ratings), and count everything.

    Other rows are dropped batch by batch, so only the likes take memory, not the whole file.

    >>> one = Batch(users=np.array([3, 3], np.int32), items=np.array([7, 8], np.int32),
    ...             ratings=np.array([5, 2], np.float32))
    >>> likes = collect([one], least_rating=4)
    >>> likes.items, likes.counts
    (array([7], dtype=int32), Counts(rows=2, users=1, items=2))
    """
    tally = _Tally()
    users: list[Ids] = []
    items: list[Ids] = []
    test: list[Flags] = []
    for batch in batches:
        tally.add(batch)
        kept = np.s_[:] if batch.ratings is None else batch.ratings >= least_rating
        users.append(batch.users[kept])
        items.append(batch.items[kept])
        if batch.test is not None:
            test.append(batch.test[kept])
    return Interactions(
        users=np.concatenate([np.empty(0, np.int32), *users]),
        items=np.concatenate([np.empty(0, np.int32), *items]),
        test=np.concatenate(test) if test else None,
        counts=tally.counts,
    )
