"""What the kept runs are evidence of: which ones stand for the paper's datasets, and their errors for other claims.

A verdict rests on the paper's datasets, or on the part of them that is available. A substitute is shown beside them
and never turns a verdict. Neither does any other run.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from experiments.experiment import Task
from experiments.recommender import results

__all__ = ["PAPER_SETS", "judged", "kept_errors", "substitutes"]

PAPER_SETS = ("MovieLens-20M", "Netflix Prize", "Amazon Books")
"""The paper's datasets, which are also the titles of the runs on them with its settings."""
PARTS: Mapping[str, str] = MappingProxyType({"Amazon Books": "Amazon Books 84 %, density 5e-5"})
"""Runs on a part of a dataset of the paper."""
SUBSTITUTES: Mapping[str, str] = MappingProxyType({"MovieLens-20M": "MovieLens-1M"})
"""Runs on a dataset that is near one of the paper's."""


def judged(runs: Sequence[str]) -> dict[str, str]:
    """Return the runs that verdicts rest on, each with the paper's dataset that it shows, whole or in part."""
    found = {own if own in runs else PARTS.get(own): own for own in PAPER_SETS}
    return {run: own for run, own in found.items() if run is not None and run in runs}


def substitutes(runs: Sequence[str]) -> dict[str, str]:
    """Return the runs that stand for a missing dataset of the paper, each with that dataset."""
    shown = judged(runs).values()
    return {run: own for own, run in SUBSTITUTES.items() if own not in shown and run in runs}


def kept_errors(table: str) -> list[Task]:
    """Return tasks that read the errors and the median correlation of each run that the report shows.

    Columns: ``run``, ``correlation`` (the median over users), ``variant``, ``mechanism``, ``epsilon`` and
    ``mean_squared_error``.
    """
    return [
        Task(
            label=f"{folder.name}, errors",
            table=table,
            compute=partial(_errors, folder),
            inputs=sha256(
                (folder / "errors.csv").read_bytes() + (folder / results.SUMMARY).read_bytes()
            ).hexdigest(),
        )
        for folder in results.shown()
        if (folder / "errors.csv").is_file()
    ]


def _errors(folder: Path) -> pa.Table:
    summary, table = results.read_summary(folder), results.read_tables(folder)["errors"]
    medians = {name: float(summary[f"correlation_{name}_quantile_50"]) for name in ("clipped", "unclipped")}
    return pa.table(
        {
            "run": [summary["title"]] * table.num_rows,
            "correlation": [medians[variant] for variant in table["variant"].to_pylist()],
            "variant": table["variant"],
            "mechanism": table["mechanism"],
            "epsilon": table["epsilon"].cast(pa.float64()),
            "mean_squared_error": table["mean_squared_error"],
        }
    )
