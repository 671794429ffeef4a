"""Tables as CSV files, and rows of them."""

from collections.abc import Mapping
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from experiments.files import replacing

__all__ = ["Tables", "read", "where", "write"]

Tables: TypeAlias = Mapping[str, pa.Table]
"""An experiment's tables, by name."""


def write(table: pa.Table, path: Path) -> None:
    """Write a table as CSV, with all digits of its numbers."""
    with replacing(path) as temporary:
        csv.write_csv(table, temporary)


def read(path: Path) -> pa.Table:
    """Read a table back."""
    return csv.read_csv(path)


def where(table: pa.Table, **values: str | float) -> pa.Table:
    """Return the rows whose columns have the given values."""
    return table.filter(reduce(and_, (pc.field(name) == value for name, value in values.items())))
