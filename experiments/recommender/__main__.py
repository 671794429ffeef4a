"""The command line: ``python -m experiments.recommender``."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from experiments.recommender import results
from experiments.recommender.alone import execute_alone
from experiments.recommender.datasets import DATASETS, Run, runs_in
from experiments.recommender.formats import BadDataError
from experiments.recommender.sansa import SANSA_MISSING, sansa_is_installed

__all__ = ["main"]

VARIABLE = "DPSELECT_DATA"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every set that is there, one after the other, and say where the tables are."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.recommender",
        description="The paper on real data: train, score, pick privately. Interrupt it at any time: it goes on "
        "from there. The next `make paper` shows what it finds.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get(VARIABLE),
        metavar="DIRECTORY",
        help=f"where the sets are (default: the environment variable {VARIABLE})",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("output"),
        metavar="DIRECTORY",
        help="where results go (default: output)",
    )
    parser.add_argument(
        "--only", action="append", metavar="RUN", help="run this one alone; may be given more than once"
    )
    parser.add_argument("--list", action="store_true", help="list the runs that are possible, and do nothing else")
    parser.add_argument(
        "--publish",
        action="store_true",
        help="also copy the tables to where they are committed (experiments/…/results)",
    )
    options = parser.parse_args(arguments)
    runs = _runs(parser, options.data, options.only)
    if options.list:
        for run in runs:
            print(f"{run.name:28}{run.title}")
        return 0
    if not sansa_is_installed():
        print(
            f"{SANSA_MISSING}. Until then EASE takes its place where there are few enough items.", file=sys.stderr
        )
    failed = 0
    for run in runs:
        try:
            folder = execute_alone(run, Path(options.data), options.output)
        except (BadDataError, FileNotFoundError, ValueError, BrokenProcessPool) as error:
            print(f"{run.title}: {error}", file=sys.stderr)
            failed += 1
            continue
        except Exception:
            # Whatever went wrong in one run, the others are worth having.
            traceback.print_exc()
            failed += 1
            continue
        except KeyboardInterrupt:
            print("\nInterrupted. Run again to go on from here.", file=sys.stderr)
            return 130
        if options.publish:
            results.publish(folder, run.name)
        print(f"{run.title}: {folder}")
    return 1 if failed else 0


def _runs(parser: argparse.ArgumentParser, folder: Path | None, only: Sequence[str] | None) -> list[Run]:
    if folder is None:
        parser.error(f"argument --data: is needed, or the environment variable {VARIABLE}; {_sources()}")
    if not Path(folder).is_dir():
        parser.error(f"argument --data: {folder} is not a directory; {_sources()}")
    runs = runs_in(Path(folder))
    if not runs:
        parser.error(f"argument --data: no known set in {folder}; {_sources()}")
    unknown = sorted(set(only or ()) - {run.name for run in runs})
    if unknown:
        parser.error(f"argument --only: {unknown[0]} is not one of {', '.join(run.name for run in runs)}")
    return [run for run in runs if not only or run.name in only]


def _sources() -> str:
    return "where to get the sets: " + " ".join(dataset.source for dataset in DATASETS.values())


if __name__ == "__main__":
    sys.exit(main())
