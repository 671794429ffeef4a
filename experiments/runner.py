"""Runs experiments and writes the files: tables, figures, the ledger and the report."""

import os
import signal
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
from matplotlib.figure import Figure

import dpselect as dps
from experiments import ledger, report, tables
from experiments.drawing import look
from experiments.experiment import Effort, Experiment, Task
from experiments.files import replacing
from experiments.parts import Parts
from experiments.steps import Steps

__all__ = ["run"]

# What matplotlib would stamp into each format. Without it, the same table gives the same file.
FORMATS: Mapping[str, dict[str, None]] = MappingProxyType(
    {
        "svg": {"Creator": None, "Date": None, "Format": None, "Type": None},
        "png": {"Software": None},
        "pdf": {"CreationDate": None},
    }
)

MANY_KERNELS = ("heterogeneous-rnm", "gem", "rnm", "top-share", "krr")
"""The mechanisms whose kernels take longest to compile, of those that the report uses."""


def run(experiments: Sequence[Experiment], effort: Effort, output: Path, *, page: str = "report.html") -> Path:
    """Compute, draw and report all experiments, and return the report's path.

    Results of an earlier run in the same directory are reused, even if that run was interrupted.

    Args:
        experiments: In the order of the report.
        effort: How finely to compute.
        output: The directory for the report, ``figures``, ``tables``, and ``parts``, which are the kept results.
        page: The report's file name.
    """
    started = time.monotonic()
    plans = [experiment.plan(effort) for experiment in experiments]
    # Hash all code now: code that changes during the run must not pass for the code that is running.
    kept = [Parts.of(experiment, effort, output) for experiment in experiments]
    files, orders = [], []
    with Steps(sum(len(plan) + 1 for plan in plans)) as progress, _drawing_office(len(experiments)) as office:
        if len(experiments) > 1 and not any(parts.directory.exists() for parts in kept):
            for name in MANY_KERNELS:  # while the first experiments are computed, which need others
                office.submit(dps.compile, name)
        for experiment, plan, parts in zip(experiments, plans, kept, strict=True):
            files.append(_compute(experiment, plan, parts, output, progress))
            for suffix in FORMATS.keys() - set(effort.formats):  # drawn from an earlier run's tables
                (output / "figures" / f"{experiment.name}.{suffix}").unlink(missing_ok=True)
            figure = parts.figure(files[-1].values(), _pictures(experiment, effort, output).values())
            # Other processes draw while the next experiment is computed. Unchanged figures are not drawn again.
            order = (
                None
                if figure.is_current()
                else office.submit(_draw, experiment.draw, files[-1], _pictures(experiment, effort, output))
            )
            orders.append((figure, order))
        for experiment, (figure, order) in zip(experiments, orders, strict=True):
            progress.begin(f"{experiment.title}: drawing")
            if order is not None:
                for message in order.result():
                    warnings.warn(f"{experiment.name}: {message}", stacklevel=2)
                figure.remember()
    sections = [
        _section(experiment, found, effort, output) for experiment, found in zip(experiments, files, strict=True)
    ]
    entries = ledger.in_order([entry for section in sections for entry in section.entries])
    steps, reused = sum(len(plan) for plan in plans), sum(parts.reused for parts in kept)
    origin = report.provenance(effort, time.monotonic() - started, steps=steps, reused=reused)
    if page == "report.html":
        tables.write(ledger.table(entries), output / "tables" / "claims.csv")
        with replacing(output / "claims.md") as temporary:
            temporary.write_text(ledger.markdown(entries, origin), encoding="utf-8")
    path = output / page
    report.write(path, sections, entries, origin)
    return path


def _compute(
    experiment: Experiment, plan: Sequence[Task], parts: Parts, output: Path, progress: Steps
) -> dict[str, Path]:
    """Write an experiment's tables and return their files by name."""
    found: defaultdict[str, list[pa.Table]] = defaultdict(list)
    names = [(task.table, task.label) for task in plan]
    if len(set(names)) < len(names):
        raise ValueError(f"the tasks of {experiment.name} must differ in table or label")
    for task in plan:
        progress.begin(f"{experiment.title}: {task.label}")
        found[task.table].append(parts.table(task))
    files = {name: output / "tables" / f"{experiment.name}-{name}.csv" for name in found}
    for name, path in files.items():
        tables.write(pa.concat_tables(found[name]), path)
    return files


def _pictures(experiment: Experiment, effort: Effort, output: Path) -> dict[str, Path]:
    return {suffix: output / "figures" / f"{experiment.name}.{suffix}" for suffix in effort.formats}


@contextmanager
def _drawing_office(figures: int) -> Iterator[Executor]:
    """Yield an executor for drawing: other processes, or one thread for a single figure."""
    office: Executor
    if figures == 1:
        office = ThreadPoolExecutor(1)
    else:
        workers = min(figures, os.cpu_count() or 1, 4)
        # Spawned, since the kernels' threads do not survive a fork. The parent handles interruptions.
        office = ProcessPoolExecutor(
            workers, get_context("spawn"), initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)
        )
    try:
        yield office
    finally:
        office.shutdown(cancel_futures=True)


def _draw(
    draw: Callable[[tables.Tables], Figure], files: Mapping[str, Path], pictures: Mapping[str, Path]
) -> list[str]:
    """Draw an experiment from its files alone, so that it shows only what they hold. Return the warnings."""
    with warnings.catch_warnings(record=True) as caught, look():
        warnings.simplefilter("always")
        figure = draw(_read(files))
        # Lay out the panels once for all formats; with the engine "none" each would still be drawn twice.
        engine = figure.get_layout_engine()
        if engine is not None:
            engine.execute(figure)
        figure.set_layout_engine(None)
        for suffix, path in pictures.items():
            with replacing(path) as temporary:
                figure.savefig(temporary, format=suffix, metadata=FORMATS[suffix])
    return [str(warning.message) for warning in caught]


def _section(experiment: Experiment, files: Mapping[str, Path], effort: Effort, output: Path) -> report.Section:
    """Return the section of an experiment, again from its files alone."""
    data = _read(files)
    pictures = _pictures(experiment, effort, output)
    return report.Section(
        experiment=replace(experiment, caption=experiment.caption.format_map(experiment.numbers(data))),
        image=pictures["svg"].read_bytes(),
        listings=experiment.listings(data),
        entries=ledger.assess(experiment.name, experiment.claims, data, full=effort.full),
        files=[path.relative_to(output).as_posix() for path in (*files.values(), *pictures.values())],
        tables=data,
    )


def _read(files: Mapping[str, Path]) -> tables.Tables:
    return {name: tables.read(path) for name, path in files.items()}
