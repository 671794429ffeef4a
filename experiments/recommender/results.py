"""The small tables of each run: where they are kept, and which ones the report shows.

A run writes its tables to ``recommender/RUN`` under the output directory. Set the environment variable
``DPSELECT_RESULTS`` to the folder ``recommender`` to show them in the report. Otherwise the report shows the
committed tables, in ``results`` beside this file. The tables hold counts and means, and nothing about single users.
"""

import csv
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from experiments.files import replacing
from experiments.recommender.datasets import RUNS
from experiments.tables import read, write

__all__ = [
    "COMMITTED",
    "PRIVATE",
    "TABLES",
    "complete",
    "publish",
    "read_summary",
    "read_tables",
    "shown",
    "write_summary",
]

COMMITTED = Path(__file__).resolve().parent / "results"
VARIABLE = "DPSELECT_RESULTS"
PRIVATE = ("private", "private_lists", "dominated")
"""The tables of the protocol that is private from end to end."""
TABLES = ("errors", "correlations", "ratios", "tilts", "gains", "tuned", "lists", *PRIVATE)
SUMMARY = "summary.csv"


def complete(folder: Path) -> bool:
    """Return whether a run is complete. The summary is written last."""
    return (folder / SUMMARY).is_file()


def shown() -> list[Path]:
    """Return the folders of the runs to show, in the order of the figure. Your own come before committed ones."""
    own = os.environ.get(VARIABLE)
    homes = [Path(own), COMMITTED] if own else [COMMITTED]
    found: dict[str, Path] = {}
    for home in homes:
        for folder in sorted(home.glob("*")):
            if complete(folder):
                found.setdefault(folder.name, folder)
    known = [run.name for run in RUNS]
    order = [name for name in known if name in found] + [name for name in found if name not in known]
    return [found[name] for name in order]


def read_tables(folder: Path) -> dict[str, pa.Table]:
    """Return those of a run's tables that exist, by name."""
    return {name: read(folder / f"{name}.csv") for name in TABLES if (folder / f"{name}.csv").is_file()}


def write_summary(values: Mapping[str, str], path: Path) -> None:
    """Write names and values, one line each."""
    write(pa.table({"name": list(values), "value": list(values.values())}), path)


def read_summary(folder: Path) -> dict[str, str]:
    """Return names and values, all as text."""
    with (folder / SUMMARY).open(encoding="utf-8", newline="") as file:
        return {row["name"]: row["value"] for row in csv.DictReader(file)}


def publish(folder: Path, name: str, target: Path = COMMITTED) -> None:
    """Copy a run's tables to the committed ones, the summary last."""
    for file in (*(f"{table}.csv" for table in TABLES), SUMMARY):
        if (folder / file).is_file():
            with replacing(target / name / file) as temporary:
                shutil.copyfile(folder / file, temporary)
