"""Tables: from rows, to CSV files and back, and parts of them."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from experiments.files import replacing

__all__ = ["Tables", "among", "from_rows", "read", "unique", "where", "write"]

Tables: TypeAlias = Mapping[str, pa.Table]
"""An experiment's tables, by name."""


def from_rows(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> pa.Table:
    """Return a table with these column names.

    Example:
        >>> from_rows(("k", "loss"), [(2, 0.5), (3, 0.7)]).to_pylist()
        [{'k': 2, 'loss': 0.5}, {'k': 3, 'loss': 0.7}]
    """
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def write(table: pa.Table, path: Path) -> None:
    """Write a table as CSV, with all digits of its numbers."""
    with replacing(path) as temporary:
        csv.write_csv(table, temporary)


def read(path: Path) -> pa.Table:
    """Read a table back."""
    return csv.read_csv(path)


def unique(table: pa.Table, column: str) -> list[Any]:
    """Return the different values of a column, in the order of the table."""
    return list(table[column].unique().to_pylist())


def among(table: pa.Table, **values: Iterable[str]) -> pa.Table:
    """Return the rows whose columns have one of the given values."""
    return table.filter(reduce(and_, (pc.field(name).isin(list(some)) for name, some in values.items())))


def where(table: pa.Table, **values: str | float) -> pa.Table:
    """Return the rows whose columns have the given values."""
    return table.filter(reduce(and_, (pc.field(name) == value for name, value in values.items())))
