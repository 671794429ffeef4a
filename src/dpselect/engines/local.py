"""Picks for a table in memory, or in files, as one Arrow table."""

from collections.abc import Iterator

import pyarrow as pa

from dpselect.engines.arrow import BadUnitsError, PickTransform
from dpselect.mechanisms.base import Mechanism
from dpselect.tables.layout import Layout
from dpselect.tables.sources import open_units
from dpselect.tables.stored import Located, StoredTable

__all__ = ["pick_units"]


def pick_units(table: StoredTable, layout: Layout, mechanism: Mechanism, key: bytes) -> pa.Table:
    """Return the picks of all units of a table: those of a release with the same key."""
    source = open_units(table, layout)
    transform = PickTransform(mechanism, key, layout=layout)
    schema = transform.rows_schema(source.schema)
    current: list[Located] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for located in source.batches(layout.columns):
            current[:] = [located]
            yield located.batch

    pick = (lambda units: map(transform.transform, units)) if source.units_are_distinct else transform
    try:
        return pa.Table.from_batches([transform.rows(picks) for picks in pick(batches())], schema)
    except BadUnitsError as error:
        raise ValueError(f"{current[0].locate(error.row, layout.unit)}: {error.problem}") from None
