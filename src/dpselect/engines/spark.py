"""Picks for Spark data frames, the same as local ones for the same key.

Spark may compute a row more than once: for a retry, a slow task or a second action. With fresh randomness each
computation would be another release. Here randomness is addressed by (key, unit), so all give the same pick.
:func:`dpselect.release.release` also charges it to a ledger.
"""

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO

import pyarrow as pa

from dpselect import rules
from dpselect.engines import Computed, Limits
from dpselect.engines.arrow import PROBLEM, RANK, PickTransform
from dpselect.errors import LayoutError, OutputError
from dpselect.extras import from_extra
from dpselect.mechanisms.base import Mechanism
from dpselect.progress import Report, ignore
from dpselect.randomness import STREAM_FORMAT
from dpselect.tables.layout import Layout
from dpselect.tables.stored import check_column, content_of

with from_extra("spark"):
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
    from pyspark.sql.types import StructType

__all__ = ["SparkTables", "open_tables", "select"]


def select(
    frame: DataFrame,
    mechanism: Mechanism,
    *,
    key: bytes,
    layout: Layout | None = None,
    units_are_distinct: bool = False,
) -> DataFrame:
    r"""Return a frame with one private pick for each unit, or with a ranked row for each pick of a ``TopK``.

    The frame has a row of lists for each unit, or a row for each candidate, in any order. The picks are the local
    ones for the same key.

    Privacy:
        That of the mechanism, for each unit; use one key for one release. The key travels to the executors with the
        tasks: anyone who can read their memory or their connections can read the key and the scores.

    Cost:
        That of the mechanism, on one thread for each task. A frame with a row for each candidate is shuffled by
        unit. A frame of lists is read once to see that no unit has two rows, unless ``units_are_distinct`` says so.

    Args:
        frame: The table.
        mechanism: Any mechanism.
        key: 32 secret bytes, such as ``Ledger.charge(...).key``.
        layout: Names of columns, and where public numbers come from.
        units_are_distinct: Whether you know that each unit has one row of lists. Two rows would share noise.

    Example:
        Given a session, ``spark``:

        >>> import dpselect as dps
        >>> from dpselect.engines.spark import select
        >>> rows = [("ann", "tea", 9.0, 0.1), ("ann", "milk", 1.0, 0.1), ("bob", "rum", 2.0, 0.1)]
        >>> frame = spark.createDataFrame(rows, ["user", "candidate", "score", "sensitivity"])
        >>> select(frame, dps.NoisyMax(epsilon=5.0), key=bytes(32)).sort("user").collect()
        [Row(user='ann', candidate='tea'), Row(user='bob', candidate='rum')]

    References:
        docs/decisions/0003-streams-addressed-by-unit.md
    """
    columns = (layout or Layout()).found_in(frame.columns)
    if columns.candidate_columns:
        frame = _gathered(frame, columns)
    transform = PickTransform(mechanism, key, layout=columns)
    if columns.unit is None:
        raise LayoutError("unit must name a column: a Spark frame has many units")
    columns.check_mechanism(mechanism, frame.columns, "the frame")
    if columns.check(_arrow_schema(frame, columns.names), "the frame", names=frame.columns):
        units = frame.select(*map(_quoted, columns.columns))
        counts = units.groupBy(_quoted(columns.unit_name)).count()
        if not units_are_distinct and counts.where("count > 1").limit(1).count():
            raise ValueError(f"column {columns.unit!r} {rules.DISTINCT_UNITS}: some unit has two rows")
    else:
        units = _grouped(frame, columns)
    names = units.columns
    published = transform.rows_schema(_arrow_schema(units, names))

    def pick(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.environ.setdefault("DPSELECT_THREADS", "1")  # Spark gives a task one processor
        picks = transform(batch.rename_columns(names) for batch in batches)
        return (batch.rename_columns(_plain_names(batch.num_columns)) for batch in map(transform.rows, picks))

    # Spark cannot hand over columns with dots or quotes in their names, so they have other names on the way.
    plain = units.toDF(*_plain_names(len(names)))
    schema = pa.schema(list(zip(_plain_names(len(published)), published.types, strict=True)))
    return plain.mapInArrow(pick, from_arrow_schema(schema)).toDF(*published.names)


def open_tables(
    frame: DataFrame,
    layout: Layout | None,
    *,
    limits: Limits,  # noqa: ARG001 - Spark has its own
    output: Path | None,
) -> "SparkTables":
    """Return a frame to compute with, its second table opened."""
    if output is not None:
        raise OutputError("output must be left out for a Spark frame: release it, and then write its picks")
    columns, _ = (layout or Layout()).open_candidates()
    return SparkTables(frame, columns.found_in(frame.columns))


@dataclass(frozen=True)
class SparkTables:
    """A Spark frame, which must have the same rows whenever it is computed.

    If they may change, ``frame.persist()`` is not enough (lost blocks are computed again): call
    ``frame.checkpoint()``, or write the frame to files first.
    """

    frame: DataFrame
    layout: Layout

    def fingerprint(self, settings: dict[str, object]) -> str:
        """Return a fingerprint of the rows, in any order and partitions, of the layout and of further settings."""
        further = json.dumps(settings, sort_keys=True)
        return _hash(f"{self._fingerprint} {further}") if settings else self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        row = f.sha2(f.to_json(f.struct("*"), {"ignoreNullFields": "false"}), 256)
        halves = [f.conv(f.substring(row, start, 15), 16, 10).cast("decimal(20,0)") for start in (1, 16)]
        [total] = self.frame.agg(f.count("*"), *map(f.sum, halves)).collect()
        # Older versions had a column of anchors and none of weights: releases paid then still match.
        described = repr(self.layout).replace(", weight=None, on_bad_unit=", ", on_bad_unit=", 1)
        described = described.replace(", on_bad_unit=", ", anchor=None, public_from=None, on_bad_unit=", 1)
        described += repr(self.layout.candidate_columns) if self.layout.candidate_columns else ""
        second = b"" if self.layout.candidates is None else content_of(self.layout.candidates)
        return _hash(f"{STREAM_FORMAT} {self.frame.schema.json()} {tuple(map(str, total))} {described}", second)

    def check_unchanged(self) -> None:
        """Do nothing: Spark does not say whether what is behind a frame has changed."""

    def pick(
        self,
        mechanism: Mechanism,
        key: bytes,
        *,
        file: IO[bytes] | None = None,  # noqa: ARG002 - refused when the frame was opened
        progress: Report = ignore,  # noqa: ARG002 - Spark has its own
    ) -> Computed:
        """Return the frame of picks, computed and persisted, so that bad input is found before the charge."""
        picks = select(self.frame, mechanism, key=key, layout=self.layout).persist()
        units = picks if mechanism.count is None else picks.where(f"`{RANK}` = 1 OR `{RANK}` IS NULL")
        try:
            if self.layout.on_bad_unit == "skip":
                found = {row[PROBLEM]: row["count"] for row in units.groupBy(PROBLEM).count().collect()}
            else:
                found = {None: units.count()}
        except Exception:
            picks.unpersist()
            self._explain(mechanism, key)
            raise
        problems = {problem: count for problem, count in found.items() if problem is not None}
        return Computed(picks, sum(found.values()), problems)

    def _explain(self, mechanism: Mechanism, key: bytes) -> None:
        """Raise an error that names a bad unit, if there is one: that of a task is about a row of some batch."""
        if self.layout.on_bad_unit == "skip" or PROBLEM in {self.layout.unit_name, self.layout.pick_name}:
            return
        skipping = replace(self.layout, on_bad_unit="skip")
        found = select(self.frame, mechanism, key=key, layout=skipping, units_are_distinct=True)
        bad = found.where(f"`{PROBLEM}` IS NOT NULL").sort(_quoted(self.layout.unit_name)).first()
        if bad is not None:
            unit, name = bad[0], self.layout.unit_name
            place = f"rows without {name}" if unit is None else f"{name} {unit!r}"
            raise ValueError(f"the frame, {place}: {bad[PROBLEM]}") from None


def _hash(text: str, content: bytes = b"") -> str:
    digest = hashlib.blake2b(text.encode(), digest_size=16, person=b"dpselect frame")
    digest.update(content)
    return digest.hexdigest()


def _arrow_schema(frame: DataFrame, names: Collection[str]) -> pa.Schema:
    """Return the columns of these names as Arrow's: others may have types that Arrow has not."""
    return to_arrow_schema(StructType([field for field in frame.schema if field.name in names]))


def _grouped(frame: DataFrame, layout: Layout) -> DataFrame:
    """Return a frame with a row for each unit, candidates in the order of their identifiers."""
    unit, *names = layout.columns  # the candidate comes first
    fields = [f.col(_quoted(name)).alias(f"_{i}") for i, name in enumerate(names)]
    rows = f.array_sort(f.collect_list(f.struct(*fields)))
    grouped = frame.groupBy(f.col(_quoted(unit)).alias(unit)).agg(rows.alias("_rows"))
    return grouped.select(_quoted(unit), *(f.col(f"_rows._{i}").alias(name) for i, name in enumerate(names)))


def _gathered(frame: DataFrame, layout: Layout) -> DataFrame:
    """Return a frame with lists of candidates and scores in place of a column for each candidate."""
    for name in layout.candidate_columns:
        check_column(frame.columns, name, "candidate_columns", "the frame")
    names = f.array(*map(f.lit, layout.candidate_columns)).alias(layout.pick_name)
    scores = f.array(*map(_quoted, layout.candidate_columns)).alias(layout.score)
    return frame.select(_quoted(layout.unit_name), names, scores)


def _plain_names(count: int) -> list[str]:
    return [f"column_{i}" for i in range(count)]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
