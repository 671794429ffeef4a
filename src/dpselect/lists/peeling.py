"""The law of lists: pick one, remove it, and pick again from the rest."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np

from dpselect.candidates import Batch, map_columns
from dpselect.inputs import read_only
from dpselect.kernels.arrays import Column, FloatArray, IndexArray
from dpselect.laws import Law, base
from dpselect.laws.heterogeneous import HeterogeneousLaw
from dpselect.parallel import over_rows
from dpselect.randomness import Randomness

PADDING = -1
"""Stands for a pick where a row has no candidates left."""

BLOCK = 1 << 19
"""The number of candidates whose lists are made together. They stay in the processor's last cache."""


class Remaining:
    """The candidates that are left in each row.

    When a pick leaves, the last candidate of its row takes its place. The law of the next pick does not depend on
    the order of candidates.
    """

    def __init__(self, batch: Batch, sizes: IndexArray, kept: Column | None, room: list[FloatArray]) -> None:
        self._batch, self._table, self._sizes, self._kept = batch, batch.table, sizes, kept
        self._own: list[FloatArray] = []
        """The numbers that picks are taken out of. Until the first pick, rows may share their numbers."""
        self._room = room
        """Arrays for them, from one batch to the next: the system clears memory that is new."""

    def __repr__(self) -> str:
        return f"Remaining({self._sizes.size} rows)"  # scores are private

    @property
    def rows(self) -> IndexArray:
        """The rows that have candidates left."""
        return np.flatnonzero(self._sizes)

    def batch(self, rows: IndexArray) -> Batch:
        """Return what is left in the given rows."""
        every = rows.size == self._sizes.size
        if every and self._table is self._batch.table:
            return self._batch
        sizes, dense = self._sizes[rows], self._batch.shape is not None
        bounds = np.zeros(rows.size + 1, dtype=np.int64)
        np.cumsum(sizes, out=bounds[1:])
        table = self._table._replace(bounds=read_only(bounds))
        return Batch(
            table if every else map_columns(table, lambda c: Column(c.values, c.starts[rows]), bounds),
            (rows.size,) if dense else None,
            arrow=False,
            has_offsets=self._batch.has_offsets,
            row_size=int(sizes[0]) if dense else 0,
        )

    def kept(self, rows: IndexArray) -> Column | None:
        """Return the numbers that the list keeps from its first round, for the given rows."""
        return self._kept and Column(self._kept.values, self._kept.starts[rows])

    def take(self, rows: IndexArray, places: IndexArray) -> None:
        """Take the candidate at a place out of each of the given rows."""
        if self._table is self._batch.table:
            self._table = map_columns(self._table, self._owned, self._table.bounds)
            self._kept = self._kept and self._owned(self._kept)
        self._sizes[rows] -= 1
        starts = self._batch.table.bounds[rows]
        taken, last = starts + places, starts + self._sizes[rows]
        for values in self._own:
            values[taken] = values[last]

    def _owned(self, column: Column) -> Column:
        """Return a column that picks can be taken out of, with the numbers of each row apart."""
        values, starts, bounds = column.values, column.starts, self._batch.table.bounds
        if values[0] == values[-1] and values.min() == values.max():
            return column  # all its numbers are equal, so a pick that leaves changes nothing
        number, size = len(self._own), int(bounds[-1])
        if len(self._room) == number or self._room[number].size < size:
            self._room[number:] = [np.empty(size)]
        own = self._room[number][:size]
        if self._batch.shape is not None and (starts == starts[0]).all():
            own.reshape(starts.size, -1)[:] = values[starts[0] :][: self._batch.row_size]
        else:
            own[:] = self._batch.spread(column)
        self._own.append(own)
        return Column(own, bounds[:-1])


def keeps_offsets(law: Law) -> TypeGuard[HeterogeneousLaw]:
    """Return whether the rounds of a list keep neutral offsets."""
    return isinstance(law, HeterogeneousLaw) and law.neutral


