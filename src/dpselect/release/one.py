"""One private pick out of a whole table, paid for and published."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from dpselect.engines.whole_table import Identifier, pick_from_table
from dpselect.files import write_atomically
from dpselect.mechanisms.base import Mechanism
from dpselect.mechanisms.partitioned import PartitionedSelection
from dpselect.progress import Report, Step, ignore
from dpselect.release.inputs import Inputs
from dpselect.release.payment import FreshKey, Payment, Receipt, Terms, refuse_second_release
from dpselect.tables.layout import Layout, LayoutError
from dpselect.tables.sources import prefetched
from dpselect.tables.stored import BATCH_CANDIDATES, AnyTable, Csv, Format, Located
from dpselect.tables.writing import check_output, output_format, write_batches

__all__ = ["ReleasedPick", "release_one"]


@dataclass(frozen=True, kw_only=True)
class ReleasedPick:
    """What was published."""

    pick: Identifier
    candidates: int
    """How many candidates there were."""
    seconds: float
    output: Path | None
    mechanism: Mechanism
    receipt: Receipt | None
    """What was paid, if a ledger was charged."""


def release_one(
    table: AnyTable,
    mechanism: Mechanism,
    output: str | Path | None = None,
    *,
    layout: Layout | None = None,
    candidates: AnyTable | None = None,
    format: Format | Csv | None = None,
    payment: Payment | None = None,
    overwrite: bool = False,
    batch_candidates: int = BATCH_CANDIDATES,
    progress: Report = ignore,
) -> ReleasedPick:
    """Release one private pick out of all rows of a table, each of them a candidate.

    Privacy:
        That of the mechanism.

    Cost:
        Two passes over the table; memory is that of some batches.

    Args:
        table: A path or an Arrow table with a row for each candidate. It needs no column of units.
        mechanism: ``NoisyMax``, ``GEM`` or ``ModifiedGEM`` with exponential noise.
        output: Where to write the pick as well.
        layout: Where the columns are.
        candidates: A second table with the sensitivity of each candidate.
        format: The format of the file, if its name does not say; or :class:`Csv`, how to read a CSV file.
        payment: :class:`Charge`, :class:`KeyFile`, or by default a fresh key that is forgotten.
        overwrite: Whether to replace an output that exists, as for :func:`release_picks`.
        batch_candidates: About how many candidates a batch holds.
        progress: Called with a :class:`~dpselect.progress.Step` now and then.

    Raises:
        ValueError: As for :func:`release_picks`.

    Example:
        >>> import pyarrow as pa, dpselect as dps
        >>> from dpselect.release import release_one
        >>> table = pa.table({"candidate": ["tea", "rum"], "score": [9.0, 1.0], "sensitivity": [0.1, 0.1]})
        >>> release_one(table, dps.GEM(epsilon=5.0)).pick
        'tea'

    References:
        docs/theory/partitioned-selection.md
    """
    started = time.monotonic()
    path = None if output is None else Path(output)
    kind = None if path is None else output_format(path)
    paying = payment or FreshKey()
    if path is not None:
        check_output(path)
        if not overwrite:
            refuse_second_release(path, paying, mechanism)
    inputs = Inputs.open(table, layout, candidates, format)
    columns, stored = inputs.layout, inputs.table
    if columns.candidate is None or columns.offset or columns.on_bad_unit == "skip":
        raise LayoutError("one pick out of a table takes no positions or offsets, and skips no bad rows")
    columns.check_long_schema(stored.schema, units=False, are_text=stored.is_text, table=stored.label)
    pick_type = stored.schema.field(columns.candidate).type
    if pa.types.is_dictionary(pick_type):
        pick_type = pick_type.value_type
    terms = Terms.of_tables("select", mechanism, inputs, one=True)
    paying.check(terms)

    def batches() -> Iterator[Located]:
        return prefetched(stored.batches(columns.columns_without_units, entries=batch_candidates))

    def compute(key: bytes) -> tuple[Identifier, int]:
        read = 0
        total = None if stored.rows is None else 2 * stored.rows

        def count(rows: int) -> None:
            nonlocal read
            read += rows
            progress(Step(read, total, "rows"))

        return pick_from_table(PartitionedSelection(mechanism, key), batches, columns, count), read // 2

    (pick, count), receipt = paying.pay_for(terms, compute)
    if path is not None and kind is not None:
        row = pa.RecordBatch.from_arrays([pa.array([pick], pick_type)], names=[columns.candidate])
        with write_atomically(path) as file:
            write_batches([row], row.schema, kind, file)
    return ReleasedPick(
        pick=pick,
        candidates=count,
        seconds=time.monotonic() - started,
        output=path,
        mechanism=mechanism,
        receipt=receipt,
    )
