"""Sources of units: a table of lists as it is, or a table with a row for each candidate, sorted and grouped."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from dpselect.progress import Step
from dpselect.tables.arrays import is_list
from dpselect.tables.layout import Layout, LayoutError
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

    def batches(self, columns: list[str], *, skip: int = 0) -> Iterator[Located]:
        """Yield batches with the columns asked for, without the first ``skip`` units."""


class ListUnits:
    """A table of lists: each row is a unit."""

    units_are_distinct = False
    waiting = None

    def __init__(self, table: StoredTable, entries: int) -> None:
        self._table, self._entries = table, entries
        self.schema = table.schema
        self.rows = table.rows

    def batches(self, columns: list[str], *, skip: int = 0) -> Iterator[Located]:
        """Yield the batches of the table."""
        return self._table.batches(columns, entries=self._entries, skip=skip)

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
    layout.check_columns(table.schema.names, table.label)
    if is_list(table.schema.field(layout.score).type):
        layout.check_schema(table.schema, table.label)
        return ListUnits(table, batch_candidates)
    if layout.candidate is None:
        raise LayoutError(
            f"{table.label} has a row for each candidate, and candidates by position need lists of scores; name "
            "the column of candidates and leave out --by-position"
        )
    return SortedUnits(table, layout, scratch=scratch, memory=memory, batch_candidates=batch_candidates)


Item = TypeVar("Item")

SECONDS_BETWEEN_LOOKS = 0.2
SECONDS_TO_END = 0.5


def prefetched(
    items: Iterable[Item],
    depth: int = 2,
    *,
    interrupt: Callable[[], None] = lambda: None,
    waiting: Callable[[], None] = lambda: None,
) -> Iterator[Item]:
    """Yield the items, made a few ahead in a thread of their own, so that reading and picking overlap.

    Args:
        items: The items.
        depth: How many are made ahead.
        interrupt: Called when no more items are wanted, to end the making of the next.
        waiting: Called now and then while there is no item yet.
    """
    made: queue.Queue[tuple[bool, Any]] = queue.Queue(depth)
    stop = threading.Event()

    def put(entry: tuple[bool, Any]) -> None:
        while not stop.is_set():
            try:
                made.put(entry, timeout=0.1)
            except queue.Full:
                continue
            return

    def make() -> None:
        try:
            for item in items:
                put((True, item))
                if stop.is_set():
                    return
            put((False, None))
        except BaseException as error:
            put((False, error))

    thread = threading.Thread(target=make, name="dpselect-reader", daemon=True)
    thread.start()
    try:
        while True:
            try:
                more, item = made.get(timeout=SECONDS_BETWEEN_LOOKS)
            except queue.Empty:
                waiting()
                continue
            if not more:
                if item is not None:
                    raise item
                return
            yield item
    finally:
        stop.set()
        if thread.is_alive():
            interrupt()
        thread.join(SECONDS_TO_END)  # a sort in memory cannot be interrupted; it ends with the process
