"""Picks for a table in memory or in files, batch by batch."""

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpselect.budget.fingerprints import combine_hashes, hash_files
from dpselect.engines import Computed, Limits
from dpselect.engines.arrow import PROBLEM, PickTransform
from dpselect.errors import BadUnitsError
from dpselect.mechanisms.base import Mechanism
from dpselect.precompilation import load_kernels
from dpselect.progress import Report, Step, ignore
from dpselect.tables.arrays import decoded, from_numpy, to_numpy
from dpselect.tables.conversion import convert_like
from dpselect.tables.layout import ONE, Layout
from dpselect.tables.sorting import SortedUnits
from dpselect.tables.stored import BATCH_CANDIDATES, AnyTable, Located, StoredTable, open_table
from dpselect.tables.units import find_problems
from dpselect.tables.writing import output_format, write_batches

SECONDS_BETWEEN_LOOKS = 0.2

LONG = 1 << 24
"""Files larger than this, in bytes, have enough candidates to need kernels."""


def open_tables(table: AnyTable, layout: Layout | None, *, limits: Limits, output: Path | None) -> "LocalTables":
    """Open tables in memory or in files, and check their columns."""
    given = layout or Layout()
    opened = open_table(table, given.format, given.names, given.number_names)
    columns, second = given.open_candidates()
    columns = columns.found_in(opened.column_names)
    if columns.candidate_columns:
        opened = opened.gathered(columns.unit_name, columns.pick_name, columns.score, columns.candidate_columns)
    scratch = None if output is None else output.resolve().parent
    lists = columns.check(opened.schema, opened.label, names=opened.column_names, text=opened.is_text)
    source = opened if lists else SortedUnits(opened, columns, scratch=scratch, memory=limits.memory)
    return LocalTables(table, opened, second, columns, source, output, limits.batch_candidates)


def _described(sensitivity: str | float | None) -> object:
    """Return a number, the name of a column or ``None`` for a fingerprint, in which they must differ.

    Only names that read like numbers have a form of their own: releases paid with earlier versions still match.
    """
    if isinstance(sensitivity, str):
        with suppress(ValueError):
            if str(float(sensitivity)) == sensitivity:
                return {"column": sensitivity}
    return None if sensitivity is None else str(sensitivity)


