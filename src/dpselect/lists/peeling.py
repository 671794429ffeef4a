"""Peeling: pick, take the pick out, pick again from what is left."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dpselect.candidates import Batch, refuse_scores, remade
from dpselect.kernels.arrays import DRAWN, INVALID, Column, FloatArray, IndexArray, Table
from dpselect.laws import Law, base
from dpselect.lists.one_pass import draw_in_one_pass
from dpselect.parallel import over_rows
from dpselect.randomness import Randomness

__all__ = ["ListLaw", "Remaining"]

NOBODY = -1
"""Stands for a pick where a row has no candidates left."""

BLOCK = 1 << 18
"""About how many candidates are peeled at once: few enough for the cache, many enough to be worth a call."""


LawOf: TypeAlias = Callable[[IndexArray], Law]
"""The law of a pick, by the number of candidates in each row."""


class Remaining:
    """The candidates that are left in each row, in columns of their own.

    A pick is taken out by putting the last candidate of its row in its place. The law of the next pick does not
    depend on the order of candidates.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._starts = batch.table.bounds[:-1]
        self._whole = batch.sizes
        self._sizes = batch.sizes
        self._own: list[FloatArray] = []
        """The numbers that picks are taken out of. Until the first pick, rows may share their numbers."""
        self._table = batch.table
        self._places: list[IndexArray] = []
        """Where each round has put the last candidate of each row."""

    def __repr__(self) -> str:
        return f"Remaining({self._sizes.size} rows, round {len(self._places)})"  # scores are private

    @property
    def rows(self) -> IndexArray:
        """The rows that have candidates left."""
        return np.flatnonzero(self._sizes)

    def batch(self, rows: IndexArray) -> Batch:
        """Return what is left in the given rows."""
        if not self._places and rows.size == self._sizes.size:
            return self._batch
        return rows_of(self._batch, self._table, rows, self._sizes[rows])

    def take(self, rows: IndexArray, picks: IndexArray) -> IndexArray:
        """Take one candidate out of each of the given rows; return which one it was in the whole row."""
        if not self._places:
            self._table = remade(self._table, self._owned, self._table.bounds)
        starts, last = self._starts[rows], self._sizes[rows] - 1
        taken = self._positions(rows, picks)
        for values in self._own:
            values[starts + picks] = values[starts + last]
        places = np.full(self._sizes.size, NOBODY)
        places[rows] = picks
        self._places.append(places)
        self._sizes = self._sizes.copy()
        self._sizes[rows] = last
        return taken

    def _owned(self, column: Column) -> Column:
        """Return a column that picks can be taken out of, with the numbers of each row apart."""
        values, starts, bounds = column.values, column.starts, self._batch.table.bounds
        if values[0] == values[-1] and values.min() == values.max():
            return column  # all its numbers are equal, so a pick that leaves changes nothing
        aligned = np.array_equal(starts - starts[0], bounds[:-1])
        numbers = values[starts[0] : starts[0] + bounds[-1]].copy() if aligned else self._batch.spread(column)
        self._own.append(numbers)
        return Column(numbers, self._starts)

    def _positions(self, rows: IndexArray, places: IndexArray) -> IndexArray:
        """Return the positions in the whole row of the candidates that are now at the given places.

        From the last round back to the first: who is at the place that a round has filled was last in its row.
        """
        found, every = places, rows.size == self._sizes.size
        for number in reversed(range(len(self._places))):
            filled = self._places[number]
            last = self._whole - (number + 1)
            found = np.where(found == (filled if every else filled[rows]), last if every else last[rows], found)
        return found


def rows_of(batch: Batch, table: Table, rows: IndexArray, sizes: IndexArray) -> Batch:
    """Return some rows of a table, with their sizes, as a batch of the same form."""
    bounds = np.zeros(rows.size + 1, dtype=np.int64)
    np.cumsum(sizes, out=bounds[1:])
    every = rows.size == batch.rows
    dense = batch.shape is not None
    return Batch(
        remade(table, lambda column: column if every else Column(column.values, column.starts[rows]), bounds),
        (rows.size,) if dense else None,
        arrow=False,
        has_public=batch.has_public,
        width=int(sizes[0]) if dense else 0,
    )


@dataclass(frozen=True, slots=True)
class ListLaw(Law):
    """The law of lists: each pick is drawn from the candidates that are left."""

    law_of: LawOf
    """The law of one pick."""
    count: int
    refusal: str | None
    """That of the law of one pick."""

    def pmf(self, batch: Batch) -> FloatArray:  # noqa: ARG002 - for the laws that have one
        """Refuse: a list is not one candidate."""
        raise ValueError(
            "a list has no probability for each candidate: use TopK.probability for that of a given list, and "
            "dpselect.lists.inclusion for that of being in the list"
        )

    def select(self, batch: Batch, randomness: Randomness) -> IndexArray:
        """Return ``count`` picks for each row, in order; NOBODY where a row has no candidates left."""
        return select_lists(batch, self.count, self.law_of, randomness)

    def probability(self, batch: Batch, lists: Any) -> Any:
        """Return the exact probability of one list for each row; see ``TopK.probability``."""
        return probability_of_lists(batch, self.count, self.law_of, lists)


