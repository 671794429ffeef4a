"""From experiments to files: tables, then figures, then the ledger and the report."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from experiments import ledger, report, tables
from experiments.drawing import look
from experiments.experiment import Effort, Experiment, Task
from experiments.files import replacing
from experiments.parts import Parts
from experiments.progress import Progress

__all__ = ["run"]

# Each format, and what matplotlib would stamp into it: without, the same table gives the same file.
FORMATS: Mapping[str, dict[str, None]] = MappingProxyType(
    {
        "svg": {"Creator": None, "Date": None, "Format": None, "Type": None},
        "png": {"Software": None},
        "pdf": {"CreationDate": None},
    }
)


def run(experiments: Sequence[Experiment], effort: Effort, output: Path, *, page: str = "report.html") -> Path:
    """Compute, draw and report all experiments, and return the report's path.

    What an earlier run into the same directory computed is used again, also if that run was interrupted.

    Args:
        experiments: In the order of the report.
        effort: How finely to compute.
        output: The directory for the report, ``figures``, ``tables``, and ``parts``, which are the kept results.
        page: The report's file name.
    """
    started = time.monotonic()
    plans = [experiment.plan(effort) for experiment in experiments]
    # All at once: code that changes during the run must not pass for the code that is running.
    kept = [Parts.of(experiment, effort, output) for experiment in experiments]
    sections: list[report.Section] = []
    with Progress(sum(len(plan) + 1 for plan in plans)) as progress:
        for experiment, plan, parts in zip(experiments, plans, kept, strict=True):
            files = _compute(experiment, plan, parts, output, progress)
            progress.begin(f"{experiment.title}: drawing")
            sections.append(_draw(experiment, files, output))
    entries = ledger.in_order([entry for section in sections for entry in section.entries])
    if page == "report.html":
        tables.write(ledger.table(entries), output / "tables" / "claims.csv")
    steps = sum(len(plan) for plan in plans)
    reused = sum(parts.reused for parts in kept)
    origin = report.provenance(effort, time.monotonic() - started, steps=steps, reused=reused)
    path = output / page
    report.write(path, sections, entries, origin)
    return path


def _compute(
    experiment: Experiment, plan: Sequence[Task], parts: Parts, output: Path, progress: Progress
) -> dict[str, Path]:
    """Write an experiment's tables, and return their files by name."""
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


def _draw(experiment: Experiment, files: Mapping[str, Path], output: Path) -> report.Section:
    """Draw and judge an experiment from its files alone, so that nothing is shown that is not in them."""
    data = {name: tables.read(path) for name, path in files.items()}
    pictures = {suffix: output / "figures" / f"{experiment.name}.{suffix}" for suffix in FORMATS}
    with look():
        figure = experiment.draw(data)
        # Lay the panels out once, not for each format.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for suffix, path in pictures.items():
            with replacing(path) as temporary:
                figure.savefig(temporary, format=suffix, metadata=FORMATS[suffix])
    return report.Section(
        experiment=experiment,
        image=pictures["svg"].read_bytes(),
        numbers=experiment.count(data) if experiment.count else None,
        facts=experiment.facts(data) if experiment.facts else (),
        entries=ledger.assess(experiment.name, experiment.claims, data),
        files=[path.relative_to(output).as_posix() for path in (*files.values(), *pictures.values())],
    )