@dataclass(frozen=True, repr=False)  # scores are private
class LocalTables:
    """Tables in memory or in files."""

    given: AnyTable
    table: StoredTable
    candidates: StoredTable | None
    columns: Layout
    source: StoredTable | SortedUnits
    """Units in batches of lists: the table as it is, or sorted and grouped."""
    output: Path | None
    batch_candidates: int

    @cached_property
    def layout(self) -> Layout:
        """The layout of the source, which always has units."""
        return replace(self.columns, unit=self.columns.unit_name)

    def fingerprint(self, settings: dict[str, object]) -> str:
        """Return a fingerprint of the contents of the tables, of how they are read, and of further settings."""
        return combine_hashes(self._hashes, self._settings() | settings)

    @cached_property
    def _hashes(self) -> list[bytes]:
        return hash_files(path for _, table in self._tables() for path in table.files)

    def _settings(self) -> dict[str, object]:
        """Return what decides, besides the contents of tables, what is read out of them."""
        columns = self.columns
        later = {} if columns.weight is None else {"weight": columns.weight}  # releases without one still match
        return later | {
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

    def pick(
        self, mechanism: Mechanism, key: bytes, *, file: IO[bytes] | None = None, progress: Report = ignore
    ) -> Computed:
        """Return a pick or a list for each unit, drawn with a key, or write them to a file."""
        transform = PickTransform(mechanism, key, layout=self.layout)
        self.columns.check_mechanism(mechanism, self.table.column_names, self.table.label)
        units, problems = 0, Counter[str]()
        schema = transform.rows_schema(self.source.schema)
        skip, to_file = self.columns.on_bad_unit == "skip", file is not None
        added = {PROBLEM: skip and to_file, ONE: self.columns.unit is None}
        shown = pa.schema([field for field in schema if not added.get(field.name)])

        def rows(located: Iterator[Located]) -> Iterator[pa.RecordBatch]:
            nonlocal units
            for results in self._results(transform, located, progress):
                units += results.num_rows
                if skip:
                    found = results.column(PROBLEM)
                    counts = pc.value_counts(found.drop_null()).to_pylist()
                    problems.update({entry["values"]: entry["counts"] for entry in counts})
                    results = results.filter(found.is_null()) if to_file else results  # noqa: PLW2901
                yield transform.rows(results).select(shown.names)

        large = self._is_long and sum(path.stat().st_size for path in self.table.files) > LONG
        ahead = read_ahead(
            self.source,
            self.layout.columns,
            entries=self.batch_candidates,
            progress=progress,
            meanwhile=partial(load_kernels, mechanism) if large else None,
        )
        with closing(ahead) as located:  # closing waits for a thread: the garbage collector must not do it
            if file is None or self.output is None:
                picks = convert_like(self.given, pa.Table.from_batches(rows(located), shown))
                return Computed(picks, units, dict(problems))
            file.seek(0)
            file.truncate()
            write_batches(rows(located), shown, output_format(self.output), file)
        if not units:
            raise ValueError(f"{self.table.label} holds no {self.columns.unit or 'candidate'}")
        file.flush()
        os.fsync(file.fileno())  # a full disk must show before anything is paid
        return Computed(None, units, dict(problems))

    @property
    def _is_long(self) -> bool:
        """Whether the table has a row for each candidate."""
        return self.source is not self.table

    def _results(
        self, transform: PickTransform, source: Iterator[Located], progress: Report
    ) -> Iterator[pa.RecordBatch]:
        """Yield what a transform makes of all batches, and say how far it is and where a bad unit is."""
        unit, score = self.columns.unit_name, self.columns.score
        long, done = self._is_long, 0
        current: list[Located] = []

        def batches() -> Iterator[pa.RecordBatch]:
            for located in source:
                current[:] = [located]
                yield located.batch

        if not long:
            progress(Step(0, self.source.rows, f"{unit}s"))
        try:
            for results in transform(batches()):
                yield results
                batch = current[0].batch
                done += len(batch.column(score).flatten()) if long else batch.num_rows
                progress(Step(done, self.source.rows, "candidates" if long else f"{unit}s"))
        except BadUnitsError as error:
            place = self._bad_row(current[0].batch.column(unit)[error.row], error.problem) if long else ""
            raise ValueError(f"{place or current[0].locate(error.row, unit)}: {error.problem}") from None

    def _bad_row(self, unit: pa.Scalar, problem: str) -> str:
        """Say which row of a unit has a problem, in a table that was sorted: a bad value, or a name again."""
        names: set[object] = set()
        alone = replace(self.layout, weight=None)  # for a weight there is a rule about all rows of a unit
        layout = self.layout if problem.startswith(f"column {self.layout.weight!r}") else alone
        for located in self.table.batches(self.columns.columns):
            places = np.arange(located.batch.num_rows)
            if self.columns.unit is not None:
                units = decoded(located.batch.column(self.columns.unit)).cast(unit.type)
                places = np.flatnonzero(to_numpy(pc.is_in(units, value_set=pa.array([unit.as_py()], unit.type))))
            rows, ends = located.batch.take(from_numpy(places)), from_numpy(np.arange(places.size + 1))
            own = [pa.LargeListArray.from_arrays(ends, rows.column(name)) for name in layout.columns[1:]]
            units = pa.array([unit.as_py()] * places.size, unit.type)
            found = find_problems(pa.RecordBatch.from_arrays([units, *own], layout.columns), layout)
            candidates = rows.column(self.columns.pick_name).to_pylist()
            for place, rule, name in zip(places.tolist(), found.to_pylist(), candidates, strict=True):
                if (rule is not None and problem.startswith(rule)) or name in names:
                    return located.locate(place, self.columns.unit_name)
                names.add(name)
        return ""


def read_ahead(
    source: StoredTable | SortedUnits,
    columns: list[str],
    *,
    entries: int = BATCH_CANDIDATES,
    progress: Report = ignore,
    meanwhile: Callable[[], None] | None = None,
) -> Generator[Located]:
    """Yield batches, each read in a thread while the one before is used, the first while ``meanwhile`` runs."""
    batches, reading = source.batches(columns, entries=entries), Lock()

    def read() -> list[Located]:
        with reading:
            return list(islice(batches, 1))

    pool = ThreadPoolExecutor(1, "dpselect-reader")
    ahead: Future[list[Located]] = Future()  # an interrupt may come before the first is there
    try:
        ahead = pool.submit(read)
        if meanwhile is not None:
            meanwhile()
        while True:
            while not wait([ahead], SECONDS_BETWEEN_LOOKS).done:  # before the first batch, rows are sorted
                if source.waiting is not None:
                    progress(source.waiting)
            if not (found := ahead.result()):
                return
            ahead = pool.submit(read)
            yield found[0]
    finally:
        if not ahead.done():
            source.interrupt()
        pool.shutdown()  # a sort in memory cannot be interrupted
        with reading:  # if an interrupt came while the thread started, the pool does not know it
            batches.close()  # what DuckDB has on disk
