"""Where units come from: a table of lists as it is, or one with a row for each candidate, sorted and grouped."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from dpselect.progress import Report, ignore
from dpselect.tables.layout import Layout
from dpselect.tables.sorting import MEMORY, SortedUnits
from dpselect.tables.stored import BATCH_CANDIDATES, Located, StoredTable

__all__ = ["UnitSource", "open_units", "read_ahead"]

UnitSource: TypeAlias = StoredTable | SortedUnits
"""Units that can be read in batches of lists, in the same order every time."""

SECONDS_BETWEEN_LOOKS = 0.2


def open_units(
    table: StoredTable, layout: Layout, *, scratch: Path | None = None, memory: str = MEMORY
) -> UnitSource:
    """Check the columns of a table and return its units. The further arguments are for sorting."""
    if layout.check(table.schema, table.label, names=table.column_names, text=table.is_text):
        return table
    return SortedUnits(table, layout, scratch=scratch, memory=memory)


def read_ahead(
    source: UnitSource, columns: list[str], *, entries: int = BATCH_CANDIDATES, progress: Report = ignore
) -> Iterator[Located]:
    """Yield the batches of a source, each read in another thread while the one before is used.

    ``progress`` is called now and then while the source works on its first batch.
    """
    batches = source.batches(columns, entries=entries)
    pool = ThreadPoolExecutor(1, "dpselect-reader")
    try:
        ahead = pool.submit(lambda: list(islice(batches, 1)))
        while True:
            while not wait([ahead], SECONDS_BETWEEN_LOOKS).done:
                if source.waiting is not None:
                    progress(source.waiting)
            if not (found := ahead.result()):
                return
            ahead = pool.submit(lambda: list(islice(batches, 1)))
            yield found[0]
    finally:
        if not ahead.done():
            source.interrupt()
        pool.shutdown()  # a sort in memory cannot be interrupted
