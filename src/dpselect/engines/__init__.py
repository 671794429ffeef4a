"""Picks where the data are: record batches of Arrow, tables in files or in memory, Spark frames.

An engine opens tables and computes with them. :func:`open_tables` knows which engine is for which kind of table.
"""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from dpselect.mechanisms.base import Mechanism, require_mechanism
from dpselect.registry import default_mechanism
from dpselect.tables.conversion import library_of
from dpselect.tables.layout import Layout
from dpselect.tables.sorting import MEMORY
from dpselect.tables.stored import BATCH_CANDIDATES

if TYPE_CHECKING:
    from dpselect.engines.local import LocalTables
    from dpselect.engines.spark import SparkTables

__all__ = ["Computed", "Limits", "Tables", "check_mechanism", "choose_mechanism", "open_tables"]


class Limits(NamedTuple):
    """How much is held in memory at a time.

    Attributes:
        memory: How much memory sorting may take.
        batch_candidates: About how many candidates a batch holds.
    """

    memory: str = MEMORY
    batch_candidates: int = BATCH_CANDIDATES


class Computed(NamedTuple):
    """What an engine has computed."""

    picks: Any
    """A frame like the table, or an Arrow table; ``None`` if the picks were written to a file."""
    units: int
    """Units that were read."""
    problems: dict[str, int]
    """How many units broke which rule and were skipped."""


Tables: TypeAlias = "LocalTables | SparkTables"
"""The table of a release, and perhaps a second one of candidates, in the state in which they were opened."""


def open_tables(
    table: object, layout: Layout | None = None, *, limits: Limits | None = None, output: Path | None = None
) -> Tables:
    """Open tables with the engine for their kind, and check their columns. ``output`` is the file for the picks."""
    engine = importlib.import_module(f"{__name__}.{'spark' if library_of(table) == 'pyspark' else 'local'}")
    opened: Tables = engine.open_tables(table, layout, limits=limits or Limits(), output=output)
    return opened


def check_mechanism(mechanism: object) -> None:
    """Refuse what is neither a mechanism nor an ε, before a table is opened."""
    if not isinstance(mechanism, int | float):
        require_mechanism(mechanism)


def choose_mechanism(mechanism: Mechanism | float, tables: Tables) -> tuple[Mechanism, str]:
    """Return a mechanism as it is; for an ε, the one that suits the tables by default, and why."""
    if isinstance(mechanism, int | float):
        record, reason = default_mechanism(sensitivities=tables.layout.sensitivity is not None)
        return record(mechanism), reason
    return mechanism, ""
