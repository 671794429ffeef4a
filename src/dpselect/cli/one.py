"""``dpselect select --one``: one private pick out of a whole table."""

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from dpselect.cli.batches import describe_files, report
from dpselect.cli.inputs import Inputs
from dpselect.cli.payment import open_payment
from dpselect.cli.progress import Progress
from dpselect.cli.tables import UsageError, check_columns, make_layout, parse_numbers
from dpselect.engines.grouping import open_csv
from dpselect.engines.jobs import Job
from dpselect.engines.outputs import copy_to_stdout
from dpselect.engines.single import check_types, column_names, select_one
from dpselect.engines.sources import ArrowSource, Located, ParquetSource, prefetched, table_files, table_format
from dpselect.mechanisms.base import Mechanism
from dpselect.mechanisms.partitioned import PartitionedSelection

__all__ = ["run"]


def run(options: argparse.Namespace, mechanism: Mechanism) -> None:
    """Pick, pay, publish, report."""
    if options.by_position or options.offset or options.anchor or options.on_bad_unit == "skip":
        raise UsageError("--one goes with neither --by-position, --offset, --anchor nor --on-bad-unit=skip")
    inputs = Inputs(options)
    kind = table_format(options.input, options.format)
    files = table_files(options.input, kind)
    table = Candidates(files, kind, options)
    started = time.monotonic()
    with ExitStack() as stack:
        payment = open_payment(options, inputs, mechanism, stack)
        output = options.output
        if output is None:
            output = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dpselect-"))) / "output.csv"
        job = stack.enter_context(Job(output, describe_files(options, files), restart=True))
        progress = stack.enter_context(Progress("rows", quiet=options.quiet))
        total = None if table.rows is None else 2 * table.rows

        def compute(key: bytes) -> int:
            read = [0]

            def tell(rows: int) -> None:
                read[0] += rows
                progress.advance(rows, total)

            selection = PartitionedSelection(mechanism, key)
            pick = select_one(selection, lambda: prefetched(table.batches()), table.layout, tell)
            name = table.layout.pick_name
            job.forget_parts()
            job.add(pa.RecordBatch.from_arrays([pa.array([pick], table.pick_type)], names=[name]))
            return read[0] // 2

        count = payment.pay_for(compute, job)
        job.publish(pa.schema([(table.layout.pick_name, table.pick_type)]))
        if options.output is None:
            copy_to_stdout(job.output)
        facts = {
            "candidates": count,
            "mechanism": repr(mechanism),
            "epsilon": mechanism.guarantee.epsilon,
            "seconds": round(time.monotonic() - started, 3),
            "output": None if options.output is None else str(options.output),
        }
        lines = [f"one of {count:,} candidates with ε = {facts['epsilon']:g}, in {facts['seconds']:.1f} s"]
        facts |= payment.facts()
        lines += payment.lines()
    report(options, facts, lines)


class Candidates:
    """A table with a row for each candidate, in a CSV, Parquet or Arrow file or a folder."""

    def __init__(self, files: list[Path], kind: str, options: argparse.Namespace) -> None:
        self._files, self._csv = files, kind == "csv"
        self.layout = make_layout(options)
        self._names = column_names(self.layout)
        if self._csv:
            with open_csv(files[0]) as reader:
                stored = reader.schema
        else:
            size = options.batch_candidates
            self._source = (
                ParquetSource(files, batch_candidates=size)
                if kind == "parquet"
                else ArrowSource(files[0], batch_candidates=size)
            )
            stored = self._source.schema
        check_columns(stored.names, self._names, options)
        if not self._csv:
            check_types(stored, self.layout)
        self.pick_type = stored.field(self.layout.pick_name).type
        if pa.types.is_dictionary(self.pick_type):
            self.pick_type = self.pick_type.value_type

    @property
    def rows(self) -> int | None:
        """How many rows there are, if that is known."""
        return None if self._csv else self._source.total

    def batches(self) -> Iterator[Located]:
        """Yield the rows in batches."""
        if not self._csv:
            yield from self._source.batches(self._names)
            return
        first = 0
        with open_csv(self._files[0], self._names) as reader:
            for batch in reader:
                columns = [
                    c if n == self.layout.candidate else parse_numbers(c)
                    for n, c in zip(batch.schema.names, batch.columns, strict=True)
                ]
                yield Located(
                    pa.RecordBatch.from_arrays(columns, names=batch.schema.names), self._files[0].name, first
                )
                first += batch.num_rows