@dataclass(frozen=True, slots=True)
class ListLaw(Law):
    """The law of lists: each pick is drawn from the candidates that are left.

    Neutral offsets stay those of the whole row, in units of the largest noise that is left.
    """

    checks_scores = True

    law_of: Callable[[IndexArray], Law]
    """The law of one pick, by the number of candidates in each row."""
    count: int
    refusal: str | None
    """That of the law of one pick."""

    def kept(self, batch: Batch) -> Column | None:
        """Return the numbers of whole rows that every round uses: neutral offsets, for a law that has them."""
        law = self.law_of(batch.sizes)
        return law.solve(batch) if keeps_offsets(law) and batch.rows else None

    def law(self, left: Batch, kept: Column | None) -> Law:
        """Return the law of the next pick, from the candidates that are left."""
        law = self.law_of(left.sizes)
        return replace(law, known=kept) if keeps_offsets(law) else law

    def pmf(self, batch: Batch) -> FloatArray:  # noqa: ARG002 - for the laws that have one
        """Refuse: a list is not one candidate."""
        raise ValueError(
            "a list has no probability for each candidate: use TopK.probability for that of a given list"
        )

    def select(self, batch: Batch, randomness: Randomness) -> IndexArray:
        """Return ``count`` picks for each row, in order; PADDING where a row has no candidates left."""
        lists = np.full((batch.rows, self.count), PADDING, dtype=np.int64)
        if not batch.rows:
            return lists
        addressed, thread = randomness.for_rows(batch.rows, slice(None)), threading.local()

        def work(first: int, last: int) -> None:
            here, room = addressed.for_rows(batch.rows, slice(first, last)), vars(thread).setdefault("room", [])
            self._fill(batch.rows_between(first, last), here, lists[first:last], room)

        over_rows(batch.table.bounds, work, seconds=self.count * 4e-9, most=BLOCK)
        return lists

    def _fill(self, batch: Batch, randomness: Randomness, lists: IndexArray, room: list[FloatArray]) -> None:
        """Write the lists of a block of rows. Each round has a stream of its own."""
        kept, rounds = self.kept(batch), min(self.count, int(batch.sizes.max()))
        law, streams = self.law(batch, kept), [randomness.substream(f"pick {i + 1}") for i in range(rounds)]
        if not law.checks_scores:
            batch.check_scores()
        if keeps_offsets(law) and keeps_offsets(law := law.for_batch(batch)):
            keys = np.array([stream.for_rows(batch.rows, slice(1)).units(1).key for stream in streams])
            units = randomness.units(batch.rows)._replace(key=keys)  # addresses are the same in every round
            law.fill_lists(batch, 0, batch.rows, units, base.FILTER_ERROR, lists)
        made = np.count_nonzero(lists >= 0, axis=1)
        remaining = Remaining(batch, batch.sizes * (made < np.minimum(rounds, batch.sizes)), kept, room)
        for number, stream in enumerate(streams):
            if (rows := remaining.rows).size:
                self._pick(remaining, rows[made[rows] <= number], stream, lists[:, number])
                remaining.take(rows, lists[rows, number])
        for number in reversed(range(rounds - 1)):  # who is where a pick has left was last in the row
            later = lists[:, number + 1 : rounds]
            moved = (later == lists[:, number, None]) & (later != PADDING)
            np.copyto(later, (batch.sizes - number - 1)[:, None], where=moved)

    def _pick(self, remaining: Remaining, rows: IndexArray, stream: Randomness, picks: IndexArray) -> None:
        """Write the next picks of the given rows."""
        if rows.size:
            left = remaining.batch(rows)
            addressed = stream if rows.size == picks.size else stream.for_rows(picks.size, rows)
            picks[rows] = self.law(left, remaining.kept(rows)).select(left, addressed)

    def probability(self, batch: Batch, lists: Any) -> Any:
        """Return the exact probability of one list for each row; see ``TopK.probability``."""
        if batch.shape is None:
            raise ValueError("scores must be an array: the probability of lists is for rows of the same length")
        given, shape = np.asarray(lists), (*batch.shape, self.count)
        if given.dtype.kind not in "iu" or given.shape != shape:
            raise ValueError(f"lists must be whole numbers of shape {shape}: a position for each pick")
        candidates = given.reshape(batch.rows, self.count)
        if candidates.size and not (candidates.min() >= 0 and candidates.max() < batch.row_size):
            raise ValueError(f"lists must hold positions from 0 to {batch.row_size - 1}")
        product = np.array([float(np.unique(row).size == self.count) for row in candidates])
        rows, remaining = np.flatnonzero(product), Remaining(batch, batch.sizes, self.kept(batch), [])
        standing = np.tile(np.arange(batch.row_size), (batch.rows, 1))  # who is at each place
        for number in range(self.count if rows.size else 0):
            left = remaining.batch(rows)
            pmf = self.law(left, remaining.kept(rows)).pmf(left).reshape(rows.size, -1)
            places = np.argmax(standing[rows, : left.row_size] == candidates[rows, number, None], axis=1)
            product[rows] *= pmf[np.arange(rows.size), places]
            standing[rows, places] = standing[rows, left.row_size - 1]
            remaining.take(rows, places)
        return batch.restore_rows(product)
