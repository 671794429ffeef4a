"""The kept tables of a full run of the bandit, in ``results`` beside this file.

A run of a thousand steps says nothing about one of 50,000: the policies have not yet learned anything when the arms
swap. So a fast run plays nothing. It shows the kept tables, and says so. ``python -m experiments.bandit`` plays the
full run and writes them again.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from experiments.experiment import Effort, Task
from experiments.tables import read, write

__all__ = ["HERE", "ORIGIN", "PLAYED", "keep", "tasks"]

HERE = Path(__file__).resolve().parent / "results"
ORIGIN = "origin"
PLAYED = {"source": "this run"}


def tasks(effort: Effort, played: Sequence[Task], home: Path = HERE) -> list[Task]:
    """Return the tasks that play, or in a fast run those that read the kept tables; and one for their origin."""
    if effort.full:
        return [*played, Task(label="origin", table=ORIGIN, compute=partial(_named, PLAYED))]
    names = [*(task.table for task in played), ORIGIN]
    return [
        Task(
            label=f"kept full run, {name}",
            table=name,
            compute=partial(read, path),
            inputs=sha256(path.read_bytes()).hexdigest(),
        )
        for name in names
        for path in [home / f"{name}.csv"]
    ]


def keep(files: Mapping[str, Path], facts: Mapping[str, str], home: Path = HERE) -> None:
    """Keep these tables, and where they come from."""
    for name, path in files.items():
        write(read(path), home / f"{name}.csv")
    write(_named({"source": "a kept full run", **facts}), home / f"{ORIGIN}.csv")


def _named(facts: Mapping[str, str]) -> pa.Table:
    return pa.table({"name": list(facts), "value": list(facts.values())})