def select_lists(batch: Batch, count: int, law_of: LawOf, randomness: Randomness) -> IndexArray:
    """Return ``count`` picks for each row, in order; NOBODY where a row has no candidates left.

    A row is drawn in one pass where that has the same law, and peeled otherwise. Which of the two depends on the
    law, the count and the row alone, and each has streams of its own. Rows are peeled by a kernel where the law has
    one, or else round by round, which gives the same picks.
    """
    lists = np.full((batch.rows, count), NOBODY, dtype=np.int64)
    rows = np.arange(batch.rows)
    for draw in (_draw_in_one_pass, _peel_in_kernel, _peel_in_rounds):
        if rows.size:
            some = batch if rows.size == batch.rows else rows_of(batch, batch.table, rows, batch.sizes[rows])
            drawn = lists[rows]
            left = draw(some, law_of, randomness.for_rows(batch.rows, rows), drawn)
            lists[rows] = drawn
            rows = rows[left]
    return lists


def probability_of_lists(batch: Batch, count: int, law_of: LawOf, lists: Any) -> Any:
    """Return the exact probability of one list for each row; see ``TopK.probability``."""
    batch.check_scores()
    if batch.shape is None:
        raise ValueError("scores must be an array: the probability of lists is for rows of the same length")
    given = np.asarray(lists)
    wanted = (*batch.shape, count)
    if given.dtype.kind not in "iu" or given.shape != wanted:
        raise ValueError(f"lists must be whole numbers of shape {wanted}: a position for each pick")
    places = given.reshape(batch.rows, count)
    if places.size and not (places.min() >= 0 and places.max() < batch.width):
        raise ValueError(f"lists must hold positions from 0 to {batch.width - 1}")
    product = np.ones(batch.rows)
    product[[np.unique(row).size < count for row in places]] = 0.0
    rows = np.flatnonzero(product)
    remaining = Remaining(batch)
    everyone = np.tile(np.arange(batch.width), (batch.rows, 1))
    for number in range(count if rows.size else 0):
        part = remaining.batch(rows)
        pmf = law_of(part.sizes).pmf(part).reshape(rows.size, -1)
        picks = np.argmax(everyone[rows, : batch.width - number] == places[rows, number, None], axis=1)
        product[rows] *= pmf[np.arange(rows.size), picks]
        everyone[rows, picks] = everyone[rows, batch.width - number - 1]
        remaining.take(rows, picks)
    return batch.restore_rows(product)


def _draw_in_one_pass(batch: Batch, law_of: LawOf, randomness: Randomness, lists: IndexArray) -> IndexArray:
    """Fill the lists for which one pass is right; return the other rows."""
    budget = law_of(batch.sizes).weight_budget
    if budget is None:
        return np.arange(batch.rows)
    return draw_in_one_pass(batch, budget, randomness.substream("one pass"), lists)


def _peel_in_kernel(batch: Batch, law_of: LawOf, randomness: Randomness, lists: IndexArray) -> IndexArray:
    """Fill the lists that the law has a kernel for and that floats can decide; return the other rows."""
    fill = law_of(batch.sizes).list_filler(batch)
    if fill is None:
        return np.arange(batch.rows)
    states, units = np.empty(batch.rows, dtype=np.int64), randomness.units(batch.rows)
    one = randomness.for_rows(batch.rows, slice(1))  # keys do not depend on rows
    keys = np.stack([_stream(one, number).units(1).key for number in range(lists.shape[1])])
    over_rows(
        batch.table.bounds,
        lambda first, last: fill(batch, first, last, units, keys, base.FILTER_WIDTH, lists, states),
        seconds=lists.shape[1] * 2e-9,
    )
    if (states == INVALID).any():
        refuse_scores()
    return np.flatnonzero(states != DRAWN)


def _peel_in_rounds(batch: Batch, law_of: LawOf, randomness: Randomness, lists: IndexArray) -> IndexArray:
    """Fill all lists. Round r draws from the law of the candidates that are left, with a stream of its own."""
    rounds = lists.shape[1]

    def work(first: int, last: int) -> None:
        for start, stop in _blocks(batch.table.bounds, first, last):
            remaining = Remaining(batch.rows_between(start, stop))
            here = randomness.for_rows(batch.rows, slice(start, stop))
            for number in range(rounds):
                left = remaining.rows
                if not left.size:
                    break
                part = remaining.batch(left)
                stream = _stream(here, number)
                if left.size < stop - start:
                    stream = stream.for_rows(stop - start, left)
                lists[start + left, number] = remaining.take(left, law_of(part.sizes).select(part, stream))

    over_rows(batch.table.bounds, work, seconds=rounds * 4e-9)
    return np.empty(0, dtype=np.int64)


def _stream(randomness: Randomness, number: int) -> Randomness:
    return randomness.substream(f"pick {number + 1}")


def _blocks(bounds: IndexArray, first: int, last: int) -> Iterator[tuple[int, int]]:
    while first < last:
        stop = min(last, max(first + 1, int(np.searchsorted(bounds, bounds[first] + BLOCK, side="right")) - 1))
        yield first, stop
        first = stop
