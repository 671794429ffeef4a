"""Peeling: pick, take the pick out, pick again from what is left."""

from collections.abc import Callable, Iterator

import numpy as np

from dpselect.candidates import Batch, remade
from dpselect.kernels.arrays import Column, FloatArray, IndexArray
from dpselect.laws import Law
from dpselect.parallel import over_rows
from dpselect.randomness import Randomness

__all__ = ["NOBODY", "Remaining", "peel"]

NOBODY = -1
"""Stands for a pick where a row has no candidates left."""

BLOCK = 1 << 20
"""About how many candidates are peeled at once: few enough for the cache, many enough to be worth a call."""


class Remaining:
    """The candidates that are left in each row, in columns of their own.

    A pick is taken out by putting the last candidate of its row in its place. The law of the next pick does not
    depend on the order of candidates.
    """

    def __init__(self, batch: Batch, rounds: int) -> None:
        self._batch = batch
        self._starts = batch.table.bounds[:-1]
        self._sizes = batch.sizes.copy()
        self._own: list[FloatArray] = []
        """The numbers that picks are taken out of. Until the first pick, rows may share their numbers."""
        self._table = batch.table
        self._round = 0
        self._places = np.full((rounds, batch.rows), NOBODY, dtype=np.int64)
        """Where each round has put the last candidate of each row."""
        self._movers = np.empty((rounds, batch.rows), dtype=np.int64)
        """Which candidate that was, by its position in the whole row."""

    def __repr__(self) -> str:
        return f"Remaining({self._sizes.size} rows, round {self._round})"  # scores are private

    @property
    def rows(self) -> IndexArray:
        """The rows that have candidates left."""
        return np.flatnonzero(self._sizes)

    def batch(self, rows: IndexArray) -> Batch:
        """Return what is left in the given rows."""
        if self._round == 0 and rows.size == self._sizes.size:
            return self._batch
        sizes = self._sizes[rows]
        bounds = np.zeros(rows.size + 1, dtype=np.int64)
        np.cumsum(sizes, out=bounds[1:])
        dense = self._batch.shape is not None
        return Batch(
            remade(self._table, lambda column: Column(column.values, column.starts[rows]), bounds),
            (rows.size,) if dense else None,
            arrow=False,
            has_public=self._batch.has_public,
            width=int(sizes[0]) if dense else 0,
        )

    def take(self, rows: IndexArray, picks: IndexArray) -> IndexArray:
        """Take one candidate out of each of the given rows; return which one it was in the whole row."""
        if self._round == 0:
            self._table = remade(self._table, self._owned, self._table.bounds)
        starts, last = self._starts[rows], self._sizes[rows] - 1
        taken = self._positions(rows, picks)
        self._movers[self._round, rows] = self._positions(rows, last)
        self._places[self._round, rows] = picks
        for values in self._own:
            values[starts + picks] = values[starts + last]
        self._sizes[rows] = last
        self._round += 1
        return taken

    def _owned(self, column: Column) -> Column:
        """Return a column that picks can be taken out of, with the numbers of each row apart."""
        if column.values.min() == column.values.max():
            return column  # it stays as it is, whoever leaves
        starts, bounds = column.starts, self._batch.table.bounds
        aligned = np.array_equal(starts - starts[0], bounds[:-1])
        numbers = column.values[starts[0] : starts[0] + bounds[-1]] if aligned else self._batch.spread(column)
        self._own.append(numbers.copy())
        return Column(self._own[-1], self._starts)

    def _positions(self, rows: IndexArray, places: IndexArray) -> IndexArray:
        """Return the positions in the whole row of the candidates that are now at the given places."""
        found = places.copy()
        for number in range(self._round):
            moved = self._places[number, rows] == places
            found[moved] = self._movers[number, rows[moved]]
        return found


def peel(batch: Batch, count: int, law_of: Callable[[IndexArray], Law], randomness: Randomness) -> IndexArray:
    """Return ``count`` picks for each row, in order; NOBODY where a row has no candidates left.

    Round r draws from the law of the candidates that are left, with a stream of its own.
    """
    lists = np.full((batch.rows, count), NOBODY, dtype=np.int64)
    streams = randomness.for_rows(batch.rows, slice(None))

    def work(first: int, last: int) -> None:
        for start, stop in _blocks(batch.table.bounds, first, last):
            remaining = Remaining(batch.rows_between(start, stop), count)
            here = streams.for_rows(batch.rows, slice(start, stop))
            for number in range(count):
                left = remaining.rows
                if not left.size:
                    break
                part = remaining.batch(left)
                stream = here.substream(f"pick {number + 1}")
                if left.size < stop - start:
                    stream = stream.for_rows(stop - start, left)
                lists[start + left, number] = remaining.take(left, law_of(part.sizes).select(part, stream))

    if batch.rows:
        over_rows(batch.table.bounds, work, seconds=count * 4e-9)
    return lists


def _blocks(bounds: IndexArray, first: int, last: int) -> Iterator[tuple[int, int]]:
    while first < last:
        stop = min(last, max(first + 1, int(np.searchsorted(bounds, bounds[first] + BLOCK, side="right")) - 1))
        yield first, stop
        first = stop
