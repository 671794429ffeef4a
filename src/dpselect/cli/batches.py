"""What ``select`` and ``pmf`` share: run a callable over a table's batches, resumably, and publish the results."""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpselect.cli.inputs import file_state
from dpselect.cli.progress import Progress
from dpselect.engines.arrow import PROBLEM
from dpselect.engines.jobs import Job
from dpselect.engines.layout import BadUnitsError, Layout
from dpselect.engines.outputs import copy_to_stdout
from dpselect.engines.sources import Located, Source, prefetched
from dpselect.randomness import STREAM_FORMAT

__all__ = ["Run", "describe_files", "report"]

Work = Callable[[Iterable[Any]], Iterator[Any]]


def describe_files(options: argparse.Namespace, sources: list[Path]) -> dict[str, Any]:
    """Return what a job is about: options that decide its results, and the state of the files it reads."""
    shown = ["command", "unit", "candidate", "score", "sensitivity", "offset", "anchor", "by_position"]
    shown += ["on_bad_unit", "epsilon", "mechanism", "parameter", "batch_candidates"]
    files = [*sources, *([options.candidates] if options.candidates else [])]
    states = [[str(p.resolve()), *file_state(p)] for p in files]
    settings = {name: getattr(options, name) for name in shown} | {"stream_format": STREAM_FORMAT}
    key = getattr(options, "key_file", None)
    settings |= {"files": states, "key_file": str(key) if key else None}
    settings |= {name: getattr(options, name, None) for name in ("budget", "population", "release")}
    return dict(json.loads(json.dumps(settings)))


class Run:
    """One run of a job: opened, computed, published."""

    def __init__(self, options: argparse.Namespace, source: Source, layout: Layout, stack: ExitStack) -> None:
        self._options, self._source, self._layout = options, source, layout
        output = options.output
        if output is None:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="dpselect-"))
            output = Path(directory) / "output.csv"
        self.job = stack.enter_context(Job(output, describe_files(options, source.files), restart=options.restart))
        self._started = time.monotonic()
        self._units, self._skipped = 0, Counter[str]()
        self.resumed = 0

    def compute(self, work: Work, seen: Callable[[Any], None] = lambda _: None) -> None:
        """Run ``work`` over the batches that no earlier run has finished; tell ``seen`` of those it has."""
        self._units, self._skipped = 0, Counter()
        kind = "candidates" if self._source.units_are_distinct else self._layout.unit + "s"
        with Progress(kind, quiet=self._options.quiet) as progress:
            for done in self.job.results():
                seen(done)
                self._count(done)
            self.resumed = self._units
            progress.advance(self.resumed, self._source.total, resumed=True)
            located = self._source.batches(self._layout.columns, skip=self.resumed)
            current: list[Located] = []

            def tell_apart() -> Iterator[Any]:
                for item in prefetched(located):
                    current[:] = [item]
                    yield item.batch

            try:
                for results in work(tell_apart()):
                    self.job.add(results)
                    self._count(results)
                    batch = current[0].batch
                    rows = batch.num_rows
                    if self._source.units_are_distinct:
                        rows = len(batch.column(self._layout.score).flatten())
                    progress.advance(rows, self._source.total)
            except BadUnitsError as error:
                raise ValueError(f"{current[0].locate(error.row, self._layout.unit)}: {error.problem}") from None
        self._check_unchanged()
        if not self._units:
            raise ValueError(f"{self._options.input.name!r} holds no {self._layout.unit}")

    def _count(self, results: Any) -> None:  # noqa: ANN401 - an Arrow batch
        self._units += results.num_rows
        if PROBLEM in results.schema.names:
            for entry in pc.value_counts(results.column(PROBLEM).drop_null()).to_pylist():
                self._skipped[entry["values"]] += entry["counts"]

    def _check_unchanged(self) -> None:
        if describe_files(self._options, self._source.files)["files"] != self.job.description["files"]:
            raise ValueError(f"{self._options.input.name!r} has changed while it was read")

    def publish(self, schema: Any) -> None:  # noqa: ANN401 - an Arrow schema
        """Write the output, without what was skipped."""
        if PROBLEM in schema.names:
            schema = pa.schema([field for field in schema if field.name != PROBLEM])

        def shape(batch: Any) -> Any:  # noqa: ANN401 - Arrow batches
            if PROBLEM in batch.schema.names:
                batch = batch.filter(batch.column(PROBLEM).is_null())
            return batch.select(schema.names)

        if self._options.output is None:
            self.job.publish(_flat(schema), lambda batch: _flatten(shape(batch)))
            copy_to_stdout(self.job.output)
        elif self.job.output.suffix == ".csv":
            self.job.publish(_flat(schema), lambda batch: _flatten(shape(batch)))
        else:
            self.job.publish(schema, shape)

    def summary(self) -> dict[str, Any]:
        """Return what happened, for people and programs."""
        skipped = sum(self._skipped.values())
        return {
            "units": self._units,
            "picked": self._units - skipped,
            "skipped": skipped,
            "problems": dict(self._skipped),
            "resumed": self.resumed,
            "seconds": round(time.monotonic() - self._started, 3),
            "output": None if self._options.output is None else str(self._options.output),
        }


def report(options: argparse.Namespace, facts: dict[str, Any], lines: list[str]) -> None:
    """Tell what happened: as JSON if asked for, else in lines."""
    if options.json:
        free = getattr(options, "output", None) is not None or "output" not in options
        print(json.dumps(facts, ensure_ascii=False), file=sys.stdout if free else sys.stderr)
    elif not options.quiet:
        for line in lines:
            print(line, file=sys.stderr)


def _flat(schema: Any) -> Any:  # noqa: ANN401 - Arrow schemas
    """Return a schema with lists replaced by their entries."""
    kinds = [f.type.value_type if pa.types.is_large_list(f.type) else f.type for f in schema]
    return pa.schema([pa.field(f.name, kind) for f, kind in zip(schema, kinds, strict=True)])


def _flatten(batch: Any) -> Any:  # noqa: ANN401 - Arrow batches
    """Return a row for each entry of the lists of a batch, if it has any."""
    lists = [name for name in batch.schema.names if pa.types.is_large_list(batch.schema.field(name).type)]
    if not lists:
        return batch
    parents = pc.list_parent_indices(batch.column(lists[0]))
    columns = [
        c.flatten() if n in lists else c.take(parents)
        for n, c in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_flat(batch.schema))
