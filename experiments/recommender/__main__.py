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
    """Run every available dataset, one after the other, and print the folders of the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.recommender",
        description="The paper on real data: train, score, pick privately. You can interrupt it at any time; the "
        "next run resumes. The next `make paper` shows the results.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get(VARIABLE),
        metavar="DIRECTORY",
        help=f"the directory of the datasets (default: the environment variable {VARIABLE})",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("output"),
        metavar="DIRECTORY",
        help="the output directory (default: output)",
    )
    parser.add_argument("--only", action="append", metavar="RUN", help="run only this one; repeat for more")
    parser.add_argument("--list", action="store_true", help="list the possible runs and exit")
    parser.add_argument(
        "--publish",
        action="store_true",
        help="also copy the tables to the committed ones (experiments/recommender/results)",
    )
    options = parser.parse_args(arguments)
    runs = _runs(parser, options.data, options.only)
    if options.list:
        for run in runs:
            print(f"{run.name:28}{run.title}")
        return 0
    if not sansa_is_installed():
        print(f"{SANSA_MISSING}. Until then, EASE replaces it for datasets with few enough items.", file=sys.stderr)
    failed = 0
    for run in runs:
        try:
            folder = execute_alone(run, Path(options.data), options.output)
        except (BadDataError, FileNotFoundError, ValueError, BrokenProcessPool) as error:
            print(f"{run.title}: {error}", file=sys.stderr)
            failed += 1
            continue
        except Exception:
            # One failed run must not stop the others.
            traceback.print_exc()
            failed += 1
            continue
        except KeyboardInterrupt:
            print("\nInterrupted. Run again to resume.", file=sys.stderr)
            return 130
        if options.publish:
            results.publish(folder, run.name)
        print(f"{run.title}: {folder}")
    return 1 if failed else 0


def _runs(parser: argparse.ArgumentParser, folder: Path | None, only: Sequence[str] | None) -> list[Run]:
    if folder is None:
        parser.error(f"argument --data: missing; give it or set the environment variable {VARIABLE}; {_sources()}")
    if not Path(folder).is_dir():
        parser.error(f"argument --data: {folder} is not a directory; {_sources()}")
    runs = runs_in(Path(folder))
    if not runs:
        parser.error(f"argument --data: no known dataset in {folder}; {_sources()}")
    unknown = sorted(set(only or ()) - {run.name for run in runs})
    if unknown:
        parser.error(
            f"argument --only: unknown run {unknown[0]}; choose from {', '.join(run.name for run in runs)}"
        )
    return [run for run in runs if not only or run.name in only]


def _sources() -> str:
    return "sources of the datasets: " + " ".join(dataset.source for dataset in DATASETS.values())


if __name__ == "__main__":
    sys.exit(main())
