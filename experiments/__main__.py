"""The command line: ``python -m experiments``."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.experiment import FAST, FULL
from experiments.files import replacing
from experiments.runner import run
from experiments.scenarios import SCENARIOS_1_TO_3

__all__ = ["EXPERIMENTS", "main"]

EXPERIMENTS = (SCENARIOS_1_TO_3,)
"""In the order of the report."""

PICTURES = {"scenarios.png": "scenarios-1-to-3.png"}
"""The documentation's pictures, and the figure that each one shows."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report and say where it is."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Reproduce the paper: one self-contained HTML report, its figures and its tables.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("output"),
        metavar="DIRECTORY",
        help="where report.html, figures/ and tables/ go; made if missing (default: output)",
    )
    parser.add_argument("--fast", action="store_true", help=f"a quick look, on a coarser grid ({FAST.description})")
    parser.add_argument(
        "--pictures",
        type=Path,
        metavar="DIRECTORY",
        help="also copy the figures that the documentation shows there (docs/images)",
    )
    options = parser.parse_args(arguments)
    for name in ("output", "pictures"):
        _make_directory(parser, name, getattr(options, name))
    try:
        report = run(EXPERIMENTS, FAST if options.fast else FULL, options.output)
    except KeyboardInterrupt:
        print("\nInterrupted; the report was not written.", file=sys.stderr)
        return 130
    if options.pictures is not None:
        for picture, figure in PICTURES.items():
            with replacing(options.pictures / picture) as temporary:
                shutil.copyfile(options.output / "figures" / figure, temporary)
    print(f"Report: {report}")
    return 0


def _make_directory(parser: argparse.ArgumentParser, name: str, path: Path | None) -> None:
    """Find out before the work, not after it, that there is nowhere to write."""
    if path is None:
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"argument --{name}: cannot make the directory {path}: {error.strerror}")
    if not os.access(path, os.W_OK):
        parser.error(f"argument --{name}: the directory {path} is not writable")


if __name__ == "__main__":
    sys.exit(main())
