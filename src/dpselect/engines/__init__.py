"""Picks where the data are: record batches of Arrow, tables in files or in memory, Spark frames.

An engine opens tables and computes with them. :func:`open_tables` knows which engine is for which kind of table.
"""

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple, Protocol

from dpselect.mechanisms.base import Mechanism, require_mechanism
from dpselect.progress import Report, ignore
from dpselect.registry import default_mechanism
from dpselect.tables.conversion import library_of
from dpselect.tables.layout import Layout
from dpselect.tables.sorting import MEMORY
from dpselect.tables.stored import BATCH_CANDIDATES

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
    """A frame of the kind of the table; ``None`` if the picks were written to a file."""
    units: int = 0
    """Units that were read."""
    problems: Mapping[str, int] = MappingProxyType({})
    """How many units broke which rule and were skipped."""


class Tables(Protocol):
    """The table of a release, and perhaps a second one of candidates, in the state in which they were opened."""

    @property
    def layout(self) -> Layout:
        """Where the columns are, that of sensitivities too, if there is one."""

    def fingerprint(self, settings: dict[str, object]) -> str:
        """Return a fingerprint of the contents, of the layout and of further settings."""

    def check_unchanged(self) -> None:
        """Raise if the tables are no longer what they were when they were opened."""

    def pick(
        self, mechanism: Mechanism, key: bytes, *, file: IO[bytes] | None = None, progress: Report = ignore
    ) -> Computed:
        """Return a pick or a list for each unit, drawn with a key, or write them to a file."""


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
