"""Picks or lists for the units of a table, paid for and published."""

import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpselect.engines import Computed, Limits, check_mechanism, choose_mechanism, open_tables
from dpselect.files import write_atomically
from dpselect.mechanisms.base import Mechanism
from dpselect.progress import Report, ignore
from dpselect.release.payment import FreshKey, Payment, Receipt, Terms
from dpselect.tables.layout import Layout
from dpselect.tables.stored import AnyTable
from dpselect.tables.writing import check_output


@dataclass(frozen=True, kw_only=True)
class Released:
    """What was published. All of it is public, but ``skipped`` may depend on which scores are not numbers."""

    picks: Any = field(repr=False)
    """A frame like the table, or an Arrow table, with units and candidates; ``None`` if there is an output."""
    output: Path | None
    mechanism: Mechanism
    reason: str = ""
    """Why this mechanism was used, if the call gave only ε."""
    receipt: Receipt | None
    """What was paid, if a ledger was charged."""
    units: int
    """Units in the table."""
    problems: dict[str, int]
    """How many units broke which rule and got no pick."""
    seconds: float

    @property
    def skipped(self) -> int:
        """Units that broke a rule and got no pick."""
        return sum(self.problems.values())

    @property
    def picked(self) -> int:
        """Units that got a pick."""
        return self.units - self.skipped


def release(
    table: AnyTable,
    mechanism: Mechanism | float,
    output: str | Path | None = None,
    *,
    layout: Layout | None = None,
    payment: Payment | None = None,
    limits: Limits | None = None,
    progress: Report = ignore,
) -> Released:
    """Release one private pick, or a private list, for each unit of a table.

    Picks are computed where only you can see them, paid for, and then returned or published under the name of the
    output. If the call is refused or interrupted, nothing is left behind. If it was paid for, the same call costs
    nothing and gives the same picks.

    Privacy:
        That of the mechanism, for each unit. Without ``payment`` every call is a release of its own, and you keep
        the account. A Spark frame must have the same rows whenever it is computed: checkpoint it if what is behind
        it may change.

    Cost:
        That of the mechanism and of reading the table; with a ledger or a key file one more reading, for a
        fingerprint. With an output, memory is that of some batches and some bytes for each unit. Spark keeps the
        picks of its frames until you call ``released.picks.unpersist()``.

    Args:
        table: A path (CSV, Parquet, a folder of Parquet files, Arrow IPC), an Arrow table or a data frame (pandas,
            polars, DuckDB, Spark); with list columns, or with a row for each candidate.
        mechanism: Any mechanism; with a :class:`~dpselect.TopK` there is a row and a rank for each pick. A number
            is an ε: it means :class:`~dpselect.HeterogeneousNoisyMax` if there are sensitivities, and
            :class:`~dpselect.TopShare` if there are none, which is for rows that are each about one person.
        output: Where picks go: .parquet, .csv or .arrow. By default they are returned, in a frame of
            the kind of the table: pandas, polars, Spark, a dictionary, and an Arrow table for all others.
        layout: Where the columns are, and how files are read.
        payment: :class:`Charge`, :class:`KeyFile`, or by default :class:`FreshKey`.
        limits: How much is held in memory.
        progress: Called with a :class:`~dpselect.progress.Step` now and then.

    Raises:
        BudgetError: If the ledger refuses the release.
        KeyReuseError: If the key file belongs to another release.
        OutputExistsError: If the output exists, and neither a ledger nor a key file gives the same picks again.
        ValueError: If the input breaks a rule. The message names the place, the column and the rule, and no score.

    Example:
        >>> import dpselect as dps
        >>> from dpselect.release import release
        >>> table = {"user": [1, 1], "candidate": ["tea", "rum"], "score": [9.0, 1.0], "sensitivity": [0.1, 0.1]}
        >>> release(table, dps.GEM(epsilon=5.0)).picks
        {'user': [1], 'candidate': ['tea']}
        >>> del table["sensitivity"]
        >>> released = release(table, 9.0)
        >>> released.mechanism, released.reason
        (TopShare(epsilon=9.0, share=None), 'there are no sensitivities, so each row must be about one person')

    References:
        docs/decisions/0008-charge-before-release.md
    """
    started = time.monotonic()
    check_mechanism(mechanism)
    paying = payment or FreshKey()
    if not hasattr(paying, "pay_for"):
        raise ValueError(f"payment must be a Charge, a KeyFile or a FreshKey, got {type(paying).__name__}")
    path = None if output is None else Path(output)
    if path is not None:
        check_output(path)
    tables = open_tables(table, layout, limits=limits, output=path)
    used, reason = choose_mechanism(mechanism, tables)
    with nullcontext() if path is None else write_atomically(path) as file:

        def compute(key: bytes) -> Computed:
            computed = tables.pick(used, key, file=file, progress=progress)
            tables.check_unchanged()  # before anything is paid
            return computed

        done, receipt = paying.pay_for(Terms(used, tables, path), compute)
    return Released(
        picks=done.picks,
        output=path,
        mechanism=used,
        reason=reason,
        receipt=receipt,
        units=done.units,
        problems=done.problems,
        seconds=time.monotonic() - started,
    )
