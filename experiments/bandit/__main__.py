"""The command line: ``python -m experiments.bandit`` plays the full run and keeps its tables."""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import dpselect as dps
from experiments.bandit import EXPERIMENTS, kept
from experiments.bandit.runs import PROBLEM, WORLDS, plan, plan_others, plan_settings
from experiments.experiment import FULL
from experiments.report import commit
from experiments.runner import run
from experiments.scenarios import SEED

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, and replace the kept tables."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.bandit",
        description="Play the full run of the bandit and keep its tables with the code "
        "(experiments/bandit/results), for fast runs to show. Commit your changes first: the tables name the "
        "commit.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("output"),
        metavar="DIRECTORY",
        help="the output directory; what a full run there has already computed is reused (default: output)",
    )
    options = parser.parse_args(arguments)
    code = commit()
    plays = (plan, plan_others, plan_settings)
    run([each for each in EXPERIMENTS if each.plan in plays], FULL, options.output, page="excerpt.html")
    files = {
        task.table: options.output / "tables" / f"{each.name}-{task.table}.csv"
        for each in EXPERIMENTS
        if each.plan in plays
        for task in each.plan(FULL)
        if task.table != kept.ORIGIN
    }
    facts = {
        "effort": f"full: {WORLDS} runs of {PROBLEM.horizon:,} steps for each policy and setting",
        "seed": str(SEED),
        "dpselect": dps.__version__,
        "commit": code,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }
    kept.keep(files, facts)
    print(f"Kept: {', '.join(sorted(files))} at commit {code}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
