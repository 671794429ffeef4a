"""One private pick for each unit of a table, paid for and published; and exact probabilities, not private."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from dpselect.engines.arrow import PROBLEM, BadUnitsError, PickTransform, PmfTransform
from dpselect.engines.distinct import DistinctUnits
from dpselect.mechanisms.base import Mechanism
from dpselect.progress import Report, Step, ignore
from dpselect.randomness import STREAM_FORMAT
from dpselect.release.inputs import Inputs
from dpselect.release.jobs import Job
from dpselect.release.payment import FreshKey, Payment, Receipt, Terms, refuse_second_release
from dpselect.tables.layout import Layout
from dpselect.tables.sorting import MEMORY
from dpselect.tables.sources import UnitSource, open_units, prefetched
from dpselect.tables.stored import BATCH_CANDIDATES, AnyTable, Csv, Format, Located
from dpselect.tables.writing import check_output

__all__ = ["Released", "release_picks", "write_pmf"]


@dataclass(frozen=True, kw_only=True)
class Released:
    """What was published. All of it is public, but ``skipped`` may depend on which scores are not numbers."""

    units: int
    """Units in the table."""
    skipped: int
    """Units that broke a rule and got no pick."""
    problems: dict[str, int]
    """How many units broke which rule."""
    resumed: int
    """Units that an earlier, interrupted run had finished."""
    seconds: float
    output: Path
    mechanism: Mechanism
    receipt: Receipt | None
    """What was paid, if a ledger was charged."""

    @property
    def picked(self) -> int:
        """Units that got a pick."""
        return self.units - self.skipped


def release_picks(
    table: AnyTable,
    mechanism: Mechanism,
    output: str | Path,
    *,
    layout: Layout | None = None,
    candidates: AnyTable | None = None,
    format: Format | Csv | None = None,
    payment: Payment | None = None,
    overwrite: bool = False,
    restart: bool = False,
    memory: str = MEMORY,
    batch_candidates: int = BATCH_CANDIDATES,
    progress: Report = ignore,
) -> Released:
    """Release one private pick, or a private list, for each unit of a table.

    Picks are computed in batches, kept where only you can read them, paid for, and then published under the name of
    the output. If you interrupt the call, the same call goes on where it stopped. If the release is refused, for
    bad input or by the budget, nothing is left behind.

    Privacy:
        That of the mechanism, for each unit. Without ``payment`` every call is a release of its own, and you keep
        the account. A ledger or a key file makes the same call give the same picks again.

    Cost:
        That of the mechanism and of reading the table; with a ledger or a key file one more reading, for a
        fingerprint. Memory is that of some batches.

    Args:
        table: A path (CSV, Parquet, a folder of Parquet files, Arrow IPC), an Arrow table or a data frame (pandas,
            polars, DuckDB); with list columns, or with a row for each candidate.
        mechanism: Any mechanism; with a :class:`~dpselect.TopK` the output has a row and a rank for each pick.
        output: Where picks go: .parquet, .csv, .json, .jsonl or .arrow.
        layout: Where the columns are.
        candidates: A second table with public numbers of each candidate.
        format: The format of the file, if its name does not say; or :class:`Csv`, how to read a CSV file.
        payment: :class:`Charge`, :class:`KeyFile`, or by default a fresh key that is forgotten.
        overwrite: Whether to replace an output that exists. With a fresh key that is another release.
        restart: Whether to give up an unfinished job for the same output.
        memory: How much memory sorting may take.
        batch_candidates: About how many candidates a batch holds.
        progress: Called with a :class:`~dpselect.progress.Step` now and then.

    Raises:
        BudgetError: If the ledger refuses the release.
        KeyReuseError: If the key file belongs to another release.
        JobConflictError: If another job is unfinished, or running, for the same output.
        OutputExistsError: If the output exists, and neither a ledger nor a key file gives the same picks again.
        ValueError: If the input breaks a rule. The message names the place, the column and the rule, and no score.

    Example:
        See :mod:`dpselect.release`.

    References:
        docs/decisions/0008-charge-before-release.md
    """
    started = time.monotonic()
    path = Path(output)
    check_output(path)
    paying = payment or FreshKey()
    if not overwrite:
        refuse_second_release(path, paying, mechanism)
    inputs = Inputs.open(table, layout, candidates, format)
    source = open_units(
        inputs.table,
        inputs.layout,
        scratch=path.resolve().parent,
        memory=memory,
        batch_candidates=batch_candidates,
    )
    terms = Terms.of_tables("select", mechanism, inputs)
    paying.check(terms)
    description = _describe("select", mechanism, inputs, batch_candidates) | paying.describe()
    with Job(path, description, restart=restart) as job:
        run = _Run(job, source, inputs, progress)

        def compute(key: bytes) -> PickTransform:
            picks = PickTransform(mechanism, key, layout=inputs.layout)
            if source.units_are_distinct:
                run.compute(lambda batches: map(picks.transform, batches))
                return picks
            with DistinctUnits() as seen:
                run.compute(
                    lambda batches: picks.over(batches, seen),
                    lambda done: seen.add(picks.addresses(_picked_units(done, inputs.layout.unit))),
                )
            return picks

        picks, receipt = paying.pay_for(terms, compute, job)
        run.publish(picks.rows_schema(source.schema), picks.rows)
    return run.released(mechanism, receipt, started)


def write_pmf(
    table: AnyTable,
    mechanism: Mechanism,
    output: str | Path,
    *,
    layout: Layout | None = None,
    candidates: AnyTable | None = None,
    format: Format | Csv | None = None,
    restart: bool = False,
    memory: str = MEMORY,
    batch_candidates: int = BATCH_CANDIDATES,
    progress: Report = ignore,
) -> Released:
    """Write the exact probability of every candidate of every unit. **Not private**: probabilities reveal scores.

    The arguments are those of :func:`release_picks`; nothing is paid.

    Args:
        table: The table of scores.
        mechanism: Any mechanism.
        output: The file to write.
        layout: Which columns mean what.
        candidates: A table with public numbers of each candidate.
        format: The format of the tables, if their names do not tell.
        restart: Whether to start again instead of resuming.
        memory: How much memory sorting may take.
        batch_candidates: About how many candidates a batch holds.
        progress: Called after each step.
    """
    started = time.monotonic()
    inputs = Inputs.open(table, layout, candidates, format)
    path = Path(output)
    scratch = path.resolve().parent
    source = open_units(
        inputs.table, inputs.layout, scratch=scratch, memory=memory, batch_candidates=batch_candidates
    )
    with Job(path, _describe("pmf", mechanism, inputs, batch_candidates), restart=restart) as job:
        run = _Run(job, source, inputs, progress)
        law = PmfTransform(mechanism, layout=inputs.layout)
        run.compute(law)
        inputs.check_unchanged()
        run.publish(law.schema(source.schema))
    return run.released(mechanism, None, started)


def _describe(command: str, mechanism: Mechanism, inputs: Inputs, batch_candidates: int) -> dict[str, object]:
    """Return what a job is about: everything that decides its results or where its batches end."""
    description = inputs.settings() | {"command": command, "mechanism": repr(mechanism), "files": inputs.state()}
    description |= {"batch_candidates": batch_candidates, "stream_format": STREAM_FORMAT}
    return dict(json.loads(json.dumps(description)))


class _Run:
    """One run of a job: computed, then published."""

    def __init__(self, job: Job, source: UnitSource, inputs: Inputs, progress: Report) -> None:
        self._job, self._source, self._inputs, self._progress = job, source, inputs, progress
        self._layout = inputs.layout
        self._units, self._problems, self._resumed = 0, Counter[str](), 0

    def compute(
        self,
        work: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        resume: Callable[[pa.RecordBatch], None] = lambda _: None,
    ) -> None:
        """Run ``work`` over the unfinished batches; call ``resume`` with the results of the finished ones."""
        self._units, self._problems = 0, Counter()
        for done in self._job.results():
            resume(done)
            self._count(done)
        self._resumed = read = self._units
        long = self._source.units_are_distinct
        counted = "candidates" if long else f"{self._layout.unit}s"
        if self._source.waiting is None:
            self._progress(Step(read, self._source.rows, counted, resumed=read))
        current: list[Located] = []

        def batches() -> Iterator[pa.RecordBatch]:
            stored = _skipping(self._source.batches(self._layout.columns), self._resumed)
            for located in prefetched(stored, interrupt=self._source.interrupt, waiting=self._wait):
                current[:] = [located]
                yield located.batch

        try:
            for results in work(batches()):
                self._job.add(results)
                self._count(results)
                batch = current[0].batch
                read += len(batch.column(self._layout.score).flatten()) if long else batch.num_rows
                self._progress(Step(read, self._source.rows, counted, resumed=self._resumed))
        except BadUnitsError as error:
            raise ValueError(f"{current[0].locate(error.row, self._layout.unit)}: {error.problem}") from None
        if not self._units:
            raise ValueError(f"{self._inputs.table.label} holds no {self._layout.unit}")

    def _wait(self) -> None:
        if self._source.waiting is not None:
            self._progress(self._source.waiting)

    def _count(self, results: pa.RecordBatch) -> None:
        self._units += results.num_rows
        if PROBLEM in results.schema.names:
            for entry in pc.value_counts(results.column(PROBLEM).drop_null()).to_pylist():
                self._problems[entry["values"]] += entry["counts"]

    def publish(
        self, schema: pa.Schema, rows: Callable[[pa.RecordBatch], pa.RecordBatch] = lambda results: results
    ) -> None:
        """Write the output, results made into rows, without what was skipped."""
        names = [name for name in schema.names if name != PROBLEM]

        def shape(batch: pa.RecordBatch) -> pa.RecordBatch:
            if PROBLEM in batch.schema.names:
                batch = batch.filter(batch.column(PROBLEM).is_null())
            return rows(batch).select(names)

        self._job.publish(pa.schema([schema.field(name) for name in names]), shape)

    def released(self, mechanism: Mechanism, receipt: Receipt | None, started: float) -> Released:
        """Return what happened."""
        return Released(
            units=self._units,
            skipped=self._problems.total(),
            problems=dict(self._problems),
            resumed=self._resumed,
            seconds=time.monotonic() - started,
            output=self._job.output,
            mechanism=mechanism,
            receipt=receipt,
        )


def _skipping(batches: Iterable[Located], skip: int) -> Iterator[Located]:
    for located in batches:
        count = located.batch.num_rows
        if skip < count:
            first = None if located.first is None else located.first + skip
            yield Located(located.batch.slice(skip), located.place, first)
        skip = max(0, skip - count)


def _picked_units(results: pa.RecordBatch, unit: str) -> pa.Array:
    """Return the units that got a pick."""
    column = results.column(unit)
    return column.filter(results.column(PROBLEM).is_null()) if PROBLEM in results.schema.names else column
