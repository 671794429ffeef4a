"""Sources of units: a table of lists as it is, or a table with a row for each candidate, sorted and grouped."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeVar

import pyarrow as pa

from dpselect.errors import LayoutError
from dpselect.progress import Step
from dpselect.tables.arrays import is_list
from dpselect.tables.layout import Layout
from dpselect.tables.sorting import MEMORY, SortedUnits
from dpselect.tables.stored import BATCH_CANDIDATES, Located, StoredTable

__all__ = ["UnitSource", "open_units", "prefetched"]


class UnitSource(Protocol):
    """A table of units that can be read in batches, in the same order every time."""

    schema: pa.Schema
    units_are_distinct: bool
    """Whether no unit can occur twice, by construction."""

    @property
    def rows(self) -> int | None:
        """How many rows the table has, as far as that is known by now."""

    @property
    def waiting(self) -> Step | None:
        """How far the work before the first batch has come, if there is any."""

    def interrupt(self) -> None:
        """Give up the work before the first batch. Called from another thread than the one that iterates."""

    def batches(self, columns: list[str]) -> Iterator[Located]:
        """Yield batches with the columns asked for."""


class ListUnits:
    """A table of lists: each row is a unit."""

    units_are_distinct = False
    waiting = None

    def __init__(self, table: StoredTable, entries: int) -> None:
        self._table, self._entries = table, entries
        self.schema = table.schema
        self.rows = table.rows

    def batches(self, columns: list[str]) -> Iterator[Located]:
        """Yield the batches of the table."""
        return self._table.batches(columns, entries=self._entries)

    def interrupt(self) -> None:
        """Do nothing: a batch is read at once."""


def open_units(
    table: StoredTable,
    layout: Layout,
    *,
    scratch: Path | None = None,
    memory: str = MEMORY,
    batch_candidates: int = BATCH_CANDIDATES,
) -> UnitSource:
    """Return the units of a table.

    Args:
        table: A table of lists, or one with a row for each candidate.
        layout: Where its columns are.
        scratch: The folder for sorting; by default the system's own.
        memory: How much memory sorting may take, such as ``"1GB"``.
        batch_candidates: About how many candidates a batch holds.
    """
    layout.check_columns(table.column_names, table.label)
    if is_list(table.schema.field(layout.score).type):
        if layout.unit is None:
            raise LayoutError(f"{table.label} must have a row for each candidate, not lists, if there is no unit")
        layout.check_lists(table.schema)
        return ListUnits(table, batch_candidates)
    if layout.candidate is None:
        raise LayoutError(
            f"{table.label} has a row for each candidate, and candidates by position need lists of scores; name "
            "the column of candidates and leave out --by-position"
        )
    return SortedUnits(table, layout, scratch=scratch, memory=memory, batch_candidates=batch_candidates)


Item = TypeVar("Item")

SECONDS_BETWEEN_LOOKS = 0.2


def prefetched(
    items: Iterable[Item],
    *,
    interrupt: Callable[[], None] = lambda: None,
    waiting: Callable[[], None] = lambda: None,
) -> Iterator[Item]:
    """Yield the items, each made in a thread of its own while the one before is used: reading and picking overlap.

    Args:
        items: The items.
        interrupt: Called when no more items are wanted, to end the making of the next.
        waiting: Called now and then while there is no item yet.
    """
    made = iter(items)
    pool = ThreadPoolExecutor(1, "dpselect-reader")
    try:
        ahead = pool.submit(lambda: list(islice(made, 1)))
        while True:
            while not wait([ahead], SECONDS_BETWEEN_LOOKS).done:
                waiting()
            if not (found := ahead.result()):
                return
            ahead = pool.submit(lambda: list(islice(made, 1)))
            yield found[0]
    finally:
        if not ahead.done():
            interrupt()
        pool.shutdown()  # a sort in memory cannot be interrupted
