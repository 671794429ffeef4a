"""Picks and probabilities for a table in memory or in files, batch by batch."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from dpselect.budget.fingerprints import combine_hashes, hash_files
from dpselect.engines import Computed, Limits
from dpselect.engines.arrow import PROBLEM, PickTransform, PmfTransform
from dpselect.errors import BadUnitsError
from dpselect.mechanisms.base import Mechanism
from dpselect.progress import Report, Step, ignore
from dpselect.tables.conversion import convert_like
from dpselect.tables.layout import ONE, Layout
from dpselect.tables.sources import UnitSource, open_units, prefetched
from dpselect.tables.stored import AnyTable, Located, StoredTable, open_table
from dpselect.tables.writing import output_format, write_batches

__all__ = ["LocalTables", "open_tables"]


def open_tables(table: AnyTable, layout: Layout | None, *, limits: Limits, output: Path | None) -> "LocalTables":
    """Open tables in memory or in files, and check their columns."""
    given = layout or Layout()
    opened = open_table(table, given.format, given.names, given.number_names)
    second = given.open_candidates()
    columns = given.with_candidates(second)
    scratch = None if output is None else output.resolve().parent
    source = open_units(opened, columns, scratch=scratch, **limits._asdict())
    return LocalTables(table, opened, second, columns, source, output)


def _described(sensitivity: str | float) -> object:
    """Return a number or the name of a column for a fingerprint, in which they must differ.

    Only names that read like numbers have a form of their own: releases paid with earlier versions still match.
    """
    if isinstance(sensitivity, str):
        with suppress(ValueError):
            if str(float(sensitivity)) == sensitivity:
                return {"column": sensitivity}
    return str(sensitivity)


@dataclass(frozen=True, repr=False)  # scores are private
class LocalTables:
    """Tables in memory or in files."""

    given: AnyTable
    table: StoredTable
    candidates: StoredTable | None
    columns: Layout
    source: UnitSource
    output: Path | None

    @cached_property
    def layout(self) -> Layout:
        """The layout of the source, which always has units."""
        return replace(self.columns, unit=self.columns.unit_name)

    @property
    def _hidden(self) -> set[str]:
        """Columns of results that are not published: those that were added to the user's own."""
        added = {PROBLEM: self.columns.on_bad_unit == "skip", ONE: self.columns.unit is None}
        return {name for name, is_added in added.items() if is_added}

    # --- Fingerprints ----------------------------------------------------------------------------------------

    def fingerprint(self, settings: dict[str, object]) -> str:
        """Return a fingerprint of the contents of the tables, of how they are read, and of further settings."""
        return combine_hashes(self._hashes, self._settings() | settings)

    @cached_property
    def _hashes(self) -> list[bytes]:
        return hash_files(path for _, table in self._tables() for path in table.files)

    def _settings(self) -> dict[str, object]:
        """Return what decides, besides the contents of tables, what is read out of them."""
        columns = self.columns
        chosen = {} if columns.public_from is None else {"public_from": columns.public_from}
        return chosen | {
            "unit": columns.unit,
            "candidate": columns.pick_name,
            "score": columns.score,
            "sensitivity": _described(columns.sensitivity),
            "offset": columns.offset,
            "anchor": None,  # a column that older versions had: releases paid then still match
            "by_position": columns.candidate is None,
            "on_bad_unit": columns.on_bad_unit,
            "one": columns.unit is None,
            "readings": [[role, *options] for role, table in self._tables() for options in table.read_options()],
        }

    def check_unchanged(self) -> None:
        """Raise if a table is not what it was when it was opened."""
        for _, table in self._tables():
            table.check_unchanged()

    def _tables(self) -> Iterator[tuple[str, StoredTable]]:
        yield "input", self.table
        if self.candidates is not None:
            yield "candidates", self.candidates

    # --- Results ---------------------------------------------------------------------------------------------

    def pick(
        self, mechanism: Mechanism, key: bytes, *, file: IO[bytes] | None = None, progress: Report = ignore
    ) -> Computed:
        """Return a pick or a list for each unit, drawn with a key, or write them to a file."""
        transform = PickTransform(mechanism, key, layout=self.layout)
        schema = transform.rows_schema(self.source.schema)
        work = partial(map, transform.transform) if self.source.units_are_distinct else transform
        return self._compute(work, transform.rows, schema, file, progress)

    def weigh(self, mechanism: Mechanism, file: IO[bytes], *, progress: Report = ignore) -> Computed:
        """Write the probabilities of all candidates of all units to a file. **Not private**: they reveal scores."""
        transform = PmfTransform(mechanism, layout=self.layout)
        return self._compute(transform, lambda batch: batch, transform.schema(self.source.schema), file, progress)

    def _compute(
        self,
        work: Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]],
        rows: Callable[[pa.RecordBatch], pa.RecordBatch],
        schema: pa.Schema,
        file: IO[bytes] | None,
        progress: Report,
    ) -> Computed:
        """Run ``work`` over all batches, and return or write what ``rows`` makes of its results."""
        read = _Pass(self, progress)
        shown = pa.schema([field for field in schema if field.name not in self._hidden])
        results = (rows(good).select(shown.names) for good in read.results(work))
        if file is None or self.output is None:
            picks = convert_like(self.given, pa.Table.from_batches(results, shown))
            return Computed(picks, read.units, dict(read.problems))
        file.seek(0)
        file.truncate()
        write_batches(results, shown, output_format(self.output), file)
        if not read.units:
            raise ValueError(f"{self.table.label} holds no {self.columns.unit or 'candidate'}")
        file.flush()
        os.fsync(file.fileno())  # a full disk must show before anything is paid
        return Computed(None, read.units, dict(read.problems))


class _Pass:
    """One pass over the units of a table, which are counted."""

    def __init__(self, tables: LocalTables, progress: Report) -> None:
        self._tables, self._source, self._progress = tables, tables.source, progress
        self.units, self.problems = 0, Counter[str]()

    def results(
        self, work: Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]
    ) -> Iterator[pa.RecordBatch]:
        """Yield what ``work`` makes of all batches, without the units that it skips."""
        source, unit = self._source, self._tables.columns.unit_name
        long, read = source.units_are_distinct, 0
        counted = "candidates" if long else f"{unit}s"
        if source.waiting is None:
            self._progress(Step(0, source.rows, counted))
        current: list[Located] = []

        def batches() -> Iterator[pa.RecordBatch]:
            stored = source.batches(self._tables.layout.columns)
            for located in prefetched(stored, interrupt=source.interrupt, waiting=self._wait):
                current[:] = [located]
                yield located.batch

        try:
            for results in work(batches()):
                batch = current[0].batch
                read += len(batch.column(self._tables.layout.score).flatten()) if long else batch.num_rows
                yield self._good(results)
                self._progress(Step(read, source.rows, counted))
        except BadUnitsError as error:
            whole = self._tables.columns.unit is None
            place = current[0].place if whole else current[0].locate(error.row, unit)
            raise ValueError(f"{place}: {error.problem}") from None

    def _wait(self) -> None:
        if self._source.waiting is not None:
            self._progress(self._source.waiting)

    def _good(self, results: pa.RecordBatch) -> pa.RecordBatch:
        """Count units, and return those without a problem."""
        self.units += results.num_rows
        if self._tables.columns.on_bad_unit != "skip":
            return results
        problems = results.column(PROBLEM)
        for entry in pc.value_counts(problems.drop_null()).to_pylist():
            self.problems[entry["values"]] += entry["counts"]
        return results.filter(problems.is_null())
