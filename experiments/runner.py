"""From experiments to files: tables, then figures, then the report."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from experiments import report, tables
from experiments.drawing import look
from experiments.experiment import Effort, Experiment, Task
from experiments.files import replacing
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


def run(experiments: Sequence[Experiment], effort: Effort, output: Path) -> Path:
    """Compute, draw and report all experiments, and return the report's path.

    Args:
        experiments: In the order of the report.
        effort: How finely to compute.
        output: The directory for ``report.html``, ``figures`` and ``tables``.
    """
    started = time.monotonic()
    plans = [experiment.plan(effort) for experiment in experiments]
    sections: list[report.Section] = []
    with Progress(sum(len(plan) + 1 for plan in plans)) as progress:
        for experiment, plan in zip(experiments, plans, strict=True):
            files = _compute(experiment, plan, output, progress)
            progress.begin(f"{experiment.title}: drawing")
            sections.append(_draw(experiment, files, output))
    path = output / "report.html"
    report.write(path, sections, report.provenance(effort, time.monotonic() - started))
    return path


def _compute(experiment: Experiment, plan: Sequence[Task], output: Path, progress: Progress) -> dict[str, Path]:
    """Write an experiment's tables, and return their files by name."""
    parts: defaultdict[str, list[pa.Table]] = defaultdict(list)
    for task in plan:
        progress.begin(task.label)
        parts[task.table].append(task.compute())
    files = {name: output / "tables" / f"{experiment.name}-{name}.csv" for name in parts}
    for name, path in files.items():
        tables.write(pa.concat_tables(parts[name]), path)
    return files


def _draw(experiment: Experiment, files: Mapping[str, Path], output: Path) -> report.Section:
    """Draw an experiment from its files alone, so that nothing is shown that is not in them."""
    data = {name: tables.read(path) for name, path in files.items()}
    pictures = {suffix: output / "figures" / f"{experiment.name}.{suffix}" for suffix in FORMATS}
    with look():
        figure = experiment.draw(data)
        for suffix, path in pictures.items():
            with replacing(path) as temporary:
                figure.savefig(temporary, format=suffix, metadata=FORMATS[suffix])
    return report.Section(
        experiment=experiment,
        image=pictures["svg"].read_bytes(),
        numbers=experiment.count(data),
        files=[path.relative_to(output).as_posix() for path in (*files.values(), *pictures.values())],
    )
